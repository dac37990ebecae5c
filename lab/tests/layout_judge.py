# SPDX-License-Identifier: GPL-2.0-only
"""What a trace says of the blocks of a disk, against what the file system's own tools say that they are.

Some areas of the disk hold one thing for ever: each write to them is judged. What another block is, and whose, is true
of the last write to it; of those before where the block's first word shows it, and of reads after it. Blocks that name
their file are judged by origin_judge.py.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from origin_judge import Oracle, Said, Trace

TYPES: dict[str, tuple[str, ...]] = {
    "journal": ("journal",),
    "data": ("data",),
    "node": ("node",),
    "superseded": ("data", "metadata"),
    **dict.fromkeys(("cp", "sit", "nat", "ssa"), ("checkpoint",)),
}
"""What a block holds -> the types that are true of it; of all others: metadata."""

KERNEL = 0
"""The user of the kernel's threads."""

JOURNALED = ("directory", "extents")
"""Metadata of ext4 that has a file: the journal's thread makes it dirty for who has changed it."""

OWNED = ("data", "node")
"""What must have an owner."""

TICK = 1000
"""ns: the device's log counts in microseconds."""

NOBODY = "nobody"
"""What a block holds that is free at the end."""

FIRST_NAME, EXTENTS_MAGIC = 0x0201000C, 0xF30A
"""A directory of ext4 begins with `.`: the length of this entry and of its name, and its type. So its extents."""


@dataclass(frozen=True)
class Held:
    """What a block holds."""

    what: str
    inode: int | None = None
    """Of its file, its node or its directory."""
    uid: int | None = None
    """Who alone has changed that."""
    transaction: int | None = None
    """Of the journal, for ever: it has not wrapped."""

    def verdict(self, said: Said) -> str:
        """A part that is known and not true is wrong; one that must be known and is not makes the block unknown."""
        users = (None, self.uid, KERNEL) if self.what in JOURNALED else (None, self.uid)
        wrong = (
            said.type not in ("unknown", *TYPES.get(self.what, ("metadata",)))
            or (said.inode not in (None, self.inode) and self.what != "superseded")
            or (self.uid is not None and said.uid not in users)
            or (self.transaction is not None and said.transaction not in (None, self.transaction))
        )
        if wrong:
            return "wrong"
        unknown = (
            said.type == "unknown"
            or (self.what in OWNED and self.uid is not None and said.uid is None)
            or (self.what == "data" and said.inode is None)
            or (self.transaction is not None and said.transaction is None)
        )
        return "unknown" if unknown else "right"


@dataclass(frozen=True)
class Given:
    """A block as the device was given it: when, and the word that it begins with."""

    time: int
    word: int


class Layout:
    """What is on a disk at the end."""

    def __init__(self, shown: dict[str, Any]) -> None:
        dump = shown["dump"]
        self.areas: list[tuple[int, int, str]] = [(first, last, what) for first, last, what in dump["areas"]]
        self.blocks = {int(block): (what, inode) for block, (what, inode) in dump["blocks"].items()}
        self.users = {int(inode): uid for inode, uid in dump["users"].items()}
        self.several = {shown["root"], *(shown["inodes"][path] for path in self._of_several(shown))}
        self.logged = dict(self._logged(shown["log"]))

    @staticmethod
    def _of_several(shown: dict[str, Any]) -> Iterator[str]:
        """Paths that more than one app has changed: who reads changes the time of access."""
        yield from shown["read"]
        yield from (path for path, way in shown["ways"].items() if way.startswith("shared"))

    def _logged(self, log: dict[str, list[int]]) -> Iterator[tuple[int, int]]:
        """Block of the journal -> its transaction: they follow one another, behind the journal's superblock."""
        at = next((first + 1 for first, _, what in self.areas if what == "journal"), 0)
        for number in sorted(map(int, log)):
            for _ in range(sum(log[str(number)])):
                yield at, number
                at += 1

    def area(self, block: int) -> Held | None:
        """Of what is there for ever."""
        for first, last, what in self.areas:
            if first <= block <= last:
                return Held(what, transaction=self.logged.get(block))
        return None

    def held(self, block: int) -> Held:
        """At the end."""
        what, inode = self.blocks.get(block, (NOBODY, 0))
        uid = None if inode in self.several else self.users.get(inode)
        return self.area(block) or Held(what, inode, uid)

    def before(self, block: int, word: int) -> Held | None:
        """Of a write that is not the last one."""
        if area := self.area(block):
            return area
        if word >> 32 == FIRST_NAME:
            return Held("directory", word & 0xFFFFFFFF)
        return Held("extents") if word & 0xFFFF == EXTENTS_MAGIC else None


@dataclass(frozen=True)
class Disk:
    """A disk, what it was given and what a trace says of that."""

    shown: dict[str, Any]
    trace: Trace
    layout: Layout
    given: dict[int, list[Given]]

    def names_file(self, given: Given) -> bool:
        return Oracle(self.shown, {}).names_file(given.word)

    def judged(self) -> Iterator[tuple[str, str]]:
        """What and verdict of each block that was written or read."""
        for block, given in self.given.items():
            yield from self._writes(block, given)
        for block, said in self.trace.blocks["read"].items():
            given = self.given.get(block, [])
            for one in said:
                last = not given or given[-1].time < one.time
                held = self.layout.held(block) if last else self.layout.area(block)
                if held and held.what != NOBODY:
                    # Who reads is its owner.
                    yield f"{held.what}, read", replace(held, uid=None, transaction=None).verdict(one)

    def _writes(self, block: int, given: list[Given]) -> Iterator[tuple[str, str]]:
        said = self.trace.blocks["write"].get(block, [])
        # What was written before the trace began names nobody.
        before = len(given) - len(said)
        if before < 0:
            yield "the device", "invented"
            return
        for at, one in enumerate(given):
            last = at == len(given) - 1
            held = self.layout.held(block) if last else self.layout.before(block, one.word)
            if not held or self.names_file(one):
                continue
            if held.what == NOBODY:
                yield NOBODY, "free"
            elif at >= before:
                yield held.what, held.verdict(said[at - before])
            elif one.time > self.shown["times"]["write"]:
                yield held.what, "missing"

    def of_checkpoint(self, since: int, until: int) -> Counter[int | None]:
        """Nodes and directories of f2fs that were written then, by who alone has changed them."""
        found: Counter[int | None] = Counter()
        for block, given in self.given.items():
            held = self.layout.held(block)
            if held.what in ("node", "dentries", "superseded"):
                found.update(
                    held.uid if one is given[-1] else None
                    for one in given
                    if since - TICK <= one.time <= until + TICK and not self.names_file(one)
                )
        return found

    def of_transaction(self, number: int) -> Counter[int]:
        """Blocks of directories and extents of ext4 that the log tags, by who alone has changed them."""
        tagged = map(self.layout.held, self.shown["tags"].get(str(number), []))
        return Counter(held.uid for held in tagged if held.what in JOURNALED and held.uid is not None)


def of_disk(shown: dict[str, Any], trace: Trace) -> Disk:
    """What tests/oracle/watched.py has shown."""
    given: dict[int, list[Given]] = defaultdict(list)
    for (block, word), time in zip(shown["taken"], shown["given"], strict=True):
        given[block].append(Given(time, int(word, 16)))
    return Disk(shown, trace, Layout(shown), given)


def judge_layout(disk: Disk) -> dict[str, Counter[str]]:
    """Verdicts by what blocks hold."""
    verdicts: dict[str, Counter[str]] = defaultdict(Counter)
    for what, verdict in disk.judged():
        verdicts[what][verdict] += 1
    return dict(verdicts)
