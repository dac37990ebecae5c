#!/usr/bin/python3 -ESsBu
# SPDX-License-Identifier: GPL-2.0-only
"""Inversions by what somebody holds: a page of a file that is read or written back, and the lock of a file."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from random import Random

from aio import READ, Queue, aligned
from beside import Call, Front, fio_behind, not_timed, play, reads_at_random, start_behind
from prologue import (
    BLOCK,
    DATA,
    DISK,
    FRONT,
    MIB,
    PATTERN,
    QUEUE,
    SYNC_FILE_RANGE_WRITE,
    VM,
    Shown,
    drop_caches,
    end,
    make,
    mount,
    ms_until,
    reads_for_ever,
    run,
    start,
    stat,
    sync_range,
    tags,
    unmount,
    write,
)

FIRST = range(0, 32, 8)
"""MiB of the shared file at which the background begins with its next parts."""


def prepare(request_kib: int) -> None:
    write(QUEUE / "max_sectors_kb", str(request_kib))
    make("scroll", 16)
    make("shared", 32)
    make("target", 64)
    drop_caches()


def scrolls(parts: int, go: int, use: Callable[[Call, int, int], None]) -> Front:
    """Somebody scrolls while the background begins with its next parts of the file, and then uses the last of them."""

    def front(call: Call, turn: int) -> None:
        handle = os.open(DATA / "shared", os.O_RDWR)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_RANDOM)
        for first in FIRST:
            time.sleep(0.2)
            reads_at_random(not_timed, "scroll", 4)
            if turn:
                os.write(go, bytes(range(first, first + parts)))
                time.sleep(0.001)
            use(call, handle, (first + parts - 1) * MIB)

    return front


def read_ahead(parts: int, request_kib: int, fio: list[str]) -> Shown:
    prepare(request_kib)
    go = os.pipe()

    def use(call: Call, handle: int, at: int) -> None:
        call(os.pread, handle, BLOCK, at)
        os.posix_fadvise(handle, at, BLOCK, os.POSIX_FADV_DONTNEED)

    def work(_index: int) -> None:
        handle = os.open(DATA / "shared", os.O_RDONLY)
        while part := os.read(go[0], 1):
            os.posix_fadvise(handle, part[0] * MIB, MIB, os.POSIX_FADV_WILLNEED)

    def behind() -> list[int]:
        children = start_behind(work, 8) + fio_behind(fio)
        time.sleep(0.1)
        return children

    return play(scrolls(parts, go[1], use), behind)


def keeps_the_device_full(name: str, mib: int) -> None:
    queue = Queue(DATA / name, BLOCK, 32, READ)
    draw = Random(1)
    queue.submit(draw.randrange(mib * MIB // BLOCK) for _ in range(32))
    while True:
        queue.wait(1)
        queue.submit([draw.randrange(mib * MIB // BLOCK)])


def read_with_its_map(fio: list[str]) -> Shown:
    """Somebody reads pages that the background reads, which looks first where they are: each in a node of its own."""
    go = os.pipe()
    make("scroll", 64)
    make("target", 64)
    with (DATA / "scattered").open("wb", buffering=0) as handle:
        for block in range(0, 16384, 2):
            os.pwrite(handle.fileno(), PATTERN[:BLOCK], block * BLOCK)
    drop_caches()
    scroll = start(FRONT, lambda: keeps_the_device_full("scroll", 64))

    def page(index: int) -> int:
        return 680 * index * BLOCK

    def front(call: Call, turn: int) -> None:
        handle = os.open(DATA / "scattered", os.O_RDONLY)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_RANDOM)
        for index in range(2 + 10 * turn, 10 + 10 * turn):
            time.sleep(0.05)
            # It has read from the file itself.
            os.pread(handle, BLOCK, 8 * index * BLOCK)
            if turn:
                os.write(go[1], bytes([index]))
                time.sleep(0.001)
            call(os.pread, handle, BLOCK, page(index))

    def reads(_index: int) -> None:
        handle = os.open(DATA / "scattered", os.O_RDONLY)
        while index := os.read(go[0], 1):
            os.pread(handle, BLOCK, page(index[0]))

    def behind() -> list[int]:
        children = start_behind(reads) + fio_behind(fio)
        time.sleep(0.5)
        return children

    shown = play(front, behind)
    end(scroll)
    return shown


def write_back(parts: int, request_kib: int, fio: list[str]) -> Shown:
    prepare(request_kib)
    go = os.pipe()
    # A page does not change under write-back. A file system sees at its mount that the device asks for that.
    unmount(DATA)
    write(QUEUE / "stable_writes", "1")
    mount("ext4", DATA, DISK)
    write(VM / "dirty_writeback_centisecs", "0")

    def use(call: Call, handle: int, at: int) -> None:
        call(os.pwrite, handle, PATTERN[:BLOCK], at)

    def work(_index: int) -> None:
        handle = os.open(DATA / "shared", os.O_WRONLY)
        for first in FIRST:
            os.pwrite(handle, PATTERN * parts, first * MIB)
            os.read(go[0], parts)
            sync_range(handle, first * MIB, parts * MIB, SYNC_FILE_RANGE_WRITE)
        time.sleep(1000)

    def behind() -> list[int]:
        children = start_behind(work) + fio_behind(fio)
        time.sleep(0.1)
        return children

    return play(scrolls(parts, go[1], use), behind)


def lock_holder(fio: list[str]) -> Shown:
    write(QUEUE / "nr_requests", "16")
    make("scroll", 64)
    make("target", 64)
    make("shared", 0)
    (DATA / "shared").chmod(0o666)
    drop_caches()
    scroll = start(FRONT, lambda: reads_for_ever("scroll", 0.001))

    def front(call: Call, _turn: int) -> None:
        handle = os.open(DATA / "shared", os.O_WRONLY | os.O_APPEND)
        for _ in range(10):
            call(os.write, handle, PATTERN[:BLOCK])
            time.sleep(0.02)

    def holds(_index: int) -> None:
        # Appends past the page cache: each waits for its request with the file's lock held.
        handle = os.open(DATA / "shared", os.O_WRONLY | os.O_APPEND | os.O_DIRECT)
        area = aligned(BLOCK)
        while True:
            os.writev(handle, [area])
            time.sleep(0.0005)

    def behind() -> list[int]:
        # Nobody scrolls while fio starts: it would pause at each of its own files.
        os.kill(scroll, signal.SIGSTOP)
        children = start_behind(holds) + fio_behind(fio)
        ms_until(lambda: tags("sched_tags")[0] > 8)
        os.kill(scroll, signal.SIGCONT)
        time.sleep(0.5)
        return children

    shown = play(front, behind)
    end(scroll)
    return shown | {"depended": stat("depended")}


def removes() -> Shown:
    """Somebody removes files in front that apps behind write 24 MiB to, while the flusher is at them."""
    DATA.chmod(0o777)
    write(VM / "dirty_background_bytes", str(MIB))

    def front(call: Call, turn: int) -> None:
        for _ in range(8):
            if turn:
                ms_until((DATA / "written").exists)
            else:
                writes(0)
            time.sleep(0.005)
            call(os.unlink, DATA / "written")

    def writes(_index: int) -> None:
        handle = os.open(DATA / "part", os.O_CREAT | os.O_WRONLY, 0o644)
        for at in range(24):
            os.pwrite(handle, PATTERN, at * MIB)
        (DATA / "part").rename(DATA / "written")
        os.close(handle)

    def behind() -> list[int]:
        def for_ever(index: int) -> None:
            while True:
                writes(index)
                while (DATA / "written").exists():
                    time.sleep(0.02)

        return start_behind(for_ever)

    return play(front, behind)


if __name__ == "__main__":
    run(read_ahead, read_with_its_map, write_back, lock_holder, removes)
