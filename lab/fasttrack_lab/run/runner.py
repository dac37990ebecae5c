# SPDX-License-Identifier: GPL-2.0-only
"""Run guests: one, or many side by side on the machine's cores."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fasttrack_lab.build import device_programs, guest_program
from fasttrack_lab.build.kernel import kbuild
from fasttrack_lab.host import side_by_side
from fasttrack_lab.host.errors import Interrupted, LabError
from fasttrack_lab.host.paths import cache_dir, newest_first
from fasttrack_lab.host.rundir import copy_sparse, held_mib, run_dir
from fasttrack_lab.inputs import detector, lru, places
from fasttrack_lab.inputs.cell import Cell
from fasttrack_lab.inputs.phone import Phone
from fasttrack_lab.inputs.placeholders import APPS
from fasttrack_lab.inputs.policy import Policy
from fasttrack_lab.run import image
from fasttrack_lab.run.boot import job as boot_job
from fasttrack_lab.run.boot.backend import Backend, BootSpec, Outcome
from fasttrack_lab.run.boot.uml import Uml, kernel_release
from fasttrack_lab.run.result import LogProblem, Printed, Result, Verdict, judge

LIMIT_S = 300.0
"""Real time after which a guest counts as hung; a run takes 5 to 30 s."""

FAILED_KEPT = 50
PRINTED_KEPT = 64 << 10
"""Characters of what an app has printed that a result keeps, at its end."""


@dataclass(frozen=True)
class Tools:
    """What every run needs, built once."""

    kernel: kbuild.Kernel
    guest: Path
    guest_key: str
    backend: Backend
    preparer: kbuild.Kernel | None = None
    """The kernel that prepares the phones' images, where it is not the run's own."""

    @classmethod
    def of_checkout(cls, target: str = "um") -> Tools:
        """Build or find the kernel for TARGET and the guest program."""
        program = guest_program.build()
        backend = Uml(kbuild.TARGETS[target].checks_mib)
        return cls(kbuild.build(target), program, guest_program.key(program), backend)


@dataclass(frozen=True)
class RunSpec:
    """One run: a job on a phone under a policy."""

    cell: Cell
    phone: Phone
    policy: Policy
    job: Mapping[str, Any]
    """mode, apps, files, touch_s and limit_s; the rest of job.json is added here."""
    traces: Mapping[str, str] = field(default_factory=dict)
    """Files of the run's directory by their names: normalised traces, programs."""
    files_from: Path | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    limit_s: float | None = LIMIT_S
    before_touch: tuple[int, ...] = ()
    """UIDs in front from the start to the touch."""
    printed: bool = False
    """Whether the result keeps what the apps print."""
    trace_to: Path | None = None
    """Directory for the logs of a trace of I/O origin; None: nobody records."""

    @property
    def texts(self) -> dict[str, str]:
        """All files of the run's directory that the inputs decide."""
        detector = self.policy.detector
        return {**self.traces, **(detector.texts(self.job["apps"], self.before_touch) if detector else {})}

    @property
    def on_its_fs(self) -> Cell:
        """The cell with the file system that the phone has."""
        return replace(self.cell, fs=self.phone.fs)


def full_job(spec: RunSpec) -> dict[str, Any]:
    """job.json of a run."""
    policy, apps = spec.policy, spec.job["apps"]
    values = {**policy.values(spec.phone.name), APPS: " ".join(str(app["uid"]) for app in apps)}
    front = tuple(app["uid"] for app in apps if app["role"] == "foreground")
    told = [] if front == spec.before_touch else policy.foreground_json(values, *front)
    services = []
    if policy.detector:
        services.append(policy.detector.service(apps))
        told.append(policy.detector.touch(apps, spec.before_touch))
    found = [places.place_of(app, spec.before_touch) for app in apps]
    placed = [place for place in found if place]
    job = {
        "version": 1,
        "mode": "play",
        "seed": spec.cell.seed,
        "device": "/dev/sda",
        "fs": spec.phone.fs,
        "format": None,
        "mount_options": spec.phone.mount_options,
        "settings": [
            *policy.settings_json(values),
            *lru.settings(spec.cell.lru),
            *places.group_files(placed, policy, after=False),
            *policy.foreground_json(values, *spec.before_touch),
        ],
        "foreground": [*told, *places.group_files(placed, policy, after=True)],
        "touch_s": 0.0,
        "verify": False,
        **spec.job,
        "apps": [
            *(places.with_ioprio(app, place, policy) for app, place in zip(apps, found, strict=True)),
            *services,
        ],
    }
    if spec.files_from is not None:
        job["files_from"] = "files"
    if spec.trace_to is not None:
        job["collector"] = guest_program.COLLECTOR.name
    return job


def laid_out(spec: RunSpec, tools: Tools, where: Path, phone_image: Path | None, interactive: bool = False) -> BootSpec:
    """Put the phone, the job, its traces and its files into the run's directory; the boot of the run from there."""
    if phone_image is not None:
        copy_sparse(phone_image, where / "phone.img")
    for name, text in spec.texts.items():
        (where / name).write_text(text)
    if spec.policy.detector:
        for program in device_programs.build().iterdir():
            shutil.copy2(program, where / program.name)
    if spec.files_from is not None:
        shutil.copytree(spec.files_from, where / "files", symlinks=True)
    if spec.trace_to is not None:
        shutil.copy2(guest_program.build(guest_program.COLLECTOR), where)
    job = full_job(spec)
    boot_job.fill(where, tools.guest, job)
    params = {
        **boot_job.params(tools.backend, job),
        **image.storage_params(tools.backend, spec.phone),
        "mflash.scheduler": spec.policy.device_scheduler,
        **spec.params,
    }
    return BootSpec(
        tools.kernel.image,
        boot_job.INIT,
        spec.phone.guest_mib,
        where,
        spec.limit_s,
        spec.cell.seed,
        params,
        interactive=interactive,
        root=boot_job.root(tools.backend),
    )


def need_mib(spec: RunSpec, tools: Tools, phone_image: Path | None) -> int:
    """Room for a run, in MiB."""
    files = spec.files_from
    copied = [p for p in files.rglob("*") if p.is_file()] if files else []
    copied += [tools.guest, *([phone_image] if phone_image else [])]
    return spec.phone.guest_mib + image.ROOM_MIB + sum(held_mib(path) for path in copied)


@contextmanager
def booted(spec: RunSpec, tools: Tools, phone_image: Path | None) -> Iterator[tuple[Path, Outcome]]:
    """Boot a run to its end; its directory is there inside the with block."""
    with run_dir(need_mib(spec, tools, phone_image)) as where:
        yield where, tools.backend.boot(laid_out(spec, tools, where, phone_image))


def phone_image(spec: RunSpec, tools: Tools) -> AbstractContextManager[Path]:
    """The prepared image for a run, which nobody removes inside the with block."""
    contents = image.Contents.of_job(spec.phone, dict(spec.job))
    return image.prepared(contents, tools.preparer or tools.kernel, tools.guest, tools.guest_key, tools.backend)


def run(spec: RunSpec, tools: Tools, collect: Callable[[Path], None] | None = None) -> Result:
    """Run once. COLLECT sees the run's directory before it goes."""
    with phone_image(spec, tools) as prepared, booted(spec, tools, prepared) as (where, outcome):
        written = where / "result.json"
        verdict = judge(outcome, written.read_text() if written.is_file() else None)
        verdict = with_detectors_word(verdict, spec, where)
        printed = printed_by(spec, where) if spec.printed else {}
        if spec.trace_to is not None:
            keep_trace(where, spec.trace_to)
        if collect:
            collect(where)
    kept = None if verdict.ok else str(keep_failed(spec.cell, outcome, verdict))
    return Result(spec.on_its_fs, verdict, kernel_release(outcome.console), outcome.wall_s, kept, printed)


def with_detectors_word(verdict: Verdict, spec: RunSpec, where: Path) -> Verdict:
    """A failed run's verdict with the last line of what the programs have said that tell who is in front."""
    said = where / f"{detector.SERVICE}.err"
    lines = said.read_text(errors="replace").splitlines() if spec.policy.detector and said.is_file() else []
    if verdict.ok or not lines:
        return verdict
    return replace(verdict, error=f"{verdict.error}; {lines[-1]}")


def keep_trace(where: Path, to: Path) -> None:
    """Move the logs of a run, of a failed one too, to where they are asked for."""
    to.mkdir(parents=True, exist_ok=True)
    for log in sorted((where / "trace").glob("*.ftlog")):
        shutil.move(log, to / log.name)


def printed_by(spec: RunSpec, where: Path) -> dict[str, Printed]:
    """What the apps printed last, by their names."""

    def end(path: Path) -> str:
        return path.read_text(errors="replace")[-PRINTED_KEPT:] if path.is_file() else ""

    names = [app["name"] for app in spec.job["apps"]]
    return {name: Printed(end(where / f"{name}.out"), end(where / f"{name}.err")) for name in names}


def keep_failed(cell: Cell, outcome: Outcome, verdict: Verdict) -> Path:
    """Keep the log of a failed run in the cache."""
    room = cache_dir("failed")
    stamp = time.strftime("%Y%m%d-%H%M%S")
    scenario = Path(cell.scenario).stem
    name = f"{stamp}-{scenario}-{cell.phone}-{cell.policy}-{cell.seed}-{os.urandom(2).hex()}.log"
    guest_text = json.dumps(verdict.guest, indent=1) if verdict.guest else "none"
    (room / name).write_text(
        f"error: {verdict.error}\n\n--- console\n{outcome.console}\n--- result.json\n{guest_text}\n"
    )
    for old in newest_first(room.glob("*.log"))[FAILED_KEPT:]:
        old.unlink(missing_ok=True)
    return room / name


def failed(spec: RunSpec, error: LabError) -> Result:
    """The result of a run that did not get as far as a verdict."""
    verdict = Verdict(False, str(error), tuple[LogProblem, ...](), None)
    return Result(spec.on_its_fs, verdict, "", 0.0)


Notice = Callable[[RunSpec, Result], None]


def run_many(
    specs: Sequence[RunSpec],
    tools: Tools,
    title: str = "runs",
    on_result: Notice | None = None,
    jobs: int | None = None,
) -> list[Result]:
    """Run all, one guest a core, with a progress bar; the results in the order of SPECS.

    A run that fails is a Result that is not ok, and the others go on. ON_RESULT is called from this thread.
    """
    return side_by_side.each(specs, lambda spec: _run_caught(spec, tools), title, on_result, jobs)


def _run_caught(spec: RunSpec, tools: Tools) -> Result:
    try:
        return run(spec, tools)
    except Interrupted:
        raise
    except LabError as error:
        return failed(spec, error)
