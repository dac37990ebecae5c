# SPDX-License-Identifier: GPL-2.0-only
"""The archive: every table of a trace as a Delta table, partitioned by day (UTC).

The content hash of a log file, or of an import, is the id of its transaction: who appends it again changes nothing, and
of two who append it at once one does. A file that has grown since replaces its rows, and an earlier copy of it changes
nothing: the log file of a session has a transaction of its own, whose version is the number of its rows, read from the
file itself or from an import of it. Neither old files nor Delta's old log are kept, so `erase` leaves no byte of a
device.
"""

from __future__ import annotations

import fcntl
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ibis
import ibis.expr.types as ir
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from fasttrack_lab.host.errors import LabError, UsageProblem
from fasttrack_lab.host.paths import digest, file_sha256
from fasttrack_lab.trace import duckdb_tables, engine_tables, engines, exporting, logs
from fasttrack_lab.trace.tables import COLUMNS, Tables

DAY = "day"
_KEEP_NOTHING = {
    "delta.logRetentionDuration": "interval 0 seconds",
    "delta.deletedFileRetentionDuration": "interval 0 seconds",
}
_VERSION = 1
"""Of a content's transaction: it never changes."""

Place = tuple[str, int]
"""A session and the number of a log file."""


@dataclass(frozen=True)
class Appended:
    """What came of log files."""

    new: int
    known: int
    rows: int


def _table(folder: Path, name: str) -> DeltaTable | None:
    try:
        return DeltaTable(folder / name)
    except TableNotFoundError:
        return None


def _lacks(folder: Path, key: str) -> list[str]:
    """The tables that do not have a file yet; more than none and less than all after a writer was killed."""
    found = {name: _table(folder, name) for name in COLUMNS}
    return [name for name, table in found.items() if table is None or table.transaction_version(key) is None]


def _of_place(place: Place, rows: int) -> Transaction:
    """Of a log file that grows: by its ROWS a copy is newer. An erased session's id is not in the archive.

    Rows are what the file and records made of it have in common; "rows" keeps this apart from other measures.
    """
    session, number = place
    return Transaction(digest(["rows", session, str(number)]), rows)


def _has_longer(table: DeltaTable | None, place: Transaction) -> bool:
    """Whether a table has a longer copy of a log file."""
    version = None if table is None else table.transaction_version(place.app_id)
    return version is not None and version > place.version


def _has_copy(table: DeltaTable, file: tuple[Transaction, ...]) -> bool:
    """Whether a table has a file's content, which is the first, or a longer copy of its place."""
    content, *places = file
    there = table.transaction_version(content.app_id) is not None
    return there or any(_has_longer(table, place) for place in places)


@contextmanager
def _held(folder: Path, how: int) -> Iterator[None]:
    """Holds the archive's lock: appends share it, for Delta keeps these apart, and `erase` has it alone. It deletes
    files that no commit names, and those of an append have none yet."""
    with (folder / ".lock").open("w") as handle:
        fcntl.flock(handle, how)
        yield


def append(folder: Path, paths: Sequence[Path]) -> Appended:
    """Adds log files, those of directories, and imports to the archive in FOLDER, which is made if it is not there."""
    with _failures_told(folder, "added"):
        folder.mkdir(parents=True, exist_ok=True)
        with _held(folder, fcntl.LOCK_SH):
            return _append_all(folder, paths)


@contextmanager
def _failures_told(folder: Path, done: str) -> Iterator[None]:
    """What Delta or the file system refuse. Each table's commits are whole, so readers see what was there or is."""
    try:
        yield
    except (DeltaError, OSError) as error:
        said = " ".join(str(error).split())
        raise LabError(f"{folder}: not all is {done}: {said}; run the same command again when it can work") from error


def _append_all(folder: Path, paths: Sequence[Path]) -> Appended:
    new = known = rows = 0
    by_directory: dict[Path, list[Path]] = defaultdict(list)
    for path in paths:
        if exporting.is_exported(path):
            added = _append_exported(folder, path)
            new, known, rows = new + added.new, known + added.known, rows + added.rows
            continue
        for file in sorted(path.glob(f"*{exporting.SUFFIX}")) if path.is_dir() else [path]:
            by_directory[file.parent].append(file)
    for directory, files in by_directory.items():
        keys = {file: file_sha256(file) for file in files}
        lacking = {file: lacks for file, key in keys.items() if (lacks := _lacks(folder, key))}
        fresh: set[Path] = set()
        if lacking:
            # All of the directory: a request's first bio may be in the log file before.
            fresh, more = _append(
                folder, logs.read([directory], engines.duckdb()), {file: keys[file] for file in lacking}, lacking
            )
            rows += more
        new, known = new + len(fresh), known + len(files) - len(fresh)
    return Appended(new, known, rows)


def _append_exported(folder: Path, path: Path) -> Appended:
    """Adds a directory of records. It has one id: its records'; what damage is told beside them is not in it."""
    kinds = sorted(logs.record_columns().keys() - {"damage"})
    key = digest([file_sha256(file) for kind in kinds if (file := path / f"{kind}.csv").exists()])
    if not (lacking := _lacks(folder, key)):
        return Appended(0, 1, 0)
    rows, is_new = 0, False
    tables = logs.read([path], engines.duckdb())
    lengths = _records(tables)
    for name, table in tables:
        if name not in lacking:
            continue
        there = _table(folder, name)
        places = {place: _of_place(place, length) for place, length in lengths.items()}
        mine = [place for place, one in places.items() if not _has_longer(there, one)]
        if lengths and not mine:
            continue
        is_new = True
        data = dated(_without(table, lengths.keys() - set(mine)).to_pyarrow())
        content = Transaction(key, _VERSION)
        transactions: list[tuple[Transaction, ...]] = [(content, places[place]) for place in mine] or [(content,)]
        if commit(folder / name, data, mine, transactions):
            rows += data.num_rows
    return Appended(int(is_new), int(not is_new), rows)


def _records(tables: Tables) -> dict[Place, int]:
    """How many rows there are of each log file; what could not be read is none."""
    found: dict[Place, int] = defaultdict(int)
    for name, table in tables:
        if name != "losses":
            counts = table.filter(table.session.notnull() & table.log.notnull()).group_by(["session", "log"])
            for row in counts.agg(rows=ibis._.count()).to_pyarrow().to_pylist():
                found[row["session"], row["log"]] += row["rows"]
    return found


def _without(table: ir.Table, places: Collection[Place]) -> ir.Table:
    for session, number in places:
        table = table.filter(~((table.session == session) & (table.log == number)).fill_null(False))
    return table


def _append(
    folder: Path, tables: Tables, keys: dict[Path, str], lacking: dict[Path, list[str]]
) -> tuple[set[Path], int]:
    """Adds the rows of some log files of a directory, a transaction a table: which are new, and how many rows."""
    numbers = {file: int(file.stem) for file in keys}
    sessions = {
        row["log"]: row["session"]
        for row in tables.sessions.select("log", "session").distinct().to_pyarrow().to_pylist()
    }
    places = {file: (sessions[number], number) for file, number in numbers.items() if number in sessions}
    counts = _records(tables)
    grown = {file: _of_place(place, counts[place]) for file, place in places.items()}
    added: set[Path] = set()
    rows = 0
    for name, table in tables:
        there = _table(folder, name)
        files = [
            file for file in keys if name in lacking[file] and not (file in grown and _has_longer(there, grown[file]))
        ]
        if not files:
            continue
        added.update(files)
        mine = table.log.isin([numbers[file] for file in files])
        if name == "losses":
            # Of what is unreadable nobody knows more than the file.
            mine = ibis.or_(mine, *(table.what.startswith(str(file)) for file in files))
        data = dated(table.filter(mine).to_pyarrow())
        transactions = [
            (Transaction(keys[file], _VERSION), *([grown[file]] if file in grown else [])) for file in files
        ]
        if commit(folder / name, data, [places[file] for file in files if file in places], transactions):
            rows += data.num_rows
    return added, rows


def dated(data: pa.Table) -> pa.Table:
    """With the day, UTC; a row whose real time nobody knows has the day `unknown`."""
    stamps = data["real_ns"].cast(pa.timestamp("ns"))
    days = pc.fill_null(pc.strftime(stamps, format="%Y-%m-%d"), "unknown").cast(pa.string())
    return data.append_column(DAY, days)


_TRIES = 20
"""Commits that may be refused, each because another writer's came first."""


def commit(
    folder: Path,
    data: pa.Table,
    places: list[Place],
    transactions: Sequence[tuple[Transaction, ...]],
) -> bool:
    """One commit, with the transactions of each file. Rows of the same log files, which have grown since, are replaced.

    False: another writer has committed the same, or a longer copy, since this one looked. What it has committed beside
    is no obstacle.
    """
    for _ in range(_TRIES):
        there = _table(folder.parent, folder.name)
        try:
            if there is None:
                # Without rows: of two that create a table with rows, both might be in it.
                DeltaTable.create(folder, data.schema, mode="ignore", partition_by=[DAY], configuration=_KEEP_NOTHING)
                continue
            known = [_has_copy(there, file) for file in transactions]
            if known and all(known):
                return False
            if any(known):
                break
            _write(there, data, places, [one for file in transactions for one in file])
            return True
        except CommitFailedError:
            continue
        except DeltaError:
            # Another writer has made the table meanwhile.
            if there is not None or _table(folder.parent, folder.name) is None:
                raise
    raise LabError(f"{folder}: somebody else appends the same files; run the same command again")


def _write(there: DeltaTable, data: pa.Table, places: list[Place], transactions: list[Transaction]) -> None:
    """Onto what is THERE: a commit since then with one of the transactions refuses this one."""
    options: dict[str, Any] = {"mode": "append"}
    if places and _has(there, places):
        replaced = " OR ".join(f"(session = '{session}' AND log = {number})" for session, number in places)
        options = {"mode": "overwrite", "predicate": replaced}
    properties = CommitProperties(app_transactions=list({one.app_id: one for one in transactions}.values()))
    write_deltalake(there, data, partition_by=[DAY], schema_mode="merge", commit_properties=properties, **options)


def _has(table: DeltaTable, places: list[Place]) -> bool:
    """Whether any row is of these log files."""
    uris = table.file_uris()
    if not uris:
        return False
    rows = engines.duckdb().read_parquet(uris, union_by_name=True)
    mine = [(rows.session == session) & (rows.log == number) for session, number in places]
    return bool(rows.filter(ibis.or_(*mine)).limit(1).count().to_pyarrow().as_py())


def read(folder: Path, engine: ibis.BaseBackend, prefix: str = "") -> Tables:
    """The tables of an archive in any engine, which knows them by their names after PREFIX.

    DuckDB reads the files. Other engines read the Delta tables; to one that does not get at them the rows are sent.
    """
    if engine.name == engines.DUCKDB:
        return Tables({name: _of_files(folder, name, engine, prefix) for name in COLUMNS}, engine)
    here, by_name, reached = engines.duckdb(), {}, True
    for name, columns in COLUMNS.items():
        table, read = _table(folder, name), None
        if reached and table is not None and table.file_uris():
            there = [field.name for field in table.schema().fields]
            read = engine_tables.of_delta(engine, prefix + name, folder / name, columns, there)
            reached = read is not None
        if read is None:
            read = engine_tables.of_rows(engine, prefix + name, _of_files(folder, name, here, ""), columns)
        by_name[name] = read
    return Tables(by_name, engine)


def _of_files(folder: Path, name: str, engine: ibis.BaseBackend, prefix: str) -> ir.Table:
    table = _table(folder, name)
    uris = table.file_uris() if table is not None else []
    if not uris:
        duckdb_tables.empty(engine, prefix + name, COLUMNS[name])
        return duckdb_tables.table(engine, prefix + name, COLUMNS[name])
    return duckdb_tables.of_parquet(engine, prefix + name, uris, COLUMNS[name])


def erase(folder: Path, install: str) -> int:
    """Removes all rows of an installation and every byte of them; how many rows there were."""
    if not install.isalnum():
        raise UsageProblem(f"'{install}' is no id of an installation: letters and digits")
    with _failures_told(folder, "erased"), _held(folder, fcntl.LOCK_EX):
        return _erase(folder, install)


def _erase(folder: Path, install: str) -> int:
    rows = 0
    # Sessions go last: who runs it again after an error needs them.
    mine = _sessions_of(folder, install)
    for name in sorted(COLUMNS, key=lambda name: name == "sessions"):
        table = _table(folder, name)
        if table is None:
            continue
        whose = f"install = '{install}'"
        if mine:
            # A segment whose bio is lost has its session alone.
            whose += f" OR (install IS NULL AND session IN ({', '.join(mine)}))"
        rows += table.delete(whose)["num_deleted_rows"]
        table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False, full=True)
        table.create_checkpoint()
        # The log before the checkpoint names the installation: in the predicate of the deletion.
        table.cleanup_metadata()
    return rows


def _sessions_of(folder: Path, install: str) -> list[str]:
    """An installation's sessions as texts of SQL."""
    sessions = _of_files(folder, "sessions", engines.duckdb(), "")
    found = sessions.filter(sessions.install == install).select("session").distinct().to_pyarrow().to_pylist()
    return ["'" + row["session"].replace("'", "''") + "'" for row in found if row["session"] is not None]
