# SPDX-License-Identifier: GPL-2.0-only
"""Instructions an operation by path and state, over those of the kernel without FastTrack, and the goals."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich import box
from rich.table import Table

from fasttrack_lab.cost.counts import Counts

BASE_STATE = "unpatched"

PATHS = {
    "read-cached": "read of a page in the page cache",
    "write-cached": "write to a dirty page",
    "write-clean": "write to a clean page in the page cache",
    "fault-around": "fault on a mapped file, with the 15 pages beside it",
    "fault": "fault on a mapped file, one page",
    "direct-read": "direct read, no I/O scheduler",
    "direct-read-elevator": "direct read, mq-deadline or fasttrack",
    "direct-write": "direct write, no I/O scheduler",
    "direct-write-elevator": "direct write, mq-deadline or fasttrack",
    "direct-write-file": "direct write to a file, mq-deadline or fasttrack",
    "read-uncached": "read of a page that is not cached, mq-deadline or fasttrack",
    "write-back": "write to a clean page and its write-back, 256 pages side by side, mq-deadline or fasttrack",
    "write-back-apart": "the same with every other page: each is a bio of its own",
}
"""Path of the guest -> what an operation of 4 KiB is. The first seven have goals."""

CALLS = ("uid", "cgroup")
TASKS = ("neutral", "foreground", "background")
ON_STATES = tuple(f"{mode}-{task}" for mode in CALLS for task in TASKS)
TRACES = {
    "trace-origin": "io_origin's events",
    "trace-block": "ftrace's block_rq_issue and block_rq_complete",
    "trace-blktrace": "blktrace",
}
STATES = ("off", *ON_STATES, *TRACES)
"""States of the patched kernel, in the order in which they are measured."""

GOAL_PATHS = tuple(PATHS)[:7]
OFF_PERCENT, ON_PERCENT = 0.3, 3.0

TRACED_PATHS = ("direct-write-file", "write-back", "write-back-apart")
TRACE_SHARE = 1 / 3
"""What the events of io_origin may cost, over blktrace."""


def limit_percent(state: str, path: str) -> float | None:
    """By how many per cent PATH may take longer in STATE than without FastTrack; None: there is no goal."""
    if path not in GOAL_PATHS or state == BASE_STATE or state in TRACES:
        return None
    return OFF_PERCENT if state == "off" else ON_PERCENT


@dataclass(frozen=True)
class Cost:
    """A path in a state."""

    state: str
    path: str
    by_boot: tuple[float, ...]
    """Instructions an operation, by boot."""
    base: float
    """The same without FastTrack: the median of its boots."""

    @property
    def instructions(self) -> float:
        """The median of the boots."""
        return median(self.by_boot)

    @property
    def spread_percent(self) -> float:
        """Between the least and the most of the boots, in per cent of the median."""
        return (max(self.by_boot) - min(self.by_boot)) / self.instructions * 100

    @property
    def more(self) -> float:
        """Instructions more than without FastTrack."""
        return self.instructions - self.base

    @property
    def percent(self) -> float:
        """The same in per cent."""
        return self.more / self.base * 100

    @property
    def missed(self) -> bool:
        """Whether it has a goal and does not meet it."""
        limit = limit_percent(self.state, self.path)
        return limit is not None and self.percent > limit


def costs(boots: Iterable[Counts]) -> list[Cost]:
    """All paths in all states, in the order of PATHS and of the states."""
    found: dict[str, dict[str, list[float]]] = {}
    for counts in boots:
        for state, paths in counts.by_state.items():
            for path, count in paths.items():
                found.setdefault(path, {}).setdefault(state, []).append(count.instructions)
    order = (BASE_STATE, *STATES)
    return [
        Cost(state, path, tuple(found[path][state]), median(found[path][BASE_STATE]))
        for path in PATHS
        if path in found
        for state in order
        if state in found[path]
    ]


def _by_path(found: Iterable[Cost]) -> dict[str, dict[str, Cost]]:
    paths: dict[str, dict[str, Cost]] = {}
    for cost in found:
        paths.setdefault(cost.path, {})[cost.state] = cost
    return paths


def table(found: Sequence[Cost], states: Sequence[str], title: str) -> Table:
    """Instructions without FastTrack; in each state those more, and per cent. An exclamation mark misses its goal."""
    shown = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    shown.add_column("4 KiB path", no_wrap=True)
    for name in (BASE_STATE, *states):
        shown.add_column(name.replace("-", "\n"), justify="right", no_wrap=True)
    for path, by_state in _by_path(found).items():
        cells = [_cell(by_state[state]) if state in by_state else "" for state in states]
        shown.add_row(path, f"{by_state[BASE_STATE].instructions:.0f}", *cells)
    return shown


def _cell(cost: Cost) -> str:
    return f"{cost.more:+.0f}\n{cost.percent:+.2f} %{'!' if cost.missed else ''}"


def trace_table(found: Sequence[Cost]) -> Table:
    """What a traced operation costs more than with FastTrack off and nothing traced, and over blktrace."""
    shown = Table(title="Instructions more while traced", title_justify="left", box=box.SIMPLE_HEAD)
    shown.add_column("4 KiB path", no_wrap=True)
    for name in ("untraced", *TRACES.values(), "over blktrace"):
        shown.add_column(name, justify="right")
    for path in TRACED_PATHS:
        by_state = _by_path(found)[path]
        cells = [f"{more:+.0f}" for more in traced(found, path).values()]
        shown.add_row(path, f"{by_state['off'].instructions:.0f}", *cells, f"{trace_share(found, path):.2f}")
    return shown


def traced(found: Sequence[Cost], path: str) -> dict[str, float]:
    """By way to trace: instructions of PATH more than untraced in the same boots."""
    by_state = _by_path(found)[path]
    return {state: by_state[state].instructions - by_state["off"].instructions for state in TRACES}


def trace_share(found: Sequence[Cost], path: str) -> float:
    """What the events of io_origin cost over blktrace."""
    more = traced(found, path)
    return more["trace-origin"] / more["trace-blktrace"]


def has_traces(found: Sequence[Cost]) -> bool:
    """Whether all ways to trace were measured, and no trace."""
    return {"off", *TRACES} <= {cost.state for cost in found}


def missed(found: Sequence[Cost]) -> list[str]:
    """Goals that are not met, a line each."""
    lines = [
        f"{cost.path}, {cost.state}: {cost.more:+.0f} instructions, {cost.percent:+.2f} %, "
        f"goal {limit_percent(cost.state, cost.path):g} %"
        for cost in found
        if cost.missed
    ]
    if has_traces(found):
        lines += [
            f"{path}, trace-origin: {trace_share(found, path):.2f} of blktrace, goal {TRACE_SHARE:.2f}"
            for path in TRACED_PATHS
            if trace_share(found, path) > TRACE_SHARE
        ]
    return lines


def to_json(found: Sequence[Cost], kernels: dict[str, str]) -> dict[str, Any]:
    """The object that --json writes."""
    return {
        "unit": "instructions of an operation of 4 KiB, medians of boots",
        "kernels": kernels,
        "costs": [dict(zip(COLUMNS, _fields(cost), strict=True)) | {"boots": list(cost.by_boot)} for cost in found],
        "missed": missed(found),
    }


COLUMNS = ("path", "state", "instructions", "unpatched", "more", "percent", "goal_percent", "spread_percent")


def _fields(cost: Cost) -> tuple[str | float | None, ...]:
    numbers = (cost.instructions, cost.base, cost.more)
    ratios = round(cost.percent, 3), limit_percent(cost.state, cost.path), round(cost.spread_percent, 3)
    return (cost.path, cost.state, *(round(number, 1) for number in numbers), *ratios)


def write_csv(path: Path, found: Sequence[Cost]) -> None:
    """A line a path and state."""
    with path.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(COLUMNS)
        writer.writerows(_fields(cost) for cost in found)
