# SPDX-License-Identifier: GPL-2.0-only
"""A scene made of a trace's tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import ibis.expr.types as ir

from fasttrack_lab.trace.bio_requests import InFlight
from fasttrack_lab.trace.scene import Bio, Call, Loss, Request, Run, Scene, Share, Task, Transaction, Wait
from fasttrack_lab.trace.tables import Tables

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
