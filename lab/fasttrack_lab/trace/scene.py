# SPDX-License-Identifier: GPL-2.0-only
"""A trace as objects that refer to each other: bios with their runs of blocks and requests, calls, waits, transactions.

For what follows single calls; a metric asks the tables. All of an interval is in memory: some 5 KB a bio.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import ibis.expr.types as ir

from fasttrack_lab.trace.bio_requests import InFlight
from fasttrack_lab.trace.tables import Tables

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


_RENAMED = {"app_class": "class", "transaction": "journal_transaction", "index": "page", "owner": "owner_task"}
_LISTS = ("runs", "requests", "bios", "shares", "left")


def _made(kind: type[Any], table: ir.Table, *order: str) -> list[Any]:
    """A row an object: its fields are columns."""
    names = [name for name in kind.__dataclass_fields__ if name not in _LISTS]
    columns = [name if name in table.columns else _RENAMED[name] for name in names]
    found = table.order_by(list(order)).select(*columns).to_pyarrow().to_pydict()
    return [kind(*row) for row in zip(*(found[column] for column in columns), strict=True)]


def lasted(rows: ir.Table) -> ir.Table:
    """Calls or waits of which is known how long they took, ns; an older archive has us alone."""
    took = (rows.time - rows.began).fill_null(rows.duration_us * 1000)
    return rows.mutate(duration_ns=took).filter(took.notnull())


def precise(requests: ir.Table) -> ir.Table:
    """Requests with their times in ns; an older archive has us alone."""
    return requests.mutate(
        queued_ns=requests.queued_ns.fill_null(requests.queued_us * 1000),
        device_ns=requests.device_ns.fill_null(requests.device_us * 1000),
    )


def load(tables: Tables) -> Scene:
    """All of the tables."""
    tasks = {(one.session, one.task): one for one in reversed(_made(Task, tables.tasks, "time"))}
    bios: list[Bio] = _made(Bio, tables.io, "time", "bio")
    requests: list[Request] = _made(Request, precise(tables.requests), "time", "sector")
    losses: list[Loss] = _made(Loss, tables.losses, "time", "reason")
    _add_runs(bios, tables.segments)
    join(bios, requests, (loss.time for loss in losses if loss.time is not None))
    transactions: list[Transaction] = _made(Transaction, tables.transactions, "time")
    _add_shares(transactions, tables.shares)
    calls, waits = lasted(tables.calls), lasted(tables.waits)
    return Scene(
        tasks,
        bios,
        requests,
        _made(Call, calls, "time"),
        _made(Wait, waits, "time"),
        transactions,
        losses,
        tables.sessions.order_by(["time", "session"]).to_pyarrow().to_pylist(),
    )


def _add_runs(bios: Iterable[Bio], segments: ir.Table) -> None:
    by_number = {(bio.session, bio.bio): bio for bio in bios if bio.bio is not None}
    names = [name if name in segments.columns else _RENAMED[name] for name in Run.__dataclass_fields__]
    found = segments.order_by(["time", "bio", "offset"]).select("session", "bio", *names).to_pyarrow().to_pydict()
    values = (found[name] for name in names)
    for session, number, *run in zip(found["session"], found["bio"], *values, strict=True):
        bio = by_number.get((session, number))
        if bio is not None:
            bio.runs.append(Run(*run))


def _add_shares(transactions: Iterable[Transaction], shares: ir.Table) -> None:
    """Numbers come again when a journal's counter has wrapped: a share is the last such transaction's before it."""
    names = list(Share.__dataclass_fields__)
    where = ["session", "dev", "journal_transaction", "time"]
    found = shares.order_by(["time", "task"]).select(*where, *names).to_pyarrow().to_pydict()
    by_number: defaultdict[tuple[Any, ...], list[tuple[int, Share]]] = defaultdict(list)
    columns = (found[name] for name in [*where, *names])
    for session, dev, number, time, *share in zip(*columns, strict=True):
        by_number[session, dev, number].append((time, Share(*share)))
    for one in reversed(list(transactions)):
        waiting = by_number.get((one.session, one.dev, one.transaction), [])
        one.shares = [share for time, share in waiting if time >= one.time]
        waiting[:] = [pair for pair in waiting if pair[0] < one.time]


def join(bios: Iterable[Bio], requests: Iterable[Request], lost: Iterable[int]) -> None:
    """Bios with the requests that carried them. What was in flight when records were lost stays without."""
    flight, bios = InFlight(), list(bios)
    numbered = {(bio.session, bio.bio): bio for bio in bios}
    marks = [
        *((bio.time, 0, bio) for bio in bios),
        *((request.time, 1, request) for request in requests),
        *((time, 2, None) for time in lost),
    ]
    for _, _, one in sorted(marks, key=lambda mark: mark[:2]):
        if isinstance(one, Bio):
            flight.queued(one)
        elif isinstance(one, Request):
            flight.ended(one)
            first = numbered.get((one.session, one.first_bio)) if not one.bios and one.first_bio is not None else None
            if first is not None:
                flight.told(first, one)
        else:
            flight.lost()


def calls_of(calls: ir.Table) -> list[Call]:
    """Some rows of the table of calls."""
    found: list[Call] = _made(Call, calls, "time")
    return found
