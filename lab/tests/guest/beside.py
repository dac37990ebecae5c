# SPDX-License-Identifier: GPL-2.0-only
"""The same work of the foreground twice, alone and while the background works, and what both do."""

from __future__ import annotations

import json
import mmap
import os
import random
import time
from collections.abc import Callable
from functools import partial
from typing import Protocol

from aio import aligned
from prologue import BEHIND, BLOCK, DATA, FRONT, PATTERN, Shown, as_uid, end, fio, start


class Call(Protocol):
    """Times one call of the foreground's."""

    def __call__(self, one: Callable[..., object], *arguments: object) -> None: ...


Front = Callable[[Call, int], None]
"""Gives each call to be timed to its first argument; the second is 0 alone, else 1."""

Behind = Callable[[], list[int]]
"""Gives the processes that it has started."""


def timed(front: Front, turn: int) -> list[float]:
    """Milliseconds of each call of the foreground."""
    took: list[float] = []
    shown_read, shown_write = os.pipe()

    def call(one: Callable[..., object], *arguments: object) -> None:
        begin = time.monotonic_ns()
        one(*arguments)
        took.append((time.monotonic_ns() - begin) / 1e6)

    def work() -> None:
        front(call, turn)
        os.write(shown_write, json.dumps(took).encode())

    if as_uid(FRONT, work):
        raise RuntimeError("the foreground has failed")
    found: list[float] = json.loads(os.read(shown_read, 1 << 16))
    return found


def play(front: Front, behind: Behind) -> Shown:
    alone = timed(front, 0)
    children = behind()
    beside = timed(front, 1)
    end(*children)
    return {"alone": alone, "beside": beside}


def not_timed(one: Callable[..., object], *arguments: object) -> None:
    one(*arguments)


def start_behind(work: Callable[[int], object], count: int = 1) -> list[int]:
    """WORK in so many processes of the background; it is given which."""
    return [start(BEHIND, partial(work, index)) for index in range(count)]


def fio_behind(argv: list[str]) -> list[int]:
    return [fio(argv, BEHIND).pid]


def direct_writes_for_ever(name: str, size: int, think_s: float) -> None:
    """Over a file that is there, at random places."""
    handle = os.open(DATA / name, os.O_WRONLY | os.O_DIRECT)
    places = os.fstat(handle).st_size // size
    area = aligned(size)
    draw = random.Random(os.getpid())
    while True:
        os.pwritev(handle, [area], draw.randrange(places) * size)
        time.sleep(think_s)


def reads_at_random(call: Call, name: str, count: int, think_s: float = 0.0) -> None:
    """Blocks of a file that are not in the page cache."""
    handle = os.open(DATA / name, os.O_RDONLY)
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_RANDOM)
    for page in random.Random(1).sample(range(os.fstat(handle).st_size // BLOCK), count):
        call(os.pread, handle, BLOCK, page * BLOCK)
        os.posix_fadvise(handle, page * BLOCK, BLOCK, os.POSIX_FADV_DONTNEED)
        time.sleep(think_s)


def appends_and_syncs(call: Call, name: str, count: int, think_s: float = 0.0) -> None:
    handle = os.open(DATA / name, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o666)

    def once() -> None:
        os.write(handle, PATTERN[:BLOCK])
        os.fsync(handle)

    for _ in range(count):
        call(once)
        time.sleep(think_s)


def writes_slowly(name: str, mib: int) -> None:
    """So many MiB, somewhat faster than the device writes."""
    handle = os.open(DATA / name, os.O_CREAT | os.O_WRONLY, 0o644)
    for index in range(mib):
        os.pwrite(handle, PATTERN, index << 20)
        time.sleep(0.004)


def mapped(handle: int, size: int) -> mmap.mmap:
    """Of a file that is read here and there."""
    area = mmap.mmap(handle, size, prot=mmap.PROT_READ)
    area.madvise(mmap.MADV_RANDOM)
    return area
