# SPDX-License-Identifier: GPL-2.0-only
"""One published figure: what it needs to be run, how it is drawn, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from fasttrack_lab.figures.claims import Claim
from fasttrack_lab.figures.goals import Goal
from fasttrack_lab.figures.grid import Grid
from fasttrack_lab.figures.measured import Measured
from fasttrack_lab.figures.plot import Bars, Lines

Reached = Callable[[Measured, tuple[str, ...]], list[Goal]]
"""From the numbers and the phones that were measured to goals; NotMeasured where runs are lacking."""

PAPER = "Hahn et al., FastTrack (USENIX ATC 2018)"


@dataclass(frozen=True)
class Figure:
    """One figure: its runs, its plot, the statements about it, and what about it is our choice."""

    name: str
    title: str
    grids: tuple[Grid, ...]
    plot: Bars | Lines
    claims: tuple[Claim, ...]
    note: str
    source: str = PAPER
    """Who published it, and where."""
    more: tuple[Bars | Lines, ...] = ()
    """Plots below the first."""
    goals: tuple[Reached, ...] = ()
    """What is to be reached here, beside what was published."""

    @property
    def phones(self) -> tuple[str, ...]:
        """All phones of its runs."""
        return tuple(dict.fromkeys(phone for grid in self.grids for phone in grid.phones))

    def narrowed(self, phones: Iterable[str]) -> Figure:
        """The figure on some of its phones."""
        grids = [grid.narrowed(phones) for grid in self.grids]
        return replace(self, grids=tuple(grid for grid in grids if grid.phones))
