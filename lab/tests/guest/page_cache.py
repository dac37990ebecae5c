#!/usr/bin/python3 -ESsBu
# SPDX-License-Identifier: GPL-2.0-only
"""Whose pages reclaim takes, what is kept free, and what happens where memory is all the foreground's."""

from __future__ import annotations

import mmap
import os
import time
from functools import partial

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
    VM,
    Shown,
    as_uid,
    drop_caches,
    end,
    make,
    meminfo_kb,
    ms_until,
    reads_for_ever,
    reads_whole,
    resident,
    run,
    start,
    stat,
    sync_range,
    touch,
    vmstat,
    wait,
    write,
)


def background_first(dirty: bool) -> Shown:
    """What the front has read, while a background app reads or writes three times what fits, and again later."""
    make("front", 64)
    names = [f"behind{index}" for index in range(6)]
    for name in names:
        make(name, 200)
    drop_caches()

    def behind() -> None:
        for name in names:
            as_uid(BEHIND, partial(make, name, 200) if dirty else partial(reads_whole, name))

    as_uid(FRONT, lambda: reads_whole("front"))
    shown: Shown = {"read": resident("front")}
    behind()
    shown["kept"] = resident("front")
    shown["protected"] = stat("reclaim_protected")
    write(FT / "foreground_uids", "10103")
    behind()
    shown["left behind"] = resident("front")
    shown["protected later"] = stat("reclaim_protected") - shown["protected"]
    return shown


def dirty_before_the_fronts() -> Shown:
    """The front fills the memory beside clean and dirty pages of its own and of the background's."""
    write(FT / "foreground_cache_percent", "100")
    # Nobody writes back but for reclaim.
    write(VM / "dirty_writeback_centisecs", "0")
    write(VM / "dirty_ratio", "95")
    write(VM / "dirty_background_ratio", "90")
    owners = {"front_clean": FRONT, "front_dirty": FRONT, "behind_clean": BEHIND, "behind_dirty": BEHIND}
    for name in owners:
        make(name, 60)
    drop_caches()

    def writes(name: str) -> None:
        handle = os.open(DATA / name, os.O_WRONLY)
        for index in range(60):
            os.pwrite(handle, PATTERN, index * MIB)

    for name, uid in owners.items():
        as_uid(uid, partial(reads_whole if "clean" in name else writes, name))
    free = meminfo_kb("MemAvailable")

    def fill() -> None:
        area = mmap.mmap(-1, free * 1024)
        for at in range(0, len(area), BLOCK):
            area[at] = 1
            SEEN[0] = at // MIB
            if at % (8 * MIB) == 0:
                time.sleep(0.2)

    def kept() -> dict[str, float]:
        return {name: resident(name) for name in owners}

    shown: Shown = {"dirty_kb": meminfo_kb("Dirty"), "kept": [kept()]}
    waited = stat("reclaim_waited")
    child = start(FRONT, fill)
    last = 0
    while not os.waitpid(child, os.WNOHANG)[0]:
        time.sleep(0.02)
        if SEEN[0] >= last + 8:
            last = SEEN[0]
            shown["kept"].append(kept())
    shown["waited"] = stat("reclaim_waited") - waited
    return shown


def streams() -> Shown:
    """The front has read more than fits before the background reads what would."""
    make("behind", 120)
    names = [f"front{index}" for index in range(6)]
    for name in names:
        make(name, 200)
    drop_caches()
    for name in names:
        as_uid(FRONT, partial(reads_whole, name))
    as_uid(BEHIND, lambda: reads_whole("behind"))
    return {"kept": resident("behind")}


def more_than_its_bound() -> Shown:
    """The front has read seven tenths of memory; a background app reads four times as much of other files, once."""
    make("front", 340)
    names = [f"behind{index}" for index in range(8)]
    for name in names:
        make(name, 170)
    drop_caches()
    as_uid(FRONT, lambda: reads_whole("front"))
    parts = []
    for name in names:
        as_uid(BEHIND, partial(reads_whole, name))
        parts.append(resident("front") * 340 * MIB / 1024 / meminfo_kb("Cached"))
    return {"parts": parts}


def listed(files: int) -> Shown:
    """The front lists a folder of many files and looks at each, before and after others read twice what fits."""
    names = [f"behind{index}" for index in range(6)]
    for name in names:
        make(name, 200)

    def makes() -> None:
        (DATA / "folder").mkdir()
        for index in range(files):
            os.close(os.open(DATA / "folder" / f"a file {index}", os.O_CREAT | os.O_WRONLY))

    def lists() -> None:
        begin = time.monotonic_ns()
        for entry in os.scandir(DATA / "folder"):
            entry.stat()
            SEEN[1] += 1
        SEEN[0] = time.monotonic_ns() - begin

    def listing_ms() -> float:
        as_uid(FRONT, lists)
        return SEEN[0] / 1e6

    as_uid(FRONT, makes)
    drop_caches()
    shown: Shown = {"cold_ms": listing_ms(), "warm_ms": listing_ms()}
    for name in names:
        as_uid(BEHIND, partial(reads_whole, name))
    return shown | {"after_ms": listing_ms(), "seen": SEEN[1]}


def free_pages() -> Shown:
    """The fewest that are free while a background app reads more than fits."""
    names = [f"behind{index}" for index in range(4)]
    for name in names:
        make(name, 200)
    drop_caches()

    def fill() -> None:
        for name in names:
            reads_whole(name)
            SEEN[0] += 1

    behind = start(BEHIND, fill)
    low_kb = 1 << 40
    while SEEN[0] < len(names):
        low_kb = min(low_kb, meminfo_kb("MemFree"))
        time.sleep(0.001)
    wait(behind)
    return {"low_kb": low_kb}


def waited_for() -> Shown:
    """The front waits for a page of a shared file while a background app's write-back of it is held."""
    make("scroll", 64)
    drop_caches()
    scroll = start(FRONT, lambda: reads_for_ever("scroll"))

    def fill() -> None:
        handle = os.open(DATA / "shared", os.O_CREAT | os.O_WRONLY, 0o666)
        for index in range(48):
            os.pwrite(handle, PATTERN, index * MIB)
        os.fsync(handle)

    write(FT / "page_allocator", "0")
    behind = start(BEHIND, fill)
    time.sleep(0.3)

    def waits() -> None:
        # For a page in the queue.
        handle = os.open(DATA / "shared", os.O_RDWR)
        begin = time.monotonic_ns()
        sync_range(handle, 16 * MIB, BLOCK, SYNC_FILE_RANGE_WAIT_BEFORE)
        SEEN[0] = time.monotonic_ns() - begin

    as_uid(FRONT, waits)
    shown = {"ms": SEEN[0] / 1e6, "promoted": stat("promoted")}
    end(scroll, behind)
    return shown


def all_the_fronts() -> Shown:
    """Nine tenths of the memory are the front's own, and both read."""
    make("front", 200)
    make("behind", 200)
    drop_caches()
    free = meminfo_kb("MemAvailable")

    def reads(name: str, counter: int) -> None:
        for _ in range(2):
            reads_whole(name)
            SEEN[counter] += 1

    def front() -> None:
        held = touch(free * 1024 * 9 // 10)
        reads("front", 0)
        held.close()

    children = [start(FRONT, front), start(BEHIND, lambda: reads("behind", 1))]
    return {"status": [wait(child) for child in children], "done": [SEEN[0], SEEN[1]]}


def all_protected(dirty: bool) -> Shown:
    """Nine tenths of the memory are pages of the front's files; the background allocates and reads."""
    write(FT / "foreground_cache_percent", "100")
    write(FT / "background_pause_ms", "10")
    most = meminfo_kb("MemAvailable") // 1024 * 9 // 10
    make("front", most)
    make("behind", 20)
    drop_caches()

    def front() -> None:
        handle = os.open(DATA / "front", os.O_RDWR)
        area = mmap.mmap(handle, 0)
        while True:
            for at in range(0, most * MIB, BLOCK):
                if dirty:
                    area[at] = 1
                else:
                    area[at]
                if at % MIB == 0:
                    SEEN[0] += 1
                    # It has used all of them once, and goes on at an app's pace.
                    if SEEN[0] > most:
                        time.sleep(0.002)

    def behind() -> None:
        held = touch(60 * MIB)
        SEEN[1] = 1
        reads_whole("behind")
        held.close()

    ahead = start(FRONT, front)
    ms_until(lambda: SEEN[0] >= most, limit_s=100)
    status = as_uid(BEHIND, behind)
    before = SEEN[0]
    ms_until(lambda: SEEN[0] > before + 4, limit_s=100)
    shown = {"status": status, "done": SEEN[1], "protected": stat("reclaim_protected"), "killed": vmstat("oom_kill")}
    end(ahead)
    return shown


if __name__ == "__main__":
    run(
        background_first,
        dirty_before_the_fronts,
        streams,
        more_than_its_bound,
        listed,
        free_pages,
        waited_for,
        all_the_fronts,
        all_protected,
    )
