# SPDX-License-Identifier: GPL-2.0-only
"""What a plot of a figure shows, as paper.py says it; drawing.py draws it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Group:
    """A place on the x axis: a foreground beside a background."""

    label: str
    scenario: str
    background: str


@dataclass(frozen=True)
class Bars:
    """Bars of policies in groups, one panel a phone. `paper` has the paper's numbers by group's place and policy.

    With a `reference`, values are over that policy's, whose seconds are written below the groups.
    """

    groups: tuple[Group, ...]
    policies: tuple[str, ...]
    measure: str
    label: str
    reference: str | None = None
    paper: Mapping[tuple[int, str], float] = field(default_factory=dict)

    @property
    def wide(self) -> bool:
        """Whether it takes the whole width of a page."""
        return len(self.groups) > 3

    @property
    def dense(self) -> bool:
        """Whether it has so many groups that what is written must stand upright."""
        return len(self.groups) > 8


@dataclass(frozen=True)
class Lines:
    """A line a policy over a count, on one phone; logarithmic. `paper` has the paper's numbers by policy and count."""

    points: tuple[tuple[int, Group], ...]
    policies: tuple[str, ...]
    measure: str
    across: str
    label: str
    paper: Mapping[tuple[str, int], float] = field(default_factory=dict)
    wide: bool = False
