# SPDX-License-Identifier: GPL-2.0-only
"""How much the trace knows, and what it has lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fasttrack_lab.trace import lazy_ibis as ibis
from fasttrack_lab.trace.metric import count_if, metric, named, ratio, sum_if, total
from fasttrack_lab.trace.metrics.amount import LOST, marked, moving
from fasttrack_lab.trace.tables import Tables

if TYPE_CHECKING:
    import ibis.expr.types as ir


@metric(
    "What is known",
    unit="bytes, known: bytes; known_share: of bytes",
    formula="moved bytes whose owner, file, block type, class, cause and call are known; a file of data blocks alone",
    source="Androtrace's purpose; the completeness of this trace",
    table="segments",
)
def known(t: Tables) -> ir.Table:
    """Bytes that are attributed, by what is known of them."""
    moved = moving(t.segments)
    data = moved.block_type == "data"
    every = moved.bytes.notnull()
    asked = {
        "owner": (every, moved.uid.notnull()),
        "file": (data, data & moved.path.notnull()),
        "block type": (every, moved.block_type.notnull() & (moved.block_type != "unknown")),
        "class": (every, moved["class"].notnull()),
        "cause": (every, moved.cause.notnull()),
        "call": (every, moved.call.notnull()),
    }
    rows = [
        moved.agg(bytes=sum_if(moved.bytes, whole), known=sum_if(moved.bytes, there)).mutate(what=ibis.literal(what))
        for what, (whole, there) in asked.items()
    ]
    all_rows = ibis.union(*rows).select("what", "bytes", "known")
    return all_rows.mutate(known_share=ratio(all_rows.known, all_rows.bytes)).order_by("what")


@metric(
    "Losses",
    unit="intervals: losses; lost: events or records that were counted; uncounted: intervals that nobody counted",
    formula="loss records, what the budget left out, what could not be read",
    source="bcc#2921, perfetto#575: silent losses",
    table="losses",
)
def losses(t: Tables) -> ir.Table:
    """What is missing, by reason."""
    rows = t.losses.mutate(reason=named(t.losses.reason))
    grouped = rows.group_by("reason").agg(
        intervals=rows.count(), lost=total(rows.lost), uncounted=count_if(rows.lost.isnull())
    )
    return grouped.order_by("reason")


@metric(
    "Installations",
    unit="recordings: recordings; bios: bios; read, written: bytes; seconds: s, between first and last bio "
    "of recordings; *_rate: bytes/s; "
    f"{LOST}",
    formula="bios by installation, a device's random id; rates over the time in which it was recorded",
    source="several phones in one archive",
    table="io",
)
def installations(t: Tables) -> ir.Table:
    """What each installation did: rates of several together say nothing."""
    io = t.io
    by_session = io.group_by("session").agg(
        first=io.time.min(),
        last=io.time.max(),
        bios=io.count(),
        read=sum_if(io.bytes, io.operation == "read"),
        written=sum_if(io.bytes, io.operation == "write"),
    )
    whose = t.sessions.group_by("session").agg(install=t.sessions.install.max())
    rows = by_session.left_join(whose, "session").select(by_session, whose.install)
    grouped = rows.group_by(install=named(rows.install)).agg(
        recordings=rows.count(),
        bios=total(rows.bios),
        read=total(rows.read),
        written=total(rows.written),
        ns=total(rows["last"] - rows["first"]),
    )
    seconds = grouped.ns.cast("float64") / 1e9
    rates = {f"{name}_rate": grouped[name].cast("float64") / seconds.nullif(0.0) for name in ("read", "written")}
    shown = grouped.mutate(seconds=seconds, **rates)
    found = shown.select("install", "recordings", "bios", "read", "written", "seconds", *rates)
    lost = t.losses.mutate(of_install=t.losses.install)
    return marked(found, ["install"], lost, lambda both: both.install == both.of_install).order_by("install")
