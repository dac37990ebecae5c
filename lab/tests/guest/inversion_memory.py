#!/usr/bin/python3 -ESsBu
# SPDX-License-Identifier: GPL-2.0-only
"""Inversions in memory: reclaim, the limit of dirty pages, pages that several use."""

from __future__ import annotations

import os
import time
from functools import partial

from beside import Call, mapped, play, start_behind, writes_slowly
from prologue import (
    BEHIND,
    BLOCK,
    DATA,
    MIB,
    PATTERN,
    SEEN,
    VM,
    Shown,
    as_uid,
    drop_caches,
    make,
    reads_whole,
    resident,
    run,
    stalls,
    stat,
    touch,
    write,
    writes_for_ever,
)


def direct_reclaim() -> Shown:
    write(VM / "dirty_background_ratio", "40")
    write(VM / "dirty_ratio", "60")

    def front(call: Call, turn: int) -> None:
        for _ in range(6):
            # It does not sleep meanwhile: what is counted is its own.
            before = stalls()
            call(touch, 48 * MIB)
            SEEN[8 + turn] += stalls() - before
            time.sleep(0.05)

    def fills(index: int) -> None:
        while True:
            writes_slowly(f"behind{index}", 256)

    def holds(_index: int) -> None:
        held = touch(64 * MIB)
        time.sleep(1000)
        held.close()

    def behind() -> list[int]:
        children = start_behind(holds) + start_behind(fills, 2)
        time.sleep(1.0)
        return children

    return play(front, behind) | {"stalls": [SEEN[8], SEEN[9]]}


def dirty_limit() -> Shown:
    write(VM / "dirty_bytes", str(32 * MIB))

    def front(call: Call, _turn: int) -> None:
        handle = os.open(DATA / "front", os.O_CREAT | os.O_WRONLY, 0o644)
        for index in range(64):
            call(os.pwrite, handle, PATTERN[:65536], index * 65536)
            time.sleep(0.001)

    def behind() -> list[int]:
        children = start_behind(lambda index: writes_for_ever(f"behind{index}", index, 4), 3)
        time.sleep(2)
        return children

    return play(front, behind) | {"exempt": stat("dirty_exempt")}


def shared_files(by_mapping: bool) -> Shown:
    make("library", 32)
    names = [f"behind{index}" for index in range(5)]
    for name in names:
        make(name, 120)
    drop_caches()
    as_uid(BEHIND, lambda: reads_whole("library"))

    def front(call: Call, turn: int) -> None:
        handle = os.open(DATA / "library", os.O_RDONLY)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_RANDOM)
        with mapped(handle, 32 * MIB) as area:
            for at in range(turn * 32 * BLOCK, 32 * MIB, 64 * BLOCK):
                if by_mapping:
                    call(area.__getitem__, at)
                else:
                    call(os.pread, handle, BLOCK, at)

    def behind() -> list[int]:
        for name in names:
            as_uid(BEHIND, partial(reads_whole, name))
        return []

    return play(front, behind) | {"kept": resident("library")}


if __name__ == "__main__":
    run(direct_reclaim, dirty_limit, shared_files)
