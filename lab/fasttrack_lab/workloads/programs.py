# SPDX-License-Identifier: GPL-2.0-only
"""The programs in front and behind as apps of a run: their command lines, and the files that they find."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from fasttrack_lab.host.errors import LabError, UsageProblem, unknown
from fasttrack_lab.host.paths import cache_dir, digest, write_if_changed
from fasttrack_lab.inputs.cell import Cell
from fasttrack_lab.inputs.exec_job import FOREGROUND, SERVICE, background_name, exec_job
from fasttrack_lab.inputs.phone import Phone
from fasttrack_lab.inputs.policy import Policy
from fasttrack_lab.run.runner import RunSpec
from fasttrack_lab.workloads import behind, front

MIB = 1 << 20
RUN = "/run/fasttrack"
"""Where the guest has the run's directory."""
FRONT_TEXT, BEHIND_TEXT = "front.py", "behind.py"

Files = tuple[tuple[str, int], ...]
"""Paths in an app's directory, and sizes in bytes."""

Place = tuple[str, str]
"""A phone and its file system."""

FOLDERS, IN_FOLDER = 30, 20
DATA_BYTES, FILM_BYTES = 96 * MIB, 200 * MIB


def _tree() -> Files:
    """Small files of 1 to 16 KiB, in folders."""
    names = [(folder, name) for folder in range(FOLDERS) for name in range(IN_FOLDER)]
    return tuple((f"{front.TREE}/{one}/{name}", 1024 + (one * 7919 + name * 104729) % 15360) for one, name in names)


FRONT_FILES: Files = (*_tree(), (front.DATA, DATA_BYTES), (front.FILM, FILM_BYTES))
BEHIND_FILES: Mapping[str, Files] = {
    "read": ((behind.LARGE, 900 * MIB),),
    "copy": ((behind.LARGE, 300 * MIB),),
}
"""Two readers of 900 MiB each read more than a guest's memory, so that no cache helps."""

ENDED = "/tmp/ended"
"""Where a service's program leaves its exit status."""

NEEDS_PROGRAMS = "coldexec"
STARTED = ("cp", "dd", "fio", "git", "ls", "mkfs.ext4", "perl", "python3", "sqlite3", "tar")
"""Programs of the host's that are copied to the phone to be started from there, as far as they are here."""


@dataclass(frozen=True)
class Program:
    """An app of a run: a command line, and the files that it finds in its directory."""

    name: str
    line: str
    files: Files = ()
    programs: bool = False
    """Whether it finds programs, too."""
    purpose: str = ""
    """What it does, for people."""


def _purpose(kind: object) -> str:
    """The first line of what a kind says of itself."""
    return (kind.__doc__ or "").split("\n", 1)[0]


def known(option: str, names: Sequence[str], valid: Iterable[str]) -> tuple[str, ...]:
    """The names that an option gives, each once, or all; UsageProblem for one that is not valid."""
    every = tuple(valid)
    for name in names:
        if name not in every:
            raise UsageProblem(f"{option}: {unknown('kind', name, every)}")
    return tuple(dict.fromkeys(names)) or every


def fronts(kinds: Sequence[str], seed: int) -> list[Program]:
    """The programs in front; all where no kind is given."""
    return [
        Program(
            kind,
            f"exec python3 {RUN}/{FRONT_TEXT} {kind} {seed}",
            FRONT_FILES,
            kind == NEEDS_PROGRAMS,
            _purpose(front.KINDS[kind]),
        )
        for kind in known("--front", kinds, front.KINDS)
    ]


def looks(kind: str, seed: int, think_ms: float, limit_s: float) -> Program:
    """A program in front that does calls of a paced kind until a service has ended."""
    line = f"exec python3 {RUN}/{FRONT_TEXT} {kind} {seed} {think_ms:g} {limit_s:g} {ENDED}"
    return Program("looks", line, ((front.DATA, DATA_BYTES),))


def behinds(kinds: Sequence[str]) -> list[Program]:
    """The programs behind, without their seeds; all where no kind is given."""
    return [
        Program(
            kind,
            f"exec python3 {RUN}/{BEHIND_TEXT} {kind} {{seed}}",
            BEHIND_FILES.get(kind, ()),
            purpose=_purpose(behind.KINDS[kind]),
        )
        for kind in known("--behind", kinds, behind.KINDS)
    ]


def own(given: Sequence[str], option: str, taken: Iterable[str], files: Files = ()) -> list[Program]:
    """The user's programs, as NAME=CMD; those in front find the files that ours find."""
    found: dict[str, Program] = {}
    for text in given:
        name, sign, line = text.partition("=")
        if not sign or not name.replace("-", "").isalnum() or not line.strip():
            raise UsageProblem(f"{option} '{text}': must be NAME=CMD, with a name of letters, digits and hyphens")
        if name in found or name in taken:
            raise UsageProblem(f"{option}: '{name}' is there already; give it another name")
        found[name] = Program(name, line, files, purpose=line)
    return list(found.values())


@cache
def programs_directory() -> Path:
    """Programs of the host's, in a directory of the cache that has nothing else."""
    paths = {name: Path(found).resolve() for name in STARTED if (found := shutil.which(name))}
    if not paths:
        raise LabError(f"none of {', '.join(STARTED)} is here to be started")
    data = {name: path.read_bytes() for name, path in paths.items()}
    where = cache_dir("programs") / digest(part for name in data for part in (name, data[name]))[:16]
    for name, content in data.items():
        write_if_changed(where / front.PROGRAMS / name, content, executable=True)
    return where


def _texts() -> dict[str, str]:
    """Our programs, for the run's directory."""
    return {
        name: Path(str(module.__file__)).read_text(encoding="utf-8")
        for name, module in ((FRONT_TEXT, front), (BEHIND_TEXT, behind))
    }


def spec_of(
    cell: Cell,
    place: tuple[Phone, Policy],
    programs: tuple[Program, Sequence[Program]],
    times_s: tuple[float, float, float],
    service: Program | None = None,
) -> RunSpec:
    """The run of a cell: a phone and a policy; a program in front and those behind; a service that starts with it.

    TIMES_S: virtual seconds before the program in front starts, and that it may take; real seconds for all.
    """
    (phone, policy), (first, others), (warmup_s, limit_s, real_s) = place, programs, times_s
    lines = [one.line.replace("{seed}", str(cell.seed * 100 + index)) for index, one in enumerate(others)]
    # A service does not end a run, so it stays; its status is there at once, or not at all.
    line = f"( {service.line} ); echo $? > {ENDED}.new; mv {ENDED}.new {ENDED}; exec sleep 1000" if service else None
    job = exec_job(first.line, lines, warmup_s, limit_s, line)
    apps = [(FOREGROUND, first), *((background_name(index), one) for index, one in enumerate(others))]
    apps += [(SERVICE, service)] if service else []
    job["files"] = [
        {"app": name, "path": path, "bytes": size, "kind": "data"} for name, one in apps for path, size in one.files
    ]
    files_from = programs_directory() if first.programs else None
    spec = RunSpec(cell, phone, policy, job, _texts(), files_from, limit_s=real_s)
    return replace(spec, printed=True)
