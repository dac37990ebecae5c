# SPDX-License-Identifier: GPL-2.0-only
"""From events in the order of time to records: bios with their segments, requests, syncs, tasks and files.

A bio is a queue event. A device without any has a bio for each request that is issued, inserted or, where nothing else
is there, completed; the first of these that it has. Requests are paired as device/trace does: by device, operation and
first sector. What file systems and the page cache say is kept in `block_owners.py`; a bio has a segment for each run
of blocks with one file and owner.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from fasttrack_lab.trace.importers.block_owners import BlockOwners, Owner, Run
from fasttrack_lab.trace.importers.intake import (
    CLEAN,
    COMPLETE,
    DIRTY,
    EXTENT,
    INSERT,
    ISSUE,
    NAME,
    PAGE,
    QUEUE,
    REMAP,
    REQUEUE,
    SECTOR,
    SYNC_BEGIN,
    SYNC_END,
    Intake,
)
from fasttrack_lab.trace.importers.record_files import RecordFiles

KEPT = 65_536
"""More requests than this are not in flight: the end of some was lost."""
BIO_FROM = (QUEUE, ISSUE, INSERT, COMPLETE)
"""Which event is a bio: the first of these that a device has."""
_JOURNAL = "jbd2/"
"""Names of the threads that write ext4's journal; what else they write has no metadata flag."""

_SAID = (EXTENT, PAGE, CLEAN, DIRTY, REMAP, SYNC_BEGIN, SYNC_END)

Who = tuple[int, int] | str
"""A task: its thread id and when it began, or its name where the source has no ids."""
Key = tuple[int | None, str | None, int | None]


@dataclass(slots=True)
class _Flight:
    """A request that has not ended."""

    inserted: int | None = None
    issued: int | None = None
    left: int | None = None
    """Bytes that are not done."""
    bio: int | None = None
    """The bio that stands for it, where there are no queue events."""
    returned: bool = False
    """It has come back undone: what is sent again is no other bio."""


class Joiner:
    """Makes the records of one recording."""

    def __init__(self, session: str, intake: Intake, files: RecordFiles) -> None:
        """The events are given to `join`."""
        self.unended = 0
        """Requests of which no end was seen."""
        self._place = {"session": session, "log": 1}
        self._files = files
        self._intake = intake
        self._from = {
            dev: next((kind for kind in BIO_FROM if kind in kinds), "") for dev, kinds in intake.by_device.items()
        }
        self._tasks: dict[Who, int] = {}
        self._named: dict[Who, str | None] = {}
        self._paths: dict[tuple[int | None, str | int], int] = {}
        """By device, and path or inode."""
        self._names = intake.names
        self._owners = BlockOwners(intake)
        self._syncs: dict[int | None, tuple[int, str | None]] = {}
        """By thread: when its sync began, and which it is if that is said at the begin."""
        self._losses = deque(sorted({time for loss in intake.losses for time in (loss.since, loss.time) if time}))
        """When events were lost."""
        self._flying: OrderedDict[Key, _Flight] = OrderedDict()
        self._bios = 0

    def put(self, kind: str, fields: dict[str, Any]) -> None:
        """A record of this recording."""
        self._files.put(kind, self._place | fields)

    def join(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Takes all events, in the order of time."""
        for row in rows:
            kind, dev, pid, comm = row[2], row[3], row[12], row[13]
            while self._losses and row[1] >= self._losses[0]:
                self._losses.popleft()
                self._owners.forget()
                self._syncs.clear()
            if kind == NAME:
                self._task(row[1], pid, comm)
                continue
            if kind in _SAID:
                self._said(row)
                continue
            bio = self._bio(row) if kind == self._from[dev] and not self._returned(row) else None
            if kind in (INSERT, ISSUE, COMPLETE, REQUEUE):
                self._request(row, bio)
        self.unended += len(self._flying)

    def _who(self, time: int, pid: int | None, comm: str | None) -> Who | None:
        return comm if pid is None else (pid, self._intake.began(pid, time))

    def _task(self, time: int, pid: int | None, comm: str | None) -> int | None:
        """The id of a task; a record where it is new or has another name than before."""
        who = self._who(time, pid, comm)
        if who is None:
            return None
        number = self._tasks.get(who)
        if number is None:
            number = self._tasks[who] = len(self._tasks) + 1
        elif comm is None or (self._named[who] == comm):
            return number
        self._named[who] = comm
        facts = self._intake.facts(pid, time)
        self.put(
            "task",
            {
                "time": time,
                "task": number,
                "pid": pid,
                "tgid": facts.tgid,
                "uid": facts.uid,
                "name": comm,
                "kernel_thread": facts.kernel_thread,
            },
        )
        return number

    def _file(self, time: int, dev: int | None, which: str | int, file_type: str | None = None) -> int:
        """The id of a file by its path or its inode; a record where it is new."""
        number = self._paths.get((dev, which))
        if number is None:
            number = self._paths[dev, which] = len(self._paths) + 1
            said: dict[str, Any] = {"path": which}
            if isinstance(which, int):
                said = {"inode": which, "path": None if dev is None else self._names.get((dev, which))}
            self.put(
                "file", {"time": time, "file": number, "event": "first_use", "dev": dev, "file_type": file_type, **said}
            )
        return number

    def _said(self, row: tuple[Any, ...]) -> None:
        """Takes what a file system or the page cache says."""
        _, time, kind, dev, at, count = row[:6]
        pid, comm, inode, index = row[12], row[13], row[20], row[21]
        if kind in (SYNC_BEGIN, SYNC_END):
            self._sync(row)
        elif kind == DIRTY and None not in (inode, index):
            self._owners.dirty(dev, inode, index, (self._task(time, pid, comm), time))
        elif kind == REMAP and None not in (at, inode, index):
            self._owners.remap((dev, at), (inode, index))
        elif kind == CLEAN and at is not None and count:
            self._owners.free(dev, at, count)
        elif kind in (EXTENT, PAGE) and at is not None:
            self._owners.map(kind, pid, dev, at, count, Run(dev, 0, inode, index, row[17]))

    def _sync(self, row: tuple[Any, ...]) -> None:
        """A sync of a file began or ended."""
        _, time, kind, dev = row[:4]
        pid, comm, said, inode = row[12], row[13], row[18], row[20]
        if kind == SYNC_BEGIN:
            self._syncs[pid] = time, said
            return
        began, first = self._syncs.pop(pid, (None, None))
        if began is not None:
            self.put(
                "call",
                {
                    "time": time,
                    "task": self._task(time, pid, comm),
                    "kind": said or first,
                    "file": None if inode is None else self._file(time, dev, inode),
                    "duration_ns": time - began,
                    "result": row[14],
                    "thread": pid,
                },
            )

    def _returned(self, row: tuple[Any, ...]) -> bool:
        """Whether a request that came back undone is sent again."""
        flight = self._flying.get((row[3], row[6], row[4])) if row[2] in (INSERT, ISSUE) else None
        return flight is not None and flight.returned

    def _bio(self, row: tuple[Any, ...]) -> int:
        (_, time, _, dev, sector, size, operation, sync, fua, preflush, meta, read_ahead, pid, comm) = row[:14]
        path, file_type, block_type, cause, transaction = row[15:20]
        self._bios += 1
        carrier = self._task(time, pid, comm)
        comm = comm or (self._named.get(who) if (who := self._who(time, pid, None)) else None)
        self.put(
            "bio",
            {
                "time": time,
                "bio": self._bios,
                "dev": dev,
                "operation": operation,
                "sector": sector if size != 0 else None,
                "bytes": size,
                "sync": sync,
                "fua": fua,
                "preflush": preflush,
                "meta": meta,
                "read_ahead": read_ahead,
                "carrier": carrier,
                "cause": cause,
                "transaction": transaction,
            },
        )
        if operation in ("read", "write") and size:
            reads = operation == "read" and self._intake.facts(pid, time).kernel_thread is False
            place = {"time": time, "bio": self._bios, "owner": carrier if reads else None}
            if path is not None or block_type is not None:
                file = None if path is None else self._file(time, dev, path, file_type)
                self.put("segment", {**place, "offset": 0, "bytes": size, "block_type": block_type, "file": file})
            else:
                flags = _block_type(operation, meta, comm)
                for segment in self._segments(row, flags):
                    self.put("segment", {**place, **segment})
        return self._bios

    def _segments(self, row: tuple[Any, ...], flags: str | None) -> Iterator[dict[str, Any]]:
        """Runs of a bio's blocks; FLAGS: what they hold, as far as the bio itself says it."""
        (_, time, kind, dev, sector, size, operation), pid = row[:7], row[12]
        found = None if None in (dev, sector) else self._owners.place(dev, sector, kind == QUEUE)
        if found is None:
            yield {"offset": 0, "bytes": size, "block_type": flags}
            return
        at = 0
        for sectors, run in self._owners.look_up(found, size // SECTOR, pid):
            if run is not None:
                yield from self._known(time, operation, at, sectors, run)
            else:
                yield from self._unmapped(operation, (found[0], found[1] + at // SECTOR), at, sectors, flags)
            at += sectors * SECTOR

    def _known(self, time: int, operation: str, at: int, sectors: int, run: Run) -> Iterator[dict[str, Any]]:
        """Blocks of which a file system has told."""
        told: dict[str, Any] = {"block_type": run.block_type}
        if run.inode is None or run.page is None or run.block_type != "data":
            yield {**told, "offset": at, "bytes": sectors * SECTOR}
            return
        told["file"] = self._file(time, run.dev, run.inode)
        if operation != "write":
            yield {**told, "offset": at, "bytes": sectors * SECTOR, "index": run.page}
            return
        for begin, count, owner in self._owned(run.dev, run.inode, run.page, sectors):
            index = run.page + begin // self._owners.page_sectors
            told |= {"offset": at + begin * SECTOR, "bytes": count * SECTOR, "index": index}
            yield {**told, **_dirtied(owner)}

    def _unmapped(
        self, operation: str, place: tuple[int, int], at: int, sectors: int, flags: str | None
    ) -> Iterator[dict[str, Any]]:
        """Blocks of no file that is known: what was dirtied in the device's own pages is metadata."""
        if operation != "write":
            yield {"offset": at, "bytes": sectors * SECTOR, "block_type": flags}
            return
        dev, sector = place
        # The inode of a device's own pages has the device's number.
        for begin, count, owner in self._owned(dev, dev, sector // self._owners.page_sectors, sectors):
            block_type = flags if owner is None else "metadata"
            told = {"offset": at + begin * SECTOR, "bytes": count * SECTOR, "block_type": block_type}
            yield {**told, **_dirtied(owner)}

    def _owned(self, dev: int, inode: int, index: int, sectors: int) -> Iterator[tuple[int, int, Owner | None]]:
        """Begin and length, in sectors, of runs of pages that are written with one owner."""
        page, begin = self._owners.page_sectors, 0
        for pages, owner in self._owners.written(dev, inode, index, -(-sectors // page)):
            count = min(pages * page, sectors - begin)
            yield begin, count, owner
            begin += count

    def _request(self, row: tuple[Any, ...], bio: int | None) -> None:
        _, time, kind, dev, sector, size, operation = row[:7]
        key: Key = (dev, operation, sector)
        if kind == COMPLETE:
            self._complete(key, time, size, row[14], bio)
            return
        flight = self._flying.get(key)
        if flight is None or (kind == INSERT and not flight.returned):
            flight = self._fly(key, _Flight())
        flight.bio = bio or flight.bio
        if kind == INSERT:
            flight.inserted = time
        elif kind == ISSUE:
            flight.issued, flight.left, flight.returned = time, size, False
        else:
            flight.issued, flight.returned = None, True

    def _fly(self, key: Key, flight: _Flight) -> _Flight:
        """Keeps a request until it ends; the oldest goes where there are too many."""
        self._flying.pop(key, None)
        if len(self._flying) >= KEPT:
            self._flying.popitem(last=False)
            self.unended += 1
        self._flying[key] = flight
        return flight

    def _complete(self, key: Key, time: int, size: int | None, error: int | None, bio: int | None) -> None:
        """A part of a request, mostly all, is done."""
        flight = self._flying.pop(key, None) or _Flight()
        if flight.left is not None and size and flight.left > size and key[2] is not None:
            rest = (key[0], key[1], key[2] + size // SECTOR)
            self._fly(rest, _Flight(flight.inserted, flight.issued, flight.left - size, flight.bio))
        self.put(
            "request",
            {
                "time": time,
                "dev": key[0],
                "operation": key[1],
                "sector": None if key[1] == "flush" else key[2],
                "bytes": size,
                "queued_ns": _between(flight.inserted, flight.issued),
                "device_ns": _between(flight.issued, time),
                "error": error,
                "first_bio": flight.bio if bio is None else bio,
            },
        )


def _dirtied(owner: Owner | None) -> dict[str, int | None]:
    """Who dirtied a run of blocks, and when."""
    return {} if owner is None else {"owner": owner[0], "dirtied": owner[1]}


def _between(begin: int | None, end: int | None) -> int | None:
    """Clocks of processors differ a little: what ends before it began took no time."""
    return None if begin is None or end is None else max(0, end - begin)


def _block_type(operation: str, meta: bool | None, comm: str | None) -> str | None:
    """What the flags say. ext4's journal has the metadata flag too, so of a write the sender must be known."""
    if not meta or (operation == "write" and comm is None):
        return None
    return "journal" if operation == "write" and comm is not None and comm.startswith(_JOURNAL) else "metadata"
