# SPDX-License-Identifier: GPL-2.0-only
"""AndroTrace's packed `.uio` (ESOS-Lab/AndroTrace: a header with the local time of Korea, then the record).

A record of I/O is an issue or a completion of a request with its first bio's process, file name, block type and
whether the file was in an fsync. It has no pid, and no path but a name; the device is that of the file system, while
the sector is one of the whole disk.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from fasttrack_lab.trace.importers.intake import COMPLETE, ISSUE, SECTOR, Asked, Clock, Event, Intake
from fasttrack_lab.trace.importers.windows import Window

_HEAD = struct.Struct("<BBII")
_IO = struct.Struct("<BBBBBIIB")
_SYNC = struct.Struct("<BBIB")
_TRACE_IO, _TRACE_SUSPEND = 1, 4
_LONGEST = _HEAD.size + _IO.size + 255 + 1 + 255 + _SYNC.size
_KOREA_S = 9 * 3600
_FIRST_YEAR = 2014
"""The year has 4 bits from 2000 on, and the recorder waits for 2014: what is before is 2016 and later."""
_YEARS = 16
_NAME = 16
"""Bytes of a task's name, with its end."""
_OPERATIONS = (("read", False), ("write", False), ("read", True), ("write", True))
_BLOCKS = {0: "metadata", 1: "journal", 2: "data"}
_FILES = {
    1: "sqlite_db",
    2: "sqlite_journal",
    3: "sqlite_wal",
    4: "sqlite_temp",
    5: "multimedia",
    6: "executable",
    7: "cache",
    8: "temp",
    9: "other",
}
"""AndroTrace's types as records have them; its resources (dat, xml, cache) are `cache`."""


def recognises(head: bytes) -> bool:
    """Whether a file begins with records; two, for one could be by chance."""
    first = _length(head)
    return first is not None and (len(head) <= first or _length(head[first:]) is not None)


def read(files: Sequence[Path], intake: Intake) -> None:
    """Reads files."""
    clocked = False
    for path in files:
        with Window(path) as window:
            while window.has(1):
                window.has(min(_LONGEST, window.size - window.at))
                data = window.peek(_LONGEST)
                size = _length(data)
                if size is None:
                    _resynchronise(window, path, intake)
                    continue
                if size > len(data):
                    intake.damage(path, window.at, len(data), "the last record is cut", 1)
                    break
                window.skip(size)
                if data[0] != _TRACE_IO:
                    intake.skipped["suspends"] += 1
                    continue
                event = _event(data[:size])
                if not clocked:
                    intake.clocks.append(Clock(event.time, event.time, _KOREA_S))
                    clocked = True
                intake.event(event)


def _time(date: int, ns: int) -> int | None:
    """ns since 1970; None where it is no date."""
    year = 2000 + (date & 15)
    year += _YEARS if year < _FIRST_YEAR else 0
    parts = (date >> 4 & 15, date >> 8 & 31, date >> 13 & 31, date >> 18 & 63, date >> 24 & 63)
    if ns >= 10**9:
        return None
    try:
        local = datetime(year, *parts, tzinfo=UTC)
    except ValueError:
        return None
    return (int(local.timestamp()) - _KOREA_S) * 10**9 + ns


def _length(data: bytes) -> int | None:
    """Bytes of the record that begins here, even if it is cut; None where none begins."""
    if len(data) < _HEAD.size:
        return None
    kind, size, date, ns = _HEAD.unpack_from(data)
    if kind not in (_TRACE_IO, _TRACE_SUSPEND) or _time(date, ns) is None:
        return None
    return _HEAD.size + 1 if kind == _TRACE_SUSPEND else _length_of_io(data, size)


def _length_of_io(data: bytes, size: int) -> int | None:
    """The same of a record of I/O that says its SIZE."""
    at = _HEAD.size
    if len(data) < at + _IO.size:
        return at + _IO.size
    _, bits, _, _, block, _, _, name = _IO.unpack_from(data, at)
    if name >= _NAME or block > 4:
        return None
    file_at: int = at + _IO.size + name
    if len(data) <= file_at:
        return file_at + 1
    end: int = file_at + 1 + data[file_at] + (_SYNC.size if bits & 8 else 0)
    # The recorder's own sum, in a byte.
    return end if (end - at) & 0xFF == size else None


def _event(data: bytes) -> Event:
    """A record of I/O, which is whole."""
    _, _, date, ns = _HEAD.unpack_from(data)
    file_type, bits, major, minor, block, sector, sectors, length = _IO.unpack_from(data, _HEAD.size)
    at = _HEAD.size + _IO.size
    comm = data[at : at + length].split(b"\0", 1)[0].decode("utf-8", errors="replace")
    at += length
    name = data[at + 1 : at + 1 + data[at]].split(b"\0", 1)[0].decode("utf-8", errors="replace")
    cause = transaction = None
    if bits & 8:
        _, flags, number, _ = _SYNC.unpack_from(data, at + 1 + data[at])
        cause = {1: "fsync", 2: "fdatasync"}.get(flags & 3)
        transaction = number if block == 1 else None
    operation, sync = _OPERATIONS[bits >> 1 & 3]
    if bits & 16:
        operation = "discard"
    elif bits & 32 and sectors == 0:
        operation = "flush"
    return Event(
        _time(date, ns) or 0,
        ISSUE if bits & 1 else COMPLETE,
        (major << 20 | minor) or None,
        sector,
        sectors * SECTOR,
        Asked(operation, sync, preflush=bool(bits & 32) if operation == "write" else None),
        None,
        comm or None,
        path=name or None,
        file_type=_FILES.get(file_type) if name else None,
        block_type=_BLOCKS.get(block),
        cause=cause,
        transaction=transaction,
    )


def _resynchronise(window: Window, path: Path, intake: Intake) -> None:
    """To the next record."""
    begin = window.at
    while window.has(1):
        window.skip(1)
        if window.has(min(_LONGEST * 2, max(1, window.size - window.at))) and recognises(window.peek(_LONGEST * 2)):
            break
    what = "no record" if window.has(1) else "the end is no whole record"
    intake.damage(path, begin, window.at - begin, what)
