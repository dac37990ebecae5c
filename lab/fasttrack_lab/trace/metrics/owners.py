# SPDX-License-Identifier: GPL-2.0-only
"""Who: apps, files and databases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fasttrack_lab.trace import lazy_ibis as ibis
from fasttrack_lab.trace.metric import count_if, is_flag, metric, named, ratio, sum_if, total
from fasttrack_lab.trace.metrics.amount import moving
from fasttrack_lab.trace.tables import Tables

if TYPE_CHECKING:
    import ibis.expr.types as ir

MOST = 50
"""Rows of a list of apps, files or databases."""


def _sums(rows: ir.Table) -> dict[str, ir.Value]:
    write = rows.operation == "write"
    sync = write & is_flag(rows.sync)
    return {
        "sync_writes": count_if(sync),
        "sync_written": sum_if(rows.bytes, sync),
        "written": sum_if(rows.bytes, write),
        "read": sum_if(rows.bytes, rows.operation == "read"),
    }


@metric(
    "Apps by synchronous writes",
    unit="uid: user id, -1 unknown; read, written, sync_written: bytes; sync_writes: segments",
    formula="runs of blocks by the owner: the task that dirtied or reads them, not the one that sends them",
    source="bcc#826, bcc#1476, htop#1287",
    table="segments",
    known="uid",
    of_one=True,
)
def apps(t: Tables) -> ir.Table:
    """Volume and synchronous writes by user id, those with most synchronous writes first."""
    moved = moving(t.segments)
    rows = moved.mutate(uid=moved.uid.fill_null(-1))
    grouped = rows.group_by("uid").agg(name=named(rows.name).min(), **_sums(rows))
    order = [ibis.desc("sync_writes"), ibis.desc("written"), ibis.desc("read"), "uid"]
    return grouped.order_by(order).limit(MOST)


@metric(
    "Files by synchronous writes",
    unit="sync_writes: segments; read, written, sync_written: bytes",
    formula="runs of data blocks by file",
    source="bpftrace#3697, bcc#5184",
    table="segments",
    known="path",
    of_one=True,
)
def top_files(t: Tables) -> ir.Table:
    """The files with most synchronous writes."""
    moved = moving(t.segments)
    rows = moved.filter(moved.block_type == "data")
    keyed = rows.mutate(path=named(rows.path), file_type=named(rows.file_type))
    grouped = keyed.group_by(["path", "file_type"]).agg(**_sums(keyed))
    order = [ibis.desc("sync_writes"), ibis.desc("written"), ibis.desc("read"), "path", "file_type"]
    return grouped.order_by(order).limit(MOST)


@metric(
    "Who sends and who owns",
    unit="bytes, by_kernel, by_apps: bytes; *_share: of the operation",
    formula="bytes that kernel threads send, and those of them whose owner is known to be somebody else",
    source="published Pixel 6a traces: kernel threads own 32 to 100 % of the written bytes",
    table="io",
    known="carrier_kernel",
)
def carriers(t: Tables) -> ir.Table:
    """What a tool that blames the sender says."""
    moved = moving(t.io)
    grouped = moved.group_by("operation").agg(
        bytes=total(moved.bytes), by_kernel=sum_if(moved.bytes, is_flag(moved.carrier_kernel))
    )
    owned = moving(t.segments)
    owners = owned.group_by("operation").agg(
        by_apps=sum_if(owned.bytes, owned.uid.notnull() & ~is_flag(owned.kernel_thread)),
    )
    joined = grouped.left_join(owners, "operation").select(grouped, owners.by_apps)
    return joined.mutate(
        by_kernel_share=ratio(joined.by_kernel, joined.bytes), by_apps_share=ratio(joined.by_apps, joined.bytes)
    ).order_by("operation")
