# SPDX-License-Identifier: GPL-2.0-only
"""From log files to tables: `fasttrack-trace export` reads them, here names, classes and clocks are joined to rows.

What was exported already, or imported of other tools' files, is read as it is.
"""

from __future__ import annotations

import tempfile
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

import ibis
import ibis.expr.types as ir

from fasttrack_lab.build import guest_program
from fasttrack_lab.host import process, ui
from fasttrack_lab.host.errors import InputError, LabError
from fasttrack_lab.host.paths import CHECKOUT
from fasttrack_lab.trace import duckdb_tables
from fasttrack_lab.trace.tables import COLUMNS, FLAG, INT, TEXT, Tables, shaped

CONTRACT = CHECKOUT / "contract" / "trace.toml"
DAMAGED = 3
"""Exit status of `fasttrack-trace export` after it has told of damage and has written the rest."""
SUFFIX = ".ftlog"

_TYPES = {"u64": INT, "i64": INT, "time": INT, "bool": FLAG, "string": TEXT}
_DAMAGE = {"path": TEXT, "at": INT, "bytes": INT, "records": INT, "what": TEXT, "session": TEXT, "log": INT}
"""Only an import knows of which session a damaged file is."""
_NS = 1_000_000_000
_HOUR_S = 3600
_LAST = (1 << 63) - 1
_LIFE_FROM = 1_000_000
"""ns in a ms."""


def record_columns() -> dict[str, dict[str, str]]:
    """Record -> column -> type, as `fasttrack-trace export` writes them."""
    contract = tomllib.loads(CONTRACT.read_text())
    place = {"session": TEXT, "log": INT}
    found = {
        name: place | {field["name"]: _TYPES.get(field["type"], TEXT) for field in record["fields"]}
        for name, record in contract["record"].items()
    }
    return found | {"damage": _DAMAGE}


def is_logs(path: Path) -> bool:
    """Whether PATH is a log file or a directory that has one."""
    return path.suffix == SUFFIX or (path.is_dir() and any(path.glob(f"*{SUFFIX}")))


def is_exported(path: Path) -> bool:
    """Whether PATH is a directory of records as `fasttrack-trace export` and `./fasttrack trace import` make it."""
    return all((path / f"{record}.csv").is_file() for record in ("session", "bio", "damage"))


def is_archive(path: Path) -> bool:
    """Whether PATH is the directory of an archive (`delta.py`)."""
    return (path / "io" / "_delta_log").is_dir()


def export(paths: Sequence[Path], to: Path) -> None:
    """Log files as CSV files."""
    program = str(guest_program.build(guest_program.COLLECTOR))
    argv = [program, "export", "--output", str(to), *map(str, paths)]
    ended = process.finish(process.start(argv, stderr=None), None)
    if ended.status not in (0, DAMAGED):
        raise LabError(f"fasttrack-trace export ended with status {ended.status}")
    if ended.status == DAMAGED:
        ui.say("the damaged parts are losses in what follows")


def read(paths: Sequence[Path], engine: ibis.BaseBackend) -> Tables:
    """The tables of log files, directories of them and directories of records, in ENGINE, which is DuckDB."""
    with tempfile.TemporaryDirectory(prefix="fasttrack-trace-") as where, duckdb_tables.joined_as_told(engine):
        folders = [path for path in paths if is_exported(path)]
        if logged := [path for path in paths if path not in folders]:
            export(logged, Path(where))
            folders.append(Path(where))
        records = Records(engine, folders)
        by_name = {}
        for name, (record, make) in _MAKE.items():
            if record is not None and records.lacks(record):
                by_name[name] = duckdb_tables.empty(engine, name, COLUMNS[name])
                continue
            table = make(records).cast(COLUMNS[name]).select(*COLUMNS[name])
            by_name[name] = duckdb_tables.kept(engine, name, table)
        return Tables(by_name, engine)


class Records:
    """Records of log files, each kind a table, and what they refer to."""

    def __init__(self, engine: ibis.BaseBackend, folders: Sequence[Path]) -> None:
        """Tables of the CSV files in FOLDERS."""
        self._engine = engine
        self._folders = folders
        self._columns = record_columns()
        self._kept: dict[str, ir.Table] = {}
        self._key = self._keep("sessions", self._session())
        self._clock = self._keep("clocks", self._ranges(self.of("clock"), ["session", "log"]))
        self.tasks = self._keep("tasks", self._ranges(self.of("task"), ["session", "log", "task"]))
        self.files = self._keep("names", self._ranges(_named(self.of("file")), ["session", "log", "file"]))
        self.bios = self._keep("bios", self.timed(self.of("bio")))

    def _keep(self, name: str, table: ir.Table) -> ir.Table:
        return duckdb_tables.kept(self._engine, f"_{name}", table)

    def _files(self, record: str) -> list[Path]:
        """Those of a kind: an older export does not have every kind."""
        return [file for folder in self._folders if (file := folder / f"{record}.csv").exists()]

    def lacks(self, record: str) -> bool:
        """Whether there is no record of a kind: only headings."""
        return not any(_has_rows(file) for file in self._files(record))

    def of(self, record: str) -> ir.Table:
        """All records of a kind."""
        if record not in self._kept:
            files, columns = self._files(record), self._columns[record]
            parts = [self._read(file, f"_{record}_{place}", columns) for place, file in enumerate(files)]
            parts = parts or [duckdb_tables.empty(self._engine, f"_no_{record}", columns)]
            self._kept[record] = ibis.union(*parts) if len(parts) > 1 else parts[0]
        return self._kept[record]

    def _read(self, file: Path, name: str, columns: dict[str, str]) -> ir.Table:
        """A file. Its heading says which columns it has: fewer where it is older, more where it is newer."""
        with file.open(encoding="utf-8") as lines:
            heading = next(lines, "").rstrip("\n").split(",")
        if heading == [""]:
            heading = list(columns)
        if not set(heading) & set(columns):
            raise InputError("no file of records: its heading has none of their columns", file)
        return duckdb_tables.of_csv(self._engine, name, file, heading, columns)

    def _session(self) -> ir.Table:
        """Session -> installation, and calls that took less are left out (us)."""
        sessions = self.of("session")
        return sessions.group_by("session").agg(install=sessions.install.max(), bound=sessions.calls_over_us.max())

    @staticmethod
    def _ranges(table: ir.Table, key: list[str]) -> ir.Table:
        """Each description with the times, ns, from and until which it is true: the first from the beginning on."""
        window = ibis.window(group_by=key, order_by=table.time)
        first = ibis.row_number().over(window) == 0
        return table.mutate(
            true_from=ibis.ifelse(first, 0, table.time),
            true_until=table.time.lead().over(window).fill_null(_LAST),
        )

    def timed(self, table: ir.Table) -> ir.Table:
        """With the installation, seconds, hours and real time."""
        clock = self._clock
        table = table.view()
        true = [*_same("session", "log"), *_true_then(table, clock)]
        offset = (clock.real_ns - clock.time).name("real_offset")
        clocked = table.left_join(clock, true).select(table, offset, clock.utc_offset_s)
        keyed = self.placed(clocked)
        real = keyed.time + keyed.real_offset
        local_s = _whole(real, _NS) + keyed.utc_offset_s.fill_null(0)
        return keyed.mutate(second=_whole(keyed.time, _NS), real_ns=real, hour=_whole(local_s, _HOUR_S))

    def placed(self, table: ir.Table) -> ir.Table:
        """With the installation."""
        return self._of_session(table, "install")

    def with_bound(self, calls: ir.Table) -> ir.Table:
        """With `every_call`: 1 where calls are recorded however short they are, else unknown."""
        joined = self._of_session(calls, "bound")
        return joined.mutate(every_call=ibis.ifelse(joined.bound == 0, 1, ibis.null(INT)))

    def _of_session(self, table: ir.Table, column: str) -> ir.Table:
        """With what is known of each row's session."""
        return table.left_join(self._key.select("session", column), "session").drop("session_right")

    def with_task(self, table: ir.Table, by: str, names: dict[str, str]) -> ir.Table:
        """With columns of the task that column BY refers to: NAMES has the task's names of them."""
        return self._described(table, self.tasks, "task", by, names)

    def with_file(self, table: ir.Table) -> ir.Table:
        """With the file that column `file` refers to."""
        names = {"path": "path", "file_type": "file_type", "database": "database"}
        return self._described(table, self.files, "file", "file", names)

    @staticmethod
    def _described(table: ir.Table, names: ir.Table, key: str, by: str, wanted: dict[str, str]) -> ir.Table:
        table = table.view()
        true = [*_same("session", "log"), (by, key), *_true_then(table, names)]
        found = {new: names[old] for new, old in wanted.items()}
        kept = [column for column in table.columns if column not in found]
        return table.left_join(names, true).select(*(table[column] for column in kept), **found)


def _has_rows(file: Path) -> bool:
    with file.open(encoding="utf-8") as lines:
        return next(lines, "") != "" and next(lines, None) is not None


def _same(*columns: str) -> list[tuple[str, str]]:
    """Columns in which two rows of a join are equal."""
    return [(column, column) for column in columns]


def _true_then(row: ir.Table, described: ir.Table) -> list[ir.BooleanValue]:
    """Whether a description is that of a row's time."""
    return [row.time >= described.true_from, row.time < described.true_until]


def _whole(number: ir.Value, unit: int) -> ir.Value:
    """NUMBER by UNIT without the rest, exactly: engines divide in floating point."""
    return ((number - number % unit) / unit).cast(INT)


_SQLITE_ENDS = r"-(journal|wal|shm|mj[0-9A-Fa-f]*)$"


def _named(files: ir.Table) -> ir.Table:
    """With the database that a file is part of."""
    stem = files.path.re_replace(_SQLITE_ENDS, "")
    return files.mutate(database=ibis.ifelse(files.file_type.startswith("sqlite_"), stem, ibis.null(TEXT)))


_TASK = {"uid": "uid", "name": "name", "kernel_thread": "kernel_thread"}
_THREAD = {**_TASK, "pid": "pid", "tgid": "tgid"}


def _sessions(records: Records) -> ir.Table:
    return records.timed(records.of("session").drop("install"))


_CARRIER = {
    "carrier": "name",
    "carrier_kernel": "kernel_thread",
    "carrier_pid": "pid",
    "carrier_tgid": "tgid",
    "carrier_uid": "uid",
}


def _io(records: Records) -> ir.Table:
    bios = records.bios
    window = ibis.window(group_by=["session", "dev", "operation"], order_by=[bios.time, bios.bio])
    end = (bios.sector + _whole(bios.bytes, 512)).lag().over(window)
    io = bios.rename(journal_transaction="transaction").mutate(sequential=bios.sector == end, carrier_task=bios.carrier)
    return records.with_task(io, "carrier", _CARRIER)


_OF_BIO = ("operation", "sync", "class", "cause", "app_uid", "dev")


def _segments(records: Records) -> ir.Table:
    segments, bios = records.of("segment"), records.bios
    timed = [bios[name] for name in ("install", "second", "hour", "real_ns", *_OF_BIO)]
    joined = segments.left_join(bios, _same("session", "bio")).select(
        segments, *timed, owner_task=segments.owner, page=segments["index"]
    )
    return records.with_file(records.with_task(joined, "owner", _TASK))


def _requests(records: Records) -> ir.Table:
    requests, bios = records.timed(records.of("request")), records.bios
    of_bio = [bios[name] for name in ("sync", "class", "cause", "app_uid")]
    joined = requests.left_join(bios, [("session", "session"), ("first_bio", "bio")]).select(requests, *of_bio)
    return joined.mutate(queued_us=_whole(joined.queued_ns, 1000), device_us=_whole(joined.device_ns, 1000))


def _calls(records: Records) -> ir.Table:
    calls = records.timed(records.of("call"))
    calls = calls.mutate(duration_us=_whole(calls.duration_ns, 1000), began=calls.time - calls.duration_ns)
    return records.with_file(records.with_task(records.with_bound(calls), "task", _THREAD))


def _waits(records: Records) -> ir.Table:
    waits = records.timed(records.of("wait"))
    waits = waits.mutate(duration_us=_whole(waits.duration_ns, 1000), began=waits.time - waits.duration_ns)
    waits = waits.rename(app_uid="uid", page="index", journal_transaction="transaction")
    named = records.with_file(records.with_task(_nested(waits), "task", _THREAD))
    return named.mutate(uid=named.uid.fill_null(named.app_uid))


def _nested(waits: ir.Table) -> ir.Table:
    """With whether each is within another one of its thread: that ended no earlier, and began before this ended.

    A record's times are when it was written, so begins are late, those of outer ones too; ends are in the right order.
    """
    order = [ibis.desc(waits.time), ibis.desc(waits.duration_ns)]
    window = ibis.window(group_by=["session", "task", "thread"], order_by=order)
    running = ibis.window(group_by=["session", "task", "thread"], order_by=order, preceding=None, following=0)
    waits = waits.mutate(least=waits.began.min().over(running))
    waits = waits.mutate(around=waits.least.lag().over(window))
    within = (waits.around < waits.time).fill_null(False)
    return waits.mutate(nested=ibis.ifelse(waits.thread.isnull(), ibis.null(FLAG), within))


def _transactions(records: Records) -> ir.Table:
    made = records.timed(records.of("transaction")).rename(journal_transaction="transaction")
    made = made.mutate(carrier_task=made.carrier)
    triggered = records.with_task(made, "trigger", {"trigger_uid": "uid", "trigger_name": "name"})
    return records.with_task(triggered, "carrier", {"carrier": "name"})


def _shares(records: Records) -> ir.Table:
    made = records.timed(records.of("share")).rename(journal_transaction="transaction")
    return records.with_task(made, "task", _TASK)


def _files(records: Records) -> ir.Table:
    files = records.timed(_named(records.of("file")))
    gone = ibis.ifelse(files.event == "unlink", files.real_ns - files.created_ns, ibis.null(INT))
    return files.mutate(life_ms=_whole(gone, _LIFE_FROM))


def _tasks(records: Records) -> ir.Table:
    return records.timed(records.of("task"))


def _losses(records: Records) -> ir.Table:
    """Loss records, what the budget left out, and what could not be read."""
    lost = records.timed(records.of("loss").rename(lost="count"))
    over = records.timed(records.of("aggregate"))
    moved = over.read_bytes.fill_null(0) + over.written_bytes.fill_null(0)
    damage = records.placed(records.of("damage"))
    where = damage.path + ibis.literal(": ") + damage.what + ibis.literal(" at byte ") + damage.at.cast(TEXT)
    kinds = (
        lost,
        over.mutate(reason=ibis.literal("budget"), lost=over.records, bytes=moved),
        damage.mutate(reason=ibis.literal("unreadable"), lost=damage.records, what=where),
    )
    return ibis.union(*(shaped(kind, "losses") for kind in kinds))


_MAKE: dict[str, tuple[str | None, Callable[[Records], ir.Table]]] = {
    "sessions": ("session", _sessions),
    "io": ("bio", _io),
    "segments": ("segment", _segments),
    "requests": ("request", _requests),
    "calls": ("call", _calls),
    "waits": ("wait", _waits),
    "transactions": ("transaction", _transactions),
    "shares": ("share", _shares),
    "files": ("file", _files),
    "losses": (None, _losses),
    "tasks": ("task", _tasks),
}
"""Table -> the record that a row is of, if it is of one, and how it is made."""
