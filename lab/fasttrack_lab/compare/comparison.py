# SPDX-License-Identifier: GPL-2.0-only
"""A comparison: scenarios on phones, under policies, with backgrounds, with seeds. Makes the runs that are lacking."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path
from time import monotonic

from fasttrack_lab.build import device_programs
from fasttrack_lab.compare import limits, report
from fasttrack_lab.compare.records import (
    Again,
    Front,
    Record,
    Request,
    append,
    duration_text,
    finished,
    plan,
    read,
    write_request,
)
from fasttrack_lab.host import ui
from fasttrack_lab.host.errors import InputError, UsageProblem
from fasttrack_lab.host.paths import digest, recording, tree_parts, try_flock
from fasttrack_lab.inputs import phone, policy, scenario, smartio
from fasttrack_lab.inputs.cell import Cell, recording_part
from fasttrack_lab.inputs.scenario import Scenario
from fasttrack_lab.run import runner, specs
from fasttrack_lab.run.result import Result

SCENARIOS = ("gallery-launch", "camera-switch", "game-load")
RECORDING, RECORDING_S = "mobigen/facebook.mobigen", 20
"""What is compared where no scenario is given: the first seconds of the recording if it is there. All of it, two
minutes, would make most of the comparison's runs take minutes."""

INPUTS_DIGITS, GUEST_DIGITS = 16, 8
"""What a record has as inputs: the key of what the run is made from, and the first digits of the guest program's."""


_background, _phone, _policy = cache(scenario.load_background), cache(phone.load), cache(policy.load)
# A comparison has hundreds of runs of a few files: each is read once.


@cache
def load_front(given: str) -> Scenario:
    """A foreground: a scenario, or a recording to replay, which is a file of any other ending than .toml.

    FILE:SECONDS is the first so many seconds of a recording.
    """
    if Path(given).suffix in ("", ".toml"):
        return scenario.load(given)
    path, length_s = (given, None) if Path(given).exists() else recording_part(given)
    return scenario.from_trace(Path(path), length_s=length_s)


def standard() -> tuple[str, ...]:
    """The foregrounds that are compared where none is given."""
    replayed = recording(RECORDING)
    return SCENARIOS if replayed is None else (*SCENARIOS, f"{replayed}:{RECORDING_S}")


def replays_recording(cell: Cell) -> bool:
    """Whether it is a run of the recording, wherever that lies."""
    return Path(recording_part(cell.scenario)[0]).name == Path(RECORDING).name


def run_of(cell: Cell) -> runner.RunSpec:
    """The run of a cell."""
    behind = [_background(name) for name in cell.backgrounds]
    device = _phone(cell.phone).with_fs(cell.fs or None)
    front, rule = load_front(cell.scenario), _policy(cell.policy)
    return specs.spec_of(front, behind, device, rule, cell.seed, lru_name=cell.lru, idle=cell.idle)


def inputs_key(spec: runner.RunSpec) -> str:
    """Hash of all that a run is made from, save the kernel: the job with its settings, the files, the phone."""
    job = json.dumps(runner.full_job(spec), sort_keys=True)
    described = repr((spec.phone, spec.policy))
    texts = [f"{name}\n{text}" for name, text in sorted(spec.texts.items())]
    if spec.policy.detector:
        texts.append(device_programs.sources_key())
    files = tree_parts(spec.files_from) if spec.files_from else ()
    return digest([job, described, *texts, *files])[:INPUTS_DIGITS]


def keyed(specs: Iterable[tuple[Cell, runner.RunSpec]], tools: runner.Tools) -> Runs:
    """Runs with what their records have as inputs."""
    return {cell: (spec, inputs_key(spec) + tools.guest_key[:GUEST_DIGITS]) for cell, spec in specs}


def guest_of(record: Record) -> str:
    """The first digits of the key of the guest program that a run was made with."""
    return record.inputs[INPUTS_DIGITS:]


Runs = Mapping[Cell, tuple[runner.RunSpec, str]]
"""The run of each cell, and what its record has as inputs."""


def runs_of(cells: Iterable[Cell], tools: runner.Tools) -> Runs:
    """The runs of cells, in their order."""
    return keyed(((cell, run_of(cell)) for cell in cells), tools)


@contextmanager
def _alone_in(directory: Path) -> Iterator[None]:
    """Two commands at once would make the same runs, and each record's real time would be of both."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if not try_flock(handle):
            text = "another ./fasttrack command makes runs for this directory: wait for it, or name another with --out"
            raise InputError(text, directory)
        yield
    finally:
        os.close(handle)


def run_missing(
    directory: Path,
    runs: Runs,
    tools: runner.Tools,
    again: Again,
    title: str,
    capped: Collection[Cell] = (),
    jobs: int | None = None,
) -> list[Record]:
    """Makes the runs that the directory lacks, and those to be made AGAIN; adds each as it ends. TITLE is the bar's.

    CAPPED runs come last, and end at so many times their own time alone; another may have been ended so by a command
    that caps it, and is then made in full. JOBS guests run at once, or one a core. Returns the records of all, in
    their order.
    """
    kernel = tools.kernel.key
    wanted = {cell: (cell, key, kernel) for cell, (_, key) in runs.items()}
    done = {
        key: record
        for key, record in finished(read(directory), again).items()
        if record.over is None or record.cell in capped
    }
    missing = {cell: runs[cell] for cell in runs if wanted[cell] not in done}
    if len(missing) < len(runs):
        ended = [done[key] for key in wanted.values() if key in done]
        failed = sum(record.error is not None and record.over is None for record in ended)
        kept = f", {failed} of them failed: --again-failed retries them" if failed else ""
        ui.say(f"{len(runs) - len(missing)} of {len(runs)} runs are in {directory} already{kept}")
    by_spec = {id(spec): (cell, key) for cell, (spec, key) in missing.items()}
    shortened: set[Cell] = set()
    begun_s = ended_s = monotonic()

    def keep(spec: runner.RunSpec, result: Result) -> None:
        """Adds the record of a run that has ended."""
        nonlocal ended_s
        before_s, ended_s = ended_s, monotonic()
        cell, key = by_spec[id(spec)]
        error = None if result.ok else result.verdict.error or "failed without a reason"
        real_s = round(ended_s - before_s, 3)
        over = limits.TIMES if cell in shortened and (error or "").startswith(limits.LIMIT_ENDED) else None
        append(directory, Record(cell, key, kernel, result.to_json(), error, real_s, over))

    def make(made: Sequence[runner.RunSpec]) -> None:
        if made:
            runner.run_many(made, tools, title=title, on_result=keep, jobs=jobs)

    with _alone_in(directory) if missing else nullcontext():
        make([spec for cell, (spec, _) in missing.items() if cell not in capped])
        baselines = limits.alone(record for record in read(directory) if wanted.get(record.cell) == record.key)
        last = {cell: limits.limited(spec, cell, baselines) for cell, (spec, _) in missing.items() if cell in capped}
        by_spec |= {id(spec): by_spec[id(missing[cell][0])] for cell, spec in last.items()}
        shortened |= {cell for cell, spec in last.items() if spec is not missing[cell][0]}
        make([last[cell] for cell in limits.longest_first(last)])
    if missing and len(missing) < len(runs):
        ui.say(f"{len(missing)} more in {duration_text(ended_s - begun_s)} of real time")
    found = {record.key: record for record in read(directory)}
    return [found[wanted[cell]] for cell in runs]


def run_specs(
    directory: Path,
    specs: Iterable[tuple[Cell, runner.RunSpec]],
    tools: runner.Tools,
    again: Again,
    title: str,
    jobs: int | None = None,
) -> list[Record]:
    """Says how many runs there are, and makes those that the directory, which may not be there, lacks."""
    runs = keyed(specs, tools)
    ui.say(f"{len(runs)} runs")
    directory.mkdir(parents=True, exist_ok=True)
    return run_missing(directory, runs, tools, again, title, jobs=jobs)


def compare(directory: Path, request: Request, again: Again = Again.HOST) -> list[Record]:
    """Runs what is missing and makes the directory's report. Returns the records of the comparison."""
    directory.mkdir(parents=True, exist_ok=True)
    tools = runner.Tools.of_checkout()
    runs = runs_of(plan(request), tools)
    request = replace(request, kernel=tools.kernel.key, inputs=tuple(key for _, key in runs.values()))
    write_request(directory, request)
    found = run_missing(directory, runs, tools, again, request.title)
    report.make(directory)
    return found


def fronts(names: Sequence[str]) -> tuple[Front, ...]:
    """The foregrounds of a comparison; each has a name of its own."""
    found: list[Front] = []
    for given in names:
        loaded = load_front(given)
        if loaded.role != "foreground":
            valid = ", ".join([*scenario.available("foreground"), smartio.pattern()])
            raise UsageProblem(f"scenario '{given}' is a background one; foreground scenarios: {valid}")
        front = Front(given, loaded.description, loaded.left)
        if any(front.name == other.name for other in found):
            raise UsageProblem(f"SCENARIO: '{front.name}' is given twice")
        found.append(front)
    return tuple(found)
