# SPDX-License-Identifier: GPL-2.0-only
"""Intervals by the boot clock, by the device's clock on the wall, and by real time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from trace_records import HEAD, INSTALL, SECOND, START_NS, Record, bio, exported, record, write

from fasttrack_lab.commands.trace import command
from fasttrack_lab.host.errors import UsageProblem
from fasttrack_lab.trace import delta, engines, interval, logs, sources
from fasttrack_lab.trace.interval import Moment
from fasttrack_lab.trace.metrics import METRICS
from fasttrack_lab.trace.tables import Tables

# The boot clock's 0 is 2023-11-14 23:13:20 there, an hour ahead of UTC.
WRITES = [write for number in range(1, 10) for write in bio(number, number * 10 * SECOND)]


def tables_of(monkeypatch: pytest.MonkeyPatch, records: Sequence[Record]) -> Tables:
    exported(monkeypatch, [*HEAD, *records])
    return logs.read([Path("logs")], engines.duckdb())


def within(tables: Tables, since: str | None, until: str | None, table: str = "io") -> list[int]:
    """Numbers of the bios in an interval, or seconds of another table's rows."""
    moments: list[Moment | None] = [None if text is None else interval.parse(text) for text in (since, until)]
    rows = tables.between(*moments).by_name[table].order_by("time").to_pyarrow().to_pylist()
    return [row["bio"] if table == "io" else row["time"] // SECOND for row in rows]


@pytest.mark.parametrize(
    ("since", "until", "bios"),
    [
        (None, None, [1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ("30", "50.5", [3, 4, 5]),
        ("2023-11-14T23:14", "2023-11-14T23:14:20", [4, 5, 6]),
        ("2023-11-14 23:14:30.5", None, [8, 9]),
        (None, "2023-11-14T22:14Z", [1, 2, 3, 4]),
        ("2023-11-14T21:14:20-01:00", None, [6, 7, 8, 9]),
        ("2023-11-14", "2023-11-15", [1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ("2023-11-15", None, []),
        ("30", "2023-11-14T23:14:00", [3, 4]),
    ],
)
def test_times(monkeypatch: pytest.MonkeyPatch, since: str | None, until: str | None, bios: list[int]) -> None:
    # A record is written when the clocks have been read: times are 1000 ns early.
    assert within(tables_of(monkeypatch, moved(WRITES, 1000)), since, until) == bios


def moved(records: Sequence[Record], ns: int) -> list[Record]:
    return [(kind, fields | {"time": fields["time"] + ns}) for kind, fields in records]


def clock(second: int, shown_s: int, offset_s: int) -> Record:
    """A jump: the boot clock's SECOND is SHOWN_S after the start's real time from then on."""
    return record("clock", second * SECOND, reason="jump", real_ns=START_NS + shown_s * SECOND, utc_offset_s=offset_s)


def test_a_clock_that_was_set_back_shows_an_hour_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """At 45 s it is set back by 30 s: 23:13:50 to 23:14:05 is twice."""
    t = tables_of(monkeypatch, moved([*WRITES, clock(45, 15, 3600)], 1000))
    assert within(t, "2023-11-14T23:13:50", "2023-11-14T23:14:00") == [3, 4, 6, 7]


def test_a_clock_that_was_set_forward_skips(monkeypatch: pytest.MonkeyPatch) -> None:
    t = tables_of(monkeypatch, moved([*WRITES, clock(45, 3645, 3600)], 1000))
    assert within(t, "2023-11-14T23:14:05", "2023-11-15T00:14:05") == []
    assert within(t, "2023-11-15T00:14:05", None) == [5, 6, 7, 8, 9]


def test_a_time_zone_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The phone lands: its clock shows two hours more, and real time is what it was."""
    t = tables_of(monkeypatch, moved([*WRITES, clock(45, 45, 3 * 3600)], 1000))
    assert within(t, "2023-11-15T01:00", None) == [5, 6, 7, 8, 9]
    assert within(t, "2023-11-14T22:14:05Z", None) == [5, 6, 7, 8, 9]
    assert within(t, None, "2023-11-15T00:59", "segments") == [10, 20, 30, 40]


def test_a_loss_is_there_with_a_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = [record("loss", 60 * SECOND, reason="ring_overrun", cpu=1, since=30 * SECOND, count=17)]
    damage = ("damage", {"path": "x", "at": 9, "bytes": 5, "what": "cut"})
    t = tables_of(monkeypatch, [*WRITES, *lost, damage])
    for since, until, there in (
        ("2023-11-14T23:14:10", None, True),
        (None, "2023-11-14T23:13:55", True),
        (None, "2023-11-14T23:13:45", False),
        ("2023-11-14T23:14:25", None, False),
        ("31", "32", True),
    ):
        rows = t.between(*(one and interval.parse(one) for one in (since, until))).losses.to_pyarrow().to_pylist()
        assert [row["reason"] for row in rows if row["time"]] == ["ring_overrun"] * there, (since, until)
        assert "unreadable" in [row["reason"] for row in rows]


@pytest.mark.parametrize(("shown_s", "offset_s"), [(15, 3600), (3645, 3600), (45, 7200)])
def test_a_loss_in_which_the_clock_was_set_is_in_all(
    monkeypatch: pytest.MonkeyPatch, shown_s: int, offset_s: int
) -> None:
    """At 45 s, back by 30 s, forward by an hour, or to another time zone; another loss is where it was."""
    lost = [
        record("loss", until * SECOND, reason="ring_overrun", cpu=1, since=since * SECOND, count=17)
        for since, until in ((30, 60), (10, 20))
    ]
    t = tables_of(monkeypatch, moved([*WRITES, *lost, clock(45, shown_s, offset_s)], 1000))
    assert within(t, "2023-11-14T23:13:55", "2023-11-14T23:14:04", "losses") == [60]
    assert within(t, "2023-11-14T22:13:55Z", "2023-11-14T22:14:04Z", "losses") == [60]
    assert within(t, "2023-11-14T23:13:35", "2023-11-14T23:13:36", "losses") == [20, 60]
    assert within(t, "62", "63", "losses") == []
    rows = {name: METRICS[name](t).to_pyarrow().to_pylist() for name in ("by_hour", "over_time")}
    assert all(row["losses"] for found in rows.values() for row in found)


def test_a_time_without_a_zone_needs_one(tmp_path: Path) -> None:
    """Of a trace that knows real times, but not where it was."""
    without = [
        (kind, {name: value for name, value in fields.items() if name != "utc_offset_s"}) for kind, fields in HEAD
    ]
    write(tmp_path, [*without, *moved(WRITES, 1000)])
    with pytest.raises(UsageProblem, match="write a time zone, as 2026-11-27T10:00Z"):
        counted(str(tmp_path), "--since", "2023-11-14T22:14")
    assert counted(str(tmp_path), "--since", "2023-11-14T22:14Z") == 6


def test_rows_of_an_older_archive_have_their_log_file_s_offset(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    older = {
        name: {column: kind for column, kind in columns.items() if name == "sessions" or column != "utc_offset_s"}
        for name, columns in logs.COLUMNS.items()
    }
    write(tmp_path, [*HEAD, *moved(WRITES, 1000)])
    with monkeypatch.context() as before:
        before.setattr(logs, "COLUMNS", older)
        delta.append(tmp_path / "archive", [tmp_path])
    t = sources.open_all([tmp_path / "archive"])
    assert set(t.io.utc_offset_s.to_pyarrow().to_pylist()) == {None}
    assert within(t, "2023-11-14T23:14", "2023-11-14T23:14:20") == [4, 5, 6]


def counted(*arguments: str) -> int:
    done = CliRunner().invoke(command, ["report", *arguments, "--json", "-"], catch_exceptions=False)
    rows: list[dict[str, Any]] = json.loads(done.stdout)["metrics"]["reads_writes"]["rows"]
    return sum(row["count"] for row in rows)


def test_by_the_command(tmp_path: Path) -> None:
    """Logs as records, and an archive, on two engines."""
    write(tmp_path, [*HEAD, *moved(WRITES, 1000)])
    delta.append(tmp_path / "archive", [tmp_path])
    asked = "--since", "2023-11-14T23:14", "--until", "2023-11-14T23:14:20"
    assert counted(str(tmp_path), *asked) == 3
    assert counted(str(tmp_path / "archive"), *asked) == 3
    assert counted(str(tmp_path), *asked, "--install", INSTALL) == 3
    pytest.importorskip("chdb")
    assert counted(str(tmp_path / "archive"), *asked, "--engine", "chdb") == 3


def test_what_is_no_time_is_refused(tmp_path: Path) -> None:
    for wrong in ("yesterday", "10:00", "2026-13-01"):
        with pytest.raises(UsageProblem, match=f"'{wrong}' is no time: write seconds of the boot clock"):
            interval.parse(wrong)
    assert interval.parse("2026-11-27T10:00") == datetime(2026, 11, 27, 10)
    without = [(kind, fields) for kind, fields in HEAD if kind != "clock"]
    write(tmp_path, [*without, *WRITES])
    with pytest.raises(UsageProblem, match="does not know the real time"):
        counted(str(tmp_path), "--since", "2023-11-14")


def test_help_says_what_a_time_is() -> None:
    for name in ("report", "explain", "perfetto"):
        text = " ".join(CliRunner().invoke(command, [name, "--help"]).output.split())
        assert "in its own time zone (2026-11-27, 2026-11-27T10:00" in text
