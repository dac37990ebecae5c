# SPDX-License-Identifier: GPL-2.0-only
"""What the blocks of a file system are, as its own tools read them from the disk when it is not mounted.

ext4 by dumpe2fs and debugfs; f2fs by dump.f2fs: the superblock's areas, NAT, SIT, and the summaries of segments.
"""

from __future__ import annotations

import re
import stat
import struct
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

BLOCK = 4096
SEGMENT = 512
"""Blocks of a segment of f2fs."""

FOOTER = BLOCK - 24
"""Where a node of f2fs says which it is: number of the node, and of its inode."""

EXT4_JOURNAL = 8


@dataclass
class Dump:
    """Areas that hold one thing for ever, and what else blocks hold."""

    areas: list[tuple[int, int, str]] = field(default_factory=list)
    """First and last block, and what."""
    blocks: dict[int, tuple[str, int]] = field(default_factory=dict)
    """What, and the inode that it is a part of; 0: of one that is not known."""
    users: dict[int, int] = field(default_factory=dict)
    """Inode -> the user whose it is."""


def said(*argv: str, cwd: str | None = None) -> str:
    """What a tool prints; a version on stderr apart."""
    return subprocess.run(argv, check=True, capture_output=True, text=True, cwd=cwd).stdout


def number(text: str, pattern: str) -> int:
    """The only group of a pattern that must be there."""
    found = re.search(pattern, text)
    if not found:
        raise ValueError(f"{pattern} is not in {text[:200]!r}")
    return int(found[1])


# --- ext4

GROUP: dict[str, str] = {
    "superblock": r"(?:Primary|Backup) superblock at (\d+)()",
    "descriptors": r"Group descriptors at (\d+)-(\d+)",
    "reserved descriptors": r"Reserved GDT blocks at (\d+)-(\d+)",
    "block bitmap": r"Block bitmap at (\d+)()",
    "inode bitmap": r"Inode bitmap at (\d+)()",
    "inode table": r"Inode table at (\d+)-(\d+)",
}
"""What dumpe2fs says of each group."""

EXTENT = re.compile(r"\((ETB\d+|IND|DIND|TIND|[\d-]+)\):(\d+)(?:-(\d+))?")
"""Of debugfs's stat: logical blocks, or a block of the tree of extents; and where."""


def debugfs(disk: str, requests: Iterable[str]) -> str:
    """What it says to some requests."""
    with tempfile.NamedTemporaryFile("w", suffix=".debugfs") as script:
        script.write("".join(f"{one}\n" for one in requests))
        script.flush()
        return said("/sbin/debugfs", "-f", script.name, disk)


def ext4_inode(text: str, into: Dump) -> None:
    """One inode and its blocks, by debugfs's stat."""
    inode = number(text, r"^Inode: (\d+)")
    into.users[inode] = number(text, r"User:\s+(\d+)")
    holds = "directory" if "Type: directory" in text else "data"
    for name, first, last in EXTENT.findall(text.partition("EXTENTS:")[2]):
        if inode == EXT4_JOURNAL:
            into.areas.append((int(first), int(last or first), "journal"))
            continue
        what = holds if name[0].isdigit() else "extents"
        into.blocks |= dict.fromkeys(range(int(first), int(last or first) + 1), (what, inode))


def ext4(disk: str, written: Iterable[int]) -> Dump:
    """Of an ext4 file system: areas, and the inodes that have some of the blocks."""
    dump = Dump()
    groups = said("/sbin/dumpe2fs", disk)
    for what, pattern in GROUP.items():
        dump.areas += [(int(first), int(last or first), what) for first, last in re.findall(pattern, groups)]
    owned = debugfs(disk, [f"icheck {' '.join(map(str, some))}" for some in batches(sorted(written))])
    inodes = {int(inode) for _, inode in re.findall(r"^(\d+)\t(\d+)$", owned, re.MULTILINE)}
    for text in debugfs(disk, [f"stat <{inode}>" for inode in sorted(inodes | {EXT4_JOURNAL})]).split("debugfs: ")[1:]:
        ext4_inode(text.partition("\n")[2], dump)
    return dump


def batches(numbers: list[int], size: int = 200) -> Iterator[list[int]]:
    """As many as fit into a line of debugfs's."""
    for at in range(0, len(numbers), size):
        yield numbers[at : at + size]


# --- f2fs

NIDS = 4096
"""Nodes that NAT is looked up for: more than these tests have."""

AREAS = ("cp", "sit", "nat", "ssa", "main")
"""In their order on the disk; the first is behind the superblocks."""


@dataclass(frozen=True)
class Segment:
    """A segment, by SIT."""

    nodes: bool
    valid: bytes
    """A bit for each block, the highest first; none at all: of no block."""

    def has(self, at: int) -> bool:
        return bool(self.valid and self.valid[at // 8] >> (7 - at % 8) & 1)


def segments(sit: str) -> dict[int, Segment]:
    """By dump_sit of dump.f2fs."""
    found = {}
    for text in sit.partition("valid_blocks:")[0].split("segno:")[1:]:
        head, _, bits = text.partition("\n")
        found[int(head.split()[0])] = Segment(number(head, r"seg_type:(\d)") >= 3, bytes.fromhex(bits))
    return found


def summaries(ssa: str) -> dict[int, int]:
    """By dump_ssa of one segment: block in it -> the node that points to it."""
    return {int(at): int(nid, 16) for at, nid in re.findall(r"\[ *(\d+): *([0-9a-f]+)\]", ssa)}


def footers(disk: str, blocks: Iterable[int]) -> dict[int, tuple[int, int]]:
    """The node and the inode that blocks say they are of, if they are nodes.

    Nodes that are superseded are there until they are discarded.
    """
    with Path(disk).open("rb") as handle:
        return {block: struct.unpack_from("<II", content(handle, block), FOOTER) for block in sorted(blocks)}


def content(disk: BinaryIO, block: int) -> bytes:
    disk.seek(block * BLOCK)
    return disk.read(BLOCK)


@dataclass
class F2fs:
    """The tables of an f2fs file system."""

    disk: str
    where: str
    """A directory for what dump.f2fs writes."""

    def dumped(self, option: str, name: str, numbers: str) -> str:
        said("/sbin/dump.f2fs", option, numbers, self.disk, cwd=self.where)
        return (Path(self.where) / name).read_text()

    def starts(self) -> dict[str, int]:
        """The first block of each area."""
        superblock = said("/sbin/dump.f2fs", "-d", "1", self.disk, cwd=self.where)
        return {area: number(superblock, rf"\n{area}_blkaddr.*: (\d+)\]") for area in AREAS}

    def nat(self) -> dict[int, tuple[int, int]]:
        """Node -> its inode, and where it is."""
        found = re.findall(
            r"nid:\s*(\d+)\s+ino:\s*(\d+)\s.*blkaddr:\s*(\d+)", self.dumped("-n", "dump_nat", f"0~{NIDS}")
        )
        return {int(nid): (int(inode), int(at)) for nid, inode, at in found}

    def inode(self, block: int) -> tuple[str, int]:
        """Of an inode's node: what its blocks hold, and its user."""
        with Path(self.disk).open("rb") as disk:
            mode, _, _, user = struct.unpack_from("<HBBI", content(disk, block))
        return "dentries" if stat.S_ISDIR(mode) else "data", user


def f2fs(disk: str, written: Iterable[int], superseded: dict[int, tuple[int, int]]) -> Dump:
    """Of an f2fs file system: areas, and what the blocks are.

    SUPERSEDED has the footers of the same blocks as they were before it was unmounted.
    """
    with tempfile.TemporaryDirectory() as where:
        tables = F2fs(disk, where)
        first = tables.starts()
        bounds = [0, *(first[area] for area in AREAS)]
        names = ("superblock", *AREAS[:-1])
        dump = Dump([(bounds[at], bounds[at + 1] - 1, name) for at, name in enumerate(names)])
        main = first["main"]
        sit, nat = segments(tables.dumped("-s", "dump_sit", "0~-1")), tables.nat()
        pointers: dict[int, dict[int, int]] = {}
        kinds = {nid: tables.inode(at) for nid, (inode, at) in nat.items() if nid == inode}
        dump.users = {inode: user for inode, (_, user) in kinds.items()}
        for block in (one for one in written if one >= main):
            segment, at = divmod(block - main, SEGMENT)
            if sit[segment].nodes:
                nid, inode = superseded[block]
                if sit[segment].has(at) and nat[nid] != (inode, block):
                    raise ValueError(f"block {block} says it is node {nid} of {inode}, and NAT has {nat[nid]}")
                # What was discarded says nothing.
                dump.blocks[block] = ("node", inode)
            elif sit[segment].has(at):
                if segment not in pointers:
                    ssa = tables.dumped("-a", "dump_ssa", f"{segment}~{segment + 1}")
                    pointers[segment] = summaries(ssa)
                inode = nat[pointers[segment][at]][0]
                dump.blocks[block] = (kinds[inode][0], inode)
            else:
                dump.blocks[block] = ("superseded", 0)
    return dump
