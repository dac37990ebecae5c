#!/usr/bin/python3 -ESsBu
# SPDX-License-Identifier: GPL-2.0-only
"""Everything that makes one of FastTrack's events, and the trace of it."""

from __future__ import annotations

import mmap
import os
import time
from pathlib import Path

from prologue import (
    BEHIND,
    BLOCK,
    DATA,
    FRONT,
    FT,
    MIB,
    PATTERN,
    SEEN,
    SYNC_FILE_RANGE_WAIT_BEFORE,
    SYNC_FILE_RANGE_WRITE,
    TRACE,
    Shown,
    as_uid,
    drop_caches,
    enable,
    end,
    make,
    mount_cgroup,
    ms_until,
    pairs,
    read,
    reads_for_ever,
    reads_whole,
    run,
    start,
    stat,
    sync_range,
    write,
    writes_for_ever,
)


def hold_memory() -> None:
    """Leaves some 200 MiB to the page cache."""
    with Path("/tmp/held").open("wb") as held:
        for _ in range(220):
            held.write(PATTERN)


def goes_in_front() -> None:
    write(FT / "foreground_uids", f"{FRONT} {BEHIND}")
    write(FT / "foreground_tgids", "1")
    write(FT / "foreground_cgroups", "/front")
    write(FT / "foreground_tgids", " ")
    write(FT / "foreground_cgroups", " ")
    write(FT / "foreground_uids", str(FRONT))


def writes_back() -> None:
    handle = os.open(DATA / "shared", os.O_WRONLY)
    os.pwrite(handle, PATTERN * 2, 0)
    SEEN[0] = 1
    ms_until(lambda: SEEN[0] == 2)
    sync_range(handle, 0, 2 * MIB, SYNC_FILE_RANGE_WRITE)
    time.sleep(1000)


def waits_for_a_page() -> None:
    handle = os.open(DATA / "shared", os.O_RDWR)
    sync_range(handle, MIB, BLOCK, SYNC_FILE_RANGE_WAIT_BEFORE)


def makes_longer() -> None:
    """Holds the inode's lock for as long as its request is held."""
    handle = os.open(DATA / "locked", os.O_WRONLY | os.O_DIRECT)
    SEEN[2] = 1
    os.pwritev(handle, [mmap.mmap(-1, MIB)], 0)
    time.sleep(1000)


def waits_for_a_lock() -> None:
    """Root is neutral, and has no hook for it."""
    handle = os.open(DATA / "locked", os.O_WRONLY)
    os.pwrite(handle, b"x", 0)
    os.close(handle)


def play() -> Shown:
    """The PIDs of who is in front, and behind."""
    goes_in_front()
    as_uid(FRONT, lambda: reads_whole("read"))
    as_uid(BEHIND, lambda: reads_whole("behind"))
    drop_caches()
    behind = [start(BEHIND, writes_back)]
    ms_until(lambda: SEEN[0] == 1)
    front = start(FRONT, lambda: reads_for_ever("scroll"))
    time.sleep(0.05)
    behind.append(start(BEHIND, lambda: writes_for_ever("target", 1)))
    behind.append(start(BEHIND, lambda: reads_for_ever("behind")))
    # All of the range at once, not a segment at a time.
    write(FT / "page_allocator", "0")
    SEEN[0] = 2
    time.sleep(0.01)
    as_uid(FRONT, waits_for_a_page)
    write(FT / "page_allocator", "1")
    time.sleep(1)
    (DATA / "locked").touch(0o666)
    behind.append(start(BEHIND, makes_longer))
    ms_until(lambda: SEEN[2] == 1)
    time.sleep(0.01)
    waits_for_a_lock()
    end(front, *behind)
    os.sync()
    return {"front": front, "behind": behind}


def counters() -> dict[str, int]:
    return {path.name: stat(path.name) for path in (FT / "stats").iterdir()}


def watched(read_mib: int) -> Shown:
    """All of it; the front has read so many MiB when the background reads more than fits."""
    for name, mib in {"scroll": 16, "read": read_mib, "shared": 2, "behind": 200}.items():
        make(name, mib)
    drop_caches()
    hold_memory()
    mount_cgroup("front")
    write(TRACE / "trace_clock", "mono")
    write(TRACE / "buffer_size_kb", "16384")
    shown: Shown = {"inode": (DATA / "read").stat().st_ino, "before": counters()}
    enable("fasttrack")
    shown |= play()
    enable("fasttrack", False)
    shown["after"] = counters()
    shown["buffer"] = pairs(read(TRACE / "per_cpu/cpu0/stats"), ": ")
    shown["lines"] = [line for line in read(TRACE / "trace").splitlines() if ": fasttrack_" in line]
    return shown


if __name__ == "__main__":
    run(watched)
