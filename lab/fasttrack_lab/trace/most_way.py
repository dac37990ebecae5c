# SPDX-License-Identifier: GPL-2.0-only
"""What MOST does after a trace: debugfs tells the inode of each block, and the inode's name, one by one.

The phone's content lies in the emulated device, where debugfs does not reach. So a file system is made here that has as
many files as the trace names, of their sizes up to MOST_BYTES, and blocks of it are asked for.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from fasttrack_lab.host.errors import LabError
from fasttrack_lab.trace.tables import Tables, counted, rows_of

MOST_BYTES = 64 << 10
SAMPLE = 30
"""Blocks that are asked for; the time of all is in proportion."""
_DISK_MIB = 16 << 10
_FIRST = 40_000
"""A block behind the tables of the first group."""


def seconds(tables: Tables, where: Path) -> tuple[float, int, int]:
    """Real time for all bios of a trace, the blocks that were asked for, and the number of bios."""
    files = tables.files
    sizes = rows_of(tables.engine, files.group_by("path").agg(bytes=files.bytes.max()).order_by("path"))
    disk, content = where / "disk.img", where / "content"
    content.mkdir()
    for number, row in enumerate(sizes):
        (content / f"file{number}").write_bytes(b"x" * min(row["bytes"] or 0, MOST_BYTES))
    _run(["mkfs.ext4", "-q", "-F", "-d", str(content), str(disk), f"{_DISK_MIB}M"])
    count = counted(tables.io)
    asked = min(SAMPLE, count)
    begin = time.perf_counter()
    for place in range(asked):
        told = _run(["debugfs", "-R", f"icheck {_FIRST + place}", str(disk)]).split()
        inode = told[-1] if told and told[-1].isdigit() else "12"
        _run(["debugfs", "-R", f"ncheck {inode}", str(disk)])
    took = time.perf_counter() - begin
    return (took / asked * count if asked else 0.0), asked, count


def _run(argv: list[str]) -> str:
    path = "/usr/sbin:/sbin:/usr/bin:/bin"
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, env={"PATH": path})
    except FileNotFoundError:
        raise LabError(f"{argv[0]} is missing; scripts/setup.sh installs e2fsprogs") from None
    if done.returncode:
        raise LabError(f"{argv[0]}: {done.stderr.strip()}")
    return done.stdout
