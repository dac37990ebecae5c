# SPDX-License-Identifier: GPL-2.0-only
"""From block events in the order of time to records: bios with a segment each, requests, tasks and files.

A bio is a queue event. A device without any has a bio for each request that is issued, inserted or, where nothing else
is there, completed; the first of these that it has. Requests are paired as device/trace does: by device, operation and
first sector.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fasttrack_lab.trace.importers.intake import COMPLETE, INSERT, ISSUE, NAME, QUEUE, REQUEUE, SECTOR, Intake
from fasttrack_lab.trace.importers.record_files import RecordFiles

KEPT = 65_536
"""More requests than this are not in flight: the end of some was lost."""
BIO_FROM = (QUEUE, ISSUE, INSERT, COMPLETE)
"""Which event is a bio: the first of these that a device has."""
_JOURNAL = "jbd2/"
"""Names of the threads that write ext4's journal; what else they write has no metadata flag."""

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
        self._facts = intake.facts
        self._from = {
            dev: next((kind for kind in BIO_FROM if kind in kinds), "") for dev, kinds in intake.by_device.items()
        }
        self._tasks: dict[int | str, int] = {}
        self._named: dict[int | str, str | None] = {}
        self._paths: dict[tuple[int | None, str], int] = {}
        self._flying: OrderedDict[Key, _Flight] = OrderedDict()
        self._bios = 0

    def put(self, kind: str, fields: dict[str, Any]) -> None:
        """A record of this recording."""
        self._files.put(kind, self._place | fields)

    def join(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Takes all events, in the order of time."""
        for row in rows:
            kind, dev, pid, comm = row[2], row[3], row[12], row[13]
            if kind == NAME:
                self._task(row[1], pid, comm)
                continue
            bio = self._bio(row) if kind == self._from[dev] and not self._returned(row) else None
            if kind in (INSERT, ISSUE, COMPLETE, REQUEUE):
                self._request(row, bio)
        self.unended += len(self._flying)

    def _task(self, time: int, pid: int | None, comm: str | None) -> int | None:
        """The id of a task; a record where it is new or has another name than before."""
        who: int | str | None = comm if pid is None else pid
        if who is None:
            return None
        number = self._tasks.get(who)
        if number is None:
            number = self._tasks[who] = len(self._tasks) + 1
        elif comm is None or (self._named[who] == comm):
            return number
        self._named[who] = comm
        facts = self._facts(pid)
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

    def _file(self, time: int, dev: int | None, path: str, file_type: str | None) -> int:
        number = self._paths.get((dev, path))
        if number is None:
            number = self._paths[dev, path] = len(self._paths) + 1
            self.put(
                "file",
                {"time": time, "file": number, "event": "first_use", "dev": dev, "path": path, "file_type": file_type},
            )
        return number

    def _returned(self, row: tuple[Any, ...]) -> bool:
        """Whether a request that came back undone is sent again."""
        flight = self._flying.get((row[3], row[6], row[4])) if row[2] in (INSERT, ISSUE) else None
        return flight is not None and flight.returned

    def _bio(self, row: tuple[Any, ...]) -> int:
        (_, time, _, dev, sector, size, operation, sync, fua, preflush, meta, read_ahead, pid, comm) = row[:14]
        path, file_type, block_type, cause, transaction = row[15:]
        self._bios += 1
        carrier = self._task(time, pid, comm)
        comm = comm or (None if pid is None else self._named.get(pid))
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
            reader = operation == "read" and self._facts(pid).kernel_thread is False
            self.put(
                "segment",
                {
                    "time": time,
                    "bio": self._bios,
                    "offset": 0,
                    "bytes": size,
                    "block_type": block_type or _block_type(operation, meta, comm),
                    "file": None if path is None else self._file(time, dev, path, file_type),
                    "owner": carrier if reader else None,
                },
            )
        return self._bios

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


def _between(begin: int | None, end: int | None) -> int | None:
    """Clocks of processors differ a little: what ends before it began took no time."""
    return None if begin is None or end is None else max(0, end - begin)


def _block_type(operation: str, meta: bool | None, comm: str | None) -> str | None:
    """What the flags say. ext4's journal has the metadata flag too, so of a write the sender must be known."""
    if not meta or (operation == "write" and comm is None):
        return None
    return "journal" if operation == "write" and comm is not None and comm.startswith(_JOURNAL) else "metadata"
