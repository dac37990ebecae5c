# SPDX-License-Identifier: GPL-2.0-only
"""The steps of a scenario's threads: their grammar, their checks and their form in a job.

The operations and their fields are those of `contract/README.md`; sizes, times and rates carry units here,
`think` may have a spread and is drawn once a run, and `pace` gives the think time of a stream by its rate.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from fasttrack_lab.host.toml_tables import Table, choice, count, relative_path, texts
from fasttrack_lab.host.units import Spread, parse_rate, parse_size, parse_time_spread

ZERO = Spread(0.0, 0.0)
DEFAULT_BLOCK = 128 * 1024
"""Bytes: the default readahead of Android's block devices, and so a usual size of a sequential request."""

ORDERS = ("sequential", "random")
WRITE_FLAGS = ("create", "append", "truncate", "direct", "sync", "dsync")
SQLITE_KINDS = ("insert", "update", "select")
JOURNALS = ("wal", "delete", "truncate", "persist")
SINGLE_FILE_OPS = ("fsync", "fdatasync", "close", "unlink", "mkdir", "stat")
_NO_FLAGS: list[str] = []
STREAM_OPS = ("read", "mmap", "write")
OPS = (*STREAM_OPS, *SINGLE_FILE_OPS, "rename", "sqlite", "think", "memory", "repeat", "touch")


@dataclass(frozen=True)
class Step:
    """One operation: the fields of the contract, with the times still to be drawn apart."""

    op: str
    line: int
    fields: dict[str, Any] = field(default_factory=dict)
    think: Spread = ZERO
    """Seconds slept after each block or transaction; for `think`, the sleep itself."""
    steps: tuple[Step, ...] = ()

    def to_job(self, rng: random.Random) -> dict[str, Any]:
        """The contract's step. Times are drawn in the order of the file, to whole nanoseconds."""
        job: dict[str, Any] = {"op": self.op, **self.fields}
        if self.op == "think":
            job["s"] = round(self.think.draw(rng), 9)
        elif self.op in (*STREAM_OPS, "sqlite"):
            job["think_s"] = round(self.think.draw(rng), 9)
        elif self.op == "repeat":
            job["steps"] = [step.to_job(rng) for step in self.steps]
        return job

    def walk(self, cycle: int = 0) -> Iterator[tuple[Step, int]]:
        """This step and those inside it, each with the cycle of the innermost repeat around it (0: none)."""
        yield self, cycle
        inner = self.fields["cycle"] if self.op == "repeat" else cycle
        for step in self.steps:
            yield from step.walk(inner)

    def sleeps(self) -> bool:
        """Whether one pass always sleeps for some time."""
        return self.think.low > 0 or self.op == "touch" or any(step.sleeps() for step in self.steps)


def expand(name: str, cycle: int) -> list[str]:
    """The names that a file name stands for; `{i}` counts from 0 to cycle - 1."""
    return [name.replace("{i}", str(i)) for i in range(cycle)] if "{i}" in name else [name]


def _write_flags(value: Any) -> list[str]:
    """The flags of a write."""
    return [choice("write flag", WRITE_FLAGS)(flag) for flag in texts(value)]


def _positive_size(value: Any) -> int:
    """A size above zero."""
    size = parse_size(value)
    if size == 0:
        raise ValueError("a size of zero does nothing")
    return size


def _stream(op: str, table: Table) -> tuple[dict[str, Any], Spread]:
    """read, mmap and write."""
    fields: dict[str, Any] = {"file": table.take("file", relative_path)}
    fields["bytes"] = table.take("bytes", _positive_size, None if op == "write" else 0)
    fields["offset"] = table.take("offset", parse_size, 0)
    fields["block"] = table.take("block", _positive_size, DEFAULT_BLOCK)
    fields["order"] = table.take("order", choice("order", ORDERS), "sequential")
    if op == "write":
        fields["flags"] = table.take("flags", _write_flags, _NO_FLAGS)
    paced = table.has("pace")
    if paced and table.has("think"):
        raise table.error("'pace' and 'think' exclude each other: a pace is a think time of block / pace", "pace")
    if paced:
        seconds = fields["block"] / table.take("pace", parse_rate)
        return fields, Spread(seconds, seconds)
    return fields, table.take("think", parse_time_spread, ZERO)


def _single(op: str, table: Table) -> tuple[dict[str, Any], Spread]:
    """Operations that take one file name."""
    del op
    return {"file": table.take("file", relative_path)}, ZERO


def _rename(op: str, table: Table) -> tuple[dict[str, Any], Spread]:
    """rename."""
    del op
    return {"file": table.take("file", relative_path), "to": table.take("to", relative_path)}, ZERO


def _sqlite(op: str, table: Table) -> tuple[dict[str, Any], Spread]:
    """Transactions of the SQLite library."""
    del op
    fields: dict[str, Any] = {
        "file": table.take("file", relative_path),
        "kind": table.take("kind", choice("kind of transaction", SQLITE_KINDS)),
        "transactions": table.take("transactions", count(1)),
        "rows": table.take("rows", count(1), 1),
        "row_bytes": table.take("row_bytes", _positive_size, 256),
        "journal": table.take("journal", choice("journal mode", JOURNALS), "wal"),
    }
    return fields, table.take("think", parse_time_spread, ZERO)


def _think(op: str, table: Table) -> tuple[dict[str, Any], Spread]:
    """A sleep."""
    del op
    return {}, table.take("time", parse_time_spread)


def _memory(op: str, table: Table) -> tuple[dict[str, Any], Spread]:
    """Anonymous memory."""
    del op
    return {"bytes": table.take("bytes", _positive_size)}, ZERO


def _nothing(op: str, table: Table) -> tuple[dict[str, Any], Spread]:
    """An operation without fields."""
    del op, table
    return {}, ZERO


_PARSERS: dict[str, Callable[[str, Table], tuple[dict[str, Any], Spread]]] = {
    **dict.fromkeys(STREAM_OPS, _stream),
    **dict.fromkeys(SINGLE_FILE_OPS, _single),
    "rename": _rename,
    "sqlite": _sqlite,
    "think": _think,
    "memory": _memory,
    "touch": _nothing,
}


def parse_step(table: Table) -> Step:
    """One step and the steps inside it."""
    op = table.take("op", choice("operation", OPS))
    line = table.lines.of(table.place)
    if op == "repeat":
        times = table.take("times", count(0), 0)
        cycle = table.take("cycle", count(1), max(times, 1))
        steps = tuple(parse_step(inner) for inner in table.tables("steps"))
        if not steps:
            raise table.error("a repeat without steps does nothing")
        step = Step(op, line, {"times": times, "cycle": cycle}, ZERO, steps)
        if times == 0 and not step.sleeps():
            raise table.error("a repeat for ever must sleep: add a think, or virtual time stops")
    else:
        fields, think = _PARSERS[op](op, table)
        step = Step(op, line, fields, think)
    table.finish()
    return step
