#!/usr/bin/python3 -ESsBu
# SPDX-License-Identifier: GPL-2.0-only
"""The suite of ../guest/origin.py, and at its end what each block is that the device was given, by the disk itself."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "guest"))

import more_ways
import origin
from disk_dump import ext4, f2fs, footers
from jbd2_log import read_log
from prologue import DATA, DISK, TRACE, Shown, mount, run, unmount, write

GIVEN = ": mflash_block: write=1 "


def given(trace: Path) -> list[int]:
    """When the device was given each block of origin.taken(), ns of the records' clock."""
    with trace.open() as lines:
        said = [line.split(GIVEN)[0].split()[-1] for line in lines if GIVEN in line]
    return [round(float(seconds) * 1e9) for seconds in said]


def watched(program: str, source: str) -> Shown:
    """What ../guest/origin.py shows of the suite on mflash; then what is on the disk."""
    write(TRACE / "trace_clock", "boot")
    more_ways.add()
    shown = origin.watched(program, source)
    blocks = {block for block, _ in shown["taken"]}
    root = DATA.stat().st_ino
    is_ext4 = origin.is_ext4()
    tags = {number: one.tags for number, one in read_log(DISK).items()} if is_ext4 else {}
    superseded = {} if is_ext4 else footers(DISK, blocks)
    unmount(DATA)
    dump = ext4(DISK, blocks) if is_ext4 else f2fs(DISK, blocks, superseded)
    mount("ext4" if is_ext4 else "f2fs", DATA, DISK)
    return shown | {"tags": tags, "given": given(TRACE / "trace"), "dump": asdict(dump), "root": root}


if __name__ == "__main__":
    run(watched)
