# SPDX-License-Identifier: GPL-2.0-only
"""A comparison's directory: what was asked (`compare.json`), raw records (`raw.jsonl`), and what is derived of them.

A raw record is one run, as it came from the lab, with the key that says what was run: it is never changed. Reports
are made from these two files alone, and can be made again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum, auto
from pathlib import Path
from typing import Any

from fasttrack_lab.host.errors import InputError
from fasttrack_lab.inputs.cell import IDLE, NONE, Cell, scenario_name
from fasttrack_lab.inputs.lru import KERNEL_LRU

REQUEST = "compare.json"
RAW = "raw.jsonl"
BASELINE_POLICY = "stock"
FOREGROUND_ONLY = "fg-only"
"""In place of a policy: the same run without background."""
NAMED_FRONTS = 5
"""Foregrounds that a title names: they fit a line."""
HOST_ENDED = ("real time", "signal 9")
"""In the error of a guest that the host has ended: by its clock, or for want of memory."""
FAILED_SHOWN = 3
"""Failed runs named for each reason; a knob that the kernel lacks fails hundreds alike."""

MeanAndRange = tuple[float, float, float]
"""Mean, lowest and highest of a value over the seeds."""


@dataclass(frozen=True)
class Record:
    """One run and what came of it.

    `inputs` and `kernel` are hashes of what the run was made from. `real_s` is the real time by which the comparison
    was longer for it: since the run before it ended, or the first ones began; None where it was not taken.
    """

    cell: Cell
    inputs: str
    kernel: str
    result: dict[str, Any] | None
    error: str | None
    real_s: float | None = None
    over: float | None = None
    """The run was ended at so many times its own time alone, at least; `error` has the guest's text."""

    @property
    def key(self) -> tuple[Cell, str, str]:
        """What makes two runs the same run."""
        return self.cell, self.inputs, self.kernel


class Again(Enum):
    """Which runs are made again of those that a directory has, by the same kernel and inputs."""

    HOST = auto()
    """Those that failed for a reason of the host's: the others would do the same again."""
    FAILED = auto()
    ALL = auto()

    @classmethod
    def asked(cls, fresh: bool, again_failed: bool) -> Again:
        """What the options of a command ask for."""
        if fresh:
            return cls.ALL
        return cls.FAILED if again_failed else cls.HOST


@dataclass(frozen=True)
class Front:
    """A foreground of a comparison. `scenario` is as it was given."""

    scenario: str
    description: str = ""
    left: str = ""
    """The scenario's app that the touch sends to the background; slowdown counts from a run where it is idle."""

    @property
    def name(self) -> str:
        """What it is called."""
        return scenario_name(self.scenario)

    @property
    def baseline(self) -> str:
        """The background that slowdown counts from."""
        return IDLE if self.left else NONE


@dataclass(frozen=True)
class Request:
    """What was asked for. `command` is the command line, as it can be given again; `kernel` the kernel's key.

    `inputs` are the hashes of what the runs are made from, in the order of the plan; empty: whatever they are.
    """

    command: str
    fronts: tuple[Front, ...]
    phones: tuple[str, ...]
    policies: tuple[str, ...]
    backgrounds: tuple[tuple[str, ...], ...]
    seeds: int
    kernel: str = ""
    file_systems: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By phone; a phone that is not named has its own."""
    lrus: tuple[str, ...] = (KERNEL_LRU,)
    inputs: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The names of its foregrounds; of many, the first and how many more."""
        names = [front.name for front in self.fronts]
        return f"{names[0]} and {len(names) - 1} more" if len(names) > NAMED_FRONTS else ", ".join(names)

    def groups(self, front: Front) -> list[str]:
        """What the foreground is compared beside: every set of backgrounds that slows it down."""
        sets = [names for names in self.backgrounds if names or front.left]
        return ["+".join(names) or NONE for names in sets] or [NONE]

    def platforms(self) -> list[tuple[str, str, str]]:
        """Every phone with every file system and LRU that it is to have."""
        return [
            (name, fs, kind) for name in self.phones for fs in self.file_systems.get(name, ("",)) for kind in self.lrus
        ]


def write_request(directory: Path, request: Request) -> None:
    """Writes what was asked, whole or not at all."""
    temporary = directory / f".{REQUEST}.new"
    temporary.write_text(json.dumps(asdict(request), indent=2) + "\n", encoding="utf-8")
    temporary.replace(directory / REQUEST)


def read_request(directory: Path) -> Request:
    """What was asked in a directory."""
    path = directory / REQUEST
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        return Request(
            command=raw["command"],
            fronts=tuple(Front(**front) for front in raw["fronts"]),
            phones=tuple(raw["phones"]),
            policies=tuple(raw["policies"]),
            backgrounds=tuple(tuple(names) for names in raw["backgrounds"]),
            seeds=int(raw["seeds"]),
            kernel=raw["kernel"],
            file_systems={name: tuple(names) for name, names in raw.get("file_systems", {}).items()},
            lrus=tuple(raw.get("lrus", (KERNEL_LRU,))),
            inputs=tuple(raw.get("inputs", ())),
        )
    except FileNotFoundError as error:
        raise InputError(f"no {REQUEST} here; is this a directory that ./fasttrack compare made?", directory) from error
    except (json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"damaged: {error!r}; run the comparison again", path) from error


def line_of(record: Record) -> str:
    """A record as a line, which parse() takes."""
    raw = asdict(record)
    if record.over is None:
        del raw["over"]
    return json.dumps(raw, sort_keys=True) + "\n"


def append(directory: Path, record: Record) -> None:
    """Adds a record; it is on disk when this returns, so that an interrupted comparison goes on from here.

    A last line without its end was being written when the machine stopped: it is cut off.
    """
    with (directory / RAW).open("ab+") as out:
        out.seek(max(out.tell() - 1, 0))
        if out.read(1) not in (b"", b"\n"):
            out.seek(0)
            out.truncate(out.read().rfind(b"\n") + 1)
        out.write(line_of(record).encode())
        out.flush()
        os.fsync(out.fileno())


def _parse(line: str) -> Record:
    """One line of the raw records."""
    raw = json.loads(line)
    return Record(
        cell=Cell.of_json(raw["cell"]),
        inputs=raw["inputs"],
        kernel=raw["kernel"],
        result=raw["result"],
        error=raw["error"],
        real_s=raw.get("real_s"),
        over=raw.get("over"),
    )


def read(directory: Path) -> list[Record]:
    """All raw records. A last line without its end is none: it is being written, or was when the machine stopped."""
    path = directory / RAW
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    return parse(text[: text.rfind("\n") + 1], path)


def parse(text: str, path: Path) -> list[Record]:
    """The records of PATH, which has the lines TEXT."""
    records: list[Record] = []
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            records.append(_parse(line))
        except (json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"not a raw record ({error!r}); remove the line or the file", path, number) from error
    return records


def plan(request: Request) -> list[Cell]:
    """All runs of a comparison: first the baselines, which every slowdown needs, then the rest; nothing twice."""
    seeds = range(1, request.seeds + 1)
    platforms = request.platforms()
    baseline = [
        Cell(front.scenario, name, BASELINE_POLICY, (), seed, fs, kind, idle=bool(front.left))
        for front in request.fronts
        for name, fs, kind in platforms
        for seed in seeds
    ]
    rest = [
        Cell(front.scenario, name, rule, names, seed, fs, kind)
        for front in request.fronts
        for name, fs, kind in platforms
        for names in request.backgrounds
        for rule in request.policies
        for seed in seeds
    ]
    return list(dict.fromkeys([*baseline, *rest]))


def current(records: Iterable[Record], request: Request) -> list[Record]:
    """The last record of each planned run by the request's kernel and inputs, in the order of the plan."""
    planned = plan(request)
    inputs = dict(zip(planned, request.inputs, strict=True)) if request.inputs else {}
    found = latest(
        record
        for record in records
        if record.kernel == request.kernel and inputs.get(record.cell, record.inputs) == record.inputs
    )
    return [found[cell] for cell in planned if cell in found]


def latest(records: Iterable[Record]) -> dict[Cell, Record]:
    """The last record of each cell."""
    return {record.cell: record for record in records}


def _of_the_host(record: Record) -> bool:
    """Whether a run failed for a reason of the host's: it has ended the guest, or not even booted it."""
    booted = bool((record.result or {}).get("kernel"))
    return record.error is not None and (not booted or any(text in record.error for text in HOST_ENDED))


def over_text(times: float) -> str:
    """What tables say of a run that was ended at so many times its own time alone."""
    return f"> {times:g}x"


def finished(records: Iterable[Record], again: Again) -> dict[tuple[Cell, str, str], Record]:
    """The last record of each run that need not be made again, by its key."""
    if again is Again.ALL:
        return {}
    last = {record.key: record for record in records}
    return {
        key: record
        for key, record in last.items()
        if record.error is None or record.over is not None or (again is Again.HOST and not _of_the_host(record))
    }


def duration_text(seconds: float) -> str:
    """42 s, 17 min 3 s, 2 h 0 min 5 s."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [f"{hours} h"] if hours else []
    parts += [f"{minutes} min"] if hours or minutes else []
    return " ".join([*parts, f"{rest} s"])


def took(records: Sequence[Record]) -> str:
    """How long the runs took, over all parts in which they were made; empty where no record says it.

    The time after the last run of a part that was interrupted is in no record.
    """
    known = [record.real_s for record in records if record.real_s is not None]
    if not known:
        return ""
    runs = f"{len(known)}" if len(known) == len(records) else f"{len(known)} of {len(records)}"
    return f"{runs} runs in {duration_text(sum(known))} of real time"


def noted(records: Iterable[Record]) -> dict[str, list[str]]:
    """Runs that did not fail, in whose kernel log something was noted: their cells by policy."""
    by_policy: dict[str, list[str]] = {}
    for record in records:
        if record.error is None and record.result and record.result.get("log_problems"):
            by_policy.setdefault(record.cell.policy, []).append(record.cell.text())
    return dict(sorted(by_policy.items()))


def ended_when_long(records: Iterable[Record]) -> dict[str, list[str]]:
    """Runs that were ended at so many times their own time alone: their cells by policy."""
    by_policy: dict[str, list[str]] = {}
    for record in records:
        if record.over is not None:
            by_policy.setdefault(record.cell.policy, []).append(record.cell.text())
    return dict(sorted(by_policy.items()))


def failures(records: Iterable[Record]) -> list[str]:
    """Failed runs by reason: one line a reason."""
    by_reason: dict[str, list[str]] = {}
    for record in records:
        if record.error is not None and record.over is None:
            by_reason.setdefault(record.error, []).append(record.cell.text())
    return [
        f"{len(cells)} failed: {'; '.join(cells[:FAILED_SHOWN])}{'; ...' if len(cells) > FAILED_SHOWN else ''}: {why}"
        for why, cells in by_reason.items()
    ]
