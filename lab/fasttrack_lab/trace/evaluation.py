# SPDX-License-Identifier: GPL-2.0-only
"""An evaluation of a paper's, made again: the recordings it needs, what it finds, and why that differs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fasttrack_lab.trace.recordings import Recording

TOLERANCE = 0.10
"""Of a share: 10 percentage points."""
NEAR = 0.25
"""Of a time or a ratio, relative."""


@dataclass(frozen=True)
class Found:
    """A number of the paper's beside ours. `agrees` is None where the paper has none."""

    of: str
    what: str
    paper: str
    here: str
    agrees: bool | None = None

    @property
    def verdict(self) -> str:
        """As it is shown."""
        return {True: "agrees", False: "differs", None: ""}[self.agrees]


@dataclass(frozen=True)
class Outcome:
    """What an evaluation found, and its pictures by file name."""

    found: list[Found]
    pictures: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Evaluation:
    """One evaluation."""

    name: str
    title: str
    source: str
    recordings: tuple[Recording, ...]
    find: Callable[[Path, Sequence[Recording]], Outcome]
    """From the directory of all recordings, and those that are there."""
    because: str
    """Why numbers differ where they do."""


def share(of: str, what: str, paper: float, here: float | None) -> Found:
    """A share; of what is not recorded nothing agrees."""
    if here is None:
        return Found(of, what, f"{paper * 100:.0f} %", "not recorded", False)
    return Found(of, what, f"{paper * 100:.0f} %", f"{here * 100:.0f} %", abs(here - paper) <= TOLERANCE)


def times(of: str, what: str, paper: float, here: float) -> Found:
    """A ratio."""
    return Found(of, what, f"{paper:g}x", f"{here:.1f}x", abs(here / paper - 1) <= NEAR)
