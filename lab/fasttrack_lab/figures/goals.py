# SPDX-License-Identifier: GPL-2.0-only
"""What is to be reached, and what is: each goal with its number, and where it is missed. These are FastTrack's."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

from fasttrack_lab.compare.records import BASELINE_POLICY as STOCK
from fasttrack_lab.compare.records import Record, noted
from fasttrack_lab.figures.claims import mean
from fasttrack_lab.figures.grid import Grid
from fasttrack_lab.figures.measured import LONGEST_HOLD_S, MEAN_TO_ALONE, MEAN_TO_STOCK, TO_ALONE, Measured, NotMeasured
from fasttrack_lab.figures.statements import FASTTRACK, MINUS, MINUS_CHANGE
from fasttrack_lab.inputs import phone as phones
from fasttrack_lab.inputs.background_sets import called

PEERS = (STOCK, "none", "kyber", "bfq")
"""The kernel's own elevators, as policies."""
WORST, AVERAGE = 1.10, 1.05
"""Slowdown with one background app: in every cell, and over all cells."""
WORST_SIX = 1.15
TWELVE_OVER_SIX = 0.05
HOLD_S = 1.0
"""The default of background_pause_ms, in seconds."""
SHOWN = 3
"""Cells named of those that miss a goal, the worst first."""


@dataclass(frozen=True)
class Goal:
    """One goal, what was measured, and the cells that miss it."""

    what: str
    goal: str
    here: str
    missed: str
    met: bool | None
    """None where it was not measured."""

    @property
    def verdict(self) -> str:
        """As the page says it."""
        return {True: "met", False: "missed", None: "not measured"}[self.met]


def _cells(grid: Grid, value: Callable[[str, str, str], float]) -> dict[str, float]:
    """A value of scenario, phone and background for every cell of a grid, by what the cell is called."""
    return {
        f"{scenario} beside {called(background)} on {phone}": value(scenario, phone, background)
        for scenario, phone, background in product(grid.scenarios, grid.phones, grid.backgrounds)
    }


def text(value: float, digits: int = 2, unit: str = "") -> str:
    """A number of a goal; an infinite one is of runs that failed."""
    return f"{value:.{digits}f}{unit}" if math.isfinite(value) else "failed"


def worst(values: dict[str, float], goal: float, digits: int = 2) -> str:
    """The highest values over the goal, with their names, and how many more there are; a dash where none is."""
    over = sorted((name for name, value in values.items() if value > goal), key=values.__getitem__, reverse=True)
    missed = [f"{name} {text(values[name], digits)}" for name in over[:SHOWN]]
    missed += [f"and {len(over) - SHOWN} more"] if len(over) > SHOWN else []
    return "; ".join(missed) or "-"


def at_most(what: str, goal: float, values: dict[str, float], unit: str = "", digits: int = 2) -> Goal:
    """Every value is at most so much; of those that are not, the worst are named. An infinite one is a failure.

    A value that is over the goal has as many more digits as show it.
    """
    highest = max(values.values())
    shown = digits
    while highest > goal and text(highest, shown) == text(goal, shown):
        shown += 1
    return Goal(
        f"{what}, worst of {len(values)}",
        f"at most {goal:.{digits}f}{unit}",
        text(highest, shown, unit),
        worst(values, goal, shown),
        highest <= goal,
    )


def one_app(what: str, grid: Grid, measured: Measured) -> list[Goal]:
    """Every cell, and their average. Nobody who waits in one cell feels that another is faster than alone."""
    values = _cells(
        grid, lambda scenario, phone, behind: measured.of_all_seeds(scenario, phone, FASTTRACK, behind, MEAN_TO_ALONE)
    )
    average = mean(max(value, 1.0) for value in values.values())
    called = f"slowdown, {what}, average, none counted as faster than alone"
    return [
        at_most(f"slowdown, {what}", WORST, values),
        Goal(called, f"at most {AVERAGE:.2f}", text(average), "-", average <= AVERAGE),
    ]


def many_apps(where: str, grid: Grid, measured: Measured) -> list[Goal]:
    """Six apps, and twelve against six: the backgrounds of the grid, in this order. WHERE ends the goals' names."""
    six, twelve = (
        {
            f"{scenario} on {phone}": measured.of_all_seeds(scenario, phone, FASTTRACK, behind, MEAN_TO_ALONE)
            for scenario, phone in product(grid.scenarios, grid.phones)
        }
        for behind in grid.backgrounds
    )
    more = {name: twelve[name] - value if math.isfinite(value) else math.inf for name, value in six.items()}
    return [
        at_most(f"slowdown, six apps{where}", WORST_SIX, six),
        at_most(f"slowdown with twelve apps less that with six{where}", TWELVE_OVER_SIX, more),
    ]


def against_peers(where: str, grid: Grid, measured: Measured) -> list[Goal]:
    """FastTrack is never slower than the fastest of the grid's peers. Who never ended is not the fastest."""
    others = [name for name in grid.policies if name in PEERS]

    def over_best(scenario: str, phone: str, background: str) -> float:
        found = []
        for name in others:
            try:
                found.append(measured.mean(scenario, phone, name, background, TO_ALONE))
            except NotMeasured:
                continue
        if not found:
            raise NotMeasured(f"{scenario} on {phone}, any other policy, background {background}")
        return measured.of_all_seeds(scenario, phone, FASTTRACK, background, MEAN_TO_ALONE) / min(found)

    return [at_most(f"response time over the best of {', '.join(others)}{where}", 1.0, _cells(grid, over_best))]


def without_device(where: str, grid: Grid, measured: Measured) -> list[Goal]:
    """The change that `fasttrack-minus` brings, on average."""
    ratios = _cells(
        grid, lambda scenario, phone, behind: measured.of_all_seeds(scenario, phone, MINUS, behind, MEAN_TO_STOCK)
    )
    change = mean(ratios.values()) - 1
    here = f"{change * 100:+.1f} %" if math.isfinite(change) else text(change)
    goal = f"{MINUS_CHANGE * 100:+.0f} %"
    return [
        Goal(
            f"{MINUS} against {STOCK}{where}, average",
            goal,
            here,
            worst(ratios, sys.float_info.max),
            change <= MINUS_CHANGE,
        )
    ]


def holds(what: str, grid: Grid, measured: Measured) -> list[Goal]:
    """How long FastTrack makes one background task wait at a time, beyond the request that is under way."""

    def longest(scenario: str, phone: str, background: str) -> float:
        held_s = measured.of_all_seeds(scenario, phone, FASTTRACK, background, LONGEST_HOLD_S)
        return held_s - phones.load(phone).longest_request_s

    named = f"longest hold of a background task less one request of the device, {what}"
    return [at_most(named, HOLD_S, _cells(grid, longest), " s", digits=3)]


def no_failed_allocation(records: Sequence[Record]) -> list[Goal]:
    """No allocation that may not sleep fails under FastTrack; NotMeasured where no run of it ended."""
    ended = [record for record in records if record.cell.policy == FASTTRACK and record.error is None]
    if not ended:
        raise NotMeasured(f"any run of {FASTTRACK}")
    found = noted(ended).get(FASTTRACK, [])
    what = f"runs of {FASTTRACK} with a failed atomic allocation"
    return [Goal(what, "at most 0", f"{len(found)} of {len(ended)}", "; ".join(found[:SHOWN]) or "-", not found)]
