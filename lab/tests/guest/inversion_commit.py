#!/usr/bin/python3 -ESsBu
# SPDX-License-Identifier: GPL-2.0-only
"""Inversions in what makes a file durable: ext4's journal and f2fs's checkpoint."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from itertools import count

from beside import Call, appends_and_syncs, not_timed, play, start_behind
from prologue import DATA, FRONT, PATTERN, SEEN, Shown, as_uid, drop_caches, end, make, run, writes_for_ever

FOR_EVER = 1 << 30


def new_file(path: str, size: int = 65536) -> None:
    handle = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o666)
    os.write(handle, PATTERN[:size])
    os.close(handle)


def files(index: int) -> None:
    """Handles: new files, renamed and unlinked."""
    at = DATA / f"dir{index}"
    at.mkdir()
    for number in count():
        new_file(f"{at}/new")
        (at / "new").rename(at / str(number % 64))
        time.sleep(0.0005)


def syncs(index: int) -> None:
    appends_and_syncs(not_timed, f"synced{index}", FOR_EVER, 0.001)


def appends(index: int) -> None:
    """Data that the journal orders."""
    handle = os.open(DATA / f"appended{index}", os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644)
    while True:
        for _ in range(64):
            os.write(handle, PATTERN)
            time.sleep(0.003)
        os.ftruncate(handle, 0)
        os.lseek(handle, 0, os.SEEK_SET)


def fsyncs(name: str, times: int = 8) -> Shown:
    def front(call: Call, _turn: int) -> None:
        appends_and_syncs(call, name, times, 0.01)

    def behind() -> list[int]:
        children = start_behind(files, 4) + start_behind(syncs, 4) + start_behind(appends, 3)
        time.sleep(1.0)
        return children

    return play(front, behind)


def fsync() -> Shown:
    """Of a file that grows from nothing."""
    return fsyncs("front")


def fsync_without_checkpoint() -> Shown:
    """Of a file that is on the device with its directory: f2fs makes no checkpoint."""
    (DATA / "own").mkdir()
    make("own/front", 1)
    (DATA / "own/front").chmod(0o666)
    os.sync()
    return fsyncs("own/front", 64)


def makes() -> Shown:
    """Directories that somebody makes in front of apps that write and sync: handles, and no sync."""

    def front(call: Call, turn: int) -> None:
        (DATA / f"made{turn}").mkdir()
        for index in range(32):
            call(os.mkdir, DATA / f"made{turn}" / str(index))
            time.sleep(0.02)

    def writes_and_syncs(index: int) -> None:
        while True:
            make(f"large{index}", 16)

    def behind() -> list[int]:
        children = start_behind(writes_and_syncs, 2)
        time.sleep(1.0)
        return children

    return play(front, behind)


def beside_directories(front: Callable[[Call, int], None], directories: Callable[[int], None]) -> Shown:
    """Four apps that do what DIRECTORIES does, and three that write."""

    def behind() -> list[int]:
        children = start_behind(directories, 4)
        children += start_behind(lambda index: writes_for_ever(f"behind{index}", index), 3)
        time.sleep(1.5)
        return children

    return play(front, behind)


def checkpoint() -> Shown:
    def front(call: Call, turn: int) -> None:
        # A directory has no blocks of its own to sync: a checkpoint.
        at = DATA / f"front{turn}"
        at.mkdir()
        handle = os.open(at, os.O_RDONLY)
        for index in range(6):
            os.close(os.open(at / str(index), os.O_CREAT | os.O_WRONLY, 0o644))
            call(os.fsync, handle)
            time.sleep(0.02)

    def directories(index: int) -> None:
        at = DATA / f"dir{index}"
        at.mkdir()
        for number in count():
            new_file(f"{at}/{number % 256}")
            time.sleep(0.0005)

    return beside_directories(front, directories)


def checkpoint_of_others() -> Shown:
    own = DATA / "own"
    own.mkdir()
    own.chmod(0o777)
    for index in range(80):
        make(f"own/{index}", 1)
    os.sync()
    drop_caches()

    def front(call: Call, turn: int) -> None:
        for index in range(turn * 40, turn * 40 + 40):
            call(lambda path: os.close(os.open(path, os.O_RDONLY)), own / str(index))
            time.sleep(0.02)

    def directories(index: int) -> None:
        # Each directory's fsync is a checkpoint, with the pages of new files before it.
        at = DATA / f"dir{index}"
        at.mkdir()
        handle = os.open(at, os.O_RDONLY)
        for number in count():
            new_file(f"{at}/{number % 64}")
            os.fsync(handle)

    return beside_directories(front, directories)


def first() -> Shown:
    """The foreground's first sync after others have made files, and then a look at a file that no cache has."""

    def unpacks(index: int) -> None:
        at = DATA / f"dir{index}"
        at.mkdir()
        for number in count():
            new_file(f"{at}/{number}", 512)
            time.sleep(0.001)

    make("old", 1)
    os.sync()
    children = start_behind(unpacks, 2)
    time.sleep(2.0)

    def syncs() -> None:
        # Of a directory: f2fs makes a checkpoint.
        (DATA / "first").mkdir()
        handle = os.open(DATA / "first", os.O_RDONLY)
        begin = time.monotonic_ns()
        os.fsync(handle)
        SEEN[0] = (time.monotonic_ns() - begin) // 1000

    if as_uid(FRONT, syncs):
        raise RuntimeError("the foreground has failed")
    end(*children)
    drop_caches()
    return {"sync_ms": SEEN[0] / 1000, "cold": as_uid(FRONT, (DATA / "old").read_bytes) == 0}


if __name__ == "__main__":
    run(fsync, fsync_without_checkpoint, makes, checkpoint, checkpoint_of_others, first)
