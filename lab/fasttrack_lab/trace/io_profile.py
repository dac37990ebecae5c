# SPDX-License-Identifier: GPL-2.0-only
"""The profiler of the FastTrack paper (IOPro in its slides): an interaction's I/O by layer, in front and behind.

A layer is a set of spans: calls, waits in page cache and file system, requests queued in the block layer and in the
device. A request is whose blocks most of its bytes are; one of the journal's is of who asked for its transaction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from fasttrack_lab.host.errors import UsageProblem
from fasttrack_lab.trace.explaining import Span, around, length
from fasttrack_lab.trace.interaction import Interaction
from fasttrack_lab.trace.metrics.layers import ELEVATOR, JOURNAL, PAGE_CACHE
from fasttrack_lab.trace.scene import Bio, Request, Scene
from fasttrack_lab.trace.tables import Tables

FOREGROUND, BACKGROUND, UNKNOWN = "foreground", "background", "system or unknown"
CALLS = "calls"
LAYERS = (CALLS, "page cache", "file system", "block layer", "device")
"""From the outermost inwards."""
_FIRST_APP = 10000
"""User ids below are the system's."""


@dataclass(frozen=True)
class Piece:
    """A span of a layer, ns of the boot clock."""

    begin: int
    end: int
    what: str


@dataclass(frozen=True)
class Profile:
    """Spans of an interaction by side and layer, each list in the order of begin."""

    title: str
    begin: int
    end: int
    pieces: dict[tuple[str, str], list[Piece]]
    moved: list[tuple[int, str, int]]
    """End, side and bytes of each request."""

    def busy(self, side: str, layer: str) -> int:
        """ns in which at least one span of a layer is there."""
        return length((piece.begin, piece.end) for piece in self.pieces.get((side, layer), []))

    def summed(self, side: str, layer: str) -> int:
        """ns of all spans of a layer together."""
        return sum(piece.end - piece.begin for piece in self.pieces.get((side, layer), []))

    @property
    def coefficient(self) -> float | None:
        """The foreground's share of the requests' time in the device; None where no request is known."""
        shares = {side: self.summed(side, LAYERS[-1]) for side in (FOREGROUND, BACKGROUND, UNKNOWN)}
        whole = sum(shares.values())
        return shares[FOREGROUND] / whole if whole else None

    def bytes_of(self, side: str, begin: int, end: int) -> int:
        """What ended of a side's in an interval."""
        return sum(size for time, whose, size in self.moved if whose == side and begin <= time < end)


def of(tables: Tables, told: Interaction) -> Profile:
    """The profile of an interaction."""
    if not told.foreground:
        raise UsageProblem("nobody is in front: there is no interaction")
    calls = tables.calls.filter(tables.calls.uid.isin(told.foreground))
    last = calls.time.max().to_pyarrow().as_py()
    if last is None:
        uids = ", ".join(map(str, told.foreground))
        raise UsageProblem(f"the trace has no call of uid {uids}: it is not of this run, or its kernel tells of none")
    begin = max(0, last - round(told.seconds * 1e9))
    return _Maker(around(tables, begin, last), frozenset(told.foreground), begin, last).profile(told.title)


class _Maker:
    """Sorts what a scene has by side and layer."""

    def __init__(self, near: Scene, front: Collection[int], begin: int, end: int) -> None:
        self._near, self._front, self._begin, self._end = near, front, begin, end
        self._triggers = {
            (one.session, one.transaction): one.trigger_uid
            for one in near.transactions
            if one.transaction is not None and one.kind != "checkpoint"
        }
        self._pieces: dict[tuple[str, str], list[Piece]] = {}
        self._moved: list[tuple[int, str, int]] = []

    def profile(self, title: str) -> Profile:
        """All of it."""
        for call in self._near.calls:
            self._add(self._side(call.uid), CALLS, call.begin, call.time, call.kind or "unknown")
        for wait in self._near.waits:
            task = self._near.task(wait.session, wait.task)
            layer = _layer(wait.kind)
            if task is not None and layer is not None:
                self._add(self._side(task.uid), layer, wait.begin, wait.time, wait.kind or "unknown")
        for request in self._near.requests:
            self._request(request)
        for pieces in self._pieces.values():
            pieces.sort(key=lambda piece: piece.begin)
        return Profile(title, self._begin, self._end, self._pieces, self._moved)

    def _side(self, uid: int | None) -> str:
        if uid in self._front:
            return FOREGROUND
        return BACKGROUND if uid is not None and uid >= _FIRST_APP else UNKNOWN

    def _add(self, side: str, layer: str, begin: int, end: int, what: str) -> None:
        begin, end = max(begin, self._begin), min(end, self._end)
        if begin < end:
            self._pieces.setdefault((side, layer), []).append(Piece(begin, end, what))

    def _request(self, request: Request) -> None:
        side, what = self._side(self._owner(request.bios)), request.operation or "unknown"
        if what in ("read", "write") and self._begin <= request.time <= self._end:
            self._moved.append((request.time, side, request.bytes or 0))
        if request.issued is None:
            return
        self._add(side, LAYERS[-1], request.issued, request.time, what)
        if request.queued_ns:
            self._add(side, "block layer", request.begin, request.issued, what)

    def _owner(self, bios: Iterable[Bio]) -> int | None:
        """Whose most bytes are; None where nobody knows it."""
        sums = Counter[int | None]()
        for bio in bios:
            for uid, size in self._owners(bio):
                sums[uid] += size
        return sums.most_common(1)[0][0] if sums else None

    def _owners(self, bio: Bio) -> Iterator[tuple[int | None, int]]:
        if bio.transaction is not None:
            yield self._triggers.get((bio.session, bio.transaction)), bio.bytes or 1
            return
        for run in bio.runs:
            task = self._near.task(bio.session, run.owner)
            yield (None if task is None else task.uid), run.bytes or 0


def _layer(kind: str | None) -> str | None:
    """The layer of a wait; one for the device or a bio is seen as a request."""
    if kind in PAGE_CACHE:
        return "page cache"
    if kind in JOURNAL:
        return "file system"
    return "block layer" if kind in ELEVATOR else None


def merged(pieces: Iterable[Piece], gap: int) -> list[Span]:
    """Spans that overlap, or lie at most GAP ns apart, as one: what a picture can tell apart."""
    found: list[Span] = []
    for piece in pieces:
        if found and piece.begin - found[-1][1] <= gap:
            found[-1] = found[-1][0], max(found[-1][1], piece.end)
        else:
            found.append((piece.begin, piece.end))
    return found
