# SPDX-License-Identifier: GPL-2.0-only
"""Which request carried which bio, by device, operation and sectors: a request is its bios end to end.

A bio that was split has several requests. One without data, and one that has the cache flushed first, take the flush
that ends next.
"""

from __future__ import annotations

from collections import defaultdict, deque

from fasttrack_lab.trace.scene import Bio, Request

_SECTOR = 512


_Kind = tuple[str, int | None, str | None]
"""Session, device and operation."""
_SPLIT_MOST = 1024
"""Bios of a kind that are looked through for a part: more are not in flight at once."""


class InFlight:
    """Bios that were sent and have not ended."""

    def __init__(self) -> None:
        self._at: defaultdict[tuple[_Kind, int], list[Bio]] = defaultdict(list)
        """By the sector that they begin with."""
        self._under_way: defaultdict[_Kind, dict[int, Bio]] = defaultdict(dict)
        """By the object's id, in the order in which they were queued."""
        self._flushes: defaultdict[tuple[str, int | None], deque[Bio]] = defaultdict(deque)

    def queued(self, bio: Bio) -> None:
        """A bio enters the block layer."""
        bio.left = bio.bytes or 0
        if bio.preflush or bio.operation == "flush":
            self._flushes[bio.session, bio.dev].append(bio)
        if bio.left and bio.sector is not None:
            kind = bio.session, bio.dev, bio.operation
            self._at[kind, bio.sector].append(bio)
            under_way = self._under_way[kind]
            under_way[id(bio)] = bio
            if len(under_way) > _SPLIT_MOST:
                del under_way[next(iter(under_way))]

    def ended(self, request: Request) -> None:
        """A request ends: its bios learn of it, and it of them."""
        if request.operation == "flush":
            waiting = self._flushes[request.session, request.dev]
            if waiting:
                self._take(waiting.popleft(), request)
            return
        if request.sector is None:
            return
        kind = request.session, request.dev, request.operation
        sector, left = request.sector, request.bytes or 0
        while left > 0:
            bio = self._first(kind, sector, request) or self._part(kind, sector)
            if bio is None or bio.sector is None or bio.bytes is None:
                return
            size = min(bio.sector * _SECTOR + bio.bytes - sector * _SECTOR, left)
            bio.left = max(0, bio.left - size)
            if not bio.left:
                self._under_way[kind].pop(id(bio), None)
            self._take(bio, request)
            sector, left = sector + size // _SECTOR, left - size

    def _first(self, kind: _Kind, sector: int, request: Request) -> Bio | None:
        """Of several bios of the same place the last that was queued before the device had the request."""
        there = self._at.get((kind, sector))
        if not there:
            return None
        until = request.time - (request.device_ns or 0)
        chosen = next((at for at in reversed(range(len(there))) if there[at].time <= until), len(there) - 1)
        bio = there.pop(chosen)
        if not there:
            del self._at[kind, sector]
        return bio

    def _part(self, kind: _Kind, sector: int) -> Bio | None:
        """A bio that was split, and has a part there."""
        for bio in reversed(self._under_way[kind].values()):
            assert bio.sector is not None
            if bio.sector < sector < bio.sector + (bio.bytes or 0) // _SECTOR:
                return bio
        return None

    @staticmethod
    def _take(bio: Bio, request: Request) -> None:
        bio.requests.append(request)
        request.bios.append(bio)

    def told(self, bio: Bio, request: Request) -> None:
        """A request says itself that a bio is its first."""
        bio.left = max(0, bio.left - (request.bytes or 0))
        self._take(bio, request)

    def lost(self) -> None:
        """Records are missing: nobody knows any longer what is in flight."""
        self._at.clear()
        self._under_way.clear()
        self._flushes.clear()
