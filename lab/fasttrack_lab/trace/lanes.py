# SPDX-License-Identifier: GPL-2.0-only
"""Slices on lanes, so that those of a lane lie side by side or one within another, and never overlap in part."""

from __future__ import annotations

from collections.abc import Callable

from fasttrack_lab.trace.perfetto_packets import Track


class Lanes:
    """The lanes of one task or device; slices come in order of their begin, longer ones first."""

    def __init__(self, track: Callable[[int], Track], nested: bool) -> None:
        """TRACK makes lane N's track. NESTED: a slice goes into an open one that covers it."""
        self._track = track
        self._nested = nested
        self._tracks: list[Track] = []
        self._ends: list[list[int]] = []
        """Ends of the open slices of each lane, the innermost last."""

    def place(self, end: int) -> int:
        """Opens a slice until END and says on which lane."""
        covering = (lane for lane, ends in enumerate(self._ends) if ends and self._nested and ends[-1] >= end)
        free = (lane for lane, ends in enumerate(self._ends) if not ends)
        lane = next(covering, next(free, len(self._ends)))
        if lane == len(self._ends):
            self._ends.append([])
        self._ends[lane].append(end)
        return lane

    def close(self, lane: int) -> None:
        """The innermost slice of a lane has ended."""
        self._ends[lane].pop()

    def busy(self) -> int:
        """A lane with an open slice; the first if there is none."""
        return next((lane for lane, ends in enumerate(self._ends) if ends), 0)

    def track(self, lane: int) -> Track:
        """A lane's."""
        while len(self._tracks) <= lane:
            self._tracks.append(self._track(len(self._tracks)))
        return self._tracks[lane]
