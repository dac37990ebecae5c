#!/usr/bin/python3 -ESsBu
# SPDX-License-Identifier: GPL-2.0-only
"""An app in front that hardly waits for storage: what those behind do beside it, and what it takes itself."""

from __future__ import annotations

import mmap
import os
import time

from pauses import counted
from prologue import (
    BEHIND,
    BLOCK,
    DATA,
    FRONT,
    MIB,
    SEEN,
    SERVICE,
    Shown,
    as_uid,
    drop_caches,
    end,
    make,
    meminfo_kb,
    reads_for_ever,
    reads_whole,
    run,
    start,
    timed,
    vmstat,
    wait,
)

GROWTH_MIB_S = 1000
"""How fast an app fills new memory: a guest's processor takes no time for it."""


def draws() -> Shown:
    """One cached page and one minor fault each 10 ms: no I/O. What an app behind reads from storage in 10 s, in MiB."""
    make("page", 1)
    make("film", 64)
    drop_caches()

    def uses() -> None:
        handle = os.open(DATA / "page", os.O_RDONLY)
        area = mmap.mmap(handle, MIB, prot=mmap.PROT_READ)
        while True:
            os.pread(handle, BLOCK, 0)
            area.madvise(mmap.MADV_DONTNEED)
            area[BLOCK]
            time.sleep(0.01)

    def reads() -> None:
        handle = os.open(DATA / "film", os.O_RDONLY)
        while True:
            os.pread(handle, MIB, SEEN[0] % 64 * MIB)
            os.posix_fadvise(handle, SEEN[0] % 64 * MIB, MIB, os.POSIX_FADV_DONTNEED)
            SEEN[0] += 1

    front = start(FRONT, uses)
    behind = start(BEHIND, reads)
    time.sleep(0.5)
    shown = {"mib": counted(10)}
    end(front, behind)
    return shown


def grows(every_ms: int) -> Shown:
    """
    An app behind takes nine tenths of the memory that there is, which is full of what a service has read: ms. One in
    front reads a page that is not in memory each EVERY_MS.
    """
    most = meminfo_kb("MemAvailable") // 1024 * 9 // 10
    make("cold", 32)
    make("film", most)
    drop_caches()
    as_uid(SERVICE, lambda: reads_whole("film"))

    def takes() -> None:
        area = mmap.mmap(-1, most * MIB)
        for at in range(0, len(area), BLOCK):
            area[at] = 1
            if at % MIB == 0:
                SEEN[0] += 1
                time.sleep(1 / GROWTH_MIB_S)

    front = start(FRONT, lambda: reads_for_ever("cold", every_ms / 1000))
    time.sleep(0.5)
    stalls = vmstat("pgscan_direct")
    shown: Shown = {"ms": timed(lambda: wait(start(BEHIND, takes))), "mib": SEEN[0], "most": most}
    shown |= {"scanned": vmstat("pgscan_direct") - stalls, "killed": vmstat("oom_kill")}
    end(front)
    return shown


if __name__ == "__main__":
    run(draws, grows)
