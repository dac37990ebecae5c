# SPDX-License-Identifier: GPL-2.0-only
"""What every reader of a foreign trace gives: block events, names, clocks, losses, and what could not be read.

A reader gives events in any order, in batches; they are kept in a Parquet file and come back in the order of time, so a
trace of any size is read in little memory. A field that the source does not say is None, never a guess.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import ibis
import pyarrow as pa
import pyarrow.parquet

SECTOR = 512
MOST = 1 << 62
"""What no number of a record reaches. The kernel's -1 for a flush without a place is above it."""
_BATCH = 32_768
"""Events held in memory: some 20 MB in Python."""
_DAMAGES = 100
"""Places told of a file; of more, only how many."""


class Asked(NamedTuple):
    """What is asked of the device, and how."""

    operation: str | None = None
    sync: bool | None = None
    fua: bool | None = None
    preflush: bool | None = None
    meta: bool | None = None
    read_ahead: bool | None = None


_OPERATIONS = {"R": "read", "W": "write", "F": "flush", "D": "discard", "Z": "zone"}


@lru_cache(maxsize=1024)
def asked(rwbs: str) -> Asked:
    """The letters of block events, as `blk_fill_rwbs()` writes them: F in front is a flush before, behind it FUA."""
    letters = rwbs
    preflush = len(letters) > 1 and letters[0] == "F" and letters[1] in "RWDFNZ"
    if preflush:
        letters = letters[1:]
    operation = _OPERATIONS.get(letters[:1], "other")
    if letters[:2] == "DE":
        operation = "secure_erase"
    how = letters[1:]
    return Asked(operation, "S" in how, "F" in how, preflush, "M" in how, "A" in how)


QUEUE, INSERT, ISSUE, COMPLETE, REQUEUE, NAME = "Q", "I", "D", "C", "R", "N"
"""Kinds of events. A name is what a task is called from then on."""
EXTENT, PAGE, CLEAN, DIRTY, REMAP = "extent", "page", "freed", "dirty", "remap"
"""Kinds of events that say whose blocks are where. A run of blocks of ext4 and of f2fs: `bytes` of them from block
`sector` of the file system on, which are the file's from its block `at` on. Blocks that are nobody's. The page `at`
became dirty, `dev` is the disk. A bio that goes to another place: `inode` is the device and `at` the sector before."""
SYNC_BEGIN, SYNC_END = "sync_begin", "sync_end"
"""A call syncs a file, `cause` which; its result is the `error`."""
BLOCK_EVENTS = {
    "block_bio_queue": QUEUE,
    "block_rq_insert": INSERT,
    "block_rq_issue": ISSUE,
    "block_rq_complete": COMPLETE,
    "block_rq_requeue": REQUEUE,
}
"""ftrace's events of these kinds."""
_OF_BLOCKS = frozenset(BLOCK_EVENTS.values())
ENDED = (COMPLETE, REQUEUE)
"""Kinds in whose context any task may be."""


class Event(NamedTuple):
    """One event in the life of a bio or a request."""

    time: int
    """ns of the source's clock."""
    kind: str
    dev: int | None = None
    """major << 20 | minor."""
    sector: int | None = None
    bytes: int | None = None
    asked: Asked = Asked()
    pid: int | None = None
    comm: str | None = None
    """Name of the task that sends it; of a completion nobody does."""
    error: int | None = None
    path: str | None = None
    file_type: str | None = None
    block_type: str | None = None
    cause: str | None = None
    transaction: int | None = None
    inode: int | None = None
    at: int | None = None


def block_event(
    kind: str,
    time: int,
    dev: int | None,
    sector: int | None,
    sectors: int | None,
    size: int | None,
    rwbs: str,
    pid: int | None,
    comm: str | None,
    error: int | None,
) -> Event:
    """An event as ftrace has it: SIZE, in bytes, counts where there are no sectors; None where it is not said."""
    if sectors is not None and (sectors or not size):
        size = sectors * SECTOR
    if kind in ENDED:
        pid = comm = None
    return Event(time, kind, dev, sector, size, asked(rwbs), pid, comm, error if kind == COMPLETE else None)


_INT, _TEXT, _FLAG = pa.int64(), pa.string(), pa.bool_()
_SHAPE = pa.schema(
    [
        ("place", _INT),
        ("time", _INT),
        ("kind", _TEXT),
        ("dev", _INT),
        ("sector", _INT),
        ("bytes", _INT),
        ("operation", _TEXT),
        *((name, _FLAG) for name in Asked._fields[1:]),
        ("pid", _INT),
        ("comm", _TEXT),
        ("error", _INT),
        ("path", _TEXT),
        ("file_type", _TEXT),
        ("block_type", _TEXT),
        ("cause", _TEXT),
        ("transaction", _INT),
        ("inode", _INT),
        ("at", _INT),
    ]
)


@dataclass(frozen=True)
class Damage:
    """A part of a file that could not be read."""

    path: Path
    at: int
    """Byte of the file; of a packed one, of what is in it."""
    bytes: int
    what: str
    records: int | None = None
    """Records that are missing, if that is known."""
    session: str | None = None
    """Of the recording that the file is of."""


@dataclass(frozen=True)
class Clock:
    """Real time at a moment of the source's clock."""

    time: int
    real_ns: int
    utc_offset_s: int | None = None
    monotonic_ns: int | None = None


@dataclass(frozen=True)
class Loss:
    """Events that the tracer itself lost."""

    time: int
    since: int | None = None
    cpu: int | None = None
    count: int | None = None


@dataclass
class Task:
    """What the source says of a task besides its name."""

    tgid: int | None = None
    uid: int | None = None
    kernel_thread: bool | None = None


_NO_TASK = Task()


@dataclass
class Intake:
    """Takes in a recording."""

    folder: Path
    """Of the events, until they are joined."""
    damages: list[Damage] = field(default_factory=list)
    clocks: list[Clock] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    tasks: dict[int, dict[int, Task]] = field(default_factory=dict)
    """By thread id, which the kernel uses again, and by when they began: ns, 0 where nobody says."""
    kinds: Counter[str] = field(default_factory=Counter)
    """Events by kind."""
    skipped: Counter[str] = field(default_factory=Counter)
    """What was read and is not block I/O, by what it is."""
    kernel: str | None = None
    page_bytes: int | None = None
    utc_offset_s: int | None = None
    """Local time less UTC, where no clock says it."""
    by_device: dict[int | None, set[str]] = field(default_factory=dict)
    """Kinds of block events of each device."""
    disks: set[int] = field(default_factory=set)
    """Devices that are no partitions: requests and the page cache name only such."""
    parts: set[int] = field(default_factory=set)
    """Partitions whose bios keep their number when they go to a place of the disk."""
    names: dict[tuple[int, int], str | None] = field(default_factory=dict)
    """Names of files by device and inode; None where a file has several."""

    def __post_init__(self) -> None:
        self._rows: list[tuple[Any, ...]] = []
        self._place = 0
        self._told: Counter[Path] = Counter()
        self._writer: Any = None

    @property
    def _file(self) -> Path:
        return self.folder / "events.parquet"

    def event(self, event: Event) -> None:
        """Takes an event; numbers that no device has are unknown."""
        if not 0 <= event.time < MOST:
            self.skipped["events at an impossible time"] += 1
            return
        numbers = (event.dev, event.sector, event.bytes, event.pid, event.error, event.transaction)
        dev, sector, count, pid, error, transaction, inode, place = (
            number if number is not None and -MOST < number < MOST else None
            for number in (*numbers, event.inode, event.at)
        )
        self.kinds[event.kind] += 1
        if event.kind in _OF_BLOCKS:
            self.by_device.setdefault(dev, set()).add(event.kind)
        if dev is not None and event.kind in (INSERT, ISSUE, COMPLETE, REQUEUE, DIRTY):
            self.disks.add(dev)
        elif dev is not None and event.kind == REMAP and inode == dev:
            self.parts.add(dev)
        self._place += 1
        self._rows.append(
            (
                *(self._place, event.time, event.kind, dev, sector, count, *event.asked, pid, event.comm, error),
                *(event.path, event.file_type, event.block_type, event.cause, transaction, inode, place),
            )
        )
        if len(self._rows) >= _BATCH:
            self._flush()

    def damage(self, path: Path, at: int, size: int, what: str, records: int | None = None) -> None:
        """Tells of a part that cannot be read; of very many, how many more there are."""
        self._told[path] += 1
        if self._told[path] <= _DAMAGES:
            self.damages.append(Damage(path, at, size, what, records))

    def name_file(self, dev: int, inode: int, name: str) -> None:
        """A file's name. Inodes are used again, and files have more names than one: then nobody knows which."""
        known = self.names.setdefault((dev, inode), name)
        if known != name:
            self.names[dev, inode] = None

    def task(self, pid: int, began: int = 0) -> Task:
        """What is known of a task, to be filled in. BEGAN: ns of the source's clock, 0 where nobody says."""
        return self.tasks.setdefault(pid, {}).setdefault(began, Task())

    def began(self, pid: int, time: int) -> int:
        """Which of the tasks that had a thread id had it then: when that one began."""
        lives = self.tasks.get(pid, {})
        # A start is told in the kernel's ticks: the first events of a task may be before it.
        return max((one for one in lives if one <= time), default=min(lives, default=0))

    def facts(self, pid: int | None, time: int) -> Task:
        """What is known of a task; what its thread does not say is its process's."""
        own = self._life(pid, time)
        whole = self._life(own.tgid, time)
        return Task(
            own.tgid,
            whole.uid if own.uid is None else own.uid,
            whole.kernel_thread if own.kernel_thread is None else own.kernel_thread,
        )

    def _life(self, pid: int | None, time: int) -> Task:
        return _NO_TASK if pid is None else self.tasks.get(pid, {}).get(self.began(pid, time), _NO_TASK)

    def _flush(self) -> None:
        if not self._rows:
            return
        columns = zip(*self._rows, strict=True)
        batch = pa.record_batch(
            [pa.array(column, kind.type) for column, kind in zip(columns, _SHAPE, strict=True)], schema=_SHAPE
        )
        if self._writer is None:
            self._writer = pa.parquet.ParquetWriter(self._file, _SHAPE)
        self._writer.write_batch(batch)
        self._rows.clear()

    def close(self) -> None:
        """All is taken in."""
        self._flush()
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        for path, count in self._told.items():
            if count > _DAMAGES:
                self.damages.append(Damage(path, 0, 0, f"{count - _DAMAGES} more parts cannot be read"))

    def in_order(self, engine: ibis.BaseBackend) -> Iterator[tuple[Any, ...]]:
        """The events as rows, in the order of time: place, time, kind and what else an event has."""
        if not self._file.exists():
            return
        to = self.folder / "sorted.parquet"
        engine.to_parquet(engine.read_parquet(self._file, table_name="_events").order_by(["time", "place"]), to)
        with pa.parquet.ParquetFile(to) as found:
            for batch in found.iter_batches(_BATCH):
                yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
