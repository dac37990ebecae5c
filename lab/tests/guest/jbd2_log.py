# SPDX-License-Identifier: GPL-2.0-only
"""What the journal of an ext4 file system has on the disk: the blocks of each transaction, by its descriptors."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

BLOCK = 4096
MAGIC = 0xC03B3998
DESCRIPTOR, COMMIT, REVOKE = 1, 2, 5
"""Types of blocks."""

WITH_64BIT, CSUM_V2, CSUM_V3 = 0x2, 0x8, 0x10
"""Features."""

READ = 1024
"""Blocks of the log that are looked at: more than these tests fill."""

SAME_UUID, LAST_TAG = 2, 8
"""Flags of a tag."""


@dataclass
class Logged:
    """A transaction that was committed."""

    tags: list[int] = field(default_factory=list)
    """Where on the disk its blocks belong."""
    others: int = 0
    """Blocks of the log besides those: descriptors, revokes and the commit."""


def tags(block: bytes, features: int) -> Iterator[int]:
    """The blocks that a descriptor tags."""
    size = 16 if features & CSUM_V3 else 12 - (0 if features & WITH_64BIT else 4) + (2 if features & CSUM_V2 else 0)
    at = 12
    while True:
        low, high = struct.unpack_from(">I", block, at)[0], 0
        flags = struct.unpack_from(">I", block, at + 4)[0] if features & CSUM_V3 else block[at + 7]
        if features & WITH_64BIT:
            high = struct.unpack_from(">I", block, at + 8)[0]
        yield high << 32 | low
        at += size + (0 if flags & SAME_UUID else 16)
        if flags & LAST_TAG:
            return


def transactions(log: bytes) -> dict[int, Logged]:
    """Those of the begin of a journal that has not wrapped, by number; one without a commit block is left out."""
    magic, _, _, _, _, first = struct.unpack_from(">6I", log)
    if magic != MAGIC:
        raise ValueError("no journal")
    features = struct.unpack_from(">I", log, 40)[0]
    found: dict[int, Logged] = {}
    at, now, number = first * BLOCK, Logged(), 0
    while True:
        if at + BLOCK > len(log):
            raise ValueError("the log is longer than what was read of it")
        magic, kind, sequence = struct.unpack_from(">3I", log, at)
        if magic != MAGIC or (number and sequence not in (number, number + 1)):
            break
        number = sequence
        now.others += 1
        if kind == DESCRIPTOR:
            tagged = list(tags(log[at : at + BLOCK], features))
            now.tags += tagged
            at += len(tagged) * BLOCK
        elif kind == COMMIT:
            found[number], now = now, Logged()
        elif kind != REVOKE:
            break
        at += BLOCK
    return found


def read_log(disk: str) -> dict[int, Logged]:
    """The journal of a disk's file system, which mkfs has made in one piece."""
    asked = ["/sbin/debugfs", "-R", "blocks <8>", disk]
    said = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
    blocks = [int(word) for word in said.split()]
    if blocks[:READ] != list(range(blocks[0], blocks[0] + READ)):
        raise ValueError("the journal is not in one piece")
    with Path(disk).open("rb") as handle:
        handle.seek(blocks[0] * BLOCK)
        return transactions(handle.read(READ * BLOCK))
