# SPDX-License-Identifier: GPL-2.0-only
"""What judges a trace by the disk finds what is wrong, unknown, missing and invented; and the disk is read rightly."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from layout_judge import Disk, judge_layout, of_disk
from origin_judge import Said, Trace

sys.path.insert(0, str(Path(__file__).parent / "oracle"))

import disk_dump

ONE, OTHER = 10101, 10102
WORD = 0xF7 << 56 | ONE << 40 | 0 << 24 | 1
DIRECTORY = 0x0201000C << 32 | 13
EXTENTS = 0x154000EF30A

SHOWN: dict[str, Any] = {
    "ways": {"0": "buffered", "1": "shared"},
    "read": {},
    "inodes": {"0": 12, "1": 15},
    "times": {"write": 5000},
    "root": 2,
    "log": {"5": [1, 1], "4": [0, 1]},
    "tags": {"5": [31, 32, 50, 3]},
    "dump": {
        "areas": [[0, 9, "superblock"], [10, 19, "journal"], [20, 29, "cp"]],
        "blocks": {
            "30": ["data", 12],
            "31": ["directory", 13],
            "32": ["extents", 12],
            "40": ["node", 12],
            "41": ["dentries", 13],
            "42": ["superseded", 0],
            "43": ["node", 15],
            "50": ["directory", 2],
        },
        "users": {"2": 0, "12": ONE, "13": OTHER, "15": ONE},
    },
}


def disk(block: int, *said: Said, words: tuple[int, ...] = (0,), operation: str = "write") -> Disk:
    """Of one block, which the device was given at 7 us, 8 us and so on."""
    trace = Trace()
    trace.blocks[operation][block].extend(said)
    shown = SHOWN | {
        "taken": [[block, f"{word:x}"] for word in words],
        "given": [7000 + 1000 * at for at in range(len(words))],
    }
    return of_disk(shown, trace)


def verdicts(*of: Any, **how: Any) -> Counter[str]:
    return sum(judge_layout(disk(*of, **how)).values(), Counter())


def said(type: str, uid: int | None = None, inode: int | None = None, transaction: int | None = None) -> Said:
    return Said(7000, inode, None, uid, type, transaction)


@pytest.mark.parametrize(
    ("block", "one", "verdict"),
    [
        (3, said("metadata"), "right"),
        (3, said("data"), "wrong"),
        (3, said("unknown"), "unknown"),
        # No file has the superblock.
        (3, said("metadata", inode=12), "wrong"),
        (10, said("journal"), "right"),
        (10, said("metadata"), "wrong"),
        (12, said("journal", transaction=5), "right"),
        (12, said("journal", transaction=4), "wrong"),
        (12, said("journal"), "unknown"),
        (25, said("checkpoint"), "right"),
        (25, said("node"), "wrong"),
        (30, said("data", ONE, 12), "right"),
        (30, said("data", OTHER, 12), "wrong"),
        (30, said("data", ONE, 13), "wrong"),
        (30, said("data", ONE), "unknown"),
        (30, said("data", None, 12), "unknown"),
        # A file's block that is said to be the file system's own.
        (30, said("metadata", ONE, 12), "wrong"),
        (31, said("metadata"), "right"),
        (31, said("metadata", OTHER, 13), "right"),
        # The journal's thread has dirtied it.
        (31, said("metadata", 0, 13), "right"),
        (31, said("metadata", ONE, 13), "wrong"),
        (31, said("metadata", OTHER, 12), "wrong"),
        (31, said("data", OTHER, 13), "wrong"),
        (31, said("journal"), "wrong"),
        (32, said("metadata"), "right"),
        (32, said("metadata", OTHER), "wrong"),
        (40, said("node", ONE), "right"),
        (40, said("node", OTHER), "wrong"),
        (40, said("node", 0), "wrong"),
        (40, said("node"), "unknown"),
        (40, said("data", ONE, 12), "wrong"),
        # Several apps have changed its file.
        (43, said("node", OTHER), "right"),
        (43, said("metadata", OTHER), "wrong"),
        (41, said("metadata", OTHER), "right"),
        (41, said("metadata", ONE), "wrong"),
        (41, said("journal", OTHER), "wrong"),
        (42, said("metadata", OTHER), "right"),
        (42, said("data", OTHER, 14), "right"),
        (42, said("node"), "wrong"),
        (60, said("metadata"), "free"),
    ],
)
def test_verdicts(block: int, one: Said, verdict: str) -> None:
    assert verdicts(block, one) == Counter([verdict])


def test_what_was_there_before_is_known_by_its_place_or_its_word() -> None:
    metadata, data = said("metadata"), said("data", ONE, 14)
    assert verdicts(3, data, metadata, words=(1, 2)) == Counter(["wrong", "right"])
    # A file that is removed had the block of the directory.
    assert verdicts(31, data, metadata, words=(1, 2)) == Counter(["right"])
    assert verdicts(31, data, metadata, words=(DIRECTORY, 2)) == Counter(["wrong", "right"])
    assert verdicts(60, said("metadata", inode=14), metadata, words=(DIRECTORY, 2)) == Counter(["wrong", "free"])
    assert verdicts(60, data, metadata, words=(EXTENTS, 2)) == Counter(["wrong", "free"])
    # These are judged by their words.
    assert verdicts(3, data, words=(WORD,)) == Counter()


def test_what_is_missing_and_invented() -> None:
    metadata = said("metadata")
    assert verdicts(3, words=(1,)) == Counter(["missing"])
    assert verdicts(3, metadata, metadata, words=(1,)) == Counter(["invented"])
    before = disk(3, metadata, words=(1, 2))
    before.shown["times"] = {"write": 7500}
    assert judge_layout(before) == {"superblock": Counter(["right"])}


def test_reads() -> None:
    """Of what is there for ever, and of what was not written since; who reads is nobody's concern here."""
    assert verdicts(3, said("data"), words=(), operation="read") == Counter(["wrong"])
    assert verdicts(40, said("node", OTHER), words=(), operation="read") == Counter(["right"])
    assert verdicts(40, said("metadata", OTHER), words=(), operation="read") == Counter(["wrong"])
    later = judge_layout(disk(40, said("metadata"), operation="read"))
    assert "node, read" not in later


def test_payers() -> None:
    # The root directory is several apps'.
    assert disk(3).of_transaction(5) == Counter({OTHER: 1, ONE: 1})
    twice = disk(40, words=(1, 2, 3))
    assert twice.of_checkpoint(6000, 20_000) == Counter({None: 2, ONE: 1})
    assert twice.of_checkpoint(20_000, 30_000) == Counter()
    assert disk(30).of_checkpoint(0, 20_000) == Counter()


def content(where: Path) -> Path:
    """A directory of several blocks, and a file of so many extents that they have a block of their own."""
    tree = where / "tree"
    (tree / "crowd").mkdir(parents=True)
    for number in range(40):
        (tree / "crowd" / str(number).zfill(200)).touch()
    handle = os.open(tree / "scattered", os.O_CREAT | os.O_RDWR)
    for index in range(0, 24, 2):
        os.pwrite(handle, bytes([index + 1]) * 4096, index * 4096)
    os.close(handle)
    return tree


def find(image: Path, start: int) -> int:
    """The block that is full of a byte."""
    whole = image.read_bytes()
    (found,) = (at for at in range(0, len(whole), 4096) if whole[at : at + 4096] == bytes([start]) * 4096)
    return found // 4096


def of_content(dump: disk_dump.Dump, image: Path, directory: str) -> set[int]:
    """Inode of the scattered file, which has its blocks; and one other has the directory's."""
    files = {dump.blocks[find(image, index + 1)] for index in range(0, 24, 2)}
    ((what, _),) = files
    assert what == "data"
    counts = Counter(inode for what, inode in dump.blocks.values() if what == directory)
    assert max(counts.values()) >= 2
    return {inode for _, inode in files}


def test_a_disk_of_ext4_is_read(tmp_path: Path) -> None:
    image = tmp_path / "disk"
    argv = ["/sbin/mkfs.ext4", "-q", "-F", "-d", str(content(tmp_path)), str(image), "64M", "-b", "4096"]
    subprocess.run(argv, check=True, capture_output=True)
    dump = disk_dump.ext4(str(image), range(16384))
    areas = {what: (first, last) for first, last, what in reversed(dump.areas)}
    assert areas["superblock"][0] == 0 and areas["descriptors"][0] == 1
    assert image.read_bytes()[areas["journal"][0] * 4096 :][:4] == bytes.fromhex("c03b3998")
    (inode,) = of_content(dump, image, "directory")
    extents = [block for block, held in dump.blocks.items() if held == ("extents", inode)]
    assert image.read_bytes()[extents[0] * 4096 :][:2] == bytes.fromhex("0af3")
    assert dump.users[inode] == os.getuid()
    assert not [block for block in dump.blocks if areas["inode table"][0] <= block <= areas["inode table"][1]]


def test_a_disk_of_f2fs_is_read(tmp_path: Path) -> None:
    image = tmp_path / "disk"
    with image.open("wb") as handle:
        handle.truncate(128 << 20)
    for argv in (["mkfs.f2fs", "-q", "-f", str(image)], ["sload.f2fs", "-f", str(content(tmp_path)), str(image)]):
        # Where nobody is root it cannot give files to others, and says so.
        subprocess.run([f"/sbin/{argv[0]}", *argv[1:]], check=True, capture_output=True)
    areas = disk_dump.F2fs(str(image), str(tmp_path)).starts()
    main = [block for block in range(areas["main"], 128 << 8) if any(read(image, block))]
    dump = disk_dump.f2fs(str(image), main, disk_dump.footers(str(image), main))
    assert [what for _, _, what in dump.areas] == ["superblock", "cp", "sit", "nat", "ssa"]
    (inode,) = of_content(dump, image, "dentries")
    assert ("node", inode) in dump.blocks.values()
    # A node that does not say whose it is by NAT.
    (block,) = (block for block, held in dump.blocks.items() if held == ("node", inode))
    with pytest.raises(ValueError, match=f"block {block} says it is node"):
        disk_dump.f2fs(str(image), [block], {block: (inode, inode + 1)})


def read(image: Path, block: int) -> bytes:
    with image.open("rb") as handle:
        return disk_dump.content(handle, block)
