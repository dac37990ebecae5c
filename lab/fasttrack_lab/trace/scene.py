# SPDX-License-Identifier: GPL-2.0-only
"""A trace as objects that refer to each other: bios with their runs of blocks and requests, calls, waits, transactions.

For what follows single calls; a metric asks the tables. All of an interval is in memory: some 5 KB a bio.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
_MAJOR = 20


@dataclass(slots=True)
class Task:
    """A task as it was at its first use."""

    session: str
    task: int
    pid: int | None
    tgid: int | None
    uid: int | None
    name: str | None
    kernel_thread: bool | None


@dataclass(slots=True, eq=False)
class Request:
    """A request that has ended. Times are ns of the boot clock."""

    session: str
    time: int
    dev: int | None
    operation: str | None
    sector: int | None
    bytes: int | None
    queued_ns: int | None
    device_ns: int | None
    error: int | None
    first_bio: int | None
    bios: list[Bio] = field(default_factory=list, repr=False)

    @property
    def issued(self) -> int | None:
        """When the device got it; None if that is unknown."""
        return None if self.device_ns is None else self.time - self.device_ns

    @property
    def begin(self) -> int:
        """When it was inserted, as far as that is known."""
        return self.time - (self.device_ns or 0) - (self.queued_ns or 0)


@dataclass(slots=True)
class Run:
    """A run of a bio's blocks with one file, owner and type."""

    offset: int | None
    bytes: int | None
    block_type: str | None
    file: int | None
    path: str | None
    file_type: str | None
    index: int | None
    owner: int | None
    call: str | None


@dataclass(slots=True, eq=False)
class Bio:
    """A bio with all that is known of it."""

    session: str
    bio: int | None
    time: int
    dev: int | None
    operation: str | None
    sector: int | None
    bytes: int | None
    sync: bool | None
    preflush: bool | None
    fua: bool | None
    app_class: str | None
    cause: str | None
    app_uid: int | None
    carrier_task: int | None
    transaction: int | None
    thread: int | None
    runs: list[Run] = field(default_factory=list, repr=False)
    requests: list[Request] = field(default_factory=list, repr=False)
    left: int = 0
    """Bytes that no request is known for."""

    @property
    def done(self) -> int | None:
        """When the last of its requests ended; None if one is not known."""
        return self.requests[-1].time if self.requests and self.left == 0 else None


@dataclass(slots=True)
class Wait:
    """A wait of a task."""

    session: str
    time: int
    kind: str | None
    duration_ns: int
    task: int | None
    dev: int | None
    file: int | None
    path: str | None
    index: int | None
    sector: int | None
    transaction: int | None
    app_class: str | None
    thread: int | None

    @property
    def begin(self) -> int:
        """When it began."""
        return self.time - self.duration_ns


@dataclass(slots=True)
class Call:
    """A call of an app."""

    session: str
    time: int
    kind: str | None
    duration_ns: int
    task: int | None
    uid: int | None
    name: str | None
    file: int | None
    path: str | None
    file_type: str | None
    offset: int | None
    bytes: int | None
    result: int | None
    thread: int | None

    @property
    def begin(self) -> int:
        """When it began."""
        return self.time - self.duration_ns


@dataclass(slots=True)
class Share:
    """What one payer has of a transaction."""

    task: int | None
    uid: int | None
    name: str | None
    handles: int | None
    blocks: int | None
    through_flusher: bool | None


@dataclass(slots=True)
class Transaction:
    """A transaction of a journal, or a checkpoint, that has ended."""

    session: str
    time: int
    transaction: int | None
    kind: str | None
    dev: int | None
    began: int | None
    trigger: int | None
    trigger_call: str | None
    trigger_uid: int | None
    trigger_name: str | None
    carrier_task: int | None
    carrier: str | None
    handles: int | None
    blocks: int | None
    logged: int | None
    shares: list[Share] = field(default_factory=list, repr=False)

    def has(self, bio: Bio) -> bool:
        """Whether a bio makes it durable. A bio's device is the disk, a transaction's may be a part of it."""
        if bio.transaction is None or (bio.session, bio.transaction) != (self.session, self.transaction):
            return False
        if bio.dev == self.dev:
            return True
        began = self.time if self.began is None else self.began
        alike = bio.dev is not None and self.dev is not None and bio.dev >> _MAJOR == self.dev >> _MAJOR
        return alike and began <= bio.time <= self.time


@dataclass(slots=True)
class Loss:
    """Records that are missing."""

    session: str | None
    time: int | None
    since: int | None
    reason: str | None
    lost: int | None
    what: str | None


@dataclass
class Scene:
    """What a trace has in an interval, each list in the order of time."""

    tasks: dict[tuple[str, int], Task]
    bios: list[Bio]
    requests: list[Request]
    calls: list[Call]
    waits: list[Wait]
    transactions: list[Transaction]
    losses: list[Loss]
    sessions: list[Row]

    def task(self, session: str, number: int | None) -> Task | None:
        """A task by its id."""
        return None if number is None else self.tasks.get((session, number))
