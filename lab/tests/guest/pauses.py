#!/usr/bin/python3 -ESsBu
# SPDX-License-Identifier: GPL-2.0-only
"""Background tasks that pause while somebody scrolls: for how long, where, and what ends a pause."""

from __future__ import annotations

import mmap
import os
import random
import signal
import time
from collections.abc import Callable
from functools import partial
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
    SERVICE,
    SYNC_FILE_RANGE_WRITE,
    VM,
    Shown,
    as_uid,
    drop_caches,
    end,
    make,
    mount_cgroup,
    ms_until,
    read,
    reads_for_ever,
    reads_whole,
    run,
    stalls,
    start,
    stat,
    sync_range,
    touch,
    vmstat,
    write,
    writes_for_ever,
)


def scrolling() -> int:
    """Somebody in front who scrolls."""
    make("scroll", 64)
    make("target", 64)
    drop_caches()
    return start(FRONT, lambda: reads_for_ever("scroll"))


def nobody_in_front() -> None:
    write(FT / "foreground_uids", "\n")


def somebody_in_front() -> None:
    write(FT / "foreground_uids", str(FRONT))
    time.sleep(0.05)


def nobody_writes_back() -> None:
    write(VM / "dirty_writeback_centisecs", "0")


def counted(seconds: float, counter: int = 0) -> int:
    """What a counter gains meanwhile."""
    before = SEEN[counter]
    time.sleep(seconds)
    return SEEN[counter] - before


def bounded() -> Shown:
    """A writer, while somebody scrolls and then alone."""
    front = scrolling()
    write(FT / "background_pause_ms", "300")
    behind = start(BEHIND, lambda: writes_for_ever("target"))
    time.sleep(0.5)
    shown: Shown = {"written": counted(3), "pauses": stat("pauses"), "pause_max_us": stat("pause_max_us")}
    end(front)
    time.sleep(0.1)
    shown["written_alone"] = counted(3)
    end(behind)
    return shown


def window() -> Shown:
    """A writer, while somebody reads for 30 ms and computes for 10; by the idle window in us."""
    make("scroll", 64)
    make("target", 64)
    drop_caches()

    def now_and_then() -> None:
        handle = os.open(DATA / "scroll", os.O_RDONLY)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_RANDOM)
        draw = random.Random(1)
        while True:
            until = time.monotonic() + 0.03
            while time.monotonic() < until:
                at = draw.randrange(64 * MIB // BLOCK) * BLOCK
                os.pread(handle, BLOCK, at)
                os.posix_fadvise(handle, at, BLOCK, os.POSIX_FADV_DONTNEED)
            time.sleep(0.01)

    front = start(FRONT, now_and_then)
    behind = start(BEHIND, lambda: writes_for_ever("target"))
    shown: Shown = {}
    for window_us in 0, 20000:
        write(FT / "idle_window_us", str(window_us))
        time.sleep(1)
        shown[str(window_us)] = counted(3)
    end(front, behind)
    return shown


def copies() -> Shown:
    """A call of 64 MiB to or from the cache, and many of a page: pauses, and looks that saw one inside a call."""
    front = scrolling()
    make("cached", 64)
    nobody_writes_back()
    write(VM / "dirty_ratio", "95")
    write(VM / "dirty_background_ratio", "90")
    write(FT / "background_pause_ms", "10")

    def reads(handle: int) -> None:
        os.preadv(handle, [bytearray(64 * MIB)], 0)

    def writes(handle: int) -> None:
        os.pwrite(handle, PATTERN * 64, 0)

    def once(work: Callable[[int], None]) -> None:
        handle = os.open(DATA / "cached", os.O_RDWR)
        work(handle)
        for _ in range(400):
            os.pread(handle, 1, 0)

    shown: Shown = {}
    for work in reads, writes:
        for kb in 512, 4096:
            os.sync()
            write(FT / "segment_kb", str(kb))
            before, within = stat("pauses"), 0
            behind = start(BEHIND, partial(once, work))
            while not os.waitpid(behind, os.WNOHANG)[0]:
                stack = read(f"/proc/{behind}/stack")
                within += "ft_pause" in stack and ("filemap_read" in stack or "generic_perform_write" in stack)
                time.sleep(0.001)
            shown[f"{work.__name__} {kb}"] = [stat("pauses") - before, within]
    end(front)
    return shown


def reclaims(uid: int) -> Shown:
    """Anonymous memory, without a page of a file, in the place of a service's cache."""
    front = scrolling()
    nobody_in_front()
    names = [f"cache{index}" for index in range(2)]
    for name in names:
        make(name, 200)
    drop_caches()
    for name in names:
        as_uid(SERVICE, partial(reads_whole, name))
    write(FT / "background_pause_ms", "10")
    somebody_in_front()

    def counters() -> list[int]:
        return [stat("pauses"), stat("reserve_spent"), stalls()]

    before = counters()
    behind = start(uid, lambda: touch(300 * MIB, 0))
    while not os.waitpid(behind, os.WNOHANG)[0]:
        time.sleep(0.001)
    pauses, spent, stalled = (new - old for old, new in zip(before, counters(), strict=True))
    end(front)
    return {"pauses": pauses, "spent": spent, "stalls": stalled, "filled": SEEN[0]}


def pages_under_write_back(who: str) -> tuple[int, int]:
    """A background app has made 32 MiB dirty when the foreground comes; they are written back from then on.

    By the flusher, by the app's fsync(2), or by its sync_file_range(2).

    Its PID, and the most pages under write-back at a time.
    """
    nobody_in_front()
    nobody_writes_back()
    SEEN[0] = 0

    def fill() -> None:
        handle = os.open(DATA / "target", os.O_WRONLY)
        for _ in range(32):
            os.write(handle, PATTERN)
        SEEN[0] = 1
        while SEEN[0] == 1:
            time.sleep(0.001)
        if who == "fsync":
            os.fsync(handle)
        elif who == "range":
            sync_range(handle, 0, 0, SYNC_FILE_RANGE_WRITE)
        time.sleep(1000)

    behind = start(BEHIND, fill)
    ms_until(lambda: SEEN[0])
    somebody_in_front()
    SEEN[0] = 2
    if who == "flusher":
        write(VM / "dirty_writeback_centisecs", "500")
    most = 0
    for _ in range(500):
        time.sleep(0.001)
        most = max(most, vmstat("nr_writeback"))
    return behind, most


def write_back() -> Shown:
    """By the flusher, by syncs of the file and by sync(2), with and without pauses."""
    front = scrolling()
    shown: Shown = {}
    for name, knob in ("free", "0"), ("held", "1"):
        for who in "flusher", "range", "fsync":
            write(FT / "page_allocator", knob)
            behind, shown[f"{name} {who}"] = pages_under_write_back(who)
            if who == "flusher":
                # Somebody waits: the flusher does not pause.
                began = time.monotonic()
                os.sync()
                shown[f"{name} sync(2)"] = time.monotonic() - began
            end(behind)
            drop_caches()
    end(front)
    return shown


# --- one task, whatever it pauses in


def reads(counter: int) -> None:
    handle = os.open(DATA / "target", os.O_RDONLY)
    while True:
        at = SEEN[counter] % 64 * MIB
        os.pread(handle, MIB, at)
        os.posix_fadvise(handle, at, MIB, os.POSIX_FADV_DONTNEED)
        SEEN[counter] += 1


def faults(counter: int) -> None:
    handle = os.open(DATA / "target", os.O_RDWR)
    area = mmap.mmap(handle, 0)
    while True:
        at = SEEN[counter] % 64 * MIB
        for page in range(at, at + MIB, BLOCK):
            area[page]
        area.madvise(mmap.MADV_DONTNEED)
        os.posix_fadvise(handle, at, MIB, os.POSIX_FADV_DONTNEED)
        SEEN[counter] += 1


def syncs(counter: int) -> None:
    """Others have made the file dirty."""
    handle = os.open(DATA / "target", os.O_WRONLY)
    while True:
        os.fsync(handle)
        SEEN[counter] += 1
        time.sleep(0.01)


WORKS: dict[str, Callable[[int], None]] = {
    "writes": lambda counter: writes_for_ever("target", counter),
    "reads": reads,
    "faults": faults,
    "syncs": syncs,
}


def pauses(pid: int, where: str) -> bool:
    """Is it in a pause now, and there?"""
    stack = Path(f"/proc/{pid}/stack")
    text = read(stack) if stack.exists() else ""
    return "ft_pause" in text and where in text


def ends(work: str, where: str) -> Shown:
    """Milliseconds from what ends a pause until the task has done something about it."""
    # Root waits for the file system, too: nobody helps it out here.
    write(FT / "stuck_ms", "0")
    group = mount_cgroup("behind")
    front = scrolling()
    target = os.open(DATA / "target", os.O_WRONLY)

    def paused(counter: int) -> int:
        if work == "syncs":
            os.pwrite(target, PATTERN * 8, 0)
        behind = start(BEHIND, partial(WORKS[work], counter))
        ms_until(lambda: pauses(behind, where))
        return behind

    def ms_to(done: Callable[[], object], behind: int) -> float:
        # An fsync has only to leave its pause: it waits for what it has sent.
        return ms_until((lambda: not pauses(behind, where)) if where else done)

    shown: Shown = {}
    behind = paused(0)
    os.kill(behind, signal.SIGKILL)
    shown["kill"] = ms_to(lambda: os.waitpid(behind, os.WNOHANG)[0], behind)
    behind = paused(1)
    os.kill(behind, signal.SIGSTOP)
    shown["stop"] = ms_to(lambda: os.waitpid(behind, os.WNOHANG | os.WUNTRACED)[0], behind)
    os.kill(behind, signal.SIGCONT)
    end(behind)
    behind = paused(2)
    write(group / "cgroup.procs", str(behind))
    write(group / "cgroup.freeze", "1")
    shown["freeze"] = ms_to(lambda: "frozen 1" in read(group / "cgroup.events"), behind)
    write(group / "cgroup.freeze", "0")
    end(behind)
    behind, count = paused(3), SEEN[3]
    write(FT / "enabled", "0")
    shown["off"] = ms_to(lambda: SEEN[3] > count, behind)
    write(FT / "enabled", "1")
    end(behind)
    behind, count = paused(4), SEEN[4]
    write(FT / "foreground_uids", str(BEHIND))
    shown["to the front"] = ms_to(lambda: SEEN[4] > count, behind)
    end(behind, front)
    return shown


def synced() -> Shown:
    """An fsync of 16 segments that nobody has paid for, and 40 calls of a byte: how many pauses."""
    write(FT / "background_pause_ms", "10")
    nobody_writes_back()
    front = scrolling()
    nobody_in_front()
    done, told = os.pipe()
    wait, go = os.pipe()

    def work() -> None:
        handle = os.open(DATA / "synced", os.O_CREAT | os.O_RDWR, 0o644)
        os.pwrite(handle, PATTERN * 8, 0)
        os.write(told, b"1")
        os.read(wait, 1)
        os.fsync(handle)
        for _ in range(40):
            os.pread(handle, 1, 0)

    behind = start(BEHIND, work)
    os.read(done, 1)
    somebody_in_front()
    before = stat("pauses")
    os.write(go, b"1")
    os.waitpid(behind, 0)
    shown: Shown = {"pauses": stat("pauses") - before}
    end(front)
    return shown


def forks() -> Shown:
    """How often a writer that pauses wakes up while a service makes 300 processes."""

    def switches(pid: int) -> int:
        lines = dict(line.split(":\t", 1) for line in read(f"/proc/{pid}/status").splitlines() if ":\t" in line)
        return int(lines["voluntary_ctxt_switches"])

    front = scrolling()
    behind = start(BEHIND, lambda: writes_for_ever("target"))
    time.sleep(0.5)
    before, begin = switches(behind), time.monotonic()
    for _ in range(300):
        as_uid(SERVICE, lambda: None)
    shown: Shown = {"wakes": switches(behind) - before, "seconds": time.monotonic() - begin}
    end(front, behind)
    return shown


def neutral() -> Shown:
    """Pauses of a service that does all works at once, and of an app that does."""
    front = scrolling()
    shown: Shown = {}
    for who, uid in ("service", SERVICE), ("app", BEHIND):
        before = stat("pauses")
        behind = [start(uid, partial(work, counter)) for counter, work in enumerate(WORKS.values())]
        time.sleep(2)
        end(*behind)
        shown[who] = stat("pauses") - before
        os.sync()
    end(front)
    return shown


if __name__ == "__main__":
    run(bounded, window, copies, synced, forks, reclaims, write_back, ends, neutral)
