#!/usr/bin/python3 -ESsBu
# SPDX-License-Identifier: GPL-2.0-only
"""A background app that keeps its requests queued, and a foreground app that reads one block after another."""

from __future__ import annotations

import json
import mmap
import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import aio
from prologue import (
    BEHIND,
    BLOCK,
    CGROUP,
    DEBUG,
    DISK,
    FRONT,
    IOPRIO_IDLE,
    IOPRIO_NONE,
    QUEUE,
    Shown,
    as_uid,
    enable,
    fill_disk,
    fio,
    fio_job,
    mount,
    pairs,
    read,
    run,
    set_ioprio,
    stat,
    tags,
    trace_lines,
    write,
)

STATS = DEBUG / "mflash/stats"


def sampled(which: str, count: int) -> list[tuple[int, int]]:
    """Tags in use, of how many, every 5 ms."""
    found = []
    for _ in range(count):
        found.append(tags(which))
        time.sleep(0.005)
    return found


def beside(behind: list[str], play: Callable[[], Shown]) -> Shown:
    """PLAY while fio keeps the queue full in the background, and what fio and the device report."""
    Path(DISK).chmod(0o666)
    fill_disk(256)
    process = fio(behind, BEHIND)
    time.sleep(0.5)
    shown = {"busy": max(sampled("sched_tags", 20))} | play()
    job = fio_job(process)
    sides = [job["read"], job["write"]]
    return shown | {
        "behind_max_s": max(side["clat_ns"]["max"] for side in sides) / 1e9,
        "behind_ios": sum(side["total_ios"] for side in sides),
        "device": pairs(read(STATS)),
    }


def front(count: int, think_s: float, uid: int = FRONT) -> float:
    """Direct reads of the foreground, or of another, at random places: their mean, in ms."""
    took: list[int] = []
    shown_read, shown_write = os.pipe()

    def work() -> None:
        buffer = mmap.mmap(-1, BLOCK)
        handle = os.open(DISK, os.O_RDONLY | os.O_DIRECT)
        draw = random.Random(1)
        for _ in range(count):
            begin = time.monotonic_ns()
            os.preadv(handle, [buffer], draw.randrange(16384) * BLOCK)
            took.append(time.monotonic_ns() - begin)
            if think_s:
                time.sleep(think_s)
        os.write(shown_write, json.dumps(sum(took) / len(took) / 1e6).encode())

    as_uid(uid, work)
    return float(os.read(shown_read, 100))


def reads(behind: list[str], count: int, think_s: float, uid: int = FRONT) -> Shown:
    def play() -> Shown:
        return {"mean_ms": front(count, think_s, uid), "expired": stat("dispatch_expired")}

    return beside(behind, play)


def share(behind: list[str]) -> Shown:
    """Requests of the background that are sent a second while the foreground reads without a pause."""

    def sent() -> int:
        counts = pairs(read(STATS))
        return int(counts["read_background"]) + int(counts["write_background"])

    def play() -> Shown:
        before, begin = sent(), time.monotonic_ns()
        mean_ms = front(4000, 0)
        return {"per_s": (sent() - before) * 1e9 / (time.monotonic_ns() - begin), "mean_ms": mean_ms}

    return beside(behind, play)


def reserve(behind: list[str]) -> Shown:
    """The fewest free tags of the device while the foreground, which has been seen, is idle."""

    def play() -> Shown:
        front(1, 0)
        time.sleep(0.1)
        return {"free": min(depth - busy for busy, depth in sampled("tags", 50))}

    return beside(behind, play)


def issued() -> Shown:
    """What the block layer says of a read of each of two apps, and of one in front with a priority of its own or its
    cgroup's."""
    Path(DISK).chmod(0o666)

    def of(uid: int, place: int, ioprio: int = IOPRIO_NONE) -> list[str]:
        def reads() -> None:
            if ioprio:
                set_ioprio(ioprio)
            os.pread(os.open(DISK, os.O_RDONLY), BLOCK, place << 24)

        enable("block/block_rq_issue")
        found = trace_lines("block_rq_issue", lambda: as_uid(uid, reads))
        enable("block/block_rq_issue", False)
        return found

    shown: Shown = {"front": of(FRONT, 1), "behind": of(BEHIND, 2), "idle front": of(FRONT, 3, IOPRIO_IDLE)}
    CGROUP.mkdir()
    mount("cgroup2", CGROUP)
    write(CGROUP / "cgroup.subtree_control", "+io")
    for place, policy in enumerate(("idle", "restrict-to-be"), start=4):
        group = CGROUP / policy
        group.mkdir()
        write(group / "io.prio.class", policy)
        write(group / "cgroup.procs", str(os.getpid()))
        shown[policy] = of(FRONT, place)
    return shown


def merged() -> Shown:
    """A batch in which a block follows another, but not at once: one call with given blocks, which fio cannot make."""
    Path(DISK).chmod(0o666)
    blocks = [10, 50, 11, 70, 12, 90, 13]

    def batch() -> None:
        queue = aio.Queue(Path(DISK), BLOCK, len(blocks), aio.WRITE)
        queue.submit(blocks)
        queue.wait(len(blocks))

    def merges() -> int:
        return int(read("/sys/block/sda/stat").split()[5])

    before = merges()
    as_uid(BEHIND, batch)
    shown = {"merged": merges() - before, "state": read(DEBUG / "block/sda/sched/state").splitlines()}
    # The scheduler checks its own books when it leaves; the log must stay clean.
    write(QUEUE / "scheduler", "none")
    return shown


if __name__ == "__main__":
    run(reads, share, reserve, issued, merged)
