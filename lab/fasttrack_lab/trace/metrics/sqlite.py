# SPDX-License-Identifier: GPL-2.0-only
"""SQLite's part: databases, their journals, and the file system's journal below."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fasttrack_lab.trace import lazy_ibis as ibis
from fasttrack_lab.trace.metric import count_if, is_flag, metric, named, ratio, sum_if, total
from fasttrack_lab.trace.metrics.amount import moving
from fasttrack_lab.trace.metrics.owners import MOST
from fasttrack_lab.trace.tables import Tables

if TYPE_CHECKING:
    import ibis.expr.types as ir

_JOURNALS = ("sqlite_journal", "sqlite_wal")


@metric(
    "Journals",
    unit="part, whole: segments; part_bytes, whole_bytes: bytes; *_share: of whole",
    formula="SQLite's journals (rollback and WAL) of data blocks; the file system's journal of all blocks",
    source="Androtrace, A7: 41 % and 25 % of data, 24 % and 40 % of all",
    table="segments",
    known="block_type",
)
def journals(t: Tables) -> ir.Table:
    """Two journals, one above the other."""
    moved = moving(t.segments)

    def of(what: str, part: ir.BooleanValue, whole: ir.BooleanValue) -> ir.Table:
        found = moved.agg(
            part=count_if(part),
            whole=count_if(whole),
            part_bytes=sum_if(moved.bytes, part),
            whole_bytes=sum_if(moved.bytes, whole),
        )
        shares = {
            "count_share": ratio(found.part, found.whole),
            "bytes_share": ratio(found.part_bytes, found.whole_bytes),
        }
        return found.mutate(journal=ibis.literal(what), **shares)

    data = moved.block_type == "data"
    sqlite = of("SQLite's, of data", data & moved.file_type.isin(_JOURNALS), data)
    below = of("the file system's, of all", moved.block_type == "journal", moved.bytes.notnull())
    both = sqlite.union(below)
    return both.select("journal", *(name for name in both.columns if name != "journal")).order_by("journal")


_MODE = "mode by which journal was written"


def _by_database(t: Tables, *apart: str) -> ir.Table:
    """What the device read and wrote of each database, and its journal mode as far as it shows; with columns that tell
    databases of one path APART."""
    moved = moving(t.segments)
    rows = moved.filter(moved.database.notnull())
    write = rows.operation == "write"

    def written(file_type: str) -> ir.IntegerScalar:
        return sum_if(rows.bytes, write & (rows.file_type == file_type))

    keys = {column: named(rows[column]) for column in apart} | {"database": rows.database}
    grouped = rows.group_by(**keys).agg(
        db_written=written("sqlite_db"),
        journal_written=written("sqlite_journal"),
        wal_written=written("sqlite_wal"),
        temp_written=written("sqlite_temp"),
        read=sum_if(rows.bytes, rows.operation == "read"),
        sync_writes=count_if(write & is_flag(rows.sync)),
    )
    wal, rollback = grouped.wal_written > 0, grouped.journal_written > 0
    mode = ibis.cases((wal & rollback, "both"), (wal, "wal"), (rollback, "rollback"), else_="none seen")
    return grouped.mutate(mode=mode).select(*keys, "mode", *grouped.columns[len(keys) :])


@metric(
    "Databases",
    unit="*_written, read: bytes; sync_writes: segments",
    formula=f"runs of data blocks of a database and its journals; {_MODE}",
    source="Androtrace, A6 to A8: SQLite behind synchronous writes",
    table="segments",
    known="path",
    of_one=True,
)
def databases(t: Tables) -> ir.Table:
    """SQLite databases with most synchronous writes, by file and journal mode."""
    return _by_database(t).order_by([ibis.desc("sync_writes"), ibis.desc("db_written"), "database"]).limit(MOST)


PAGE = 4096
"""Bytes of a page: SQLite's default, and the least that the page cache writes."""


@metric(
    "SQLite by journal mode",
    unit="databases, told: databases; db_pages, journal_pages: pages of 4 KiB; syncs: calls; device_bytes: bytes; "
    "row_bytes: bytes; factor: device bytes over row_bytes of databases that are told",
    formula=f"{_MODE}; pages at the device; syncs: fsync and fdatasync; bytes of rows as --row-bytes tells them, for "
    "no trace knows them; without the file system's journal",
    source="Androtrace, A7: the journaling of journal anomaly",
    table="segments",
    known="path",
    of_one=True,
)
def sqlite_modes(t: Tables) -> ir.Table:
    """What a journal mode costs: pages, syncs, and bytes at the device for a byte of a row."""
    calls = t.calls
    synced = calls.filter(calls.database.notnull() & calls.kind.isin(("fsync", "fdatasync")))
    keys = ["install", "database"]
    syncs = synced.group_by(install=named(synced.install), database=synced.database).agg(calls=synced.count())
    of_all = _by_database(t, "install")
    of_each = of_all.left_join(syncs, keys).select(of_all, syncs.calls)
    told: ir.Value = ibis.null("int64")
    if t.row_bytes:
        branches = [(of_each.database == path, ibis.literal(size, "int64")) for path, size in t.row_bytes.items()]
        told = ibis.cases(*branches, else_=ibis.null("int64"))
    each = of_each.mutate(
        journal=of_each.journal_written + of_each.wal_written,
        device=of_each.db_written + of_each.journal_written + of_each.wal_written + of_each.temp_written,
        row_bytes=told.cast("int64"),
    )
    found = each.group_by("mode").agg(
        databases=each.count(),
        told=count_if(each.row_bytes.notnull()),
        db_pages=_pages(total(each.db_written)),
        journal_pages=_pages(total(each.journal)),
        called=total(each.calls),
        device_bytes=total(each.device),
        row_bytes=each.row_bytes.sum().cast("int64"),
        of_told=sum_if(each.device, each.row_bytes.notnull()),
    )
    # Without any call nobody knows how many there were.
    whole = found.cross_join(calls.agg(all_calls=calls.count()))
    shown = whole.mutate(
        syncs=ibis.ifelse(whole.all_calls > 0, whole.called, ibis.null("int64")),
        factor=ratio(whole.of_told, whole.row_bytes),
    )
    order = ("mode", "databases", "db_pages", "journal_pages", "syncs", "device_bytes", "told", "row_bytes", "factor")
    return shown.select(*order).order_by("mode")


def _pages(size: ir.IntegerValue) -> ir.IntegerValue:
    return ((size - size % PAGE) / PAGE).cast("int64")


@metric(
    "Journaling of journal",
    unit="page_bytes, device_bytes: bytes; syncs: calls; factor: device_bytes over page_bytes",
    formula="bytes written to databases and their journals at the device, over bytes of write calls on databases "
    "(SQLite's pages), where calls of any length are recorded (--calls-over 0)",
    source="Androtrace, A7: the journaling of journal anomaly",
    table="calls",
    known="every_call",
)
def journaling_of_journal(t: Tables) -> ir.Table:
    """How many bytes the device writes for a byte that SQLite writes to a database."""
    of_db = t.calls.filter(t.calls.database.notnull())
    wrote = of_db.kind.isin(("write", "mmap_write", "direct_write")) & (of_db.file_type == "sqlite_db")
    pages = sum_if(of_db.bytes.fill_null(0), wrote & of_db.every_call.notnull())
    asked = of_db.agg(page_bytes=pages, syncs=count_if(of_db.kind.isin(("fsync", "fdatasync"))))
    data = t.segments.filter((t.segments.operation == "write") & t.segments.database.notnull())
    done = data.agg(device_bytes=total(data.bytes))
    both = asked.cross_join(done)
    return both.mutate(factor=ratio(both.device_bytes, both.page_bytes))


@metric(
    "SQLite's files",
    unit="count: segments; bytes: bytes",
    formula="written data blocks of databases by kind of file and call",
    source="Androtrace, A6 and A8",
    table="segments",
    known="path",
)
def sqlite_files(t: Tables) -> ir.Table:
    """Which of a database's files are written, and why."""
    rows = t.segments.filter((t.segments.operation == "write") & t.segments.database.notnull())
    keyed = rows.mutate(cause=named(rows.cause))
    grouped = keyed.group_by(["file_type", "cause"]).agg(count=keyed.count(), bytes=total(keyed.bytes))
    return grouped.order_by(["file_type", "cause"])
