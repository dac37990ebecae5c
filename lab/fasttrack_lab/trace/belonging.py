# SPDX-License-Identifier: GPL-2.0-only
"""What belongs to a call: its waits, and the bios that it sent, waited for, or that are of its transaction or file.

A task of the patched kernel's is a process, and what is in a call is done by its thread. In traces that do not say the
thread, a wait or bio belongs to the call on its file where several threads are in calls at once, and is shared where
that does not say.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from fasttrack_lab.trace.scene import Bio, Call, Scene, Transaction, Wait

SYNCS = frozenset(("fsync", "fdatasync", "sync", "syncfs", "msync"))
_CHECKPOINT = "checkpoint"
_SECTOR = 512
_PAGE = 4096
"""Bytes, where the session does not say."""
_SLACK_NS = 2000
"""Times of records are when the kernel wrote them: a wait may be this much outside its call, ns."""


@dataclass(frozen=True)
class Belongs:
    """A bio of a call."""

    bio: Bio
    why: str
    """sent, waited for, transaction or file."""
    shared: bool = False
    """It is that of this call or of another one of its process."""


@dataclass(frozen=True)
class Waited:
    """A wait in a call."""

    wait: Wait
    shared: bool
    """It is that of this call or of another one of its process."""


def same_thread(one: Call | Wait | Bio, other: Call | Wait | Bio) -> bool:
    """Whether two things of one task can be of one thread: where nobody says, they can."""
    return one.thread is None or other.thread is None or one.thread == other.thread


def alive(bio: Bio, begin: int, end: int) -> bool:
    """Whether a bio was under way in an interval; one whose end is unknown only if it was queued in it."""
    return bio.time <= end and (bio.time if bio.done is None else bio.done) >= begin


def waited_for(wait: Wait, bio: Bio, page_bytes: int = _PAGE) -> bool:
    """Whether a wait was for a bio: by page and file, or by device and sector."""
    if bio.session != wait.session or not alive(bio, wait.begin, wait.time):
        return False
    if wait.sector is not None:
        first = bio.sector
        return wait.dev == bio.dev and first is not None and first <= wait.sector < first + (bio.bytes or 0) // _SECTOR
    if wait.file is not None and wait.index is not None:
        return any(run.file == wait.file and _has_page(run, wait.index, wait.index + 1, page_bytes) for run in bio.runs)
    return False


def _has_page(run: Any, first: int, end: int, page_bytes: int) -> bool:
    """Whether a run has one of the pages from FIRST to before END."""
    if run.index is None:
        return False
    return bool(run.index < end and first < run.index + -(-(run.bytes or 0) // page_bytes))


class Holders:
    """Which calls something of a task is in."""

    def __init__(self, calls: Iterable[Call]) -> None:
        self._calls: defaultdict[tuple[str, int], list[Call]] = defaultdict(list)
        self._longest: defaultdict[tuple[str, int], int] = defaultdict(int)
        for call in sorted(calls, key=lambda one: one.begin):
            if call.task is not None:
                key = call.session, call.task
                self._calls[key].append(call)
                self._longest[key] = max(self._longest[key], call.duration_ns)

    def of(self, one: Wait | Bio, begin: int, end: int, files: set[int | None]) -> tuple[list[Call], bool]:
        """The calls that an interval is in, and whether it is that of one of them, and nobody knows of which.

        Those of one thread are within each other. Of several threads' it is that of the only one on one of the files.
        """
        task = one.task if isinstance(one, Wait) else one.carrier_task
        if task is None:
            return [], False
        key = one.session, task
        there = self._calls.get(key, [])
        at = bisect_right(there, begin + _SLACK_NS, key=lambda call: call.begin)
        found = []
        while at and there[at - 1].begin >= begin - self._longest[key] - _SLACK_NS:
            at -= 1
            if there[at].time + _SLACK_NS >= end and same_thread(there[at], one):
                found.append(there[at])
        if one.thread is not None and all(call.thread is not None for call in found):
            return found, False
        same = [call for call in found if call.file is not None and call.file in files]
        chosen = same if len(same) == 1 else found
        return chosen, len(chosen) > 1


class Index:
    """Finds what belongs to a call."""

    def __init__(self, scene: Scene) -> None:
        self._holders = Holders(scene.calls)
        self._waits: defaultdict[int, list[Waited]] = defaultdict(list)
        """Id of the object of a call -> its waits."""
        self.outside: list[Waited] = []
        """Waits that are in no call, or in one of several."""
        for wait in scene.waits:
            holders, shared = self._holders.of(wait, wait.begin, wait.time, {wait.file})
            for call in holders:
                self._waits[id(call)].append(Waited(wait, shared))
            if shared or not holders:
                self.outside.append(Waited(wait, shared))
        self._numbered: defaultdict[Any, list[Transaction]] = defaultdict(list)
        self._checkpoints: defaultdict[str, list[Transaction]] = defaultdict(list)
        for one in scene.transactions:
            self._numbered[one.session, one.dev, one.transaction].append(one)
            if one.kind == _CHECKPOINT:
                self._checkpoints[one.session].append(one)
        self._carried: defaultdict[Any, list[Bio]] = defaultdict(list)
        self._of_file: defaultdict[Any, list[Bio]] = defaultdict(list)
        self._of_transaction: defaultdict[Any, list[Bio]] = defaultdict(list)
        self._of_device: defaultdict[Any, list[Bio]] = defaultdict(list)
        self._longest: defaultdict[str, int] = defaultdict(int)
        for bio in scene.bios:
            self._add(bio)
        self._page_bytes = {row["session"]: row["page_bytes"] or _PAGE for row in scene.sessions}

    def _add(self, bio: Bio) -> None:
        session = bio.session
        if bio.carrier_task is not None:
            self._carried[session, bio.carrier_task].append(bio)
        for file in {run.file for run in bio.runs if run.file is not None}:
            self._of_file[session, file].append(bio)
        if bio.transaction is not None:
            self._of_transaction[session, bio.transaction].append(bio)
        self._of_device[session, bio.dev].append(bio)
        if bio.done is not None:
            self._longest[session] = max(self._longest[session], bio.done - bio.time)

    def waits(self, call: Call) -> list[Waited]:
        """The waits in a call of the scene, by their begin, the outer first."""
        return sorted(self._waits[id(call)], key=lambda one: (one.wait.begin, -one.wait.time))

    def transactions(self, waits: Iterable[Wait]) -> list[Transaction]:
        """Those that it waited for. A wait for a checkpoint has no number: what was made in it counts."""
        found: dict[int, Transaction] = {}
        for wait in waits:
            if wait.transaction is not None:
                # The one that ended first since: the journal's numbers come again.
                of_it = (
                    one for one in self._numbered[wait.session, wait.dev, wait.transaction] if one.time > wait.begin
                )
                one = next(of_it, None)
                if one is not None:
                    found[id(one)] = one
            elif wait.kind == _CHECKPOINT:
                ended = self._checkpoints[wait.session]
                at = bisect_right(ended, wait.begin, key=lambda one: one.time)
                for one in ended[at:]:
                    if one.time > wait.time:
                        break
                    if wait.dev in (one.dev, None):
                        found[id(one)] = one
        return sorted(found.values(), key=lambda one: one.time)

    def bios(self, call: Call, waits: Sequence[Waited], transactions: Sequence[Transaction]) -> list[Belongs]:
        """The bios that belong to it, in the order in which they were queued, each once."""
        found: dict[int, Belongs] = {}

        def add(why: str, bios: Iterable[Bio], shared: bool = False) -> None:
            for bio in bios:
                found.setdefault(id(bio), Belongs(bio, why, shared))

        for bio in self._window(self._carried[call.session, call.task], call.begin, call):
            holders, shared = self._holders.of(bio, bio.time, bio.time, {run.file for run in bio.runs})
            if any(one is call for one in holders):
                found[id(bio)] = Belongs(bio, "sent", shared)
        page = self._page_bytes.get(call.session, _PAGE)
        for one in waits:
            candidates = self._candidates(one.wait, call)
            add("waited for", (bio for bio in candidates if waited_for(one.wait, bio, page)), one.shared)
        sure = {id(one) for one in self.transactions(one.wait for one in waits if not one.shared)}
        for made in transactions:
            of_it = self._of_transaction[call.session, made.transaction]
            alive_then = (bio for bio in of_it if made.has(bio) and alive(bio, call.begin, call.time))
            add("transaction", alive_then, id(made) not in sure)
        add("file", (bio for bio in self._near(self._of_file[call.session, call.file], call) if self._of(call, bio)))
        return sorted(found.values(), key=lambda one: (one.bio.time, one.bio.bio or 0))

    def _candidates(self, wait: Wait, call: Call) -> Iterable[Bio]:
        if wait.sector is not None:
            return self._near(self._of_device[wait.session, wait.dev], call)
        if wait.file is not None:
            return self._near(self._of_file[wait.session, wait.file], call)
        return ()

    @staticmethod
    def _window(bios: list[Bio], begin: int, call: Call) -> Iterable[Bio]:
        """Those that were queued from BEGIN to the call's end."""
        at = bisect_left(bios, begin, key=lambda bio: bio.time)
        while at < len(bios) and bios[at].time <= call.time:
            yield bios[at]
            at += 1

    def _near(self, bios: list[Bio], call: Call) -> Iterable[Bio]:
        """Those that can have been under way in the call: no bio took longer than the longest."""
        return self._window(bios, call.begin - self._longest[call.session], call)

    def _of(self, call: Call, bio: Bio) -> bool:
        """Whether a bio is of a call's file and place, and does what the call asks."""
        if call.file is None or not alive(bio, call.begin, call.time):
            return False
        runs = [run for run in bio.runs if run.file == call.file]
        if call.kind in SYNCS:
            return bool(runs) and bio.operation == "write"
        asked = "write" if call.kind == "direct_write" else "read"
        if bio.operation != asked or call.offset is None or not call.bytes:
            return False
        page = self._page_bytes.get(call.session, _PAGE)
        first, end = call.offset // page, -(-(call.offset + call.bytes) // page)
        return any(_has_page(run, first, end, page) for run in runs)
