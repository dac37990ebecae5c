# SPDX-License-Identifier: GPL-2.0-only
"""An archive's tables in other engines than DuckDB: a view of the Delta table that the engine reads itself or, where it
cannot reach the files, a temporary table of rows that are sent to it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import ibis
import ibis.expr.types as ir
import pyarrow as pa

from fasttrack_lab.host import ui
from fasttrack_lab.trace import duckdb_tables, engines, tables
from fasttrack_lab.trace.tables import FLAG, INT, TEXT

CLICKHOUSE, SPARK = "clickhouse", "pyspark"
"""Ibis's names of the engines."""

_SQL = {
    CLICKHOUSE: {TEXT: "Nullable(String)", INT: "Nullable(Int64)", FLAG: "Nullable(Bool)"},
    SPARK: {TEXT: "STRING", INT: "BIGINT", FLAG: "BOOLEAN"},
}


def of_delta(
    engine: ibis.BaseBackend, name: str, folder: Path, columns: Mapping[str, str], there: Collection[str]
) -> ir.Table | None:
    """A view NAME of the Delta table in FOLDER with these columns by type; those that are not THERE are unknown.

    None where the engine does not get at the files, which is said.
    """
    place = str(folder.resolve())
    cast = _cast(engine, columns, there)
    try:
        if engine.name == CLICKHOUSE:
            made = f"SELECT {', '.join(cast)} FROM deltaLakeLocal({_text(place)})"
            engine.raw_sql(f"CREATE TEMPORARY VIEW {_quoted(name)} AS {made}")
        else:
            rows = spark(engine).read.format("delta").load(place)
            rows.limit(1).count()
            rows.selectExpr(*cast).createOrReplaceTempView(name)
    except engines.client_errors() as error:
        ui.say(f"the engine does not read {place}, so all rows are sent: {engines.first_line(error)}")
        return None
    return duckdb_tables.table(engine, name, columns)


def of_rows(engine: ibis.BaseBackend, name: str, rows: ir.Table, columns: Mapping[str, str]) -> ir.Table:
    """A temporary table NAME of ROWS, which are DuckDB's, with these columns; the engine holds them in memory."""
    if engine.name == CLICKHOUSE:
        kinds = _SQL[CLICKHOUSE]
        told = ", ".join(f"{_quoted(column)} {kinds[kind]}" for column, kind in columns.items())
        engine.raw_sql(f"CREATE TEMPORARY TABLE {_quoted(name)} ({told}) ENGINE = Memory")
        for batch in tables.batches_of(rows):
            engine.con.insert_arrow(name, pa.Table.from_batches([batch]))
    else:
        table, session = rows.to_pyarrow(), spark(engine)
        # Of no rows the client does not make a table.
        sent, there = (session.createDataFrame(table), columns) if table.num_rows else (session.range(0), ())
        sent.selectExpr(*_cast(engine, columns, there)).createOrReplaceTempView(name)
    return duckdb_tables.table(engine, name, columns)


def rows_of_sql(engine: ibis.BaseBackend, query: str) -> list[dict[str, Any]]:
    """The rows of a query in the engine's own SQL."""
    if engine.name == engines.DUCKDB:
        return tables.rows_of_sql(engine, query)
    if engine.name == CLICKHOUSE:
        found = engine.con.query(query)
        return [dict(zip(found.column_names, row, strict=True)) for row in found.result_rows]
    return list(spark(engine).sql(query).toArrow().to_pylist())


def spark(engine: ibis.BaseBackend) -> Any:
    """The session of Spark Connect."""
    return engine._session


def _cast(engine: ibis.BaseBackend, columns: Mapping[str, str], there: Collection[str]) -> list[str]:
    return duckdb_tables.cast(columns, there, _SQL[engine.name], _quoted)


def _quoted(name: str) -> str:
    """Both engines quote by backticks."""
    return f"`{name}`"


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
