# SPDX-License-Identifier: GPL-2.0-only
"""One call, followed: what it waited for, whose transaction that was, and the requests below."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import ibis
import ibis.expr.types as ir

from fasttrack_lab.host.errors import InputError
from fasttrack_lab.host.units import format_size
from fasttrack_lab.trace.tables import Tables

Row = dict[str, Any]

_SLACK_NS = 2000
"""Times of records are when the kernel wrote them: a wait's may be this much outside its call, ns."""

_PAGE = 4096
_PAYERS, _REQUESTS = 5, 5
"""Rows of a list."""


@dataclass(frozen=True)
class Choice:
    """Which calls are wanted; None: any."""

    kind: str | None = None
    app: str | None = None
    """Name or user id."""
    file: str | None = None
    """A part of the path."""
    count: int = 1


@dataclass(frozen=True)
class Committed:
    """A transaction or a checkpoint that was waited for."""

    said: Row
    payers: tuple[Row, ...]
    waits: dict[str, int]
    """What who commits it waited for meanwhile, us by kind."""


@dataclass(frozen=True)
class Story:
    """A call and what is known of it."""

    call: Row
    waits: tuple[Row, ...]
    """In the order of their begin."""
    untold_us: int
    """What no wait accounts for: computing, locks, and what is not recorded."""
    transactions: tuple[Committed, ...]
    bios: tuple[Row, ...]
    requests: tuple[Row, ...]

    @property
    def begin_ns(self) -> int:
        """When it began, boot clock."""
        return _begin_ns(self.call)


def _begin_ns(row: Row) -> int:
    return int(row["time"]) - int(row["duration_us"]) * 1000


def _rows(table: ir.Table, *order: Any) -> list[Row]:
    found: list[Row] = table.order_by(list(order) or ["time"]).to_pyarrow().to_pylist()
    return found


def _chosen(tables: Tables, choice: Choice) -> list[Row]:
    calls = tables.calls.filter(tables.calls.duration_us.notnull())
    if choice.kind:
        calls = calls.filter(calls.kind == choice.kind)
    if choice.app:
        calls = calls.filter((calls.name == choice.app) | (calls.uid.cast("string") == choice.app))
    if choice.file:
        calls = calls.filter(calls.path.contains(choice.file))
    slowest = calls.order_by([ibis.desc("duration_us"), "time"]).limit(choice.count)
    return _rows(slowest, ibis.desc("duration_us"), "time")


def untold_us(call: Row, waits: Iterable[Row]) -> int:
    """A call's time without that of its waits, which may overlap, us."""
    reached, told = _begin_ns(call), 0
    for wait in waits:
        told += max(0, wait["time"] - max(reached, _begin_ns(wait)))
        reached = max(reached, wait["time"])
    return max(0, int(call["duration_us"]) - told // 1000)


def _waits_of(tables: Tables, session: str, task: int | None, begin: int, end: int) -> list[Row]:
    if task is None:
        return []
    waits = tables.waits
    mine = waits.filter((waits.session == session) & (waits.task == task))
    during = mine.filter((mine.time >= begin) & (mine.time <= end + _SLACK_NS))
    found = [wait for wait in _rows(during) if wait["duration_us"] is not None]
    return sorted((wait for wait in found if _begin_ns(wait) >= begin - _SLACK_NS), key=_begin_ns)


def _committed(tables: Tables, call: Row, waits: Sequence[Row]) -> list[Committed]:
    """Those that were waited for: by number, or a checkpoint that ended during a wait for one."""
    made, shares = tables.transactions, tables.shares
    begin, end = _begin_ns(call), int(call["time"])
    during = made.filter((made.session == call["session"]) & (made.time >= begin) & (made.time <= end + _SLACK_NS))
    numbers = {wait["journal_transaction"] for wait in waits if wait["journal_transaction"] is not None}
    checkpoint = any(wait["kind"] == "checkpoint" for wait in waits)
    found = []
    for said in _rows(during):
        if said["journal_transaction"] not in numbers and not (checkpoint and said["kind"] == "checkpoint"):
            continue
        of = shares.filter(
            (shares.session == said["session"])
            & (shares.dev == said["dev"])
            & (shares.journal_transaction == said["journal_transaction"])
            & (shares.time >= said["time"])
        )
        payers = _rows(of, ibis.desc("blocks"), ibis.desc("handles"), "name")
        since = said["began"] if said["began"] is not None else begin
        carried = _waits_of(tables, said["session"], said["carrier_task"], since, said["time"])
        spent: Counter[str] = Counter()
        for wait in carried:
            spent[wait["kind"]] += wait["duration_us"]
        found.append(Committed(said, tuple(payers[:_PAYERS]), dict(spent.most_common())))
    return found


def _of_folios(tables: Tables, call: Row, waits: Sequence[Row]) -> set[int]:
    """The last bios before the waits for folios ended that have these pages: read-ahead's are sent before the call."""
    found = set()
    segments = tables.segments.filter(tables.segments.session == call["session"])
    for wait in waits:
        if wait["kind"] != "folio" or wait["page"] is None or wait["path"] is None:
            continue
        has = (segments.path == wait["path"]) & (segments.time <= wait["time"]) & (segments.page <= wait["page"])
        rows = _rows(segments.filter(has & (segments.page + segments.bytes / _PAGE > wait["page"])))
        found |= {row["bio"] for row in rows[-1:]}
    return found


def _below(
    tables: Tables, call: Row, waits: Sequence[Row], transactions: Sequence[Committed]
) -> tuple[list[Row], list[Row]]:
    """The bios of the task, of the transactions and of the folios it waited for, and the requests that carried them."""
    begin, end = _begin_ns(call), int(call["time"])
    folios = _of_folios(tables, call, waits)
    io, requests = tables.io, tables.requests
    within = (io.time >= begin) & (io.time <= end)
    during = io.filter((io.session == call["session"]) & (within | io.bio.isin(folios) if folios else within))
    numbers = {one.said["journal_transaction"] for one in transactions} - {None}
    mine = [
        bio
        for bio in _rows(during)
        if bio["carrier_task"] == call["task"] or bio["journal_transaction"] in numbers or bio["bio"] in folios
    ]
    ended = requests.filter(
        (requests.session == call["session"]) & (requests.time >= begin) & (requests.time <= end + _SLACK_NS)
    )
    places = [(bio["dev"], bio["operation"], bio["sector"], bio["time"]) for bio in mine if bio["sector"] is not None]
    carried = [
        request
        for request in _rows(ended)
        if request["bytes"]
        and any(
            (dev, operation) == (request["dev"], request["operation"])
            and 0 <= sector - request["sector"] < request["bytes"] // 512
            and time <= request["time"]
            for dev, operation, sector, time in places
        )
    ]
    return mine, carried


def stories(tables: Tables, choice: Choice) -> list[Story]:
    """The slowest calls of those that are wanted, the slowest first.

    Raises InputError where there is none.
    """
    chosen = _chosen(tables, choice)
    if not chosen:
        raise InputError(
            "no such call is recorded; the patched kernel records reads, writes, syncs and faults, others fsync alone"
        )
    found = []
    for call in chosen:
        waits = _waits_of(tables, call["session"], call["task"], _begin_ns(call), int(call["time"]))
        transactions = _committed(tables, call, waits)
        bios, requests = _below(tables, call, waits, transactions)
        story = Story(call, tuple(waits), untold_us(call, waits), tuple(transactions), tuple(bios), tuple(requests))
        found.append(story)
    return found


# --- as text


def _ms(us: int | None) -> str:
    return "unknown" if us is None else f"{us / 1000:.3f} ms"


def _who(row: Row) -> str:
    name = row.get("name") or "unknown"
    return f"{name} (uid {row['uid']})" if row.get("uid") is not None else name


def _what(wait: Row) -> str:
    if wait["journal_transaction"] is not None:
        return f" {wait['journal_transaction']}"
    if wait["path"] is not None:
        return f" {wait['page'] if wait['page'] is not None else '?'} of {wait['path']}"
    return f" at sector {wait['sector']}" if wait["sector"] is not None else ""


def _told_transaction(one: Committed) -> list[str]:
    said = one.said
    took = None if said["began"] is None else (said["time"] - said["began"]) // 1000
    asked = f"asked for by {said['trigger_name'] or 'nobody that is known'}"
    lines = [
        f"{said['kind']} {said['journal_transaction']}: {_ms(took)}, {asked} ({said['trigger_call'] or 'no call'}), "
        f"{said['blocks']} blocks changed, {said['logged']} written, by {said['carrier'] or 'unknown'}"
    ]
    lines += [
        f"  {payer['blocks']} blocks, {payer['handles']} handles: {_who(payer)}"
        + (", through the flusher" if payer["through_flusher"] else "")
        for payer in one.payers
    ]
    lines += [f"  it waited {_ms(us)} for {kind}" for kind, us in one.waits.items()]
    return lines


def _told_below(story: Story) -> list[str]:
    if not story.bios:
        return ["no bio of these is recorded"]
    sums: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for bio in story.bios:
        sums[bio["operation"]] += 1
        sizes[bio["operation"]] += bio["bytes"] or 0
    lines = [f"{count} bios {operation}, {format_size(sizes[operation])}" for operation, count in sums.items()]
    slowest = sorted(story.requests, key=lambda one: -((one["queued_us"] or 0) + (one["device_us"] or 0)))
    for one in slowest[:_REQUESTS]:
        place = f"{one['operation']} {format_size(one['bytes'])} at sector {one['sector']}"
        lines.append(f"  {place}: queue {_ms(one['queued_us'])}, device {_ms(one['device_us'])}")
    return lines


def told(story: Story) -> list[str]:
    """A story as lines."""
    call = story.call
    took = int(call["duration_us"])
    share = f"{story.untold_us / took * 100:.1f} %" if took else "0 %"
    lines = [
        f"{_who(call)}: {call['kind']} of {call['path'] or 'no file'}, {format_size(call['bytes'] or 0)}, "
        f"result {call['result']}, {_ms(took)}, begun at {story.begin_ns / 1e9:.6f} s"
    ]
    lines += [
        f"  +{(_begin_ns(wait) - story.begin_ns) / 1e6:.3f} ms  {wait['kind']}{_what(wait)}: {_ms(wait['duration_us'])}"
        for wait in story.waits
    ]
    lines.append(f"  without a recorded wait: {_ms(story.untold_us)} ({share})")
    for one in story.transactions:
        lines += [f"  {line}" for line in _told_transaction(one)]
    return lines + [f"  {line}" for line in _told_below(story)]
