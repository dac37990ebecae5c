# SPDX-License-Identifier: GPL-2.0-only
"""What judges a trace finds what is wrong, unknown, missing and invented."""

from __future__ import annotations

import struct
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from origin_judge import Trace, judge
from stock_disk import FLAG_DISCARD, MAGIC, Write, begins, read_log, words
from stock_kernel import archive, needs

DEV = 8 << 20
WORD = 0xF7 << 56 | 10101 << 40 | 0 << 24 | 1
SHOWN: dict[str, Any] = {
    "ways": {"0": "buffered"},
    "read": {},
    "inodes": {"0": 12},
    "databases": {},
    "places": {},
    "times": {"write": 0, "sqlite": 100, "read": 200, "alone": 300},
}


def records(inode: int | None = 12, path: str = "/run/data/path0", uid: int | None = 10101) -> list[dict[str, Any]]:
    """Of one block, which is written at 7."""
    segment: dict[str, Any] = {"record": "segment", "bio": 1, "offset": 0, "bytes": 4096, "block_type": "data"}
    found: list[dict[str, Any]] = []
    if uid is not None:
        found.append({"record": "task", "task": 1, "uid": uid})
        segment["owner"] = 1
    if inode is not None:
        found.append({"record": "file", "file": 3, "inode": inode, "path": path})
        segment["file"] = 3
    bio = {"record": "bio", "bio": 1, "time": 7, "dev": DEV, "operation": "write", "sector": 80}
    return [*found, bio, segment]


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        (records(), "right"),
        (records(uid=None), "unknown"),
        (records(inode=None), "unknown"),
        (records(uid=10102), "wrong"),
        (records(inode=13), "wrong"),
        (records(path="/run/data/path1"), "wrong"),
        # What is wrong in a part is wrong, whatever else is unknown.
        (records(inode=13, uid=None), "wrong"),
        ([], "missing"),
    ],
)
def test_verdicts(said: list[dict[str, Any]], verdict: str) -> None:
    # The first was written before the trace began.
    written = words(begins([Write(80, bytes(4096)), Write(80, struct.pack("<Q", WORD) * 512)]))
    assert judge(SHOWN, Trace.of(said, DEV), written)["buffered"] == Counter([verdict])


@pytest.mark.parametrize(
    ("way", "stores", "verdict"),
    [
        ("shared_map", True, "right"),
        # It has never stored there; nobody maps.
        ("shared_map", False, "wrong"),
        ("buffered", True, "wrong"),
    ],
)
def test_a_page_is_of_who_has_faulted_and_stores(way: str, stores: bool, verdict: str) -> None:
    said = records(uid=10102)
    later = WORD + (1 << 40)
    given = [WORD, later] if stores else [WORD]
    again = [one | {"bio": 2, "time": 8} for one in said[-2:]] if stores else []
    shown = SHOWN | {"ways": {"0": way}}
    assert judge(shown, Trace.of([*said, *again], DEV), {10: given})[way] == Counter([verdict] + ["right"] * stores)


def of_database(**changes: Any) -> list[dict[str, Any]]:
    """Of one block of a database's, which is written at 107."""
    said = records(path="/run/data/path400")
    said[-2]["time"] = 107
    said[1] |= changes
    return said


@pytest.mark.parametrize(
    ("said", "verdicts"),
    [
        ([], {"missing": 100}),
        # Before its app began.
        (records(path="/run/data/path400"), {"missing": 100}),
        (of_database(), {"right": 1, "missing": 99}),
        (of_database(path=""), {"unknown": 1, "missing": 99}),
        (of_database(path="/run/data/path401"), {"wrong": 1, "missing": 99}),
    ],
)
def test_blocks_of_databases(said: list[dict[str, Any]], verdicts: dict[str, int]) -> None:
    places = list(range(10, 110))
    database = {"name": "path400", "inode": 12, "uid": 10101, "places": places}
    shown = SHOWN | {"databases": {"400": [database]}}
    written = words(begins([Write(8 * place, bytes(4096)) for place in places]))
    assert judge(shown, Trace.of(said, DEV), written)["database of 10101"] == Counter(verdicts)
    # On the device there is nothing: its way is told all the same.
    assert judge(shown, Trace.of([], DEV), {})["database of 10101"] == Counter()


def test_a_bio_that_the_device_has_not_seen_is_invented() -> None:
    said = Trace.of(records(), DEV)
    assert judge(SHOWN, said, {10: []})["the device"] == Counter(["invented"])


def test_the_log_of_writes(tmp_path: Path) -> None:
    def entry(sector: int, sectors: int, flags: int, content: bytes = b"") -> bytes:
        return struct.pack("<QQQQ", sector, sectors, flags, len(content)).ljust(512, b"\0") + content

    content = bytes(1024) + struct.pack("<Q", 5).ljust(4096, b"\0")
    log = tmp_path / "log"
    head = struct.pack("<QQQI", MAGIC, 1, 3, 512).ljust(512, b"\0")
    log.write_bytes(head + entry(0, 8, FLAG_DISCARD) + entry(0, 0, 1) + entry(78, 10, 0, content))
    # It begins in the middle of a block.
    assert words(begins(read_log(log))) == {10: [5]}
    log.write_bytes(log.read_bytes()[:-1])
    with pytest.raises(ValueError, match="is cut"):
        read_log(log)


def test_modules_and_their_archive() -> None:
    assert needs(b"\0license=GPL\0depends=mbcache,jbd2\0name=ext4\0") == ["mbcache", "jbd2"]
    assert needs(b"\0depends=\0") == []
    made = archive({"a": (0o100644, b"xyz")})
    assert made[:14] == b"07070100000001" and len(made) % 4 == 0
    assert made[110:112] == b"a\0" and made[112:115] == b"xyz"
