# SPDX-License-Identifier: GPL-2.0-only
"""Runs that are ended at so many times their own time alone: nobody waits longer, and a page says '> 20x'.

The limit is no part of what a run is made from: a run that ends before it is the same without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from fasttrack_lab.compare.records import BASELINE_POLICY, Record, latest
from fasttrack_lab.inputs.cell import Cell
from fasttrack_lab.run.runner import RunSpec

TIMES = 20.0
"""A run is ended at this many times its own time alone."""
LIMIT_ENDED = "the guest reports: the foreground has not ended after"
"""How the error of a run begins that its virtual limit has ended, and nothing else is wrong with."""

Alone = Mapping[tuple[str, str, str, str, int], tuple[float, float]]
"""Response and total time without background, in s, by scenario, phone, file system, LRU and seed."""


def _key(cell: Cell) -> tuple[str, str, str, str, int]:
    return cell.scenario, cell.phone, cell.fs, cell.lru, cell.seed


def alone(records: Iterable[Record]) -> Alone:
    """The baselines among some records; of an app switch that where the app before the touch was idle."""
    found: dict[tuple[str, str, str, str, int], tuple[float, float]] = {}
    for cell, record in sorted(latest(records).items(), key=lambda item: item[0].idle):
        if cell.policy == BASELINE_POLICY and not cell.backgrounds and record.error is None and record.result:
            found[_key(cell)] = float(record.result["response_s"]), float(record.result["total_s"])
    return found


def limited(spec: RunSpec, cell: Cell, baselines: Alone) -> RunSpec:
    """The run with the limit; without one where it has no baseline.

    The response of a recording is the time in its calls alone: its think times, which are less than it takes alone,
    come on top.
    """
    if _key(cell) not in baselines:
        return spec
    response_s, total_s = baselines[_key(cell)]
    thinking_s = 0.0 if response_s == total_s else total_s
    limit_s = round(float(spec.job["touch_s"]) + thinking_s + TIMES * response_s, 9)
    own_s = float(spec.job["limit_s"])
    return spec if own_s <= limit_s else replace(spec, job={**spec.job, "limit_s": limit_s})


def longest_first(specs: Mapping[Cell, RunSpec]) -> list[Cell]:
    """In which order no core idles at the end: a run takes the longer the more bytes it moves, so many apps first."""
    return sorted(specs, key=lambda cell: (-len(cell.backgrounds), -float(specs[cell].job["limit_s"])))
