# SPDX-License-Identifier: GPL-2.0-only
"""From records to tables: names as they were, clocks, losses; and other tools' recordings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from recorded import recorded
from trace_records import HEAD, INSTALL, SECOND, START_NS, Record, bio, exported, record, write

from fasttrack_lab.host.errors import InputError
from fasttrack_lab.trace import duckdb_tables, engines, logs, sources
from fasttrack_lab.trace.metrics import METRICS
from fasttrack_lab.trace.tables import COLUMNS, Tables


def tables_of(monkeypatch: pytest.MonkeyPatch, records: Sequence[Record]) -> Tables:
    exported(monkeypatch, [*HEAD, *records])
    return logs.read([Path("logs")], engines.duckdb())


def rows(table: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.order_by("time").to_pyarrow().to_pylist()
    return found


def test_columns_are_those_that_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, table in tables_of(monkeypatch, []):
        assert dict(zip(table.columns, map(str, table.schema().types), strict=True)) == COLUMNS[name]


def test_no_column_hides_a_method() -> None:
    """Ibis has Table.op; Arrow's dictionaries and unsigned numbers stop an engine."""
    for columns in COLUMNS.values():
        assert "op" not in columns
        assert set(columns.values()) <= {"int64", "string", "boolean"}


def test_names_are_those_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    renamed = record("file", 5 * SECOND, file=2, event="rename", path="/data/y.db", file_type="sqlite_db")
    t = tables_of(monkeypatch, [*bio(1, 3 * SECOND), renamed, *bio(2, 6 * SECOND), *bio(3, 7 * SECOND, file=4)])
    assert [row["path"] for row in rows(t.segments)] == ["/data/x.db", "/data/y.db", "/data/x.db-journal"]
    assert [row["database"] for row in rows(t.segments)] == ["/data/x.db", "/data/y.db", "/data/x.db"]
    assert {(row["uid"], row["name"], row["kernel_thread"]) for row in rows(t.segments)} == {
        (10101, 'mail, "new"', False)
    }
    assert {(row["carrier"], row["carrier_kernel"]) for row in rows(t.io)} == {("kworker/u2:0", True)}


def test_what_nobody_knows_is_null(monkeypatch: pytest.MonkeyPatch) -> None:
    (row,) = rows(tables_of(monkeypatch, bio(1, SECOND, owner="", file="", **{"class": ""})).segments)
    assert [row[name] for name in ("uid", "name", "path", "file_type", "database", "class", "dirtied")] == [None] * 7


def test_clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """From a jump on, the other offset; an hour is that of the device's time zone."""
    jumped = record("clock", 5 * SECOND, reason="jump", real_ns=START_NS + 3600 * SECOND, utc_offset_s=-7200)
    before, after = rows(tables_of(monkeypatch, [*bio(1, 3 * SECOND), jumped, *bio(2, 6 * SECOND)]).io)
    assert before["real_ns"] == START_NS + 3 * SECOND - 1000
    assert before["hour"] == (START_NS // SECOND + 3600) // 3600
    assert after["real_ns"] == START_NS + 3601 * SECOND
    assert after["hour"] == (START_NS // SECOND + 3600 - 7200) // 3600
    assert (before["second"], after["second"], before["install"]) == (3, 6, INSTALL)


def test_requests_have_their_bio_s_class(monkeypatch: pytest.MonkeyPatch) -> None:
    done = {"operation": "write", "bytes": 4096, "queued_ns": 1999, "device_ns": 123_456, "first_bio": 1, "dev": 1}
    (request,) = rows(tables_of(monkeypatch, [*bio(1, SECOND), record("request", 2 * SECOND, **done)]).requests)
    assert [request[name] for name in ("class", "cause", "queued_us", "device_us")] == ["foreground", "fsync", 1, 123]


def test_a_wait_within_another_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records are written late: an outer wait's begin can be later than that of the one within."""

    def wait(began: int, ended: int, kind: str, thread: int | str = 10, **fields: Any) -> Record:
        return record("wait", ended, task=2, kind=kind, thread=thread, duration_ns=ended - began, **fields)

    t = tables_of(
        monkeypatch,
        [
            wait(10_000, 20_000, "bio"),
            wait(12_000, 20_500, "flush"),
            wait(30_000, 40_000, "buffer"),
            wait(40_000, 50_000, "folio"),
            wait(25_000, 50_100, "checkpoint"),
            wait(51_000, 61_000, "folio"),
            # Another thread of the same process, and what no thread is known of.
            wait(11_000, 70_000, "transaction", 17),
            wait(0, 80_000, "hold", ""),
            wait(0, 90_000, "hold", ""),
        ],
    )
    assert [(row["kind"], row["nested"]) for row in rows(t.waits)] == [
        ("bio", True),
        ("flush", False),
        ("buffer", True),
        ("folio", True),
        ("checkpoint", False),
        ("folio", False),
        ("transaction", False),
        ("hold", None),
        ("hold", None),
    ]
    found = METRICS["waits"](t).to_pyarrow().to_pylist()
    assert {row["kind"]: (row["count"], row["sum"]) for row in found}["folio"] == (1, 10)
    (layers,) = METRICS["layers"](t).to_pyarrow().to_pylist()
    assert (layers["page_cache"], layers["journal"]) == (10, 25 + 59)


def test_sequential(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [*bio(1, SECOND), *bio(2, 2 * SECOND), *bio(4, 3 * SECOND), *bio(5, 4 * SECOND, operation="read")]
    assert [row["sequential"] for row in rows(tables_of(monkeypatch, made).io)] == [None, True, False, None]


def test_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a sample each row has its own; elsewhere it stands for itself."""
    sent, block = bio(1, SECOND, weight=10)
    block[1]["weight"] = 10
    request = record("request", 2 * SECOND, dev=1, first_bio=1, bytes=4096, weight=10)
    over = record("aggregate", 3 * SECOND, since=SECOND, records=4, bios=2, written_bytes=8192, weight=10)
    # Calls and waits are never sampled.
    more = record("aggregate", 4 * SECOND, since=3 * SECOND, records=9, bios=2, calls=4, waits=3, weight=10)
    t = tables_of(monkeypatch, [sent, block, request, *bio(2, 2 * SECOND), over, more])
    assert [row["weight"] for row in rows(t.io)] == [10, 1]
    assert [row["weight"] for row in rows(t.segments)] == [10, 1]
    assert [row["weight"] for row in rows(t.requests)] == [10]
    assert [(row["lost"], row["bytes"]) for row in rows(t.losses)] == [(40, 81920), (27, 0)]


def test_losses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lost records, what the budget left out, and damage are all losses."""
    lost = record("loss", 5 * SECOND, reason="ring_overrun", cpu=1, since=4 * SECOND, count=17)
    budget = record("aggregate", 6 * SECOND, since=5 * SECOND, records=40, bios=20, read_bytes=1, written_bytes=2)
    damage = ("damage", {"path": "a.ftlog", "at": 99, "bytes": 50, "what": "its checksum does not match"})
    t = tables_of(monkeypatch, [lost, budget, damage])
    found = {row["reason"]: (row["lost"], row["bytes"], row["what"]) for row in rows(t.losses)}
    assert found == {
        "ring_overrun": (17, None, None),
        "budget": (40, 3, None),
        "unreadable": (None, 50, "a.ftlog: its checksum does not match at byte 99"),
    }
    counted = METRICS["losses"](t).to_pyarrow().to_pylist()
    assert {row["reason"]: (row["lost"], row["uncounted"]) for row in counted}["unreadable"] == (0, 1)

    def between(since_s: float | None, until_s: float | None) -> set[str]:
        return {row["reason"] for row in rows(t.between(since_s, until_s).losses)}

    # Nobody knows when what is unreadable was.
    assert between(None, 4.5) == {"ring_overrun", "unreadable"}
    assert between(None, 3.5) == {"unreadable"}
    assert between(5.5, None) == {"budget", "unreadable"}


def test_an_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    t = tables_of(monkeypatch, [*bio(1, SECOND), *bio(2, 5 * SECOND), *bio(3, 9 * SECOND)]).between(2, 8)
    assert [row["bio"] for row in rows(t.io)] == [2]
    assert len(rows(t.sessions)) == 1


def test_what_is_no_trace(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        sources.open_all([tmp_path / "nothing"])
    with pytest.raises(InputError, match=r"no log file of fasttrack-trace \(\*\.ftlog\) is there"):
        sources.open_all([tmp_path])
    (tmp_path / "text").write_text("hello\n")
    with pytest.raises(InputError, match="the format is not recognised"):
        sources.open_all([tmp_path / "text"])
    with pytest.raises(InputError, match="is read alone"):
        sources.open_all([tmp_path, tmp_path / "text"])
    (tmp_path / "calls").write_text("1 0 fsync 3 0\n")
    with pytest.raises(InputError, match="mobigen has no block I/O"):
        sources.open_all([tmp_path / "calls"])


BLKTRACE = """\
  8,0    1        2     0.000100000   100  D   R 2048 + 8 [app]
  8,0    1        3     0.001100000     0  C   R 2048 + 8 [0]
  8,0    1        4     0.005000000   101  D   WS 4096 + 16 [kworker]
"""


def test_blktrace(tmp_path: Path) -> None:
    (tmp_path / "blktrace").write_text(BLKTRACE)
    t = sources.open_all([tmp_path / "blktrace"])
    assert [(row["operation"], row["bytes"], row["class"]) for row in rows(t.io)] == [
        ("read", 4096, None),
        ("write", 8192, None),
    ]
    assert [row["device_us"] for row in rows(t.requests)] == [1000]


def test_a_phone_s_recording() -> None:
    """What its own records say; what it does not know is unknown."""
    t = sources.open_all([recorded("pixel6a/pubg_precond.csv.gz")])
    counts = {row["operation"]: row["count"] for row in METRICS["reads_writes"](t).to_pyarrow().to_pylist()}
    assert 36_000 < sum(counts.values()) < 38_200
    assert t.io.filter(t.io.sync.notnull() | t.io["class"].notnull()).count().to_pyarrow().as_py() == 0
    assert t.io.filter(t.io.carrier.startswith("kworker")).count().to_pyarrow().as_py() > 1000
    json.dumps(rows(t.io.limit(1)))


def test_many_calls_are_joined_with_few_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Names are held in memory. Of a CSV file DuckDB guesses that it has few rows, and would hold the calls."""
    fields = {"task": 2, "kind": "read", "file": 2, "offset": 0, "bytes": 4096, "duration_ns": 1000, "result": 4096}
    calls = (record("call", 3000 + place, **fields) for place in range(5000))
    names = (
        record("file", 2000, file=number, event="first_use", path=f"/data/{number}") for number in range(6, 4000, 2)
    )
    write(tmp_path, [*HEAD, *names, *calls])
    plans = []
    kept = duckdb_tables.kept

    def explained(engine: Any, name: str, query: str, columns: Any) -> Any:
        plans.append(engine.con.execute(f"EXPLAIN {query}").fetchall()[0][1])
        return kept(engine, name, query, columns)

    monkeypatch.setattr(duckdb_tables, "kept", explained)
    engine = engines.duckdb()
    t = logs.read([tmp_path], engine)
    assert t.calls.count().to_pyarrow().as_py() == 5000
    assert any("Join Type: LEFT" in plan for plan in plans)
    assert [plan for plan in plans if "Join Type: RIGHT" in plan] == []
    assert engine.con.execute("SELECT current_setting('disabled_optimizers')").fetchall() == [("",)]
