# SPDX-License-Identifier: GPL-2.0-only
"""Tables and views of DuckDB whose columns are known, made by plain statements.

Ibis's own functions ask the database for each table's columns and parse what they have written: of a small recording
that is most of the time. Nor is Ibis loaded for what statements make.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fasttrack_lab.trace import lazy_ibis as ibis
from fasttrack_lab.trace.plain_duckdb import Connected
from fasttrack_lab.trace.tables import FLAG, INT, TEXT

if TYPE_CHECKING:
    import ibis.expr.types as ir

_SQL = {TEXT: "VARCHAR", INT: "BIGINT", FLAG: "BOOLEAN"}


@contextmanager
def joined_as_told(engine: Connected) -> Iterator[None]:
    """Joins are of many rows with few names, as they are written. DuckDB guesses that a CSV file has few rows, turns
    them round, and holds all calls in memory three times."""
    engine.con.execute("SET disabled_optimizers = 'build_side_probe_side,join_order'")
    try:
        yield
    finally:
        engine.con.execute("RESET disabled_optimizers")


def kept(engine: Connected, name: str, query: str, columns: Mapping[str, str]) -> None:
    """A temporary table of a query's rows, of these columns by type alone."""
    engine.con.execute(f"CREATE TEMP TABLE {_quoted(name)} AS SELECT {_cast(columns)} FROM ({query})")


def of_query(engine: Connected, name: str, query: str) -> None:
    """A temporary table of a query's rows, for other statements."""
    engine.con.execute(f"CREATE TEMP TABLE {_quoted(name)} AS {query}")


def empty(engine: Connected, name: str, columns: Mapping[str, str]) -> None:
    """One without rows."""
    told = ", ".join(f"{_quoted(column)} {_SQL[kind]}" for column, kind in columns.items())
    engine.con.execute(f"CREATE TEMP TABLE {_quoted(name)} ({told})")


def of_csv(
    engine: Connected,
    name: str,
    files: Mapping[Path, Sequence[str]],
    columns: Mapping[str, str],
    told: Mapping[Path, Mapping[str, str]],
) -> None:
    """A view of CSV files, given with their headings, that has these columns by type.

    What a file's heading lacks is unknown in its rows, unless it is TOLD: a text that all of a file's rows have.
    """
    parts = []
    for file, heading in files.items():
        same = told.get(file, {})
        texts = "".join(f"{_text(text)} AS {_quoted(column)}, " for column, text in same.items())
        rows = f"(SELECT {texts}* FROM {_csv(file, heading, columns)})"
        parts.append(f"SELECT {_cast(columns, [*heading, *same])} FROM {rows}")
    engine.con.execute(f"CREATE TEMP VIEW {_quoted(name)} AS {' UNION ALL '.join(parts)}")


def _csv(file: Path, heading: Sequence[str], columns: Mapping[str, str]) -> str:
    told = ", ".join(f"{_text(column)}: '{_SQL[columns.get(column, TEXT)]}'" for column in heading)
    return (
        f"read_csv({_text(file)}, columns = {{{told}}}, header = true, quote = '\"', escape = '\"', delim = ',', "
        "allow_quoted_nulls = false, auto_detect = false)"
    )


def of_parquet(engine: ibis.BaseBackend, name: str, files: Sequence[str], columns: Mapping[str, str]) -> ir.Table:
    """A view of Parquet files with these columns by type; one that they lack is unknown in all rows."""
    rows = f"read_parquet([{', '.join(map(_text, files))}], union_by_name = true)"
    there = [column[0] for column in engine.con.execute(f"SELECT * FROM {rows} LIMIT 0").description]
    return _view(engine, name, rows, there, columns)


def _view(
    engine: ibis.BaseBackend, name: str, rows: str, there: Collection[str], columns: Mapping[str, str]
) -> ir.Table:
    """A view of ROWS, which have the columns that are THERE."""
    engine.con.execute(f"CREATE TEMP VIEW {_quoted(name)} AS SELECT {_cast(columns, there)} FROM {rows}")
    return table(engine, name, columns)


def cast(
    columns: Mapping[str, str], there: Collection[str], kinds: Mapping[str, str], quoted: Callable[[str], str]
) -> list[str]:
    """Columns as their types in an engine's SQL, by its KINDS and QUOTED; NULL for those that are not THERE."""
    return [
        f"CAST({quoted(column) if column in there else 'NULL'} AS {kinds[kind]}) AS {quoted(column)}"
        for column, kind in columns.items()
    ]


def _cast(columns: Mapping[str, str], there: Collection[str] | None = None) -> str:
    return ", ".join(cast(columns, columns if there is None else there, _SQL, _quoted))


def table(engine: ibis.BaseBackend, name: str, columns: Mapping[str, str]) -> ir.Table:
    """A table that is there, or will be."""
    return ibis.expr.operations.DatabaseTable(name, schema=ibis.schema(columns), source=engine).to_expr()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str | Path) -> str:
    return "'" + str(value).replace("'", "''") + "'"
