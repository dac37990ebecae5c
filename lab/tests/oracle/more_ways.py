# SPDX-License-Identifier: GPL-2.0-only
"""Ways of ../guest/origin.py's suite that make a file system write more blocks of its own."""

from __future__ import annotations

import os

import origin
from prologue import DATA


def scattered(path: int) -> None:
    """So many extents that they need a block of their own; far away, for f2fs's second node."""
    handle = origin.opened(path)
    for index in (*range(0, 24, 2), 2000, 2002):
        origin.write_blocks(handle, path, index, 1)
    os.fsync(handle)


def crowded(path: int) -> None:
    """A directory of several blocks, in which names go and come."""
    where = DATA / f"crowd{path}"
    where.mkdir()
    for number in range(48):
        (where / str(number).zfill(200)).touch()
    for number in range(0, 48, 3):
        (where / str(number).zfill(200)).unlink()
    origin.buffered(path)
    handle = os.open(where, os.O_RDONLY)
    os.fsync(handle)


def add() -> None:
    """To the suite."""
    origin.EVERY.extend([scattered, crowded])
