# SPDX-License-Identifier: GPL-2.0-only
"""A disk of QEMU's that keeps a log of all that is written to it: the truth about each block, from the device's side.

The log is that of QEMU's driver blklogwrites, in the format of Linux's dm-log-writes.
"""

from __future__ import annotations

import json
import struct
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path += [str(Path(__file__).parent / name) for name in ("guest", "oracle")]

import disk_dump
import jbd2_log

BLOCK, SECTOR = 4096, 512
MAGIC = 0x6A736677736872
FLAG_FLUSH, FLAG_FUA, FLAG_DISCARD, FLAG_MARK = 1, 2, 4, 8
SIZE = 5 << 30

ROOT = {"ext4": 2, "f2fs": 3}
"""Inode of the first directory, as mkfs makes it."""


@dataclass(frozen=True)
class Write:
    """A write to the device: first sector and content."""

    sector: int
    content: bytes


def arguments(folder: Path) -> tuple[str, ...]:
    """Empty files in the folder, and QEMU's arguments for a disk of them, /dev/sda."""
    for name, size in (("disk", SIZE), ("log", 0)):
        with (folder / name).open("wb") as handle:
            handle.truncate(size)
    return (
        "-blockdev",
        "driver=file,node-name=content,filename=disk",
        "-blockdev",
        "driver=file,node-name=log,filename=log",
        "-blockdev",
        "driver=blklogwrites,node-name=disk,file=content,log=log,log-sector-size=512",
        "-device",
        "virtio-scsi-pci",
        "-device",
        "scsi-hd,drive=disk",
    )


def read_log(log: Path) -> list[Write]:
    """All writes, in the order in which the device took them."""
    found = []
    with log.open("rb") as handle:
        magic, _, count, unit = struct.unpack("<QQQI", handle.read(28))
        if magic != MAGIC:
            raise ValueError(f"{log} is no log of writes")
        handle.seek(unit)
        for _ in range(count):
            head = handle.read(unit)
            sector, sectors, flags, _ = struct.unpack_from("<QQQQ", head)
            if flags & (FLAG_DISCARD | FLAG_MARK) or not sectors:
                continue
            content = handle.read(sectors * unit)
            if len(content) != sectors * unit:
                raise ValueError(f"{log} is cut")
            found.append(Write(sector * unit // SECTOR, content))
    return found


def begins(writes: list[Write]) -> Iterator[tuple[int, bytes]]:
    """Each block of 4 KiB that was written, in order: its place, and the first 16 bytes of what it was given."""
    for write in writes:
        first = write.sector * SECTOR
        for at in range(-first % BLOCK, len(write.content), BLOCK):
            yield (first + at) // BLOCK, write.content[at : at + 16]


def words(blocks: Iterable[tuple[int, bytes]]) -> dict[int, list[int]]:
    """The first word of what each block was written with, in order."""
    found: dict[int, list[int]] = defaultdict(list)
    for place, begin in blocks:
        found[place].append(int.from_bytes(begin[:8], "little"))
    return found


def shown(kind: str, disk: Path, written: dict[int, list[int]]) -> dict[str, Any]:
    """What the disk is at the end, as tests/oracle/watched.py shows it; nothing says when it was written."""
    log = jbd2_log.read_log(str(disk)) if kind == "ext4" else {}
    if kind == "ext4":
        dump = disk_dump.ext4(str(disk), written)
    else:
        dump = disk_dump.f2fs(str(disk), written, disk_dump.footers(str(disk), written))
    taken = [(block, f"{word:x}") for block, words in written.items() for word in words]
    return {
        "log": {str(number): [len(one.tags), one.others] for number, one in log.items()},
        "tags": {str(number): one.tags for number, one in log.items()},
        "taken": taken,
        "given": [0] * len(taken),
        "root": ROOT[kind],
        # Through JSON, as what a guest shows.
        "dump": json.loads(json.dumps(asdict(dump))),
    }
