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

WIDE_BLOCKS = 4096
"""Of a file that one inode has no room for: f2fs keeps 923 blocks in it."""

STEP = 1021
"""Blocks of it from one record to the next: each in another node."""

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


def make_wide(writer: int) -> None:
    path = PHONE / f"wide{writer}"
    path.write_bytes(bytes(BLOCK) * WIDE_BLOCKS)
    os.chown(path, UIDS[writer], UIDS[writer])


def write_wide(wide: int, writer: int, number: int) -> None:
    """In place, so that nothing but the addresses of blocks changes."""
    os.pwrite(wide, record(writer, number), number * STEP % WIDE_BLOCKS * BLOCK)
    os.fsync(wide)


def sync_records(writer: int, fs: str, counters: dict[str, int]) -> None:
    log = os.open(PHONE / f"log{writer}", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
    directory = os.open(PHONE, os.O_RDONLY)
    wide = os.open(PHONE / f"wide{writer}", os.O_WRONLY) if (PHONE / f"wide{writer}").exists() else None
    for number in range(100000):
        os.write(log, record(writer, number))
        if wide is not None:
            # The flusher writes the record, and a checkpoint its inode, before the fsync does.
            time.sleep(0.01)
        os.fsync(log)
        if number % EVERY == 0:
            replace_file(directory, writer, number)
        if wide is not None:
            write_wide(wide, writer, number)
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


def unpack() -> None:
    """Small files, of which a checkpoint has many inodes to write."""
    for number in range(100000):
        path = PHONE / f"unpacked{number % 2000}"
        path.write_bytes(record(2, number))
        if number % 3 == 0:
            path.rename(PHONE / f"moved{number % 500}")
        time.sleep(0.00005)


def write_records(fs: str, options: str, argv: list[str], command: int, unpacks: bool) -> Shown:
    """Until the power is cut, so many commands from now."""
    program(*argv)
    mount_phone(fs, options)
    PHONE.chmod(0o1777)
    if unpacks:
        for writer in range(len(UIDS)):
            make_wide(writer)
        os.sync()
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
    start(UIDS[1], unpack if unpacks else dirty_pages)
    raise ChildProcessError(f"a writer ended: {os.wait()}")


def wide_is_wrong(writer: int, count: int) -> str | None:
    wanted = {number * STEP % WIDE_BLOCKS: record(writer, number) for number in range(count)}
    found = (PHONE / f"wide{writer}").read_bytes()
    lost = [block for block, data in wanted.items() if found[block * BLOCK :][: len(data)] != data]
    return f"wide{writer} differs in the blocks {lost}" if lost else None


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
        if count and (PHONE / f"wide{writer}").exists():
            wrong += filter(None, [wide_is_wrong(writer, count)])
    unmount(PHONE)
    done = program(*CHECKERS[fs], DISK, check=False)
    if done.returncode or "[Fail]" in done.stdout:
        wrong.append(f"exit status {done.returncode}: {done.stdout}")
    return {"wrong": wrong}


if __name__ == "__main__":
    run(write_records, check_records)
