# SPDX-License-Identifier: GPL-2.0-only
"""Which app and which file each block belongs to, against the truth.

Apps write blocks that begin with a word that names who has written them, and to which file. The device says of each
block that it takes where it lies and what its word is; that is the truth. The trace says of each run of blocks of each
bio which file and which task it belongs to. Each block is judged: right, wrong, or unknown.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from guest_script import FASTTRACK, Data, Settings, ask, setting

from fasttrack_lab.run.runner import Tools

pytestmark = pytest.mark.guest

MARK = 0xF7
SECTORS = 8
"""Of a block."""

NOOP: Settings = (setting("/sys/block/sda/queue/scheduler", "none"),)
UNKNOWN_AT_MOST = {"ext4": 0.001, "f2fs": 0.01}


@dataclass(frozen=True)
class Said:
    """What the trace says of a block."""

    file: tuple[int, str] | None
    """Inode and path."""
    uid: int | None
    type: str


@dataclass
class Trace:
    """The events so far, in the order of the trace."""

    tasks: dict[str, int] = field(default_factory=dict)
    files: dict[str, tuple[int, str]] = field(default_factory=dict)
    unlinked: set[str] = field(default_factory=set)
    created: list[int] = field(default_factory=list)
    bios: dict[str, int] = field(default_factory=dict)
    blocks: dict[int, Said] = field(default_factory=dict)

    def io_task(self, fields: dict[str, str]) -> None:
        self.tasks[fields["task"]] = int(fields["uid"])

    def io_file(self, fields: dict[str, str]) -> None:
        self.created.append(int(fields["created_ns"]))
        if fields["event"] == "unlink":
            self.unlinked.add(fields["path"])
        self.files.setdefault(fields["file"], (int(fields["inode"]), fields["path"]))

    def io_bio(self, fields: dict[str, str]) -> None:
        self.bios[fields["bio"]] = int(fields["sector"])

    def io_segment(self, fields: dict[str, str]) -> None:
        first = self.bios[fields["bio"]] // SECTORS + int(fields["offset"]) // 4096
        said = Said(self.files.get(fields["file"]), self.tasks.get(fields["owner"]), fields["block_type"])
        for block in range(first, first + int(fields["bytes"]) // 4096):
            self.blocks[block] = said


def events(lines: list[str]) -> Iterator[tuple[str, dict[str, str]]]:
    for line in lines:
        _, name, said = line.split(": ", 2)
        yield name, dict(pair.split("=", 1) for pair in said.split() if "=" in pair)


def judge(shown: dict[str, Any], trace: Trace) -> dict[str, Counter[str]]:
    """Verdicts of each way."""
    inodes = {int(path): inode for path, inode in shown["inodes"].items()}
    verdicts: dict[str, Counter[str]] = {way: Counter() for way in shown["ways"].values()}
    for name, fields in events(shown["lines"]):
        if name != "mflash_block":
            getattr(trace, name, lambda _: None)(fields)
            continue
        word = int(fields["word"], 16)
        if word >> 56 != MARK:
            continue
        uid, path = word >> 40 & 0xFFFF, word >> 24 & 0xFFFF
        said = trace.blocks.get(int(fields["lpn"]), Said(None, None, "unknown"))
        if said.file is None or said.uid is None:
            verdict = "unknown"
        else:
            names = (f"/path{path}", f"/renamed{path}")
            right = said.file[0] == inodes[path] and said.file[1].removesuffix("//deleted") in names
            right = right and (said.uid, said.type) == (uid, "data")
            verdict = "right" if right else "wrong"
        verdicts[shown["ways"][str(path)]][verdict] += 1
    return verdicts


@pytest.mark.parametrize("fs", ["ext4", "f2fs"])
@pytest.mark.parametrize("settings", [NOOP, FASTTRACK], ids=["off", "fasttrack"])
def test_every_block_is_its_owner_s(tools: Tools, fs: str, settings: Settings) -> None:
    shown = ask(tools, "origin.watched", data=Data(fs), settings=settings)
    assert shown["buffer"]["overrun"] == shown["buffer"]["dropped events"] == "0"
    trace = Trace()
    verdicts = judge(shown, trace)
    total = sum(verdicts.values(), Counter())
    if os.environ.get("FASTTRACK_SHOW"):
        print(fs, total, {way: dict(counts) for way, counts in verdicts.items()})
    assert total["wrong"] == 0, verdicts
    assert total["unknown"] <= UNKNOWN_AT_MOST[fs] * total.total(), verdicts
    for way, counts in verdicts.items():
        assert counts["right"] >= 8, way
    # f2fs keeps it only where it is made with extra attributes.
    assert fs == "f2fs" or min(trace.created) > 0
    gone = {path for path, way in shown["ways"].items() if way == "unlinked"}
    assert {f"/path{path}" for path in gone} <= {path.removesuffix("//deleted") for path in trace.unlinked}
