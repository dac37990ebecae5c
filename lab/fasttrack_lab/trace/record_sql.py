# SPDX-License-Identifier: GPL-2.0-only
"""The tables of a trace as queries over its records, in DuckDB's SQL: names, classes and clocks are joined to rows.

Records are views `r_KIND`, one for each kind of contract/trace.toml. Plain text, for Ibis takes a second to make it.
Of joins the right side is held in memory: the few names, or the bios. Who reads few columns of many calls pays for no
join that these do not need; DuckDB would make it, since it does not know that a row has one match at most.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

_LAST = (1 << 63) - 1
_SQLITE_ENDS = r"-(journal|wal|shm|mj[0-9A-Fa-f]*)$"
_DATABASE = f"CASE WHEN starts_with(file_type, 'sqlite_') THEN regexp_replace(path, '{_SQLITE_ENDS}', '') END"


def _ranges(columns: str, record: str, key: str) -> str:
    """Each description with the times, ns, from and until which it is true: the first from the beginning on."""
    return f"""
        SELECT {columns}, CASE WHEN row_number() OVER w = 1 THEN 0 ELSE time END AS true_from,
            coalesce(lead(time) OVER w, {_LAST}) AS true_until
        FROM {record} WINDOW w AS (PARTITION BY {key} ORDER BY time)"""


def _timed(record: str, wanted: Collection[str] | None = None) -> str:
    """With the installation, seconds, hours and real time, as far as they, or what is made from them, are WANTED."""
    columns, joins = ["r.*", "r.time // 1000000000 AS second"], []
    if _any(wanted, "utc_offset_s", "real_ns", "hour", "life_ms"):
        columns += [
            "c.utc_offset_s",
            "r.time + c.real_offset AS real_ns",
            "((r.time + c.real_offset) // 1000000000 + coalesce(c.utc_offset_s, 0)) // 3600 AS hour",
        ]
        joins.append(f"LEFT JOIN _clocks c ON r.session = c.session AND r.log = c.log AND {_then('c')}")
    if _any(wanted, "install", "every_call"):
        columns += ["s.install", "s.bound"]
        joins.append("LEFT JOIN _sessions s ON r.session = s.session")
    return f"SELECT {', '.join(columns)} FROM {record} r {' '.join(joins)}"


def _any(wanted: Collection[str] | None, *columns: str) -> bool:
    """Whether one of the COLUMNS is WANTED; None: all are."""
    return wanted is None or any(column in wanted for column in columns)


def _then(described: str) -> str:
    """Whether a description is that of a row's time."""
    return f"r.time >= {described}.true_from AND r.time < {described}.true_until"


def _task(by: str, short: str = "t") -> str:
    """The task that column BY refers to."""
    place = f"r.session = {short}.session AND r.log = {short}.log"
    return f"LEFT JOIN _tasks {short} ON {place} AND r.{by} = {short}.task AND {_then(short)}"


_JOIN_FILE = f"LEFT JOIN _names n ON r.session = n.session AND r.log = n.log AND r.file = n.file AND {_then('n')}"
_FILE = ("n", _JOIN_FILE, ("path", "file_type", "database"))
_OWNER = ("uid", "name", "kernel_thread")
_THREAD = (*_OWNER, "pid", "tgid")


_WEIGHT = "REPLACE (coalesce(r.weight, 1) AS weight)"
"""A row that is of no sample stands for itself."""


def _joined(columns: str, rows: str, *joins: str) -> str:
    return f"SELECT {columns} FROM {rows} r {' '.join(joins)}"


def _named(wanted: Collection[str], *described: tuple[str, str, Collection[str]]) -> tuple[str, list[str]]:
    """The columns, each after a comma, and the joins that give a WANTED one: of alias, join and what it gives."""
    needed = [one for one in described if _any(wanted, *one[2])]
    return "".join(f", {alias}.{column}" for alias, _, gives in needed for column in gives), [one[1] for one in needed]


KEPT = {
    "_sessions": "SELECT session, max(install) AS install, max(calls_over_us) AS bound FROM r_session GROUP BY session",
    "_clocks": _ranges("session, log, real_ns - time AS real_offset, utc_offset_s", "r_clock", "session, log"),
    "_tasks": _ranges("*", "r_task", "session, log, task"),
    "_names": _ranges(f"session, log, file, path, file_type, {_DATABASE} AS database", "r_file", "session, log, file"),
    "_bios": _timed("r_bio"),
}
"""What rows refer to, by the table that it is kept in, in the order of making."""


def _io() -> str:
    """A bio is sequential if it begins where the one before it ended."""
    rows = """(SELECT * RENAME (carrier AS carrier_task, transaction AS journal_transaction),
        sector = lag(sector + bytes // 512) OVER (PARTITION BY session, dev, operation ORDER BY time, bio) AS sequential
        FROM _bios)"""
    carrier = """t.name AS carrier, t.kernel_thread AS carrier_kernel, t.pid AS carrier_pid, t.tgid AS carrier_tgid,
        t.uid AS carrier_uid"""
    return _joined(f"r.* {_WEIGHT}, {carrier}", rows, _task("carrier_task"))


def _segments(wanted: Collection[str]) -> str:
    sent = "b.operation, b.sync, b.class, b.cause, b.app_uid, b.dev"
    when = "b.install, b.second, b.hour, b.real_ns, b.utc_offset_s"
    bio = "LEFT JOIN _bios b ON r.session = b.session AND r.bio = b.bio"
    made = "r.owner AS owner_task, r.index AS page"
    names, joins = _named(wanted, ("t", _task("owner"), _OWNER), _FILE)
    return _joined(f"r.* {_WEIGHT}, {made}, {when}, {sent}{names}", "r_segment", bio, *joins)


def _requests(wanted: Collection[str]) -> str:
    bio = "LEFT JOIN _bios b ON r.session = b.session AND r.first_bio = b.bio"
    made = "r.queued_ns // 1000 AS queued_us, r.device_ns // 1000 AS device_us"
    return _joined(
        f"r.* {_WEIGHT}, {made}, b.sync, b.class, b.cause, b.app_uid", f"({_timed('r_request', wanted)})", bio
    )


_DURATION = "r.duration_ns // 1000 AS duration_us"


def _calls(wanted: Collection[str]) -> str:
    """`every_call` is 1 where calls are recorded however short they are, else unknown."""
    made = f"{_DURATION}, r.time - r.duration_ns AS began"
    if _any(wanted, "every_call"):
        made += ", CASE WHEN r.bound = 0 THEN 1 END AS every_call"
    names, joins = _named(wanted, ("t", _task("task"), _THREAD), _FILE)
    return _joined(f"r.*, {made}{names}", f"({_timed('r_call', wanted)})", *joins)


def _waits(wanted: Collection[str]) -> str:
    """`nested`: within another wait of its thread, that ended no earlier and began before this ended.

    A record's times are when it was written, so begins are late, those of outer ones too; ends are in the right order.
    """
    rows = f"""
        (SELECT * RENAME (uid AS app_uid, index AS page, transaction AS journal_transaction),
            time - duration_ns AS began, min(time - duration_ns) OVER (
                PARTITION BY session, task, thread ORDER BY time DESC, duration_ns DESC
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) AS around
        FROM ({_timed("r_wait", wanted)}))"""
    nested = "CASE WHEN r.thread IS NOT NULL THEN coalesce(r.around < r.time, false) END AS nested"
    names, joins = _named(wanted, ("t", _task("task"), _THREAD), _FILE)
    who = names.replace("t.uid", "coalesce(t.uid, r.app_uid) AS uid")
    return _joined(f"r.*, {_DURATION}, {nested}{who}", rows, *joins)


def _transactions() -> str:
    made = "r.* REPLACE (t.name AS carrier), r.transaction AS journal_transaction, r.carrier AS carrier_task"
    joins = _task("trigger", "a"), _task("carrier")
    return _joined(f"{made}, a.uid AS trigger_uid, a.name AS trigger_name", f"({_timed('r_transaction')})", *joins)


def _shares() -> str:
    made = "r.transaction AS journal_transaction"
    return _joined(f"r.*, {made}, t.uid, t.name, t.kernel_thread", f"({_timed('r_share')})", _task("task"))


def _files() -> str:
    life = "CASE WHEN event = 'unlink' THEN real_ns - created_ns END // 1000000"
    return f"SELECT *, {_DATABASE} AS database, {life} AS life_ms FROM ({_timed('r_file')})"


def _losses() -> str:
    """Loss records, what the budget left out, and what could not be read. Calls and waits have no weight."""
    unsampled = "(coalesce(calls, 0) + coalesce(waits, 0))"
    clock_set = """
        EXISTS (
            SELECT 1 FROM _clocks k
            WHERE k.session = l.session AND k.log = l.log AND k.true_from > l.since AND k.true_from <= l.time
        ) AS clock_set"""
    return f"""
        SELECT l.*, count AS lost, {clock_set} FROM ({_timed("r_loss")}) l
        UNION ALL BY NAME
        SELECT l.*, 'budget' AS reason, (records - {unsampled}) * coalesce(weight, 1) + {unsampled} AS lost,
            (coalesce(read_bytes, 0) + coalesce(written_bytes, 0)) * coalesce(weight, 1) AS bytes, {clock_set}
        FROM ({_timed("r_aggregate")}) l
        UNION ALL BY NAME
        SELECT d.* EXCLUDE (path, "at", records) REPLACE (d.path || ': ' || d.what || ' at byte ' || d."at" AS what),
            'unreadable' AS reason, d.records AS lost, s.install
        FROM r_damage d LEFT JOIN _sessions s ON d.session = s.session"""


TABLES: dict[str, tuple[str | None, Callable[[Collection[str]], str]]] = {
    "sessions": ("session", lambda _: _timed("(SELECT * EXCLUDE install FROM r_session)")),
    "io": ("bio", lambda _: _io()),
    "segments": ("segment", _segments),
    "requests": ("request", _requests),
    "calls": ("call", _calls),
    "waits": ("wait", _waits),
    "transactions": ("transaction", lambda _: _transactions()),
    "shares": ("share", lambda _: _shares()),
    "files": ("file", lambda _: _files()),
    "losses": (None, lambda _: _losses()),
    "tasks": ("task", lambda _: _timed("r_task")),
}
"""Table -> the record that a row is of, if it is of one, and the query of its rows by the columns that are wanted. It
has more columns."""
