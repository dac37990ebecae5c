# SPDX-License-Identifier: GPL-2.0-only
"""Which app and which file each block belongs to, as fasttrack-trace records it, against the truth.

Apps write blocks that begin with a word that names who has written them, and to which file. The device says of each
block that it takes where it lies and what its word is; that is the truth. The log files say of each run of blocks of
each bio which file and which task it belongs to. Each block is judged: right, wrong, or unknown. SQLite's pages name
nobody: their truth is where the database and its log lie at the end. Blocks that are read are their reader's.

What the file system writes for itself is judged by the disk: its tools say what each block is, and whose.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from guest_script import BEHIND, FASTTRACK, FRONT, SERVICE, Data, Settings, ask, setting
from layout_judge import Disk, judge_layout, of_disk
from origin_judge import Record, Trace, judge

from fasttrack_lab.build import guest_program
from fasttrack_lab.run.runner import Tools

pytestmark = pytest.mark.guest

ORACLE = Path(__file__).parent / "oracle" / "watched.py"
SDA = 8 << 20

NOOP: Settings = (setting("/sys/block/sda/queue/scheduler", "none"),)
SETTINGS: dict[str, Settings] = {"off": NOOP, "fasttrack": FASTTRACK}
UNKNOWN_AT_MOST = {"ext4": 0.001, "f2fs": 0.01}

HELD = {
    "ext4": {
        "journal": 300,
        "inode table": 20,
        "superblock": 1,
        "descriptors": 3,
        "block bitmap": 5,
        "inode bitmap": 5,
        "directory": 10,
        "extents": 1,
        "data": 200,
        "block bitmap, read": 1,
        "data, read": 192,
    },
    "f2fs": {"node": 150, "cp": 60, "sit": 1, "nat": 1, "ssa": 1, "data": 200, "node, read": 4, "data, read": 192},
}
"""What blocks hold, and how many of them at least are judged."""


@dataclass
class Transaction:
    """A transaction or a checkpoint, and who pays for it."""

    began: int
    ended: int
    """ns: of its commit."""
    number: int
    kind: str
    case: str
    trigger: int | None
    """User id."""
    call: str | None
    handles: int
    blocks: int
    logged: int
    shares: list[tuple[int | None, int, int, bool]] = field(default_factory=list)
    """User id, handles, blocks, through the flusher."""

    def paid(self, uid: int | None, through: bool | None = None) -> tuple[int, int]:
        """Handles and blocks of a user."""
        mine = [one for one in self.shares if one[0] == uid and through in (None, one[3])]
        return sum(one[1] for one in mine), sum(one[2] for one in mine)


@dataclass(frozen=True)
class Slept:
    """A call, or a wait in one."""

    kind: str
    thread: int
    began: int
    ended: int
    """ns."""
    inode: int | None
    offset: int
    bytes: int
    result: int
    interface: str


@dataclass(frozen=True)
class Watched:
    """What was seen on a file system."""

    fs: str
    shown: dict[str, Any]

    def of(self, kind: str) -> list[Record]:
        return [one for one in self.shown["records"] if one["record"] == kind]

    @cached_property
    def uids(self) -> dict[int, int]:
        """Of tasks."""
        return {one["task"]: one["uid"] for one in self.of("task")}

    @cached_property
    def inodes(self) -> dict[int, int]:
        """Of files."""
        return {one["file"]: one["inode"] for one in self.of("file")}

    def case(self, time: int) -> str:
        begun = [(began, name) for name, began in self.shown["times"].items() if began <= time]
        return max(begun, default=(0, ""))[1]

    @cached_property
    def transactions(self) -> list[Transaction]:
        found: list[Transaction] = []
        for one in self.shown["records"]:
            if one["record"] == "transaction":
                times = (one.get("began", one["time"]), one["time"])
                said = (self.uids.get(one.get("trigger", 0)), one.get("trigger_call"))
                sizes = (one["handles"], one["blocks"], one["logged"])
                whose = (one["transaction"], one["kind"], self.case(one["time"]))
                found.append(Transaction(*times, *whose, *said, *sizes))
            if one["record"] == "share":
                assert one["transaction"] == found[-1].number
                paid = (one["handles"], one["blocks"], one["through_flusher"])
                found[-1].shares.append((self.uids.get(one.get("task", 0)), *paid))
        return found

    def slept(self, kind: str) -> list[Slept]:
        """Calls or waits."""
        return [
            Slept(
                one["kind"],
                one["thread"],
                one["time"] - one["duration_ns"],
                one["time"],
                self.inodes.get(one.get("file", 0)),
                *(one.get(name, 0) for name in ("offset", "bytes", "result")),
                one.get("interface", "system_call"),
            )
            for one in self.of(kind)
            if "thread" in one
        ]

    @cached_property
    def trace(self) -> Trace:
        return Trace.of(self.shown["records"], SDA)

    @cached_property
    def verdicts(self) -> dict[str, Counter[str]]:
        """Of each way."""
        written: dict[int, list[int]] = defaultdict(list)
        for place, word in self.shown["taken"]:
            written[place].append(int(word, 16))
        return judge(self.shown, self.trace, written)

    @cached_property
    def disk(self) -> Disk:
        return of_disk(self.shown, self.trace)

    @cached_property
    def layout(self) -> dict[str, Counter[str]]:
        """Verdicts by what blocks hold."""
        return judge_layout(self.disk)


def watch(tools: Tools, fs: str, settings: Settings, source: str) -> Watched:
    program = str(guest_program.build(guest_program.COLLECTOR))
    shown = ask(tools, "watched.watched", data=Data(fs), settings=settings, init=ORACLE, program=program, source=source)
    assert shown["buffer"]["overrun"] == shown["buffer"]["dropped events"] == "0"
    watched = Watched(fs, shown)
    assert not watched.of("loss")
    if os.environ.get("FASTTRACK_SHOW"):
        print(fs, sum(watched.verdicts.values(), Counter()))
        print({way: dict(counts) for way, counts in watched.verdicts.items()})
        print(fs, sum(watched.layout.values(), Counter()))
        print({what: dict(counts) for what, counts in watched.layout.items()})
    return watched


@pytest.fixture(scope="module", params=[(fs, name) for name in SETTINGS for fs in ("ext4", "f2fs")], ids="-".join)
def watched(request: pytest.FixtureRequest, tools: Tools) -> Watched:
    """By the patched kernel's events."""
    fs, name = request.param
    return watch(tools, fs, SETTINGS[name], "kernel")


def test_every_block_is_its_owner_s(watched: Watched) -> None:
    fs, shown, verdicts = watched.fs, watched.shown, watched.verdicts
    total = sum(verdicts.values(), Counter())
    assert set(total) <= {"right", "unknown"}, verdicts
    assert total["unknown"] <= UNKNOWN_AT_MOST[fs] * total.total(), verdicts
    for way, counts in verdicts.items():
        assert counts["right"] >= 8, way
    files = watched.of("file")
    assert all("path" in one for one in files if one["inode"] in shown["inodes"].values())
    # f2fs keeps it only where it is made with extra attributes.
    assert fs == "f2fs" or all(one["created_ns"] > 0 for one in files)

    def told(event: str) -> set[tuple[int, str]]:
        return {(one["inode"], one["path"].split("/")[-1]) for one in files if one["event"] == event}

    gone = {path for path, way in shown["ways"].items() if way == "unlinked"}
    moved = {(shown["inodes"][path], f"renamed{path}") for path, way in shown["ways"].items() if way == "renamed"}
    assert moved <= told("rename")
    assert {(shown["inodes"][path], f"path{path}") for path in gone} <= told("unlink")
    sizes = {(one["inode"], one["bytes"]) for one in files if one["event"] == "unlink"}
    assert {(shown["inodes"][path], 64 * 4096) for path in gone} <= sizes


def test_every_block_of_the_file_system_is_what_the_disk_says(watched: Watched) -> None:
    fs, layout = watched.fs, watched.layout
    total = sum(layout.values(), Counter())
    assert set(total) <= {"right", "unknown", "free"}, layout
    assert total["unknown"] <= UNKNOWN_AT_MOST[fs] * total.total(), layout
    # Nobody knows what these were.
    assert total["free"] <= 0.01 * total.total(), layout
    for what, count in HELD[fs].items():
        assert layout[what]["right"] >= count, (what, layout)


def test_payers_are_those_whose_the_blocks_on_the_disk_are(watched: Watched) -> None:
    """Of a checkpoint, each node and directory; of a transaction, the blocks of directories and extents."""
    judged: Counter[int | None] = Counter()
    for one in watched.transactions:
        if one.kind == "checkpoint":
            truth = watched.disk.of_checkpoint(one.began, one.ended)
            nobody = truth.pop(None, 0)
            # Nobody's are no more than possibly its own: what has been superseded may have been data.
            assert truth.total() <= one.blocks <= truth.total() + nobody, (one, truth)
        else:
            truth, nobody = watched.disk.of_transaction(one.number), one.blocks
        for uid, blocks in truth.items():
            assert blocks <= one.paid(uid)[1] <= blocks + nobody, (one, truth)
        judged += truth
    if os.environ.get("FASTTRACK_SHOW"):
        print(watched.fs, judged)
    assert judged[FRONT] >= 2 and judged[BEHIND] >= 5, judged


@pytest.mark.parametrize("fs", ["ext4", "f2fs"])
def test_events_of_any_kernel_say_nothing_wrong(tools: Tools, fs: str) -> None:
    """Whose a block is they say where the task still is when the collector looks: here most have ended."""
    watched = watch(tools, fs, NOOP, "tracefs")
    total = sum(watched.verdicts.values(), Counter())
    assert set(total) == {"right", "unknown"}, watched.verdicts
    # SQLite's apps live for some time.
    assert total["right"] >= 150
    layout = watched.layout
    assert set(sum(layout.values(), Counter())) <= {"right", "unknown", "free"}, layout
    # Who has changed a node, nobody says.
    for what, count in HELD[fs].items():
        assert layout[what]["right"] >= count or what in ("data", "node"), (what, layout)


def test_shares_sum_to_their_transaction(watched: Watched) -> None:
    assert len(watched.transactions) >= 5
    for one in watched.transactions:
        assert sum(share[1] for share in one.shares) == one.handles, one
        assert sum(share[2] for share in one.shares) == one.blocks, one


def test_transactions_are_those_of_the_log(watched: Watched) -> None:
    """Its descriptors tag as many blocks as the shares sum to."""
    log = {int(number): said for number, said in watched.shown["log"].items()}
    traced = {one.number: one for one in watched.transactions if one.kind == "jbd2"}
    assert bool(log) == (watched.fs == "ext4")
    assert not log or len(traced) >= 5
    for number, one in traced.items():
        tags, others = log.get(number, (0, 0))
        assert (one.blocks, one.logged) == (tags, tags + others), one
    # None between two that were traced is missing.
    assert not traced or {number for number in log if min(traced) <= number <= max(traced)} == set(traced)


def test_payers_and_triggers(watched: Watched) -> None:
    def of(case: str) -> list[Transaction]:
        return [one for one in watched.transactions if one.case == case and (one.blocks or one.handles)]

    def paid(ones: list[Transaction], uid: int | None, through: bool | None = None) -> tuple[int, int]:
        shares = [one.paid(uid, through) for one in ones]
        return sum(share[0] for share in shares), sum(share[1] for share in shares)

    if os.environ.get("FASTTRACK_SHOW"):
        for one in watched.transactions:
            print(one)
    alone, both, flusher = of("alone"), of("both"), of("flusher")
    ext4 = watched.fs == "ext4"
    # Not the sync before, which had nothing to do; of f2fs, the directory is new.
    assert {(one.trigger, one.call) for one in alone + both} == {(FRONT, "fsync")}
    assert {(one.trigger, one.call) for one in flusher} <= {(SERVICE, "sync")}
    assert paid(alone, FRONT) == paid(alone, FRONT, through=False)
    assert paid(alone, FRONT)[1] == sum(one.blocks for one in alone) > 0
    # Each handle is its app's; blocks that both change are the first's.
    many, few = paid(both, BEHIND), paid(both, FRONT)
    assert not ext4 or (many[0] >= 40 and 2 <= few[0] <= 6)
    assert many[1] > few[1] > 0 and many[1] + few[1] == sum(one.blocks for one in both)
    # Who syncs pays for nothing of what another has written.
    assert paid(flusher, SERVICE)[1] == 0
    assert not ext4 or paid(flusher, BEHIND, through=True)[1] > 0


def test_calls_are_those_that_were_made(watched: Watched) -> None:
    """Each way's calls on its file: how many, where, how much, and what they returned."""
    shown, calls = watched.shown, watched.slept("call")
    inodes = {way: shown["inodes"][path] for path, way in shown["ways"].items()}

    def on(way: str, *kinds: str) -> list[tuple[str, int, int, int]]:
        mine = [one for one in calls if one.inode == inodes[way] and one.kind in kinds]
        return [(one.kind, one.offset, one.bytes, one.result) for one in mine]

    blocks = [("write", at * 4096, 4096, 4096) for at in range(64)]
    assert on("buffered", "write") == on("appended", "write") == blocks
    assert on("direct", "direct_write") == [("direct_write", at * 16384, 16384, 16384) for at in range(16)]
    assert on("synchronous", "write", "fsync") == blocks[:8]
    four = [*(blocks[at : at + 4] for at in range(0, 16, 4))]
    synced = [[*some, (kind, 0, 0, 0)] for kind in ("fsync", "fdatasync") for some in four]
    assert on("synced", "write", "fsync", "fdatasync") == [one for some in synced for one in some]
    assert [one[0] for one in on("unlinked", "fsync")] == ["fsync"]
    assert sorted(on("by_ring", "direct_write")) == [("direct_write", at * 16384, 16384, 16384) for at in range(32)]
    assert on("sent", "splice_write") == [("splice_write", at * 65536, 65536, 65536) for at in range(4)]
    assert on("spliced", "splice_write") == [("splice_write", *block[1:]) for block in blocks]
    written = {offset for _, offset, _, _ in on("mapped", "mmap_write")}
    assert written == {at * 4096 for at in range(64)}
    assert len(on("mapped", "msync")) == 1
    read = {path: shown["inodes"][path] for path in shown["read"]}
    by_reader = Counter((one.inode, one.kind) for one in calls if "read" in one.kind)
    assert by_reader[read["0"], "read"] == 5 and by_reader[read["1"], "direct_read"] == 16
    assert sum(one.kind == "sync" for one in calls) >= 8


def test_waits_say_what_a_call_took(watched: Watched) -> None:
    """Computing takes no time here: what a call took it has waited, and its waits are inside it."""
    waits = sorted(watched.slept("wait"), key=lambda one: one.began)
    total: Counter[str] = Counter()
    told: Counter[str] = Counter()
    for call in watched.slept("call"):
        if call.interface != "system_call":
            continue
        inside = [
            one
            for one in waits
            if one.thread == call.thread and one.began >= call.began - 2000 and one.ended <= call.ended + 2000
        ]
        reached, covered = call.began, 0
        for one in inside:
            covered += max(0, one.ended - max(reached, one.began))
            reached = max(reached, one.ended)
        total[call.kind] += call.ended - call.began
        told[call.kind] += covered
    if os.environ.get("FASTTRACK_SHOW"):
        print({kind: (round(took), round(told[kind] / took, 3)) for kind, took in total.items() if took > 1})
        print(Counter(one.kind for one in waits))
    for kind in ("read", "direct_read", "direct_write", "fault", "fsync", "fdatasync", "sync", "msync", "write"):
        assert told[kind] >= 0.95 * total[kind] > 0, kind
