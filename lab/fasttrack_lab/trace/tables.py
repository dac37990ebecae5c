# SPDX-License-Identifier: GPL-2.0-only
"""The tables of a trace, as every engine has them.

They are made from the records of contract/trace.toml, with names looked up once, so that a metric needs one table. All
numbers are signed integers of 64 bits, all texts plain; NULL means that nobody knows it. A row's session is the run of
the collector that it is of; ids of bios are a session's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from fasttrack_lab.host.errors import UsageProblem
from fasttrack_lab.trace import interval
from fasttrack_lab.trace import lazy_ibis as ibis
from fasttrack_lab.trace.interval import Moment

if TYPE_CHECKING:
    import ibis.expr.types as ir

    # Takes half a second to load, and a report of log files does without.
    import pyarrow as pa

    from fasttrack_lab.trace.plain_duckdb import Connected

INT, TEXT, FLAG = "int64", "string", "boolean"

PLACE = {"install": TEXT, "session": TEXT, "log": INT}
"""Whose record it is: the installation (a device), the session and the number of the log file."""

WHEN = {"time": INT, "second": INT, "hour": INT, "real_ns": INT}
"""ns of the boot clock; whole seconds of it; hours since 1970 in the device's time zone; ns since 1970."""

_SENT = {"operation": TEXT, "sync": FLAG, "class": TEXT, "cause": TEXT, "app_uid": INT}
_FILE = {"path": TEXT, "file_type": TEXT, "database": TEXT}
_TASK = {"uid": INT, "name": TEXT, "kernel_thread": FLAG}
_DOING = {"began": INT, "task": INT, "pid": INT, "tgid": INT}
"""When it began, ns of the boot clock, and which task it is of; its id is a session's."""

COLUMNS: dict[str, dict[str, str]] = {
    "sessions": {
        **PLACE,
        **WHEN,
        "boot": TEXT,
        "kernel": TEXT,
        "collector": TEXT,
        "sources": TEXT,
        "events": TEXT,
        "clear_names": FLAG,
        "page_bytes": INT,
        "utc_offset_s": INT,
        "calls_over_us": INT,
        "sample": INT,
    },
    "io": {
        **PLACE,
        **WHEN,
        "bio": INT,
        "dev": INT,
        "sector": INT,
        "bytes": INT,
        **_SENT,
        "fua": FLAG,
        "preflush": FLAG,
        "meta": FLAG,
        "read_ahead": FLAG,
        "sequential": FLAG,
        "carrier": TEXT,
        "carrier_kernel": FLAG,
        "journal_transaction": INT,
        "carrier_task": INT,
        "carrier_pid": INT,
        "carrier_tgid": INT,
        "carrier_uid": INT,
        "thread": INT,
        "weight": INT,
    },
    "segments": {
        **PLACE,
        **WHEN,
        "bio": INT,
        "dev": INT,
        "offset": INT,
        "bytes": INT,
        **_SENT,
        "block_type": TEXT,
        "file": INT,
        **_FILE,
        **_TASK,
        "dirtied": INT,
        "call": TEXT,
        "owner_task": INT,
        "page": INT,
        "weight": INT,
    },
    "requests": {
        **PLACE,
        **WHEN,
        "dev": INT,
        "sector": INT,
        "bytes": INT,
        **_SENT,
        "queued_us": INT,
        "device_us": INT,
        "error": INT,
        "first_bio": INT,
        "queued_ns": INT,
        "device_ns": INT,
        "weight": INT,
    },
    "calls": {
        **PLACE,
        **WHEN,
        **_TASK,
        "kind": TEXT,
        "file": INT,
        **_FILE,
        "bytes": INT,
        "duration_us": INT,
        "result": INT,
        "every_call": INT,
        **_DOING,
        "offset": INT,
        "thread": INT,
    },
    "waits": {
        **PLACE,
        **WHEN,
        **_TASK,
        "kind": TEXT,
        "class": TEXT,
        "duration_us": INT,
        "dev": INT,
        "sector": INT,
        "page": INT,
        "path": TEXT,
        "journal_transaction": INT,
        **_DOING,
        "file": INT,
        "thread": INT,
        "nested": FLAG,
    },
    "transactions": {
        **PLACE,
        **WHEN,
        "dev": INT,
        "journal_transaction": INT,
        "kind": TEXT,
        "began": INT,
        "handles": INT,
        "blocks": INT,
        "logged": INT,
        "trigger_call": TEXT,
        "trigger_uid": INT,
        "trigger_name": TEXT,
        "carrier": TEXT,
        "carrier_task": INT,
        "trigger": INT,
    },
    "shares": {
        **PLACE,
        **WHEN,
        "dev": INT,
        "journal_transaction": INT,
        **_TASK,
        "handles": INT,
        "blocks": INT,
        "through_flusher": FLAG,
        "task": INT,
    },
    "files": {
        **PLACE,
        **WHEN,
        "file": INT,
        "event": TEXT,
        "dev": INT,
        "inode": INT,
        "created_ns": INT,
        **_FILE,
        "bytes": INT,
        "life_ms": INT,
    },
    "losses": {
        **PLACE,
        **WHEN,
        "reason": TEXT,
        "cpu": INT,
        "since": INT,
        "lost": INT,
        "bytes": INT,
        "what": TEXT,
        # A snapshot of the clocks lies between its two ends: by the wall's clock nobody knows what is between them.
        "clock_set": FLAG,
    },
    "tasks": {**PLACE, **WHEN, "task": INT, "pid": INT, "tgid": INT, **_TASK},
}
"""Table -> column -> type. New columns are added at the end of a table; nothing is removed."""

for _columns in COLUMNS.values():
    # Local time less UTC, by the clock's snapshot before the row.
    _columns.setdefault("utc_offset_s", INT)


SAMPLED = ("io", "segments", "requests")
"""Tables that have a part of the rows where a session was sampled: each row stands for `weight` of them."""

NO_LOSS = {
    "payers": "payers of a transaction without a share of their own: {} handles and blocks are in the share of nobody",
    "sampled": "of a sample: {} bios are left out",
}
"""Reason of what is no loss -> what is told of so many."""


def lost(losses: ir.Table) -> ir.Table:
    """The rows of LOSSES that are some."""
    return losses.filter(losses.reason.fill_null("unknown").notin(list(NO_LOSS)))


_COUNTED = {
    "sessions": "time session install boot kernel collector sources clear_names utc_offset_s sample",
    "io": "session time second hour real_ns operation bytes sync class cause sequential carrier_kernel",
    "segments": "time operation bytes sync class cause block_type path file_type database uid name kernel_thread call "
    "install",
    "requests": "time operation class app_uid queued_us device_us",
    "calls": "time kind file_type database bytes duration_us every_call install",
    "waits": "time kind class duration_us nested",
    "transactions": "time kind trigger_call handles blocks logged",
    "shares": "time uid name handles blocks",
    "files": "time event file_type bytes life_ms",
    "tasks": "time",
}
COUNTED = COLUMNS | {
    name: {column: COLUMNS[name][column] for column in told.split()} for name, told in _COUNTED.items()
}
"""What metrics count over; the other columns are for those who look at single rows."""

_WHOLE = ("sessions", "tasks")
"""What other rows refer to, whenever they are."""


def schema(table: str) -> ibis.Schema:
    """What a table has."""
    return ibis.schema(COLUMNS[table])


def rows_of(engine: Any, asked: ir.Expr | str) -> list[dict[str, Any]]:
    """The rows of a query; of DuckDB's, which may be SQL, without Ibis's conversion: that loads pandas for a second."""
    if isinstance(asked, str):
        return rows_of_sql(engine, asked)
    if engine.name != "duckdb":
        return list(asked.to_pyarrow().to_pylist())
    return rows_of_sql(engine, engine.compile(asked))


def rows_of_sql(engine: Connected, query: str) -> list[dict[str, Any]]:
    """The rows of a query in DuckDB's SQL."""
    found = engine.con.execute(query)
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


_BATCH = 250_000
"""Rows that are in memory at once where all are sent."""


def batches_of(asked: ir.Table) -> Iterator[pa.RecordBatch]:
    """The rows of a query of DuckDB's, some at a time."""
    engine = asked.get_backend()
    for batch in engine.con.sql(engine.compile(asked)).to_arrow_reader(_BATCH):
        if batch.num_rows:
            yield batch


def counted(table: ir.Table) -> int:
    """How many rows there are."""
    return int(table.count().to_pyarrow().as_py())


def with_columns(rows: ir.Table, columns: Mapping[str, str]) -> ir.Table:
    """Rows with these columns alone, by type: one that they lack is unknown in all of them."""
    lacking = {column: ibis.null(kind) for column, kind in columns.items() if column not in rows.columns}
    return rows.mutate(**lacking).select(*columns).cast(columns)


@dataclass(frozen=True)
class Tables:
    """The tables of one or more traces in one engine."""

    by_name: Mapping[str, ir.Table]
    engine: ibis.BaseBackend
    row_bytes: Mapping[str, int] = field(default_factory=dict)
    """Database -> bytes of the rows that were written to it, as somebody tells who knows: no trace does."""

    def __getattr__(self, name: str) -> ir.Table:
        """The table NAME: t.segments."""
        if name in COLUMNS:
            return self.by_name[name]
        raise AttributeError(name)

    def __iter__(self) -> Iterator[tuple[str, ir.Table]]:
        """Each name with its table."""
        return iter(self.by_name.items())

    def between(self, since: Moment | None, until: Moment | None) -> Tables:
        """What is in an interval, ends included; sessions and tasks are all there."""
        if since is None and until is None:
            return self
        within = {
            name: table if name in _WHOLE else interval.cut(table, self.sessions, since, until) for name, table in self
        }
        return replace(self, by_name=within)

    def check_clock(self, *moments: Moment | None) -> None:
        """Refuses times of the clock on the wall where no row has such a time."""
        if interval.is_wall(*moments) and not counted(self.io.filter(self.io.real_ns.notnull()).limit(1)):
            raise UsageProblem(
                "this trace does not know the real time of what it has: --since and --until take seconds of its clock"
            )
        if interval.is_local(*moments) and not any(
            counted(table.filter(table.utc_offset_s.notnull()).limit(1)) for table in (self.sessions, self.io)
        ):
            raise UsageProblem(
                "this trace does not know its time zone: --since and --until: write a time zone, as 2026-11-27T10:00Z"
            )

    def of_session(self, session: str) -> Tables:
        """What is of one session, or of nobody knows which."""
        mine = {name: table.filter(table.session.isnull() | (table.session == session)) for name, table in self}
        return replace(self, by_name=mine)

    def of_install(self, install: str | None) -> Tables:
        """What is of one installation, or of nobody knows which; of None, all."""
        if install is None:
            return self
        mine = {name: table.filter(table.install.isnull() | (table.install == install)) for name, table in self}
        return replace(self, by_name=mine)

    def installs(self) -> list[str]:
        """The installations that are in it."""
        found = rows_of(self.engine, self.sessions.select("install").distinct())
        return sorted(row["install"] for row in found if row["install"] is not None)
