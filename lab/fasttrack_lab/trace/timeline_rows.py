# SPDX-License-Identifier: GPL-2.0-only
"""All rows of a trace that take place, in one table in order of their begin: what a timeline is drawn of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ibis
import ibis.expr.types as ir

from fasttrack_lab.trace.scene_loading import precise
from fasttrack_lab.trace.tables import FLAG, INT, TEXT, Tables, with_columns

CALL, WAIT, TRANSACTION, BIO, REQUEST, LOSS, RUN = range(7)
"""What a row is of. Of rows that begin together that is the order, so that a bio is before its request; calls and waits
are in order of their length, so that the outer one is first."""

COLUMNS = {
    "at": INT,
    "until": INT,
    "what": INT,
    "session": TEXT,
    "number": INT,
    "issued": INT,
    "task": INT,
    "pid": INT,
    "tgid": INT,
    "thread": INT,
    "uid": INT,
    "name": TEXT,
    "kind": TEXT,
    "class": TEXT,
    "cause": TEXT,
    "app_uid": INT,
    "path": TEXT,
    "file_type": TEXT,
    "bytes": INT,
    "result": INT,
    "dev": INT,
    "sector": INT,
    "sync": FLAG,
    "error": INT,
    "journal_transaction": INT,
    "handles": INT,
    "blocks": INT,
    "logged": INT,
    "trigger_call": TEXT,
    "trigger_uid": INT,
    "trigger_name": TEXT,
    "carrier": TEXT,
    "lost": INT,
    "cpu": INT,
    "since": INT,
    "detail": TEXT,
}
"""Column -> type. `at` is ns of the boot clock, unknown of some losses; `until` the end, unknown where the begin is:
then `at` is the end. `number` is a bio's id; of a request its first bio's."""

_BATCH = 4096
_NS = 1000
"""ns in a us."""


def _lasted(rows: ir.Table) -> ir.Table:
    """Calls or waits with begin and end. Records of an older archive have us of the duration alone."""
    began = rows.began.fill_null(rows.time - rows.duration_us * _NS)
    return rows.mutate(at=_at(began, rows.time), until=_until(began, rows.time))


def _at(began: ir.Value, ended: ir.Value) -> ir.Value:
    """The begin, or the end where that is not known; never before the clock began."""
    return _not_below_0(began.fill_null(ended))


def _not_below_0(time: ir.Value) -> ir.Value:
    """TIME, where it is known; greatest() would give 0 for what is not."""
    return ibis.ifelse(time < 0, 0, time)


def _until(began: ir.Value, ended: ir.Value) -> ir.Value:
    return ibis.ifelse(began.isnull(), ibis.null(INT), ended)


def _requests(tables: Tables) -> ir.Table:
    rows = precise(tables.requests)
    issued = _not_below_0(rows.time - rows.device_ns)
    began = issued - rows.queued_ns.fill_null(0)
    return rows.mutate(
        at=_at(began, rows.time), until=_until(began, rows.time), issued=issued, kind=rows.operation
    ).rename(number="first_bio")


def _bios(tables: Tables) -> ir.Table:
    rows = tables.io
    rows = rows.mutate(at=rows.time, kind=rows.operation, name=rows.carrier)
    return rows.rename(number="bio", task="carrier_task", pid="carrier_pid", tgid="carrier_tgid", uid="carrier_uid")


def _transactions(tables: Tables) -> ir.Table:
    rows = tables.transactions
    return rows.mutate(at=_at(rows.began, rows.time), until=_until(rows.began, rows.time))


def _runs(tables: Tables) -> ir.Table:
    """Their end is their bio's."""
    rows = tables.segments
    return rows.mutate(at=rows.time, kind=rows.block_type).rename(number="bio")


def _losses(tables: Tables) -> ir.Table:
    rows = tables.losses
    return rows.mutate(at=rows.time, kind=rows.reason, detail=rows.what)


def of(tables: Tables) -> ir.Table:
    """The rows, in no order."""
    parts = (
        (_lasted(tables.calls), CALL),
        (_lasted(tables.waits), WAIT),
        (_transactions(tables), TRANSACTION),
        (_bios(tables), BIO),
        (_requests(tables), REQUEST),
        (_losses(tables), LOSS),
        (_runs(tables), RUN),
    )
    return ibis.union(*(with_columns(rows.mutate(what=ibis.literal(what)), COLUMNS) for rows, what in parts))


def ordered(tables: Tables, rows: ir.Table) -> Iterator[dict[str, Any]]:
    """ROWS of TABLES one by one: in order of their begin; those of an unknown time first of all."""
    begin, length = ibis.asc(rows.at, nulls_first=True), ibis.desc(rows.until, nulls_first=False)
    order = [begin, ibis.greatest(rows.what, WAIT), length, rows.what]
    connection = tables.engine.con
    connection.execute(tables.engine.compile(rows.order_by(order)))
    try:
        while some := connection.fetchmany(_BATCH):
            for values in some:
                yield dict(zip(COLUMNS, values, strict=True))
    finally:
        # The connection answers nothing else while rows are left.
        connection.abort()


def offsets(tables: Tables) -> list[tuple[int, int]]:
    """Real time less boot time, ns, with the first time of each, in order."""
    parts = (table.select("time", "real_ns") for _, table in tables)
    known = ibis.union(*parts).filter(lambda rows: rows.time.notnull() & rows.real_ns.notnull())
    found = known.group_by(offset=known.real_ns - known.time).agg(time=known.time.min()).order_by("time").to_pyarrow()
    return [(row["time"], row["offset"]) for row in found.to_pylist()]


def processes(rows: ir.Table) -> dict[int, str]:
    """Process -> its name: its first thread's, else that of one of its threads."""
    known = rows.filter(rows.tgid.notnull() & rows.name.notnull())
    main = ibis.ifelse(known.pid == known.tgid, known.name, ibis.null(TEXT))
    found = known.group_by("tgid").agg(main=main.min(), any_name=known.name.min()).to_pyarrow().to_pylist()
    return {row["tgid"]: row["main"] or row["any_name"] for row in found}
