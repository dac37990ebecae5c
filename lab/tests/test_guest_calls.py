# SPDX-License-Identifier: GPL-2.0-only
"""Calls of io_uring, of asynchronous I/O and of splice(2): a record for each, to the end of its I/O.

fio, asynchronous I/O by its system calls, sendfile(2), copy_file_range(2) and splice(2) do what is known: how often,
how much and where. The requests of the device in the same trace say when I/O has ended.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pytest
from guest_script import BEHIND, FRONT, Data, ask

from fasttrack_lab.build import guest_program
from fasttrack_lab.run.runner import Tools

pytestmark = pytest.mark.guest

Record = dict[str, Any]
KIB = 1024
SECTOR, PAGE = 512, 4096

LATE_NS = 20_000
"""From the end of a request to that of its call: interrupts and workers, and no sleep."""


@dataclass(frozen=True)
class Traced:
    """What was recorded."""

    shown: dict[str, Any]

    def of(self, kind: str) -> list[Record]:
        return [one for one in self.shown["records"] if one["record"] == kind]

    @cached_property
    def tasks(self) -> dict[int, Record]:
        return {one["task"]: one for one in self.of("task")}

    @cached_property
    def names(self) -> dict[int, str]:
        """Of files, by number."""
        return {one["file"]: one["path"].split("/")[-1] for one in self.of("file") if "path" in one}

    @cached_property
    def by_name(self) -> dict[str, list[Record]]:
        """Calls on each file."""
        found: dict[str, list[Record]] = {}
        for one in self.of("call"):
            found.setdefault(self.names.get(one.get("file", 0), ""), []).append(one)
        return found

    def told(self, name: str, *kinds: str) -> list[Record]:
        return [one for one in self.by_name.get(name, []) if one["kind"] in kinds]

    def sent(self, name: str, operation: str) -> list[tuple[int, int, int, int]]:
        """Runs of a file's blocks: first byte in it, the byte after, when they were queued, when they were done."""
        bios = {one["bio"]: one for one in self.of("bio")}
        requests = [one for one in self.of("request") if one["operation"] == operation]
        found = []
        for one in self.of("segment"):
            bio = bios[one["bio"]]
            if self.names.get(one.get("file", 0)) == name and bio["operation"] == operation:
                begin = bio["sector"] * SECTOR + one["offset"]
                ended = [
                    request["time"]
                    for request in requests
                    if request["time"] >= bio["time"]
                    and request["sector"] * SECTOR < begin + one["bytes"]
                    and request["sector"] * SECTOR + request["bytes"] > begin
                ]
                first = one["index"] * PAGE
                found.append((first, first + one["bytes"], bio["time"], min(ended)))
        return found


@pytest.fixture(scope="module", params=["ext4", "f2fs"])
def traced(request: pytest.FixtureRequest, tools: Tools) -> Traced:
    program = str(guest_program.build(guest_program.COLLECTOR))
    traced = Traced(ask(tools, "calls.works", data=Data(request.param), program=program))
    assert not traced.of("loss")
    if os.environ.get("FASTTRACK_SHOW"):
        for name, calls in sorted(traced.by_name.items()):
            shapes = Counter((one["kind"], one.get("interface"), one["bytes"]) for one in calls)
            print(name, dict(shapes), sum(one["duration_ns"] for one in calls) // 1000, "us")
    return traced


def places(size: int, count: int, first: int = 0) -> list[tuple[int, int, int]]:
    """Offset, bytes and result of calls that cover a part of a file once."""
    return [(first + at * size, size, size) for at in range(count)]


ASYNC: dict[str, tuple[str, str, int, list[tuple[int, int, int]]]] = {
    "ring_writes": ("direct_write", "io_uring", FRONT, places(16 * KIB, 32)),
    "ring_writes_over": ("direct_write", "io_uring", FRONT, places(16 * KIB, 32)),
    "ring_reads": ("direct_read", "io_uring", FRONT, places(16 * KIB, 32)),
    "ring_by_workers": ("direct_read", "io_uring", FRONT, places(16 * KIB, 32)),
    "ring_buffered_writes": ("write", "io_uring", FRONT, places(4 * KIB, 16)),
    "ring_buffered_reads": ("read", "io_uring", FRONT, places(4 * KIB, 64)),
    "ring_fdatasyncs": ("write", "io_uring", FRONT, places(4 * KIB, 16)),
    "aio_reads": ("direct_read", "aio", BEHIND, places(16 * KIB, 8)),
    "aio_writes": ("direct_write", "aio", BEHIND, places(16 * KIB, 8)),
    "aio_appends": ("write", "aio", BEHIND, places(16 * KIB, 8, 512 * KIB)),
    "aio_buffered": ("read", "aio", BEHIND, places(16 * KIB, 8)),
}
"""File -> kind, interface, app, and each call's offset, bytes and result."""


@pytest.mark.parametrize("name", ASYNC)
def test_each_call_is_told_once(traced: Traced, name: str) -> None:
    """How many, where, how much, by whom: whichever thread of the app, or interrupt, saw its end."""
    kind, interface, uid, wanted = ASYNC[name]
    calls = traced.told(name, "read", "write", "direct_read", "direct_write")
    assert {(one["kind"], one["interface"]) for one in calls} == {(kind, interface)}
    assert sorted((one["offset"], one["bytes"], one["result"]) for one in calls) == wanted
    assert {traced.tasks[one["task"]]["uid"] for one in calls} == {uid}


def test_syncs(traced: Traced) -> None:
    for name, kind, interface, uid, count in (
        ("ring_buffered_writes", "fsync", "io_uring", FRONT, traced.shown["syncs"]),
        # Which fio does not count: after each four of 16 writes, and not after the last.
        ("ring_fdatasyncs", "fdatasync", "io_uring", FRONT, 3),
        ("aio_syncs", "fsync", "aio", BEHIND, 1),
        ("aio_syncs", "fdatasync", "aio", BEHIND, 1),
    ):
        calls = traced.told(name, kind)
        told = {(one["interface"], traced.tasks[one["task"]]["uid"], one["result"]) for one in calls}
        assert told == {(interface, uid, 0)}, name
        assert len(calls) == count > 0, name
        # What was dirty is written in it, and the device's cache flushed.
        assert calls[0]["duration_ns"] > 100_000, name


DIRECT = [name for name, (kind, *_) in ASYNC.items() if kind.startswith("direct")]


@pytest.mark.parametrize("name", DIRECT)
def test_a_call_ends_with_its_io(traced: Traced, name: str) -> None:
    """Not when it returns, and not when the app looks: when the device has done the last of its blocks."""
    kind = ASYNC[name][0]
    runs = traced.sent(name, kind.removeprefix("direct_"))
    for call in traced.told(name, kind):
        begin, end = call["time"] - call["duration_ns"], call["offset"] + call["bytes"]
        mine = [run for run in runs if run[0] < end and run[1] > call["offset"] and run[2] <= call["time"]]
        assert sum(min(run[1], end) - max(run[0], call["offset"]) for run in mine) == call["bytes"], call
        assert begin <= min(run[2] for run in mine), call
        assert 0 <= call["time"] - max(run[3] for run in mine) <= LATE_NS, call


def test_a_buffered_read_ends_when_its_pages_are_there(traced: Traced) -> None:
    """It waits in no thread, but is tried again."""
    runs = traced.sent("ring_buffered_reads", "read")
    for call in traced.told("ring_buffered_reads", "read"):
        mine = [run for run in runs if run[0] <= call["offset"] < run[1]]
        assert len(mine) == 1, call
        assert call["time"] >= mine[0][3], call


def test_splices(traced: Traced) -> None:
    """What is read and what is written, in parts of a pipe's size."""
    for name, pieces, to in (
        ("sent", places(64 * KIB, 4), 0),
        ("copied", places(64 * KIB, 4), 64 * KIB),
        ("spliced", places(32 * KIB, 4), 0),
    ):
        reads, writes = traced.told(name, "splice_read"), traced.told(f"{name}_to", "splice_write")
        total = sum(one[1] for one in pieces)
        for calls, first in ((reads, 0), (writes, to)):
            reached = first
            for one in calls:
                assert (one["offset"], one["bytes"], one["interface"]) == (reached, one["result"], "system_call")
                reached += one["bytes"]
            assert reached - first == total, name
            assert {traced.tasks[one["task"]]["uid"] for one in calls} == {BEHIND}
        assert len(reads) == len(writes) == len(pieces), name


def test_waits_say_what_splices_took(traced: Traced) -> None:
    """These are in their thread, as read(2) is: its waits are what they took."""
    waits = [one for one in traced.of("wait") if "thread" in one]
    took = told = 0
    for call in (one for name in ("sent", "copied", "spliced") for one in traced.told(name, "splice_read")):
        begin = call["time"] - call["duration_ns"]
        inside = [
            (wait["time"] - wait["duration_ns"], wait["time"])
            for wait in waits
            if wait["thread"] == call["thread"] and begin <= wait["time"] <= call["time"]
        ]
        reached = begin
        for start, end in sorted(inside):
            told += max(0, end - max(reached, start))
            reached = max(reached, end)
        took += call["duration_ns"]
    assert told >= 0.95 * took > 0
