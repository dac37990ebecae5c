# SPDX-License-Identifier: GPL-2.0-only
"""Linux's asynchronous I/O, for what fio cannot do: a burst at a moment, one call with given blocks, and syncs."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterable
from pathlib import Path

from prologue import LIBC, PATTERN

IO_SETUP, IO_GETEVENTS, IO_SUBMIT = 206, 208, 209
"""System calls of x86-64."""

READ, WRITE, FSYNC, FDSYNC = 0, 1, 2, 3


class Iocb(ctypes.Structure):
    """struct iocb of linux/aio_abi.h."""

    _fields_ = (
        ("data", ctypes.c_uint64),
        ("key", ctypes.c_uint32),
        ("rw_flags", ctypes.c_int32),
        ("opcode", ctypes.c_uint16),
        ("priority", ctypes.c_int16),
        ("handle", ctypes.c_uint32),
        ("buffer", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("offset", ctypes.c_int64),
        ("reserved", ctypes.c_uint64),
        ("flags", ctypes.c_uint32),
        ("resfd", ctypes.c_uint32),
    )


class Event(ctypes.Structure):
    """struct io_event."""

    _fields_ = (
        ("data", ctypes.c_uint64),
        ("iocb", ctypes.c_uint64),
        ("result", ctypes.c_int64),
        ("result2", ctypes.c_int64),
    )


def aligned(size: int) -> mmap.mmap:
    """Memory that a direct write takes."""
    area = mmap.mmap(-1, size)
    area[:] = PATTERN[:size]
    return area


def call(number: int, *arguments: object) -> int:
    found = int(LIBC.syscall(number, *arguments))
    if found < 0:
        raise OSError(ctypes.get_errno(), f"system call {number}")
    return found


class Queue:
    """Reads or writes of a file that is there, each of SIZE bytes, at most DEPTH at a time; direct ones by default."""

    def __init__(self, path: Path, size: int, depth: int, opcode: int, flags: int = os.O_DIRECT) -> None:
        self.handle = os.open(path, os.O_RDWR | flags)
        self.area, self.size, self.depth, self.opcode = aligned(size), size, depth, opcode
        self.context = ctypes.c_ulong(0)
        call(IO_SETUP, depth, ctypes.byref(self.context))

    def submit(self, places: Iterable[int]) -> None:
        """One io_submit(2); places count in SIZE."""
        address = ctypes.addressof(ctypes.c_char.from_buffer(self.area))
        one = {"opcode": self.opcode, "handle": self.handle, "buffer": address, "size": self.size}
        self._give([Iocb(offset=place * self.size, **one) for place in places])

    def sync(self, opcode: int) -> None:
        """One io_submit(2) of a sync, to its end."""
        self._give([Iocb(opcode=opcode, handle=self.handle)])
        self.wait(1, 0)

    def _give(self, calls: list[Iocb]) -> None:
        array = (ctypes.c_void_p * len(calls))(*map(ctypes.addressof, calls))
        taken = call(IO_SUBMIT, self.context, ctypes.c_long(len(calls)), array)
        if taken != len(calls):
            raise OSError(f"{taken} of {len(calls)} were taken")

    def wait(self, count: int, result: int | None = None) -> None:
        """COUNT of them have ended, and well: each with RESULT, or its size."""
        events = (Event * count)()
        call(IO_GETEVENTS, self.context, ctypes.c_long(count), ctypes.c_long(count), events, None)
        wanted = self.size if result is None else result
        if any(event.result != wanted for event in events):
            raise OSError(f"results: {[event.result for event in events]}")
