# SPDX-License-Identifier: GPL-2.0-only
"""Directories of runs: one a boot, in memory where there is room, and gone when the run is over."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fasttrack_lab.host import preflight
from fasttrack_lab.host.errors import LabError

PREFIX = "fasttrack-run-"
NEW = "fasttrack-new-"


def _sweep(room: Path) -> None:
    """Remove what processes left that were killed: nobody holds their lock any more."""
    for left in room.glob(PREFIX + "*"):
        with suppress(OSError), (left / "lock").open() as handle:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(left, ignore_errors=True)


@contextmanager
def run_dir(need_mib: int) -> Iterator[Path]:
    """A fresh directory in a place with NEED_MIB of room."""
    room, why = preflight.run_room(need_mib)
    if room is None:
        raise LabError(why)
    _sweep(room)
    name = secrets.token_hex(4)
    unlocked = room / f"{NEW}{name}"
    path = room / f"{PREFIX}{name}"
    unlocked.mkdir(mode=0o700)
    try:
        with (unlocked / "lock").open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            # Only now under the name that others sweep.
            unlocked.rename(path)
            yield path
    finally:
        shutil.rmtree(unlocked, ignore_errors=True)
        shutil.rmtree(path, ignore_errors=True)


def copy_sparse(source: Path, target: Path) -> None:
    """Copy a sparse file: its holes stay holes, and where the file system can, blocks are shared."""
    with source.open("rb") as reader, target.open("wb") as writer:
        size = os.fstat(reader.fileno()).st_size
        writer.truncate(size)
        position = 0
        while position < size:
            try:
                begin = os.lseek(reader.fileno(), position, os.SEEK_DATA)
            except OSError:
                return
            end = os.lseek(reader.fileno(), begin, os.SEEK_HOLE)
            _copy_range(reader.fileno(), writer.fileno(), begin, end)
            position = end


def _copy_range(reader: int, writer: int, begin: int, end: int) -> None:
    while begin < end:
        try:
            done = os.copy_file_range(reader, writer, end - begin, begin, begin)
        except OSError:
            done = os.pwrite(writer, os.pread(reader, min(end - begin, 1 << 20), begin), begin)
        if done == 0:
            raise LabError("a prepared image became shorter while it was copied: run the command again")
        begin += done


def held_mib(path: Path) -> int:
    """Room that a sparse file really takes, in MiB, rounded up."""
    return (path.stat().st_blocks * 512 >> 20) + 1
