# SPDX-License-Identifier: GPL-2.0-only
"""Who waits for writes, and through which call and transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fasttrack_lab.trace import lazy_ibis as ibis
from fasttrack_lab.trace.metric import (
    count_if,
    counted,
    is_flag,
    metric,
    named,
    percentiles,
    ratio,
    sum_if,
    total,
    with_shares,
)
from fasttrack_lab.trace.tables import Tables

if TYPE_CHECKING:
    import ibis.expr.types as ir


@metric(
    "Synchronous share of writes",
    unit="writes, sync: bios; bytes, sync_bytes: bytes; *_share: of writes",
    formula="writes that somebody waits for (REQ_SYNC)",
    source="Androtrace, A5: 67 to 77 %, 73 % on average",
    table="io",
    known="sync",
)
def sync_share(t: Tables) -> ir.Table:
    """How many writes are synchronous."""
    writes = t.io.filter(t.io.operation == "write")
    sync = is_flag(writes.sync)
    found = writes.agg(
        writes=writes.count(), sync=count_if(sync), bytes=total(writes.bytes), sync_bytes=sum_if(writes.bytes, sync)
    )
    return found.mutate(sync_share=ratio(found.sync, found.writes), bytes_share=ratio(found.sync_bytes, found.bytes))


@metric(
    "Synchronous writes by call",
    unit="count: bios; bytes: bytes; *_share: of synchronous writes",
    formula="synchronous writes by why they were sent",
    source="Androtrace, A6 and figure 10: fsync 16 %, fdatasync 56 %",
    table="io",
    known="cause",
)
def sync_calls(t: Tables) -> ir.Table:
    """Synchronous writes by cause."""
    sync = t.io.filter((t.io.operation == "write") & is_flag(t.io.sync))
    return with_shares(counted(sync, {"cause": named(sync.cause)}), ["count", "bytes"]).order_by("cause")


@metric(
    "Calls",
    unit="count: calls; p50, p90, p99, longest: us",
    formula="durations of calls by kind, nearest rank",
    source="who waits: fsync(2) and others by duration",
    table="calls",
)
def calls(t: Tables) -> ir.Table:
    """How long calls take."""
    return percentiles(t.calls, {"kind": named(t.calls.kind)}, t.calls.duration_us).order_by("kind")


@metric(
    "Transactions by trigger",
    unit="count: transactions; handles: handles; blocks, logged: blocks",
    formula="commits of the journal and checkpoints by the call that asks first; nobody: the timer, or unknown",
    source="htop#1287: jbd2 at 95 %",
    table="transactions",
    known="trigger_call",
)
def transactions(t: Tables) -> ir.Table:
    """Transactions by kind and the call that triggered them."""
    rows = t.transactions.mutate(
        kind=named(t.transactions.kind), trigger_call=named(t.transactions.trigger_call, "nobody")
    )
    grouped = rows.group_by(["kind", "trigger_call"]).agg(
        count=rows.count(), handles=total(rows.handles), blocks=total(rows.blocks), logged=total(rows.logged)
    )
    return grouped.order_by(["kind", "trigger_call"])


@metric(
    "Who pays for transactions",
    unit="uid: user id, -1 unknown; handles: handles; blocks: blocks; blocks_share: of all",
    formula="handles and blocks of transactions by the task that opened them; the flusher's by the file's owner",
    source="htop#1287, openzfs#472: which apps filled the journal",
    table="shares",
    known="uid",
    of_one=True,
)
def payers(t: Tables) -> ir.Table:
    """Apps by their part in transactions."""
    rows = t.shares.mutate(uid=t.shares.uid.fill_null(-1))
    grouped = rows.group_by("uid").agg(
        name=named(rows.name).min(), handles=total(rows.handles), blocks=total(rows.blocks)
    )
    return with_shares(grouped, ["blocks"]).order_by([ibis.desc("blocks"), "uid"]).limit(50)
