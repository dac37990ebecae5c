#!/usr/bin/python3 -ESsBu
# SPDX-License-Identifier: GPL-2.0-only
"""Those who must not pay for what others do: a loop device's worker, writers beside a sleeper, a cgroup, a flusher."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from prologue import (
    BEHIND,
    CGROUP,
    DATA,
    FRONT,
    MIB,
    PATTERN,
    SEEN,
    SYNC_FILE_RANGE_WRITE,
    Shown,
    as_uid,
    drop_caches,
    end,
    make,
    mount,
    ms_until,
    read,
    reads_for_ever,
    resident,
    run,
    start,
    stat,
    sync_range,
    wait,
    write,
    writes_for_ever,
)


def loop_device() -> Shown:
    """Root, who is neutral, writes and reads a file by way of a loop device."""
    make("cold", 64)
    image = DATA / "image"
    with image.open("wb") as file:
        file.truncate(64 * MIB)
    subprocess.run(["/usr/sbin/losetup", "/dev/loop0", str(image)], check=True)
    drop_caches()
    front = start(FRONT, lambda: reads_for_ever("cold"))
    handle = os.open("/dev/loop0", os.O_RDWR)
    waits = []
    for turn in range(8):
        begin = time.monotonic()
        os.pwrite(handle, PATTERN * 4, turn * 8 * MIB)
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.pread(handle, 4 * MIB, turn * 8 * MIB + 4 * MIB)
        waits.append((time.monotonic() - begin) * 1000)
    shown = {"longest_ms": max(waits), "pauses": stat("pauses")}
    end(front)
    os.close(handle)
    subprocess.run(["/usr/sbin/losetup", "-d", "/dev/loop0"], check=True)
    return shown


def sleeper() -> Shown:
    """Two threads in front read one terminal: the second sleeps in a mutex until somebody presses a key."""
    Path("/dev/pts").mkdir(exist_ok=True)
    mount("devpts", "/dev/pts", options="ptmxmode=666")
    if not Path("/dev/ptmx").exists():
        Path("/dev/ptmx").symlink_to("pts/ptmx")
    _master, slave = os.openpty()
    readers = [start(FRONT, lambda: os.read(slave, 1)) for _ in range(2)]
    ms_until(lambda: any("mutex" in read(f"/proc/{reader}/stack") for reader in readers))
    behind = start(BEHIND, lambda: writes_for_ever("target"))
    # Less than FT_ASLEEP_LIMIT of policy.h, 5 s; and then more.
    time.sleep(2.5)
    at_first = stat("pauses")
    time.sleep(4)
    before, done = stat("pauses"), SEEN[0]
    time.sleep(3)
    shown = {"at_first": at_first, "later": stat("pauses") - before, "mib": SEEN[0] - done}
    end(behind, *readers)
    return shown


def dirty_cgroup() -> Shown:
    """The app in front writes four times what its control group may have."""
    CGROUP.mkdir()
    mount("cgroup2", CGROUP)
    write(CGROUP / "cgroup.subtree_control", "+memory")
    front = CGROUP / "front"
    front.mkdir()
    write(front / "memory.max", str(64 * MIB))

    def fills() -> None:
        handle = os.open(DATA / "target", os.O_CREAT | os.O_WRONLY, 0o644)
        for turn in range(256):
            os.pwrite(handle, PATTERN, turn * MIB)

    child = os.fork()
    if child == 0:
        write(front / "cgroup.procs", str(os.getpid()))
        os._exit(as_uid(FRONT, fills))
    return {"status": wait(child), "events": read(front / "memory.events")}


def paused_fsync() -> Shown:
    """Somebody else's page is written back while a background fsync pauses."""
    make("cold", 64)
    make("mine", 4)
    make("target", 24)
    drop_caches()
    front = start(FRONT, lambda: reads_for_ever("cold"))
    target = os.open(DATA / "target", os.O_WRONLY)
    os.pwrite(target, PATTERN * 24, 0)

    def syncs() -> None:
        # Others have made it dirty: a write of its own would pause.
        handle = os.open(DATA / "target", os.O_WRONLY)
        SEEN[0] = 1
        os.fsync(handle)
        SEEN[0] = 2
        time.sleep(60)

    behind = start(BEHIND, syncs)
    stack = Path(f"/proc/{behind}/stack")
    ms_until(lambda: all(name in read(stack) for name in ("ft_pause", "__fasttrack_fsync")), 20)
    handle = os.open(DATA / "mine", os.O_RDWR)
    os.pwrite(handle, PATTERN, 0)
    sync_range(handle, 0, 0, SYNC_FILE_RANGE_WRITE)
    shown: Shown = {"syncs": SEEN[0] == 1}

    def is_clean() -> bool:
        # What is clean can be dropped.
        os.posix_fadvise(handle, 0, MIB, os.POSIX_FADV_DONTNEED)
        return resident("mine") == 0

    shown["clean_ms"] = ms_until(is_clean)
    shown["still_syncs"] = SEEN[0] == 1
    end(behind, front)
    return shown


if __name__ == "__main__":
    run(loop_device, sleeper, dirty_cgroup, paused_fsync)
