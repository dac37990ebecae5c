# SPDX-License-Identifier: GPL-2.0-only
"""Two traces compared: figures that are sums over sums, with confidence intervals by bootstrap over seconds.

I/O of one second depends on that of the same second, so seconds are drawn, with all that is in them: N of N, with
replacement. The interval of the difference is that of differences of such draws; it excludes 0 where traces differ by
more than chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import ibis.expr.types as ir
import numpy as np

from fasttrack_lab.trace.metric import is_flag, sum_if, total
from fasttrack_lab.trace.tables import Tables, counted, lost

DRAWS = 2000
_CHUNK = 100
"""Draws at a time: a trace of a day has 86,400 seconds, each with a weight a draw."""


@dataclass(frozen=True)
class Figure:
    """A sum over another, both by second; without another, over the seconds."""

    title: str
    unit: str
    part: str
    whole: str | None


FIGURES = (
    Figure("read", "bytes/s", "read", None),
    Figure("written", "bytes/s", "written", None),
    Figure("writes, of reads and writes", "share of bios", "writes", "bios"),
    Figure("synchronous, of writes", "share of bios", "sync_writes", "writes"),
    Figure("by fsync and fdatasync, of synchronous writes", "share of bios", "synced", "sync_writes"),
    Figure("the file system's journal, of writes", "share of bytes", "journal", "segment_bytes"),
    Figure("SQLite's journals, of written data", "share of bytes", "sqlite_journal", "data_bytes"),
    Figure("mean time in the device", "us", "device_us", "served"),
    Figure("mean time in the queue", "us", "queued_us", "queued"),
)


@dataclass(frozen=True)
class Interval:
    """An estimate and where it lies with 95 % confidence; None where the traces do not say."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Compared:
    """A figure of two traces, and B less A."""

    figure: Figure
    first: Interval
    second: Interval
    difference: Interval

    @property
    def differs(self) -> bool:
        """Whether the interval of the difference excludes 0."""
        low, high = self.difference.low, self.difference.high
        return low is not None and high is not None and not low <= 0.0 <= high


def _by_second(t: Tables) -> dict[str, np.ndarray]:
    """Each sum as an array over the trace's seconds; a row of a sample counts by its weight."""
    io, segments, requests = (
        table.mutate(weight=table.weight.fill_null(1)) for table in (t.io, t.segments, t.requests)
    )
    write, sync = io.operation == "write", is_flag(io.sync)
    wrote, data = segments.operation == "write", segments.block_type == "data"
    size = segments.bytes * segments.weight
    asked: list[tuple[ir.Table, dict[str, ir.Value]]] = [
        (
            io,
            {
                "read": sum_if(io.bytes * io.weight, io.operation == "read"),
                "written": sum_if(io.bytes * io.weight, write),
                "bios": sum_if(io.weight, io.operation.isin(("read", "write"))),
                "writes": sum_if(io.weight, write),
                "sync_writes": sum_if(io.weight, write & sync),
                "synced": sum_if(io.weight, write & sync & io.cause.isin(("fsync", "fdatasync"))),
            },
        ),
        (
            segments,
            {
                "segment_bytes": sum_if(size, wrote),
                "data_bytes": sum_if(size, wrote & data),
                "journal": sum_if(size, wrote & (segments.block_type == "journal")),
                "sqlite_journal": sum_if(
                    size, wrote & data & segments.file_type.isin(("sqlite_journal", "sqlite_wal"))
                ),
            },
        ),
        (
            requests,
            {
                "device_us": total(requests.device_us * requests.weight),
                "served": sum_if(requests.weight, requests.device_us.notnull()),
                "queued_us": total(requests.queued_us * requests.weight),
                "queued": sum_if(requests.weight, requests.queued_us.notnull()),
            },
        ),
    ]
    rows = [table.group_by(["session", "second"]).agg(**sums).to_pyarrow().to_pydict() for table, sums in asked]
    seconds = sorted({key for found in rows for key in zip(found["session"], found["second"], strict=True)})
    place = {key: index for index, key in enumerate(seconds)}
    sums: dict[str, np.ndarray] = {}
    for found in rows:
        places = [place[key] for key in zip(found["session"], found["second"], strict=True)]
        for name in found.keys() - {"session", "second"}:
            sums[name] = np.zeros(len(seconds))
            sums[name][places] = found[name]
    return sums


def _draws(sums: dict[str, np.ndarray], seed: int) -> tuple[dict[str, float | None], dict[str, np.ndarray]]:
    """Each figure, and what it is in each draw."""
    names = sorted({name for figure in FIGURES for name in (figure.part, figure.whole) if name})
    matrix = np.stack([sums[name] for name in names], axis=1)
    count = len(matrix)
    random = np.random.default_rng(seed)
    drawn = []
    for _ in range(0, DRAWS if count else 0, _CHUNK):
        weights = random.multinomial(count, np.full(count, 1 / count), size=_CHUNK)
        drawn.append(weights @ matrix)
    of = {name: np.concatenate(drawn)[:, index] if drawn else np.zeros(0) for index, name in enumerate(names)}
    values: dict[str, float | None] = {}
    spread: dict[str, np.ndarray] = {}
    for figure in FIGURES:
        whole = float(sums[figure.whole].sum()) if figure.whole else float(count)
        values[figure.title] = float(sums[figure.part].sum()) / whole if whole else None
        below = of[figure.whole] if figure.whole else np.full(len(of[figure.part]), float(count))
        with np.errstate(invalid="ignore", divide="ignore"):
            spread[figure.title] = of[figure.part] / below
    return values, spread


def _interval(value: float | None, draws: np.ndarray) -> Interval:
    draws = draws[np.isfinite(draws)]
    if value is None or not len(draws):
        return Interval(None, None, None)
    low, high = np.percentile(draws, [2.5, 97.5])
    return Interval(value, float(low), float(high))


def losses_in(tables: Tables) -> int:
    """How many losses there are; what a sample leaves out is none, since rows have weights."""
    return counted(lost(tables.losses))


def compare(first: Tables, second: Tables, seed: int = 1) -> Sequence[Compared]:
    """All figures of two traces."""
    values_a, draws_a = _draws(_by_second(first), seed)
    values_b, draws_b = _draws(_by_second(second), seed + 1)
    found = []
    for figure in FIGURES:
        a, b = values_a[figure.title], values_b[figure.title]
        more = None if a is None or b is None else b - a
        both = draws_b[figure.title] - draws_a[figure.title] if more is not None else np.zeros(0)
        found.append(
            Compared(
                figure, _interval(a, draws_a[figure.title]), _interval(b, draws_b[figure.title]), _interval(more, both)
            )
        )
    return found
