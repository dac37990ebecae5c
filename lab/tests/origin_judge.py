# SPDX-License-Identifier: GPL-2.0-only
"""What a trace says of each block, against the device's own log and the words in it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from stock_disk import BLOCK

MARK = 0xF7
"""The first byte of a word that names who has written it, as tests/guest/origin.py has it."""

BOTH = 10101 + 10102
"""Of an app's user id the other's is the rest."""

FAULTED = "shared_map"
"""Way in which an app writes, by its map, over what another has dirtied."""

Record = dict[str, Any]


@dataclass(frozen=True)
class Said:
    """What the trace says of a block of a bio."""

    time: int
    inode: int | None
    name: str | None
    uid: int | None
    type: str
    transaction: int | None = None
    """That its bio makes durable."""


@dataclass(frozen=True)
class Truth:
    """Whose a block is."""

    way: str
    inode: int
    names: tuple[str, ...]
    uid: int

    def verdict(self, said: Said) -> str:
        """A part that is known and not true is wrong; a part that is not known makes the block unknown."""
        wrong = (
            said.inode not in (None, self.inode)
            or (said.name is not None and said.name not in self.names)
            or said.uid not in (None, self.uid)
            or said.type not in ("unknown", "data")
        )
        if wrong:
            return "wrong"
        return "unknown" if None in (said.inode, said.uid) or said.type == "unknown" else "right"

    def named(self, said: Said) -> str:
        """The same of a file that is not removed: its name is a part."""
        verdict = self.verdict(said)
        return "unknown" if verdict == "right" and said.name is None else verdict


@dataclass
class Trace:
    """Blocks of bios by operation, in the order of time."""

    blocks: dict[str, dict[int, list[Said]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    losses: list[Record] = field(default_factory=list)
    records: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, records: list[Record], dev: int) -> Trace:
        """What was said of a device."""
        trace = cls()
        tasks: dict[int, Record] = {}
        files: dict[int, Record] = {}
        bios: dict[int, Record] = {}
        for record in records:
            kind = record["record"]
            trace.records[kind] += 1
            if kind == "task":
                tasks[record["task"]] = record
            elif kind == "file":
                files.setdefault(record["file"], record)
            elif kind == "loss":
                trace.losses.append(record)
            elif kind == "bio":
                bios[record["bio"]] = record
            elif kind == "segment" and bios[record["bio"]]["dev"] == dev:
                trace._segment(record, bios[record["bio"]], files, tasks)
        return trace

    def _segment(self, segment: Record, bio: Record, files: dict[int, Record], tasks: dict[int, Record]) -> None:
        file = files.get(segment.get("file", 0), {})
        path = file.get("path", "").removesuffix("//deleted")
        owner = tasks.get(segment.get("owner", 0), {})
        name = path.split("/")[-1] or None
        whose = (file.get("inode"), name, owner.get("uid"), segment["block_type"])
        said = Said(bio["time"], *whose, bio.get("transaction"))
        first = bio["sector"] * 512 + segment["offset"]
        for block in range(first // BLOCK, (first + segment["bytes"]) // BLOCK):
            self.blocks[bio["operation"]][block].append(said)


@dataclass(frozen=True)
class Oracle:
    """What is true of a machine's disk."""

    shown: dict[str, Any]
    written: dict[int, list[int]]
    """The words that each block was written with, in order."""

    def names_file(self, word: int) -> bool:
        """Whether a block begins with a word of an app's; one of the file system's can have the mark by chance."""
        return word >> 56 == MARK and str(word >> 24 & 0xFFFF) in self.shown["ways"]

    def of_word(self, word: int, ways: dict[str, str], uid: int) -> Truth:
        """Of a block with a word that names its file."""
        path = str(word >> 24 & 0xFFFF)
        return Truth(ways[path], self.shown["inodes"][path], (f"path{path}", f"renamed{path}"), uid)

    def databases(self) -> dict[int, Truth]:
        """SQLite's pages do not say whose they are: by their place."""
        found: dict[int, Truth] = {}
        for one in (one for files in self.shown["databases"].values() for one in files):
            kind = "log" if "-" in one["name"] else "database"
            truth = Truth(f"{kind} of {one['uid']}", one["inode"], (one["name"],), one["uid"])
            found |= dict.fromkeys(one["places"], truth)
        return found

    def judged(self, trace: Trace) -> Iterator[tuple[str, str]]:
        """Way and verdict of each block that was written or read."""
        yield from self._writes(trace)
        times = self.shown["times"]
        for path, blocks in self.shown["places"].items():
            way = self.shown["read"][path]
            for block in blocks:
                word = self.written[block][-1]
                truth = self.of_word(word, self.shown["read"], BOTH - (word >> 40 & 0xFFFF))
                said = [one for one in trace.blocks["read"][block] if times["read"] <= one.time < times["alone"]]
                yield way, truth.verdict(said[0]) if said else "missing"

    def _writes(self, trace: Trace) -> Iterator[tuple[str, str]]:
        databases = self.databases()
        for block, words in self.written.items():
            said = trace.blocks["write"].get(block, [])
            # What was written before the trace began names nobody.
            before = len(words) - len(said)
            for at, word in enumerate(words):
                marked = self.names_file(word)
                if at < before:
                    if marked:
                        yield self.shown["ways"][str(word >> 24 & 0xFFFF)], "missing"
                    continue
                one = said[at - before]
                if marked:
                    yield self._marked(words[at:], one)
                elif self.of_sqlite(one) and block in databases:
                    yield databases[block].way, databases[block].named(one)
            if before < 0:
                yield "the device", "invented"
            # The words do not say when: each block of theirs is written at least once while it is recorded.
            if words and block in databases and not any(map(self.of_sqlite, said)):
                yield databases[block].way, "missing"

    def _marked(self, words: list[int], said: Said) -> tuple[str, str]:
        """Of a block with the first of these words, which has the others later.

        A page that an app has mapped is its own from the fault on: docs/TRACE.md. Write-back can come between the fault
        and the store, whose word the block has then when it is written next.
        """
        truth = self.of_word(words[0], self.shown["ways"], words[0] >> 40 & 0xFFFF)
        if truth.way == FAULTED:
            later = {word >> 40 & 0xFFFF for word in words if word >> 24 & 0xFFFF == words[0] >> 24 & 0xFFFF}
            truth = replace(truth, uid=said.uid if said.uid in later else truth.uid)
        return truth.way, truth.verdict(said)

    def of_sqlite(self, said: Said) -> bool:
        """Whether it was said while the databases were written."""
        return bool(self.shown["times"]["sqlite"] <= said.time < self.shown["times"]["read"])


def judge(shown: dict[str, Any], trace: Trace, written: dict[int, list[int]]) -> dict[str, Counter[str]]:
    """Verdicts of each way."""
    verdicts: dict[str, Counter[str]] = defaultdict(Counter)
    oracle = Oracle(shown, written)
    databases = {truth.way for truth in oracle.databases().values()}
    for way in (*shown["ways"].values(), *shown["read"].values(), *sorted(databases)):
        verdicts[way] = Counter()
    for way, verdict in oracle.judged(trace):
        verdicts[way][verdict] += 1
    return dict(verdicts)
