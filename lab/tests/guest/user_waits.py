#!/usr/bin/python3 -ESsBu
# SPDX-License-Identifier: GPL-2.0-only
"""The app in front, or a service, waits in user space for an app behind that owes pauses."""

from __future__ import annotations

import ctypes
import fcntl
import os
import time
from collections.abc import Callable
from typing import NamedTuple

from prologue import (
    BEHIND,
    DATA,
    FRONT,
    FT,
    LIBC,
    PATTERN,
    SEEN,
    SERVICE,
    Shown,
    drop_caches,
    end,
    make,
    ms_until,
    reads_for_ever,
    run,
    start,
    wait,
    write,
)

SYS_FUTEX, FUTEX_WAIT, FUTEX_WAKE = 202, 0, 1
"""Of asm/unistd_64.h and linux/futex.h."""

UIDS = {"front": FRONT, "service": SERVICE}
ANOTHER = 10103
"""The UID of one more app."""


class Peer(NamedTuple):
    """What the app behind takes, what it gives back, and what somebody else does to have it."""

    take: Callable[[], object]
    give: Callable[[], object]
    wait: Callable[[], object]


TRY_AGAIN_S = 0.1
"""The longest time between two tries of SQLite's."""


def lock_of(kind: Callable[[int, int], object], tries: bool = False) -> Peer:
    """A lock of a file; each of the two opens it for itself. Who wants it waits, or TRIES again and again."""
    (DATA / "lock").touch()
    handles: list[int] = []

    def take() -> None:
        handles.append(os.open(DATA / "lock", os.O_RDWR))
        kind(handles[0], fcntl.LOCK_EX)

    def tries_to_take() -> None:
        handle = os.open(DATA / "lock", os.O_RDWR)
        while True:
            try:
                kind(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                time.sleep(TRY_AGAIN_S)

    return Peer(take, lambda: kind(handles[0], fcntl.LOCK_UN), tries_to_take if tries else take)


def pipe() -> Peer:
    reads, writes = os.pipe()
    return Peer(lambda: None, lambda: os.write(writes, b"x"), lambda: os.read(reads, 1))


def futex() -> Peer:
    """A word in memory that both have: 1 while the app behind has it."""
    word = ctypes.c_uint32.from_buffer(SEEN, 64)

    def call(operation: int, value: int) -> None:
        LIBC.syscall(SYS_FUTEX, ctypes.byref(word), operation, value, None, None, 0)

    def take() -> None:
        word.value = 1

    def give() -> None:
        word.value = 0
        call(FUTEX_WAKE, 1)

    def waits() -> None:
        while word.value:
            call(FUTEX_WAIT, 1)

    return Peer(take, give, waits)


PEERS: dict[str, Callable[[], Peer]] = {
    "flock": lambda: lock_of(fcntl.flock),
    "fcntl": lambda: lock_of(fcntl.lockf),
    "flock tried": lambda: lock_of(fcntl.flock, tries=True),
    "fcntl tried": lambda: lock_of(fcntl.lockf, tries=True),
    "pipe": pipe,
    "futex": futex,
}


def waits(peer: str, who: str, busy: bool) -> Shown:
    """How long WHO waits for one behind that writes 4 MiB, eight segments, before it gives back; BUSY: one scrolls."""
    make("cold", 64)
    drop_caches()
    other = PEERS[peer]()

    def writes() -> None:
        other.take()
        handle = os.open(DATA / "target", os.O_CREAT | os.O_WRONLY, 0o644)
        SEEN[0] = 1
        os.write(handle, PATTERN * 4)
        other.give()

    def looks() -> None:
        begin = time.monotonic()
        other.wait()
        SEEN[1] = int((time.monotonic() - begin) * 1e6)

    front = [start(FRONT, lambda: reads_for_ever("cold"))] if busy else []
    time.sleep(0.1)
    behind = start(BEHIND, writes)
    ms_until(lambda: SEEN[0])
    wait(start(UIDS[who], looks))
    end(*front)
    wait(behind)
    return {"ms": SEEN[1] / 1000}


def waits_long(peer: str, before: bool, comes: bool) -> Shown:
    """How long an app waits that asked before the app behind wrote: another one was there BEFORE, or it COMES to the
    front meanwhile."""
    make("cold", 64)
    drop_caches()
    other = PEERS[peer]()

    def writes(name: str) -> None:
        other.take()
        SEEN[0] = 1
        ms_until(lambda: SEEN[2])
        handle = os.open(DATA / name, os.O_CREAT | os.O_WRONLY, 0o644)
        os.write(handle, PATTERN * 4)
        other.give()

    def looks() -> None:
        other.wait()
        SEEN[1] = int(time.monotonic() * 1e6)

    front = start(FRONT, lambda: reads_for_ever("cold"))
    behind = [start(BEHIND, lambda: writes("target"))]
    ms_until(lambda: SEEN[0])
    if before:
        behind.append(start(BEHIND, lambda: writes("another")))
        time.sleep(0.05)
    waiter = start(ANOTHER if comes else FRONT, looks)
    time.sleep(0.05)
    if comes:
        write(FT / "foreground_uids", f"{FRONT} {ANOTHER}")
    begin = time.monotonic()
    SEEN[2] = 1
    wait(waiter)
    end(front)
    for child in behind:
        wait(child)
    return {"ms": SEEN[1] / 1000 - begin * 1000}


if __name__ == "__main__":
    run(waits, waits_long)
