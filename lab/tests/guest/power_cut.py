#!/usr/bin/python3 -ESsBu
# SPDX-License-Identifier: GPL-2.0-only
"""Two boots of one storage: apps write records and sync them until the power is cut; what was acknowledged is there."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from prologue import APPS, BLOCK, DISK, FT, MIB, QUEUE, VM, Shown, read, run, start, unmount, write

UIDS = (10101, 10102)
EVERY = 8
"""Records after which a file of its own is written."""

PHONE = Path("/mnt")
MFLASH = Path("/sys/module/mflash/parameters")
CHECKERS = {"ext4": ["e2fsck", "-fn"], "f2fs": ["fsck.f2fs", "--dry-run"]}


def program(*argv: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    path = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    return subprocess.run(argv, check=check, env=path, stdout=None if check else subprocess.PIPE, text=True)


def record(writer: int, number: int) -> bytes:
    return f"{writer} {number};".encode() * 300


def mount_phone(fs: str, options: str) -> None:
    program("mount", "-t", fs, "-o", options, DISK, str(PHONE))


def fast_commits(fs: str) -> str:
    """The second line of what ext4 shows is "COUNT commits"."""
    return read("/proc/fs/ext4/sda/fc_info").splitlines()[1].split()[0] if fs == "ext4" else "0"


def replace_file(directory: int, writer: int, number: int) -> None:
    """A new file under its last name, as apps save theirs."""
    new = PHONE / f"new{writer}"
    handle = os.open(new, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644)
    os.write(handle, record(writer, number))
    os.fsync(handle)
    os.close(handle)
    new.rename(PHONE / f"file{writer}-{number}")
    os.fsync(directory)


def sync_records(writer: int, fs: str, counters: dict[str, int]) -> None:
    log = os.open(PHONE / f"log{writer}", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
    directory = os.open(PHONE, os.O_RDONLY)
    for number in range(100000):
        os.write(log, record(writer, number))
        os.fsync(log)
        if number % EVERY == 0:
            replace_file(directory, writer, number)
        counted = " ".join(f"{name} {int(os.pread(counter, 20, 0))}" for name, counter in counters.items())
        os.write(1, f"acked {writer} {number} {counted} fast {fast_commits(fs)}\n".encode())
        # Now and then the app in front rests for longer than the idle window.
        time.sleep(0.04 if writer == 0 and number % 16 == 15 else 0.0005)


def dirty_pages() -> None:
    handle = os.open(PHONE / "dirty", os.O_CREAT | os.O_WRONLY, 0o644)
    piece = os.urandom(BLOCK) * 64
    for number in range(100000):
        os.pwrite(handle, piece, number % 128 * len(piece))
        time.sleep(0.001)


def write_records(fs: str, options: str, argv: list[str], command: int) -> Shown:
    """Until the power is cut, so many commands from now."""
    program(*argv)
    mount_phone(fs, options)
    PHONE.chmod(0o1777)
    for path, value in (
        (QUEUE / "scheduler", "fasttrack"),
        (MFLASH / "scheduler", "foreground"),
        (FT / "foreground_uids", str(UIDS[0])),
        (FT / "app_uids", APPS),
        (FT / "enabled", "1"),
        # Short segments and pauses, and early write-back: many of each before the cut.
        (FT / "segment_kb", "16"),
        (FT / "background_pause_ms", "5"),
        (VM / "dirty_background_bytes", str(MIB)),
        (MFLASH / "power_cut_after", str(command)),
    ):
        write(path, value)
    # Only root can open them.
    counters = {name: os.open(FT / "stats" / name, os.O_RDONLY) for name in ("pauses", "dispatch_held")}
    start(UIDS[0], lambda: sync_records(0, fs, counters))
    start(UIDS[1], lambda: sync_records(1, fs, counters))
    start(UIDS[1], dirty_pages)
    raise ChildProcessError(f"a writer ended: {os.wait()}")


def check_records(fs: str, options: str, acknowledged: list[int]) -> Shown:
    """What is wrong, one line each. ACKNOWLEDGED is how many records of each writer were."""
    mount_phone(fs, options)
    wrong = []
    for writer, count in enumerate(acknowledged):
        wanted = b"".join(record(writer, number) for number in range(count))
        found = (PHONE / f"log{writer}").read_bytes() if count else b""
        if found[: len(wanted)] != wanted:
            wrong.append(f"log{writer} has {len(found)} bytes, {len(wanted)} were acknowledged")
        for number in range(0, count, EVERY):
            if (PHONE / f"file{writer}-{number}").read_bytes() != record(writer, number):
                wrong.append(f"file{writer}-{number} differs")
    unmount(PHONE)
    done = program(*CHECKERS[fs], DISK, check=False)
    if done.returncode or "[Fail]" in done.stdout:
        wrong.append(f"exit status {done.returncode}: {done.stdout}")
    return {"wrong": wrong}


if __name__ == "__main__":
    run(write_records, check_records)
