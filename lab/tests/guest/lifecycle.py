#!/usr/bin/python3 -ESsBu
# SPDX-License-Identifier: GPL-2.0-only
"""Tasks and requests that change sides while apps read and write."""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from prologue import (
    BEHIND,
    CGROUP,
    DATA,
    DEBUG,
    DISK,
    FRONT,
    FT,
    LIBC,
    MIB,
    SEEN,
    SERVICE,
    TRACE,
    Shown,
    Work,
    become,
    bios_of,
    direct_read,
    drop_caches,
    enable,
    end,
    make,
    mount_cgroup,
    read,
    reads_for_ever,
    run,
    start,
    stat,
    write,
    writes_for_ever,
)

CLONE3 = 435
"""The system call."""

CLONE_ARGS = (
    "flags",
    "pidfd",
    "child_tid",
    "parent_tid",
    "exit_signal",
    "stack",
    "stack_size",
    "tls",
    "set_tid",
    "set_tid_size",
    "cgroup",
)


def load() -> list[int]:
    """One in front reads, three behind write."""
    Path(DISK).chmod(0o666)
    make("scroll", 64)
    drop_caches()
    found = [start(FRONT, lambda: reads_for_ever("scroll"))]
    found += [start(BEHIND, partial(writes_for_ever, f"load{index}", index)) for index in range(3)]
    enable("fasttrack/fasttrack_bio")
    return found


def classes_of(pid: int, work: Work) -> list[str]:
    """The classes of what PID sends during WORK."""
    write(TRACE / "events/fasttrack/fasttrack_bio/filter", f"pid == {pid}")
    return sorted({bio["class"] for bio in bios_of(work)})


class Stepper:
    """A child that does one thing after the other, each when it is told to."""

    def __init__(self, *steps: Work, fork: Callable[[], int] = os.fork) -> None:
        self.go, self.gone = os.pipe(), os.pipe()
        self.pid = fork()
        if self.pid == 0:
            become(0, partial(self._do, steps))

    def _do(self, steps: Iterable[Work]) -> None:
        for step in steps:
            os.read(self.go[0], 1)
            step()
            os.write(self.gone[1], b"x")
        os.read(self.go[0], 1)

    def step(self) -> None:
        os.write(self.go[1], b"x")
        os.read(self.gone[0], 1)

    def shows(self) -> list[str]:
        return classes_of(self.pid, self.step)

    def ends(self) -> None:
        os.write(self.go[1], b"x")
        os.waitpid(self.pid, 0)


def becomes(uid: int) -> Work:
    def step() -> None:
        os.setresuid(0, 0, 0)
        # Root's way back stays open.
        os.setresuid(uid, uid, 0)
        direct_read()

    return step


def forks_and_executes() -> Shown:
    """A child of the app in front: it knows the pipes, and its parent waits for it."""
    child, told, done = os.pipe(), os.pipe(), os.pipe()

    def forks() -> None:
        os.setuid(FRONT)
        inner = os.fork()
        if inner == 0:
            os.read(told[0], 1)
            direct_read()
            os.write(done[1], b"x")
            os.read(told[0], 1)
            os.execv("/bin/dd", ["dd", f"if={DISK}", "of=/dev/null", "bs=4096", "count=1", "iflag=direct"])
        os.write(child[1], str(inner).encode())
        os.waitpid(inner, 0)
        os.write(done[1], b"x")

    def tell() -> None:
        os.write(told[1], b"x")
        os.read(done[0], 1)

    parent = start(0, forks)
    pid = int(os.read(child[0], 20))
    shown = {"forked": classes_of(pid, tell), "executed": classes_of(pid, tell)}
    os.waitpid(parent, 0)
    return shown


def classes() -> Shown:
    """Of who changes its UID, and of an app's child."""
    apps = load()
    uids = {"in front": FRONT, "behind": BEHIND, "in front again": FRONT, "service": SERVICE, "root": 0}
    one = Stepper(*map(becomes, uids.values()))
    shown: Shown = {name: one.shows() for name in uids}
    one.ends()
    shown |= forks_and_executes()
    end(*apps)
    return shown


class CloneArgs(ctypes.Structure):
    """struct clone_args."""

    _fields_ = tuple((name, ctypes.c_uint64) for name in CLONE_ARGS)


def fork_as(pid: int) -> int:
    """A fork whose PID is given."""
    wanted = ctypes.c_int(pid)
    args = CloneArgs(exit_signal=signal.SIGCHLD, set_tid=ctypes.addressof(wanted), set_tid_size=1)
    found = int(LIBC.syscall(CLONE3, ctypes.byref(args), ctypes.sizeof(args)))
    if found < 0:
        raise OSError(ctypes.get_errno(), "clone3")
    return found


def reused_pid() -> Shown:
    """A thread group of the set ends, and another task gets its number."""
    apps = load()
    old = Stepper(becomes(BEHIND), becomes(BEHIND))
    shown: Shown = {"before": old.shows()}
    write(FT / "foreground_tgids", str(old.pid))
    shown["member"] = old.shows()
    old.ends()
    new = Stepper(becomes(BEHIND), fork=lambda: fork_as(old.pid))
    shown["same"] = new.pid == old.pid
    shown["reused"] = new.shows()
    shown["set"] = read(FT / "foreground_tgids")
    new.ends()
    end(*apps)
    return shown


def queued() -> dict[str, int]:
    """Requests in the elevator, by class."""
    lines = [line.split() for line in read(DEBUG / "block/sda/sched/state").splitlines() if " queued " in line]
    return {words[0]: int(words[2]) for words in lines}


def comes_and_leaves(by: str) -> Shown:
    """What is queued of an app that comes to the front and leaves it, named BY uids or cgroups."""

    def direct_reads_for_ever(index: int) -> None:
        buffer = mmap.mmap(-1, MIB // 2)
        handle = os.open(DISK, os.O_RDONLY | os.O_DIRECT)
        while True:
            SEEN[index] += os.preadv(handle, [buffer], (index << 30) % (4 << 30) + SEEN[index] % (512 * MIB))

    scroll, *writers = load()
    end(*writers)
    group = mount_cgroup("app")
    readers = [start(BEHIND, partial(direct_reads_for_ever, index)) for index in range(8)]
    for reader in readers:
        write(group / "cgroup.procs", str(reader))
    file, added, before = {
        "uids": ("foreground_uids", f"{FRONT} {BEHIND}", str(FRONT)),
        "cgroups": ("foreground_cgroups", "/app", "/nobody"),
    }[by]
    if by == "cgroups":
        (CGROUP / "nobody").mkdir()
        write(FT / file, before)
    time.sleep(0.3)
    shown = {"behind": queued()}
    write(FT / file, added)
    shown["came"] = queued()
    time.sleep(0.3)
    shown["in front"] = queued()
    write(FT / file, before)
    shown["left"] = queued()
    end(scroll, *readers)
    return shown


def services_first() -> Shown:
    """Nobody is in front, and services keep the queue full."""

    def direct_writes_for_ever(index: int) -> None:
        buffer = mmap.mmap(-1, MIB // 2)
        handle = os.open(DATA / f"service{index}", os.O_CREAT | os.O_WRONLY | os.O_DIRECT, 0o644)
        while True:
            SEEN[index] += os.pwritev(handle, [buffer], SEEN[index] % (64 * MIB))

    def direct_reads(index: int) -> None:
        buffer = mmap.mmap(-1, 4096)
        handle = os.open(DISK, os.O_RDONLY | os.O_DIRECT)
        while True:
            os.preadv(handle, [buffer], index << 24)
            SEEN[index] += 1

    end(*load())
    for index in range(16):
        SEEN[index] = 0
    services = [start(SERVICE, partial(direct_writes_for_ever, index)) for index in range(8)]
    time.sleep(1)
    readers = range(8, 12)
    apps = [start(BEHIND, partial(direct_reads, index)) for index in readers]
    time.sleep(4)
    before = [SEEN[index] for index in readers]
    shown: Shown = {"reads": before, "wait_max_us": stat("dispatch_wait_max_us")}
    # Those in the queue are still background.
    write(FT / "enabled", "0")
    time.sleep(1.5)
    shown["off"] = [SEEN[index] - old for index, old in zip(readers, before, strict=True)]
    end(*services, *apps)
    return shown


if __name__ == "__main__":
    run(classes, reused_pid, comes_and_leaves, services_first)
