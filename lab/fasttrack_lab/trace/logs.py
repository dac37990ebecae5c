# SPDX-License-Identifier: GPL-2.0-only
"""From records to tables: of log files, and of what was exported or imported already."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from fasttrack_lab.host.errors import InputError
from fasttrack_lab.host.paths import CHECKOUT
from fasttrack_lab.trace import duckdb_tables, exporting, record_sql
from fasttrack_lab.trace import lazy_ibis as ibis
from fasttrack_lab.trace.plain_duckdb import Connected
from fasttrack_lab.trace.tables import COLUMNS, COUNTED, FLAG, INT, TEXT, Tables

CONTRACT = CHECKOUT / "contract" / "trace.toml"

_TYPES = {"u64": INT, "i64": INT, "time": INT, "bool": FLAG, "string": TEXT}
_DAMAGE = {"path": TEXT, "at": INT, "bytes": INT, "records": INT, "what": TEXT, "session": TEXT, "log": INT}
"""Only an import knows of which session a damaged file is."""


def record_columns() -> dict[str, dict[str, str]]:
    """Record -> column -> type, as `fasttrack-trace export` writes them."""
    contract = tomllib.loads(CONTRACT.read_text())
    place = {"session": TEXT, "log": INT}
    found = {
        name: place | {field["name"]: _TYPES.get(field["type"], TEXT) for field in record["fields"]}
        for name, record in contract["record"].items()
    }
    return found | {"damage": _DAMAGE}


def read(paths: Sequence[Path], engine: ibis.BaseBackend) -> Tables:
    """The tables of log files, directories of them and directories of records, in ENGINE, which is DuckDB."""
    with exporting.exported(paths) as folders:
        return of_records(folders(), engine)


def of_records(folders: Sequence[Path], engine: ibis.BaseBackend, counted: bool = False) -> Tables:
    """The tables of directories of records, COUNTED: with the columns alone that metrics count over."""
    fill(folders, engine, counted)
    return of_filled(engine, counted)


def of_filled(engine: ibis.BaseBackend, counted: bool) -> Tables:
    """The tables that `fill` has made."""
    wanted = COUNTED if counted else COLUMNS
    return Tables({name: duckdb_tables.table(engine, name, wanted[name]) for name in record_sql.TABLES}, engine)


def fill(folders: Sequence[Path], engine: Connected, counted: bool = False) -> None:
    """Makes the tables of directories of records in ENGINE, COUNTED: with the columns that metrics count over."""
    wanted = COUNTED if counted else COLUMNS
    with duckdb_tables.joined_as_told(engine):
        rows = {kind: _view(engine, kind, columns, folders) for kind, columns in record_columns().items()}
        for name, query in record_sql.KEPT.items():
            duckdb_tables.of_query(engine, name, query)
        for name, (record, rows_of) in record_sql.TABLES.items():
            if record is None or rows[record]:
                duckdb_tables.kept(engine, name, rows_of(wanted[name]), wanted[name])
            else:
                duckdb_tables.empty(engine, name, wanted[name])


def _view(engine: Connected, kind: str, columns: Mapping[str, str], folders: Sequence[Path]) -> bool:
    """Makes all records of a kind a view; whether there are any. An older export does not have every kind."""
    name = f"r_{kind}"
    files = {file: _heading(file, columns) for folder in folders if (file := folder / f"{kind}.csv").exists()}
    if not files:
        duckdb_tables.empty(engine, name, columns)
        return False
    told = {file: {"session": file.parent.name} for file in files if exporting.is_of_session(file.parent)}
    duckdb_tables.of_csv(engine, name, files, columns, told)
    return any(_has_rows(file) for file in files)


def _heading(file: Path, columns: Mapping[str, str]) -> list[str]:
    """Which columns a file has: fewer where it is older, more where it is newer."""
    with file.open(encoding="utf-8") as lines:
        heading = next(lines, "").rstrip("\n").split(",")
    if heading == [""]:
        return list(columns)
    if not set(heading) & set(columns):
        raise InputError("no file of records: its heading has none of their columns", file)
    return heading


def _has_rows(file: Path) -> bool:
    with file.open(encoding="utf-8") as lines:
        return next(lines, "") != "" and next(lines, None) is not None
