# SPDX-License-Identifier: GPL-2.0-only
"""Which app and which file each block belongs to, against the truth.

Apps write blocks that begin with a word that names who has written them, and to which file. The device says of each
block that it takes where it lies and what its word is; that is the truth. The trace says of each run of blocks of each
bio which file and which task it belongs to. Each block is judged: right, wrong, or unknown. SQLite's pages name nobody:
their truth is where the database and its log lie at the end. Blocks that are read are their reader's.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from guest_script import BEHIND, FASTTRACK, FRONT, Data, Settings, ask, setting

from fasttrack_lab.run.runner import Tools

pytestmark = pytest.mark.guest

MARK = 0xF7
SERVICE = 1000
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
class Transaction:
    """A transaction or a checkpoint, and who pays for it."""

    number: int
    kind: str
    case: str
    trigger: int | None
    """User id."""
    call: str
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
    task: str
    began_us: float
    ended_us: float
    file: tuple[int, str] | None
    offset: int
    bytes: int
    result: int

    @classmethod
    def of(cls, kind: str, fields: dict[str, str], file: tuple[int, str] | None) -> Slept:
        ended = float(fields["at"]) * 1e6
        numbers = [int(fields.get(name, "0")) for name in ("offset", "bytes", "result")]
        return cls(kind, fields["task"], ended - int(fields["took_ns"]) / 1e3, ended, file, *numbers)


@dataclass
class Trace:
    """The events so far, in the order of the trace."""

    tasks: dict[str, int] = field(default_factory=dict)
    files: dict[str, tuple[int, str]] = field(default_factory=dict)
    unlinked: set[str] = field(default_factory=set)
    renamed: list[tuple[int, str]] = field(default_factory=list)
    created: list[int] = field(default_factory=list)
    bios: dict[str, int] = field(default_factory=dict)
    blocks: dict[int, Said] = field(default_factory=dict)
    transactions: list[Transaction] = field(default_factory=list)
    calls: list[Slept] = field(default_factory=list)
    waits: list[Slept] = field(default_factory=list)
    case: str = ""

    def io_call(self, fields: dict[str, str]) -> None:
        self.calls.append(Slept.of(fields["call"], fields, self.files.get(fields["file"])))

    def io_wait(self, fields: dict[str, str]) -> None:
        self.waits.append(Slept.of(fields["kind"], fields, self.files.get(fields["file"])))

    def tracing_mark_write(self, fields: dict[str, str]) -> None:
        self.case = fields["case"]

    def io_transaction(self, fields: dict[str, str]) -> None:
        self.transactions.append(
            Transaction(
                int(fields["transaction"]),
                fields["kind"],
                self.case,
                self.tasks.get(fields["trigger"]),
                fields["trigger_call"],
                int(fields["handles"]),
                int(fields["blocks"]),
                int(fields["logged"]),
            )
        )

    def io_share(self, fields: dict[str, str]) -> None:
        last = self.transactions[-1]
        assert (str(last.number), last.kind) == (fields["transaction"], fields["kind"])
        paid = int(fields["handles"]), int(fields["blocks"]), fields["through_flusher"] == "1"
        last.shares.append((self.tasks.get(fields["task"]), *paid))

    def io_task(self, fields: dict[str, str]) -> None:
        self.tasks[fields["task"]] = int(fields["uid"])

    def io_file(self, fields: dict[str, str]) -> None:
        self.created.append(int(fields["created_ns"]))
        if fields["event"] == "unlink":
            self.unlinked.add(fields["path"])
        if fields["event"] == "rename":
            self.renamed.append((int(fields["inode"]), fields["path"]))
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
        before, name, said = line.split(": ", 2)
        yield name, {"at": before.split()[-1]} | dict(pair.split("=", 1) for pair in said.split() if "=" in pair)


@dataclass(frozen=True)
class Truth:
    """Whose a block is."""

    way: str
    inode: int
    names: tuple[str, ...]
    uid: int

    def verdict(self, said: Said) -> str:
        if said.file is None or said.uid is None:
            return "unknown"
        right = said.file[0] == self.inode and said.file[1].removesuffix("//deleted") in self.names
        return "right" if right and (said.uid, said.type) == (self.uid, "data") else "wrong"


@dataclass(frozen=True)
class Oracle:
    """What the device's blocks are in truth."""

    inodes: dict[int, int]
    ways: dict[int, str]
    read: dict[int, str]
    databases: dict[int, Truth]
    """By place: SQLite's pages do not say whose they are."""

    @classmethod
    def of(cls, shown: dict[str, Any]) -> Oracle:
        def numbers(name: str) -> dict[int, Any]:
            return {int(path): said for path, said in shown[name].items()}

        databases = {}
        for one in (one for files in shown["databases"].values() for one in files):
            kind = "log" if "-" in one["name"] else "database"
            truth = Truth(f"{kind} of {one['uid']}", one["inode"], (f"/{one['name']}",), one["uid"])
            databases |= dict.fromkeys(one["places"], truth)
        return cls(numbers("inodes"), numbers("ways"), numbers("read"), databases)

    def truth(self, fields: dict[str, str], case: str) -> Truth | None:
        """Of a block that the device takes or gives; None: nobody knows."""
        writes = fields["write"] == "1"
        if writes and case == "sqlite":
            return self.databases.get(int(fields["lpn"]))
        word = int(fields["word"], 16)
        if word >> 56 != MARK or (case == "sqlite") or (not writes and case != "read"):
            return None
        uid, path = word >> 40 & 0xFFFF, word >> 24 & 0xFFFF
        names = f"/path{path}", f"/renamed{path}"
        if writes:
            return Truth(self.ways[path], self.inodes[path], names, uid)
        # It is read by the app that has not written it.
        return Truth(self.read[path], self.inodes[path], names, FRONT + BEHIND - uid)


def judge(shown: dict[str, Any], trace: Trace) -> dict[str, Counter[str]]:
    """Verdicts of each way."""
    oracle = Oracle.of(shown)
    ways = [*oracle.ways.values(), *oracle.read.values(), *(truth.way for truth in oracle.databases.values())]
    verdicts: dict[str, Counter[str]] = {way: Counter() for way in ways}
    for name, fields in events(shown["lines"]):
        if name != "mflash_block":
            getattr(trace, name, lambda _: None)(fields)
            continue
        truth = oracle.truth(fields, trace.case)
        if truth:
            said = trace.blocks.get(int(fields["lpn"]), Said(None, None, "unknown"))
            verdicts[truth.way][truth.verdict(said)] += 1
    return verdicts


@dataclass(frozen=True)
class Watched:
    """What was seen on a file system."""

    fs: str
    shown: dict[str, Any]
    trace: Trace
    verdicts: dict[str, Counter[str]]


SETTINGS: dict[str, Settings] = {"off": NOOP, "fasttrack": FASTTRACK}


@pytest.fixture(scope="module", params=[(fs, name) for name in SETTINGS for fs in ("ext4", "f2fs")], ids="-".join)
def watched(request: pytest.FixtureRequest, tools: Tools) -> Watched:
    fs, name = request.param
    shown = ask(tools, "origin.watched", data=Data(fs), settings=SETTINGS[name])
    assert shown["buffer"]["overrun"] == shown["buffer"]["dropped events"] == "0"
    trace = Trace()
    return Watched(fs, shown, trace, judge(shown, trace))


def test_every_block_is_its_owner_s(watched: Watched) -> None:
    fs, shown, trace, verdicts = watched.fs, watched.shown, watched.trace, watched.verdicts
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
    moved = {(shown["inodes"][path], f"/renamed{path}") for path, way in shown["ways"].items() if way == "renamed"}
    assert moved <= set(trace.renamed)
    assert {f"/path{path}" for path in gone} <= {path.removesuffix("//deleted") for path in trace.unlinked}


def test_shares_sum_to_their_transaction(watched: Watched) -> None:
    assert len(watched.trace.transactions) >= 5
    for one in watched.trace.transactions:
        assert sum(share[1] for share in one.shares) == one.handles, one
        assert sum(share[2] for share in one.shares) == one.blocks, one


def test_transactions_are_those_of_the_log(watched: Watched) -> None:
    """Its descriptors tag as many blocks as the shares sum to."""
    log = {int(number): said for number, said in watched.shown["log"].items()}
    traced = {one.number: one for one in watched.trace.transactions if one.kind == "jbd2"}
    assert bool(log) == (watched.fs == "ext4")
    assert not log or len(traced) >= 5
    for number, one in traced.items():
        tags, others = log.get(number, (0, 0))
        assert (one.blocks, one.logged) == (tags, tags + others), one
    # None between two that were traced is missing.
    assert not traced or {number for number in log if min(traced) <= number <= max(traced)} == set(traced)


def test_payers_and_triggers(watched: Watched) -> None:
    def of(case: str) -> list[Transaction]:
        return [one for one in watched.trace.transactions if one.case == case and (one.blocks or one.handles)]

    def paid(ones: list[Transaction], uid: int | None, through: bool | None = None) -> tuple[int, int]:
        shares = [one.paid(uid, through) for one in ones]
        return sum(share[0] for share in shares), sum(share[1] for share in shares)

    if os.environ.get("FASTTRACK_SHOW"):
        for one in watched.trace.transactions:
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
    shown, calls = watched.shown, watched.trace.calls
    inodes = {way: shown["inodes"][path] for path, way in shown["ways"].items()}

    def on(way: str, *kinds: str) -> list[tuple[str, int, int, int]]:
        mine = [one for one in calls if one.file and one.file[0] == inodes[way] and one.kind in kinds]
        return [(one.kind, one.offset, one.bytes, one.result) for one in mine]

    blocks = [("write", at * 4096, 4096, 4096) for at in range(64)]
    assert on("buffered", "write") == on("appended", "write") == blocks
    assert on("direct", "direct_write") == [("direct_write", at * 16384, 16384, 16384) for at in range(16)]
    assert on("synchronous", "write", "fsync") == blocks[:8]
    four = [*(blocks[at : at + 4] for at in range(0, 16, 4))]
    synced = [[*some, (kind, 0, 0, 0)] for kind in ("fsync", "fdatasync") for some in four]
    assert on("synced", "write", "fsync", "fdatasync") == [one for some in synced for one in some]
    assert [one[0] for one in on("unlinked", "fsync")] == ["fsync"]
    written = {offset for _, offset, _, _ in on("mapped", "mmap_write")}
    assert written == {at * 4096 for at in range(64)}
    assert len(on("mapped", "msync")) == 1
    read = {path: shown["inodes"][path] for path in shown["read"]}
    by_reader = Counter((one.file[0], one.kind) for one in calls if one.file and "read" in one.kind)
    assert by_reader[read["0"], "read"] == 5 and by_reader[read["1"], "direct_read"] == 16
    assert sum(one.kind == "sync" for one in calls) >= 8


def test_waits_say_what_a_call_took(watched: Watched) -> None:
    """Computing takes no time here: what a call took it has waited, and its waits are inside it."""
    waits = sorted(watched.trace.waits, key=lambda one: one.began_us)
    total: Counter[str] = Counter()
    told: Counter[str] = Counter()
    for call in watched.trace.calls:
        inside = [
            one
            for one in waits
            if one.task == call.task and one.began_us >= call.began_us - 2 and one.ended_us <= call.ended_us + 2
        ]
        reached, covered = call.began_us, 0.0
        for one in inside:
            covered += max(0.0, one.ended_us - max(reached, one.began_us))
            reached = max(reached, one.ended_us)
        total[call.kind] += call.ended_us - call.began_us
        told[call.kind] += covered
    if os.environ.get("FASTTRACK_SHOW"):
        print({kind: (round(took), round(told[kind] / took, 3)) for kind, took in total.items() if took > 1})
        print(Counter(one.kind for one in waits))
    for kind in ("read", "direct_read", "direct_write", "fault", "fsync", "fdatasync", "sync", "msync", "write"):
        assert told[kind] >= 0.95 * total[kind] > 0, kind
