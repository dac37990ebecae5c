#!/usr/bin/python3 -ESsBu
# SPDX-License-Identifier: GPL-2.0-only
"""What an app behind can do without a right: whether it gets more of the storage by it than without."""

from __future__ import annotations

import os
import random
import threading
import time
from functools import partial
from itertools import cycle

from pauses import counted
from prologue import (
    BEHIND,
    BLOCK,
    CGROUP,
    DATA,
    FRONT,
    FT,
    MIB,
    PATTERN,
    SEEN,
    Shown,
    Work,
    as_uid,
    drop_caches,
    end,
    make,
    mount_cgroup,
    run,
    set_ioprio,
    start,
    timed,
    wait,
    write,
)

IOPRIO_RT, IOPRIO_BE = 1, 2
"""Classes of linux/ioprio.h; BE at its highest level."""


def reads(name: str = "film", advice: int | None = None) -> None:
    """A MiB a call, over and over, of the first half of a file that ADVICE is given of before each turn."""
    handle = os.open(DATA / name, os.O_RDONLY)
    while True:
        if advice is not None:
            os.posix_fadvise(handle, 0, 32 * MIB, advice)
        for at in range(32):
            os.pread(handle, MIB, at * MIB)
            SEEN[0] += 1
        os.posix_fadvise(handle, 0, 32 * MIB, os.POSIX_FADV_DONTNEED)


def reads_as(ioprio_class: int) -> None:
    set_ioprio(ioprio_class)
    reads()


def fetches() -> None:
    """No read at all: what is wanted is fetched ahead, a MiB a call, and dropped."""
    handle = os.open(DATA / "film", os.O_RDONLY)
    while True:
        os.posix_fadvise(handle, SEEN[0] % 64 * MIB, MIB, os.POSIX_FADV_WILLNEED)
        SEEN[0] += 1
        if SEEN[0] % 64 == 0:
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)


def writes(name: str = "target", drops: bool = False, after: str = "") -> None:
    """A MiB a call, AFTER a read of another file; with DROPS its write-back is begun by fadvise(2)."""
    if after:
        other = os.open(DATA / after, os.O_RDONLY)
        os.posix_fadvise(other, 0, 0, os.POSIX_FADV_RANDOM)
        os.pread(other, BLOCK, 0)
    handle = os.open(DATA / name, os.O_CREAT | os.O_WRONLY, 0o666)
    while True:
        at = SEEN[0] % 512 * MIB
        os.pwrite(handle, PATTERN, at)
        if drops:
            os.posix_fadvise(handle, at, MIB, os.POSIX_FADV_DONTNEED)
        SEEN[0] += 1


def syncs(name: str = "target") -> None:
    """A MiB a call, and each is made durable."""
    handle = os.open(DATA / name, os.O_CREAT | os.O_WRONLY, 0o666)
    while True:
        os.pwrite(handle, PATTERN, SEEN[0] % 512 * MIB)
        os.fsync(handle)
        SEEN[0] += 1


def moves() -> None:
    """Between two groups of its own, each millisecond, as soon as it is in one of them."""
    groups = cycle(CGROUP / "app" / name for name in ("1", "2"))

    def moves_on() -> None:
        time.sleep(0.1)
        while True:
            write(next(groups) / "cgroup.procs", "0")
            SEEN[1] += 1
            time.sleep(0.001)

    threading.Thread(target=moves_on, daemon=True).start()
    reads()


def own_cgroups() -> None:
    """An app behind, by its group, which may make groups in it and move its tasks between them."""
    group = mount_cgroup("app")
    for one in group, group / "1", group / "2":
        one.mkdir(exist_ok=True)
        os.chown(one, BEHIND, BEHIND)
        os.chown(one / "cgroup.procs", BEHIND, BEHIND)
    write(FT / "app_cgroups", "/app")


WAYS: dict[str, dict[str, Work]] = {
    "reads": {
        "plain": reads,
        "fetched ahead, then read": partial(reads, advice=os.POSIX_FADV_WILLNEED),
        "fetched ahead alone": fetches,
        "at random": partial(reads, advice=os.POSIX_FADV_RANDOM),
        "in order": partial(reads, advice=os.POSIX_FADV_SEQUENTIAL),
        "with the highest priority": partial(reads_as, IOPRIO_BE),
        "moved": moves,
        "what the front reads": partial(reads, "scroll"),
        "what the front reads, fetched ahead": partial(reads, "scroll", advice=os.POSIX_FADV_WILLNEED),
    },
    "writes": {
        "plain": writes,
        "dropped": partial(writes, drops=True),
        "the front's dirty file": partial(writes, "ours"),
        "after a read of the front's file": partial(writes, after="scroll"),
    },
    "syncs": {
        "plain": syncs,
        "the front's synced file": partial(syncs, "ours"),
        "what the front reads": partial(syncs, "scroll"),
    },
}
"""What is compared with the first of its kind."""


def gains(kind: str) -> Shown:
    """
    Of each way MiB in 4 s and the mean read in front, us: beside one in front who scrolls and one who changes a file
    each 5 ms, and syncs it if KIND does. Then MiB in a second with nobody there.
    """
    own_cgroups()
    for name in "scroll", "film":
        make(name, 64)
        (DATA / name).chmod(0o666)
    drop_caches()

    def scrolls() -> None:
        handle = os.open(DATA / "scroll", os.O_RDONLY)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_RANDOM)
        draw = random.Random(1)
        while True:
            at = draw.randrange(64 * MIB // BLOCK) * BLOCK
            SEEN[3] += int(timed(partial(os.pread, handle, BLOCK, at)) * 1000)
            SEEN[2] += 1
            os.posix_fadvise(handle, at, BLOCK, os.POSIX_FADV_DONTNEED)

    def changes() -> None:
        handle = os.open(DATA / "ours", os.O_CREAT | os.O_WRONLY, 0o666)
        while True:
            os.pwrite(handle, PATTERN[:BLOCK], 600 * MIB)
            if kind == "syncs":
                os.fsync(handle)
            time.sleep(0.005)

    def done(work: Work, seconds: float = 4) -> dict[str, float]:
        drop_caches()
        behind = start(BEHIND, work)
        write(CGROUP / "app/1/cgroup.procs", str(behind))
        time.sleep(0.5)
        reads, us = SEEN[2], SEEN[3]
        shown: dict[str, float] = {"mib": counted(seconds)}
        shown["front_us"] = (SEEN[3] - us) / max(SEEN[2] - reads, 1)
        end(behind)
        return shown

    front = [start(FRONT, scrolls), start(FRONT, changes)]
    time.sleep(0.2)
    ways = {name: done(way) for name, way in WAYS[kind].items()}
    refused = as_uid(BEHIND, is_refused) == 0
    end(*front)
    return {"ways": ways, "moves": SEEN[1], "refused": refused, "free": done(WAYS[kind]["plain"], 1)["mib"]}


def is_refused() -> None:
    """Who may not have a real-time priority asks for one."""
    try:
        set_ioprio(IOPRIO_RT)
    except PermissionError:
        return
    raise AssertionError("a real-time I/O priority without a right")


def drops() -> Shown:
    """One in front reads a MiB of its file each 20 ms, which one behind drops each 5 ms beside a writer: ms."""
    make("mine", 16)
    drop_caches()

    def uses() -> None:
        handle = os.open(DATA / "mine", os.O_RDONLY)
        for turn in range(200):
            SEEN[1] += int(timed(partial(os.pread, handle, MIB, turn % 16 * MIB)) * 1000)
            time.sleep(0.02)

    def takes_away() -> None:
        handle = os.open(DATA / "mine", os.O_RDONLY)
        while True:
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            time.sleep(0.005)

    behind = [start(BEHIND, takes_away), start(BEHIND, writes)]
    time.sleep(0.5)
    wait(start(FRONT, uses))
    end(*behind)
    return {"mean_ms": SEEN[1] / 200 / 1000}


if __name__ == "__main__":
    run(gains, drops)
