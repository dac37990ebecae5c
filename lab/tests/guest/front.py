#!/usr/bin/python3 -ESsBu
# SPDX-License-Identifier: GPL-2.0-only
"""Who is in front, who is perceptible, who is an app: what the lists take and forget, and what it means for a task."""

from __future__ import annotations

import ctypes
import os
import select
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from prologue import (
    BEHIND,
    CGROUP,
    DISK,
    FRONT,
    FT,
    LIBC,
    SEEN,
    Shown,
    Work,
    direct_read,
    drop_caches,
    enable,
    end,
    events_of,
    make,
    mount_cgroup,
    ms_until,
    read,
    reads_for_ever,
    run,
    start,
    stat,
    tried,
    wait,
    write,
    writes_for_ever,
)

PR_SET_IO_FLUSHER = 57
WRITES, READS = 0, 1
"""Counters of SEEN."""


def kernel_log(word: str) -> list[str]:
    """Lines of FastTrack's in the kernel's log that have a word."""
    handle = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    found = []
    try:
        while True:
            line = os.read(handle, 8192).decode().split(";", 1)[1].splitlines()[0]
            if line.startswith("fasttrack: ") and word in line:
                found.append(line)
    except BlockingIOError:
        return found
    finally:
        os.close(handle)


# --- what a class means for a task


def direct_reads_for_ever() -> None:
    while True:
        direct_read()
        SEEN[READS] += 1
        time.sleep(0.001)


def progress(before: Work = lambda: None, after: Callable[[int], object] = lambda pid: None) -> dict[str, int]:
    """What an app behind writes and reads in two seconds each, and how often it pauses.

    BEFORE is done by each of its tasks, as root, and AFTER to it. Pauses of the flusher with its file are not its own.
    """

    def task(work: Work) -> None:
        before()
        os.setgid(BEHIND)
        os.setuid(BEHIND)
        work()

    shown = {"pauses": 0}
    works: dict[str, Work] = {"writes": partial(writes_for_ever, "target", WRITES), "reads": direct_reads_for_ever}
    for counter, (name, work) in enumerate(works.items()):
        pid = start(0, partial(task, work))
        after(pid)
        # Not what it has begun before it became what it is.
        time.sleep(0.1)
        SEEN[counter] = 0
        pauses = events_of("fasttrack_pause", lambda: time.sleep(2))
        shown[name] = SEEN[counter]
        shown["pauses"] += [pause["pid"] for pause in pauses].count(str(pid))
        end(pid)
        os.sync()
    return shown


def real_time() -> None:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


def flusher() -> None:
    if LIBC.prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def held() -> Shown:
    """The same app while somebody scrolls: by what it is named, and by what its tasks are."""
    Path(DISK).chmod(0o666)
    make("scroll", 64)
    make("target", 64)
    drop_caches()
    group = mount_cgroup("app")
    enable("fasttrack/fasttrack_pause")
    front = start(FRONT, lambda: reads_for_ever("scroll"))

    def named(file: str, value: str) -> dict[str, int]:
        write(FT / file, value)
        try:
            return progress()
        finally:
            write(FT / file, "\n")

    def joins(pid: int) -> None:
        write(group / "cgroup.procs", str(pid))

    shown: Shown = {"background": progress(), "real-time": progress(real_time), "flusher": progress(flusher)}
    shown["perceptible uid"] = named("perceptible_uids", str(BEHIND))
    shown["neutral uid"] = named("neutral_uids", str(BEHIND))
    shown["perceptible tgid"] = progress(after=lambda pid: write(FT / "perceptible_tgids", f"+{pid}"))
    for file in "perceptible_cgroups", "neutral_cgroups":
        write(FT / file, "/app")
        shown[file] = progress(after=joins)
        write(FT / file, "\n")
    shown["background again"] = progress(after=joins)
    end(front)
    return shown


def lists(steps: list[tuple[str, str]]) -> Shown:
    """Of each write of a value to a file: what was said, and what the file holds then."""
    shown = [[tried(FT / file, value), read(FT / file)] for file, value in steps]
    return {"steps": shown, "log": kernel_log("left out")}


# --- what is dead, and what is too much


def sizes(work: Work) -> list[str]:
    """The sizes of the foreground's lists, after each change of them."""
    fields = ("uids", "groups", "cgroups")
    return [" ".join(event[name] for name in fields) for event in events_of("fasttrack_foreground", work)]


def dead() -> Shown:
    """Cgroups and thread groups that die in the lists."""
    enable("fasttrack/fasttrack_foreground")
    mount_cgroup("stays")
    (CGROUP / "goes").mkdir()
    go = os.pipe()
    child = os.pipe()

    def leader() -> None:
        os.read(go[0], 1)
        pid = os.fork()
        if pid == 0:
            os.read(go[0], 1)
            os._exit(0)
        os.write(child[1], str(pid).encode())

    pid = start(BEHIND, leader)
    write(FT / "foreground_cgroups", "/stays /goes /never")
    write(FT / "foreground_tgids", str(pid))
    shown: Shown = {"log": kernel_log("left out"), "shown": read(FT / "foreground_cgroups")}
    before = int(read(FT / "generation"))
    (CGROUP / "goes").rmdir()
    shown["cgroup gone"] = sizes(lambda: read(FT / "foreground_uids"))
    shown["shown then"] = read(FT / "foreground_cgroups")
    shown["generations"] = int(read(FT / "generation")) - before
    os.write(go[1], b"x")
    wait(pid)
    grandchild = int(os.read(child[0], 20))
    shown["leader gone"] = [read(FT / "foreground_tgids"), *sizes(lambda: write(FT / "foreground_uids", "1"))]
    os.write(go[1], b"x")
    # Init reaps it.
    ms_until(lambda: os.waitpid(grandchild, os.WNOHANG)[0])
    shown["all gone"] = sizes(lambda: read(FT / "foreground_tgids"))
    return shown


def many(count: int) -> Shown:
    """As many cgroups as a list takes, and one more: their paths do not fit into a page."""
    mount_cgroup("other")
    enable("fasttrack/fasttrack_foreground")
    names = [f"/{number:04}-{'x' * 40}" for number in range(count + 1)]
    for name in names:
        (CGROUP / name[1:]).mkdir()

    def add(some: list[str]) -> str:
        return tried(FT / "foreground_cgroups", " ".join("+" + name for name in some))

    said = [add(names[at : min(at + 64, count)]) for at in range(0, count, 64)]
    last = names[count - 1]
    shown: Shown = {
        "said": sorted(set(said)),
        "too many": add(names[count:]),
        "shown": len(read(FT / "foreground_cgroups").split()),
        "whole": set(read(FT / "foreground_cgroups").split()) < set(names),
    }
    Path(DISK).chmod(0o666)

    def last_reads() -> bool:
        before = stat("bios_foreground")
        child = os.fork()
        if child == 0:
            write(CGROUP / last[1:] / "cgroup.procs", str(os.getpid()))
            direct_read()
            os._exit(0)
        wait(child)
        return stat("bios_foreground") > before

    write(FT / "enabled", "1")
    shown["last in front"] = last_reads()
    shown["last removed"] = sizes(lambda: write(FT / "foreground_cgroups", "-" + last))
    shown["last then"] = last_reads()
    shown["another"] = sizes(lambda: add(names[count:]))
    return shown


# --- generation and lease


def generation() -> Shown:
    """Who waits for another generation is woken by a change, and by nothing else."""
    handle = os.open(FT / "generation", os.O_RDONLY)
    poll = select.poll()
    poll.register(handle, select.POLLPRI)

    def after(work: Work) -> list[int]:
        """The generation, and whether somebody who waits for the next one hears of the work."""
        os.pread(handle, 100, 0)

        def later() -> None:
            time.sleep(0.01)
            work()

        child = start(0, later)
        heard = bool(poll.poll(100))
        wait(child)
        return [int(os.pread(handle, 100, 0)), heard]

    return {
        "nothing": after(lambda: None),
        "uids": after(lambda: write(FT / "foreground_uids", str(FRONT))),
        "the same": after(lambda: write(FT / "foreground_uids", str(FRONT))),
        "perceptible": after(lambda: write(FT / "perceptible_uids", str(BEHIND))),
        "tgids": after(lambda: write(FT / "foreground_tgids", "+1")),
        "nobody": after(lambda: write(FT / "foreground_uids", "\n")),
        "off": after(lambda: write(FT / "enabled", "0")),
    }


def lease() -> Shown:
    """500 ms, renewed twice, then not; what is in front, and how often that has changed."""
    mount_cgroup("app")
    enable("fasttrack/fasttrack_foreground")
    files = ("foreground_uids", "foreground_tgids", "foreground_cgroups", "perceptible_uids")

    def state() -> list[str]:
        return [*(read(FT / file) for file in files), read(FT / "generation")]

    def wrote(file: str, value: str, sleep_s: float) -> list[str]:
        write(FT / file, value)
        time.sleep(sleep_s)
        return state()

    shown: Shown = {"for ever": wrote("foreground_uids", str(FRONT), 700)}
    write(FT / "foreground_tgids", "1")
    write(FT / "foreground_cgroups", "/app")
    write(FT / "perceptible_uids", str(BEHIND))
    shown["set"] = wrote("lease_ms", "500", 0.4)
    shown["renewed"] = wrote("foreground_uids", str(FRONT), 0.4)
    shown["by itself"] = wrote("lease_ms", "500", 0.4)
    # Neither a write that is refused nor one to another list renews it.
    shown["refused"] = [tried(FT / "foreground_uids", "x")]
    write(FT / "perceptible_uids", str(BEHIND))
    shown["events"] = sizes(lambda: time.sleep(0.2))
    shown["over"] = state()
    shown["once"] = sizes(lambda: time.sleep(5))
    shown["again"] = wrote("foreground_uids", str(FRONT), 0.4)
    shown["given up"] = wrote("lease_ms", "0", 700)
    shown["log"] = kernel_log("lease")
    return shown


if __name__ == "__main__":
    run(held, lists, dead, many, generation, lease)
