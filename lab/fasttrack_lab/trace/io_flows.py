# SPDX-License-Identifier: GPL-2.0-only
"""Which bios belong to which calls and requests of a trace, and when each ended: what flows of a timeline are drawn of.

All bios are in memory: of more than MOST none is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fasttrack_lab.trace import scene_loading
from fasttrack_lab.trace.belonging import Index
from fasttrack_lab.trace.scene import Bio, Scene
from fasttrack_lab.trace.tables import Tables, counted

MOST = 500_000
"""Bios: some 2 GB."""

_RANK = ("sent", "waited for", "transaction", "file")
"""A bio that belongs to several calls is drawn to the first of these, else to the one that began first."""

Row = Mapping[str, Any]


class Flows:
    """What is known of the bios of TABLES."""

    def __init__(self, tables: Tables) -> None:
        """Reads all that has to do with bios, unless there are too many."""
        self.known = counted(tables.io) <= MOST
        self._bios: dict[tuple[str, int], Bio] = {}
        self._linked: set[tuple[str, int]] = set()
        """Bios of which a call or a request is known."""
        self._of_call: dict[tuple[Any, ...], list[int]] = {}
        self._of_request: dict[tuple[Any, ...], list[Bio]] = {}
        if self.known:
            self._read(scene_loading.load(tables))

    def _read(self, found: Scene) -> None:
        for bio in found.bios:
            if bio.bio is not None:
                self._bios[bio.session, bio.bio] = bio
                if bio.requests:
                    self._linked.add((bio.session, bio.bio))
        for request in found.requests:
            place = request.session, request.time, request.dev, request.operation, request.sector
            self._of_request.setdefault(place, []).extend(request.bios)
        index = Index(found)
        best: dict[tuple[str, int], tuple[int, int, tuple[Any, ...]]] = {}
        for call in found.calls:
            waits = index.waits(call)
            for one in index.bios(call, waits, index.transactions(one.wait for one in waits)):
                number = one.bio.bio
                if number is None or one.shared or one.bio.time < call.begin:
                    continue
                key = call.session, call.time, call.task, call.kind
                rank = _RANK.index(one.why), call.begin, key
                there = best.get((call.session, number))
                if there is None or rank[:2] < there[:2]:
                    best[call.session, number] = rank
        for (session, number), (_, _, key) in sorted(best.items()):
            self._of_call.setdefault(key, []).append(number)
            self._linked.add((session, number))

    def has(self, row: Row) -> bool:
        """Whether a bio's call or request is known."""
        return (row["session"], row["number"]) in self._linked

    def of_call(self, row: Row) -> list[int]:
        """The numbers of the bios of a call that were sent in it; none that may be another call's."""
        return self._of_call.get((row["session"], row["until"], row["task"], row["kind"]), [])

    def of_request(self, row: Row) -> list[Bio]:
        """The bios of a request."""
        ended = row["at"] if row["until"] is None else row["until"]
        return self._of_request.get((row["session"], ended, row["dev"], row["kind"], row["sector"]), [])

    def done(self, row: Row) -> int | None:
        """When a bio ended; None if that is unknown."""
        bio = self._bios.get((row["session"], row["number"]))
        return None if bio is None else bio.done
