# SPDX-License-Identifier: GPL-2.0-only
"""The paper's statements and how a measurement compares: agrees or differs, with both numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fasttrack_lab.figures.measured import Measured, NotMeasured

RULE = (
    "A statement agrees where each of its numbers does: times and slowdowns within 25 % of the paper's, times over "
    "foreground-only's within 10 %, changes within 10 percentage points; an order, where it is the same."
)


@dataclass(frozen=True)
class Kind:
    """How numbers of one kind are shown and when two of them agree."""

    show: Callable[[float], str]
    distance: Callable[[float, float], float]
    """Of what was measured from the paper's number; below zero where it is lower."""
    tolerance: float
    unit: str


def _relative(paper: float, here: float) -> float:
    return here / paper - 1


def _points(paper: float, here: float) -> float:
    return here - paper


SECONDS = Kind(lambda value: f"{value:.2f} s", _relative, 0.25, "%")
SLOWDOWN = Kind(lambda value: f"{value:.1f}x", _relative, 0.25, "%")
NORMALISED = Kind(lambda value: f"{value:.2f}x", _relative, 0.10, "%")
CHANGE = Kind(lambda value: f"{value * 100:+.0f} %", _points, 0.10, "points")


@dataclass(frozen=True)
class Value:
    """One number of a statement, as published and as measured."""

    what: str
    paper: float
    here: float
    kind: Kind
    where: str = "paper"
    """Where it was published."""

    @property
    def agrees(self) -> bool:
        """Whether they are near enough."""
        return abs(self.kind.distance(self.paper, self.here)) <= self.kind.tolerance

    def text(self) -> str:
        """Both numbers, and how far they are apart where they do not agree."""
        away = self.kind.distance(self.paper, self.here)
        side = "above" if away > 0 else "below"
        apart = "" if self.agrees else f" ({abs(away) * 100:.0f} {self.kind.unit} {side})"
        return f"{self.what} {self.kind.show(self.here)} here, {self.kind.show(self.paper)} in the {self.where}{apart}"


@dataclass(frozen=True)
class Finding:
    """What came of a statement. `agrees` is None where it was not measured."""

    agrees: bool | None
    here: str
    why: str

    @property
    def verdict(self) -> str:
        """As reports say it."""
        return {True: "agrees", False: "differs", None: "not measured"}[self.agrees]


def numbers(values: Iterable[Value]) -> Finding:
    """The finding of a statement of numbers; NotMeasured where one is not finite, since runs of it failed."""
    values = list(values)
    if not all(math.isfinite(value.here) for value in values):
        raise NotMeasured("runs failed")
    here = ", ".join(f"{value.what} {value.kind.show(value.here)}" for value in values)
    return Finding(all(value.agrees for value in values), here, "; ".join(value.text() for value in values))


def mean(values: Iterable[float]) -> float:
    """The mean; NotMeasured where there is nothing."""
    found = list(values)
    if not found:
        raise NotMeasured("no phone of the figure that the statement is about")
    return sum(found) / len(found)


Check = Callable[[Measured, tuple[str, ...]], Finding]
"""From the numbers and the phones that were measured to the finding."""


@dataclass(frozen=True)
class Claim:
    """A published statement. `paper` is its number or order in short, `because` why ours differs where it does."""

    id: str
    source: str
    statement: str
    paper: str
    check: Check
    because: str

    def find(self, measured: Measured, phones: tuple[str, ...]) -> Finding:
        """The finding; numbers that are not there make it "not measured"."""
        try:
            return self.check(measured, phones)
        except NotMeasured as lacking:
            return Finding(None, "-", f"no result: {lacking}")
