#!/usr/bin/python3 -ESsBu
# SPDX-License-Identifier: GPL-2.0-only
"""Inversions in the elevator's queue, the device's queue and the device's cache."""

from __future__ import annotations

import os
import random
import time

import aio
from beside import (
    Call,
    appends_and_syncs,
    direct_writes_for_ever,
    fio_behind,
    play,
    reads_at_random,
    start_behind,
    writes_slowly,
)
from prologue import BLOCK, DATA, FRONT, MIB, PATTERN, VM, Shown, drop_caches, make, run, start, tags, write


def request_tags(fio: list[str]) -> Shown:
    make("scroll", 64)
    make("target", 64)
    drop_caches()
    found: list[tuple[int, int]] = []

    def front(call: Call, _turn: int) -> None:
        reads_at_random(call, "scroll", 300)

    def behind() -> list[int]:
        children = fio_behind(fio)
        time.sleep(0.5)
        for _ in range(20):
            time.sleep(0.005)
            found.append(tags("sched_tags"))
        return children

    return play(front, behind) | {"tags": max(found)}


def sent_before(reads: bool) -> Shown:
    """Bursts that begin a millisecond before the foreground reads, which is no moment that fio can be told."""
    go = os.pipe()
    make("scroll", 64)
    make("target", 64)
    drop_caches()

    def front(call: Call, turn: int) -> None:
        handle = os.open(DATA / "scroll", os.O_RDONLY)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_RANDOM)
        for index in range(8):
            # The background's burst, and the first block after the foreground has been idle.
            time.sleep(0.5)
            os.write(go[1], b"x")
            time.sleep(0.001)
            call(os.pread, handle, BLOCK, (turn * 8 + index) * BLOCK * 37)

    def bursts(_index: int) -> None:
        size, depth = MIB // 2, 32
        queue = aio.Queue(DATA / "target", size, depth, aio.READ if reads else aio.WRITE)
        draw = random.Random(1)
        while os.read(go[0], 1):
            queue.submit(draw.randrange(64 * MIB // size) for _ in range(depth))
            queue.wait(depth)

    def behind() -> list[int]:
        children = start_behind(bursts)
        time.sleep(0.1)
        return children

    return play(front, behind)


def cache_flush() -> Shown:
    make("front", 1)
    make("target", 64)
    drop_caches()

    def front(call: Call, _turn: int) -> None:
        # Over blocks that are there: no journal, but a flush.
        handle = os.open(DATA / "front", os.O_WRONLY)

        def once(index: int) -> None:
            os.pwrite(handle, PATTERN[:BLOCK], index * BLOCK)
            os.fdatasync(handle)

        for index in range(30):
            call(once, index)
            time.sleep(0.005)

    def behind() -> list[int]:
        children = start_behind(lambda _: direct_writes_for_ever("target", 65536, 0.001), 6)
        time.sleep(0.5)
        return children

    return play(front, behind)


def own_write_back() -> Shown:
    make("scroll", 64)
    drop_caches()

    def front(call: Call, _turn: int) -> None:
        for _ in range(20):
            reads_at_random(call, "scroll", 1)
            appends_and_syncs(call, "front", 1)
            time.sleep(0.02)

    def film() -> None:
        writes_slowly("film", 256)
        time.sleep(1000)

    def behind() -> list[int]:
        write(VM / "dirty_background_bytes", str(8 * MIB))
        children = [start(FRONT, film)]
        time.sleep(0.3)
        return children

    return play(front, behind)


if __name__ == "__main__":
    run(request_tags, sent_before, cache_flush, own_write_back)
