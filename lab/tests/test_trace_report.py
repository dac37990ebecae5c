# SPDX-License-Identifier: GPL-2.0-only
"""A report: numbers that are the records', coverage beside each, losses said; and two traces compared."""

from __future__ import annotations

import csv
import dataclasses
import html
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from typing import Any, NoReturn

import ibis
import pytest
from click.testing import CliRunner
from rich.console import Console
from trace_generator import write as generate
from trace_records import HEAD, SECOND, SESSION, START_NS, Record, bio, exported, record, write

from fasttrack_lab.commands.trace import command
from fasttrack_lab.host.errors import UsageProblem
from fasttrack_lab.host.paths import CHECKOUT
from fasttrack_lab.trace import (
    cells,
    difference,
    engines,
    exporting,
    logs,
    sources,
    trace_plots,
    trace_report,
    trace_shown,
)
from fasttrack_lab.trace.metric import METRICS
from fasttrack_lab.trace.tables import COLUMNS
from fasttrack_lab.trace.trace_report import Report


def reported(monkeypatch: pytest.MonkeyPatch, records: Sequence[Record]) -> Report:
    exported(monkeypatch, [*HEAD, *records])
    return trace_report.make(logs.read([Path("logs")], engines.duckdb()), ["logs"])


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archive") / "traces"
    generate(folder, 5000)
    return folder


WRITES = [*bio(1, SECOND), *bio(2, 2 * SECOND, owner=""), *bio(3, 3 * SECOND, sync="false", cause="writeback")]
READ = bio(9, 4 * SECOND, operation="read", cause="read", sync="false", bytes=8192)


def test_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    report = reported(monkeypatch, [*WRITES, *READ])
    rows = {name: answer.rows for name, answer in report.answers.items()}
    assert [(row["operation"], row["count"], row["bytes"]) for row in rows["reads_writes"]] == [
        ("read", 1, 8192),
        ("write", 3, 3 * 4096),
    ]
    (sync,) = rows["sync_share"]
    assert (sync["writes"], sync["sync"], sync["sync_share"]) == (3, 2, 2 / 3)
    assert [(row["cause"], row["count"]) for row in rows["sync_calls"]] == [("fsync", 2)]
    assert [(row["uid"], row["written"], row["sync_writes"]) for row in rows["apps"]] == [
        (10101, 8192, 1),
        (-1, 4096, 1),
    ]
    (database,) = rows["databases"]
    assert (database["database"], database["mode"], database["db_written"]) == ("/data/x.db", "none seen", 3 * 4096)
    assert report.seconds == 3.0


def test_a_report_reads_what_metrics_count_over(tmp_path: Path) -> None:
    """With these columns alone it says the same."""
    call = record("call", 5 * SECOND, task=2, kind="fsync", file=2, duration_ns=1000)
    lost = record("loss", 5 * SECOND, reason="ring_overrun", cpu=1, since=4 * SECOND, count=17)
    write(tmp_path, [*HEAD, *WRITES, *READ, call, lost])
    few, whole = (sources.open_all([tmp_path], counted=counted) for counted in (True, False))
    assert set(few.io.columns) < set(whole.io.columns)
    said = trace_report.make(whole, []).to_json()
    assert trace_report.make(few, []).to_json() == said
    exported_few = logs.of_records(_few_columns(tmp_path), engines.duckdb(), counted=True)
    assert trace_report.make(exported_few, []).to_json() == said


def test_queries_are_kept_until_what_makes_them_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTTRACK_CACHE", str(tmp_path))
    chosen = trace_report.ask(lambda tables: tables, counted=True)
    assert not list(tmp_path.iterdir())
    made = trace_report.ask()
    assert made == chosen
    with monkeypatch.context() as kept:
        kept.setattr(trace_report, "_no_tables", _refused)
        assert trace_report.ask() == made
        with monkeypatch.context() as other, pytest.raises(AssertionError):
            other.setattr(trace_report, "version", lambda package: f"another {package}")
            trace_report.ask()
        with pytest.raises(AssertionError):
            trace_report.ask(counted=False)
        source = tmp_path / "metric.py"
        source.write_text("")
        kept.setattr(trace_report, "_sources", lambda: [source])
        with pytest.raises(AssertionError):
            trace_report.ask()


_WITHOUT = """
import sys
from pathlib import Path
from fasttrack_lab.commands import trace
report = trace._reported([Path(sys.argv[1])], None, {}, None, None, None)
print(len(report.answers["reads_writes"].rows), "ibis" in sys.modules)
"""


def test_kept_queries_need_no_ibis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To load it takes half a second and more."""
    monkeypatch.setenv("FASTTRACK_CACHE", str(tmp_path / "cache"))
    (tmp_path / "records").mkdir()
    write(tmp_path / "records", [*HEAD, *WRITES])
    argv = [sys.executable, "-c", _WITHOUT, str(tmp_path / "records")]
    said = [subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True).stdout for _ in range(2)]
    assert said == ["1 True\n", "1 False\n"]


def _refused(counted: bool) -> NoReturn:
    raise AssertionError(f"queries are made: {counted}")


def _few_columns(folder: Path) -> list[Path]:
    """The same as `fasttrack-trace export --by-session --columns` writes it for a report."""
    session = folder / "few" / SESSION
    session.mkdir(parents=True)
    for file in folder.glob("*.csv"):
        kind = file.stem
        with file.open(newline="") as whole, (session / file.name).open("w", newline="") as few:
            rows = csv.DictReader(whole)
            asked = exporting.COUNTED.get(kind, " ".join(rows.fieldnames or [])).split()
            columns = ["log", *(column for column in asked if column not in ("session", "log"))]
            writer = csv.DictWriter(few, columns, extrasaction="ignore", lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    (session / "damage.csv").rename(session.parent / "damage.csv")
    return [session, session.parent]


def test_coverage(monkeypatch: pytest.MonkeyPatch) -> None:
    report = reported(monkeypatch, [*WRITES, *READ])
    assert report.answers["apps"].coverage == 3 / 4
    assert trace_shown.coverage(report.answers["apps"], report) == "coverage 75.0 %"
    calls = report.answers["calls"]
    assert (calls.recorded, calls.coverage, calls.rows) == (False, 0.0, [])
    assert METRICS["calls"] in report.absent()
    text = shown(report)
    assert re.search(r"not recorded, coverage 0:.*\bCalls\b", text, re.DOTALL)


def test_what_is_all_unknown_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not 0 % of synchronous writes where nobody knows which are."""
    report = reported(monkeypatch, bio(1, SECOND, sync=""))
    assert not report.answers["sync_share"].recorded
    assert report.answers["sync_share"].rows == []


def shown(report: Report) -> str:
    console = Console(width=140, record=True, file=StringIO())
    console.print(trace_shown.terminal(report))
    return console.export_text()


def test_a_loss_stands_beside_each_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = record("loss", 5 * SECOND, reason="ring_overrun", cpu=1, since=4 * SECOND, count=17)
    uncounted = record("loss", 6 * SECOND, reason="ring_overrun", cpu=1, since=5 * SECOND)
    report = reported(monkeypatch, [*WRITES, lost, uncounted])
    assert "LOST (ring_overrun): 17 records, 1 times nobody knows how many; 2 intervals" in shown(report)
    assert "may be too small" in trace_shown.coverage(report.answers["reads_writes"], report)
    assert report.to_json()["lossy"] is True


def test_a_sample_stands_beside_its_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums over bios are not those of the whole, and that is said; calls are all there, and nothing is lost."""
    session = record("session", SECOND, install="ef", kernel="6.12", sample=10)
    left = record("loss", 5 * SECOND, reason="sampled", since=SECOND, count=27)
    call = record("call", 5 * SECOND, task=2, kind="fsync", file=2, duration_ns=1000)
    report = reported(monkeypatch, [session, *bio(1, SECOND, weight=10), left, call])
    assert (report.sample, report.lossy, report.to_json()["sample"]) == (10, False, 10)
    assert "LEFT OUT (sampled): 27 records; 1 intervals" in shown(report)
    said = trace_shown.coverage(report.answers["reads_writes"], report)
    assert said == "coverage 100.0 %; of a sample, one bio of 10: not scaled"
    assert trace_shown.coverage(report.answers["calls"], report) == "coverage 100.0 %"
    whole = reported(monkeypatch, [*WRITES])
    assert (whole.sample, whole.sampled(whole.answers["reads_writes"])) == (1, False)


def test_boots_are_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a boot clock of its own."""
    other = [
        (
            kind,
            fields
            | {"session": "01" * 16, "log": 2}
            | ({"real_ns": START_NS + 100 * SECOND} if kind == "clock" else {}),
        )
        for kind, fields in [*HEAD, *bio(1, SECOND), *bio(2, 2 * SECOND)]
    ]
    report = reported(monkeypatch, [*bio(1, SECOND), *bio(2, 3 * SECOND), *other])
    assert report.seconds == 3.0
    rows = report.answers["over_time"].rows
    assert [row["written"] for row in rows] == [4096] * 4
    assert 98_000 < rows[-1]["ms"] - rows[0]["ms"] < 102_000


def test_a_report_over_nothing_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    report = reported(monkeypatch, [])
    assert shown(report).strip() == "logs: no I/O was recorded"
    assert "no I/O was recorded" in trace_shown.page(report)
    lost = reported(monkeypatch, [record("loss", 5 * SECOND, reason="disk_error", count=17)])
    assert [line.rstrip() for line in shown(lost).strip().splitlines()] == [
        "logs: no I/O can be read; records are lost",
        "LOST (disk_error): 17 records; 1 intervals",
    ]
    assert "17 records" in trace_shown.page(lost)


WAL = [
    record("file", 2000, file=6, event="first_use", path="/data/y.db", file_type="sqlite_db"),
    record("file", 2000, file=8, event="first_use", path="/data/y.db-wal", file_type="sqlite_wal"),
]
"""A second database, with a write-ahead log."""


def modes(
    monkeypatch: pytest.MonkeyPatch, records: Sequence[Record], row_bytes: dict[str, int]
) -> list[dict[str, Any]]:
    exported(monkeypatch, [*HEAD, *WAL, *records])
    tables = logs.read([Path("logs")], engines.duckdb())
    found: list[dict[str, Any]] = METRICS["sqlite_modes"](replace(tables, row_bytes=row_bytes)).to_pyarrow().to_pylist()
    return found


def test_sqlite_by_journal_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    """/data/x.db has a rollback journal, /data/y.db a log."""
    synced = [record("call", 5 * SECOND + n, task=2, kind="fsync", file=4, duration_ns=1000) for n in range(3)]
    synced += [record("call", 6 * SECOND, task=2, kind=kind, file=8, duration_ns=9) for kind in ("fdatasync", "write")]
    written = [*WRITES, *bio(4, 4 * SECOND, file=4), *bio(5, 5 * SECOND, file=8), *bio(6, 6 * SECOND, file=6)]
    names = ("mode", "databases", "db_pages", "journal_pages", "syncs", "device_bytes", "told", "row_bytes", "factor")
    rows = modes(monkeypatch, [*written, *synced], {"/data/x.db": 512})
    assert [tuple(row[name] for name in names) for row in rows] == [
        ("rollback", 1, 3, 1, 3, 4 * 4096, 1, 512, 32.0),
        ("wal", 1, 1, 1, 1, 2 * 4096, 0, None, None),
    ]


def test_what_a_trace_does_not_know_of_sqlite_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without calls, how many syncs there were; without being told, what rows had. Not 0."""
    (row,) = modes(monkeypatch, WRITES, {})
    assert [row[name] for name in ("mode", "told", "syncs", "row_bytes", "factor")] == [
        "none seen",
        0,
        None,
        None,
        None,
    ]


def test_bytes_of_rows_are_told_by_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write(tmp_path, [*HEAD, *WRITES])
    asked = ["report", str(tmp_path), "--json", "-", "--row-bytes"]
    done = CliRunner().invoke(command, [*asked, "/data/x.db=1 KiB"], catch_exceptions=False)
    (row,) = json.loads(done.stdout)["metrics"]["sqlite_modes"]["rows"]
    assert (row["row_bytes"], row["factor"]) == (1024, 12.0)
    for wrong in ("1 KiB", "=1 KiB", "/data/x.db=much"):
        with pytest.raises(UsageProblem, match="--row-bytes .*valid: DATABASE=SIZE"):
            CliRunner().invoke(command, [*asked, wrong], catch_exceptions=False)


class Links(HTMLParser):
    """What a page would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.headings = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.headings += tag == "h2"
        self.fetched += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href")]


def test_the_database_is_asked_for_nothing_that_is_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, archive: Path
) -> None:
    """Ibis asks for the columns of each table that it makes, by a query: of a small trace that is half of the time."""

    def asked(*_: object, **__: object) -> NoReturn:
        raise AssertionError("asked for columns")

    monkeypatch.setattr(type(engines.duckdb()), "get_schema", asked)
    (tmp_path / "older").mkdir()
    write(tmp_path / "older", [*HEAD, *WRITES])
    (tmp_path / "older" / "wait.csv").unlink()
    for path in (archive, tmp_path / "older"):
        assert not trace_report.make(sources.open_all([path]), []).is_empty


def test_the_page_stands_alone(archive: Path) -> None:
    report = trace_report.make(sources.open_all([archive]), ["archive"])
    page = trace_shown.page(report)
    parser = Links()
    parser.feed(page)
    assert [link for link in parser.fetched if not link.startswith("#")] == []
    assert parser.headings == sum(answer.recorded for answer in report.answers.values()) + bool(report.absent())
    assert page.count("<svg") >= 12
    assert "Androtrace, A4" in page


@pytest.mark.parametrize(
    ("metric", "texts"),
    [
        ("by_hour", ["hour of the day, in the device's time zone (h)", "volume (MiB)", "0", "23"]),
        ("by_day", ["date, in the device's time zone (days)", "volume (MiB)", "2026-09-21"]),
        ("life_spans", ["files that ended (number)", "under 1 s", "unknown", "sqlite_db"]),
        ("app_latency", ["time (ms)", "10001 read"]),
        ("apps", ["volume (MiB)", "of it synchronous", "10001 app-10001"]),
        ("top_files", ["synchronous writes (number of segments)", "…/app/file-0-journal"]),
        ("databases", ["written (MiB)", "rollback journal", "WAL", "/data/app/file-0"]),
        ("sizes", ["bios of up to that size (number)", "4 KiB", "256 KiB", "write"]),
        ("file_types", ["share of the operation's bytes (%)", "sqlite_wal", "temp"]),
    ],
)
def test_a_plot_names_its_axes_and_bars(archive: Path, metric: str, texts: list[str]) -> None:
    drawn = trace_plots.draw(trace_report.make(sources.open_all([archive]), []).answers[metric])
    assert drawn is not None
    assert [text for text in texts if f">{html.escape(text, quote=False)}</text>" not in drawn] == []


def test_the_plot_of_a_list_says_what_it_leaves_out(archive: Path) -> None:
    report = trace_report.make(sources.open_all([archive]), [])
    assert {name for name, answer in report.answers.items() if trace_plots.left_out(answer)} == {
        "apps",
        "top_files",
        "databases",
        "app_latency",
        "payers",
    }
    more = len(report.answers["apps"].rows) - 12
    assert f"The first rows; the table has {more} more." in trace_shown.page(report)


def test_what_nobody_knows_is_the_last_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour of -1 is none."""
    known = reported(monkeypatch, WRITES).answers["by_hour"]
    row = known.rows[0]
    unknown = dataclasses.replace(known, rows=[row | {"hour": -1}, row])
    drawn = trace_plots.draw(unknown)
    assert drawn is not None and drawn.index(">23</text>") < drawn.index(">unknown</text>")


@pytest.mark.parametrize("metric", ["apps", "top_files", "databases"])
def test_lists_begin_with_most_synchronous_writes(archive: Path, metric: str) -> None:
    rows = trace_report.make(sources.open_all([archive]), []).answers[metric].rows
    found = [row["sync_writes"] for row in rows]
    assert found == sorted(found, reverse=True) and found[0] > found[-1]


def test_every_figure_says_what_it_is(archive: Path) -> None:
    data = trace_report.make(sources.open_all([archive]), ["archive"]).to_json()
    json.dumps(data)
    for name, metric in data["metrics"].items():
        assert all(metric[key] for key in ("title", "unit", "formula", "source")), name
        assert 0.0 <= metric["coverage"] <= 1.0, name
    over_time = data["metrics"]["over_time"]["rows"]
    assert sum(row["read"] + row["written"] for row in over_time) == sum(
        row["bytes"] for row in data["metrics"]["reads_writes"]["rows"] if row["operation"] in ("read", "write")
    )


def test_percentiles_are_the_nearest_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    took = [7, 1, 3, 3, 9, 5, 2, 8, 6, 4]
    requests = [record("request", SECOND + us, operation="write", device_ns=us * 1000, bytes=1) for us in took]
    report = reported(monkeypatch, [*WRITES, *requests])
    rows = report.answers["app_latency"].metric(logs.read([Path("logs")], engines.duckdb())).to_pyarrow().to_pylist()
    in_order = sorted(took)
    assert [(one["count"], one["p50"], one["p90"], one["p99"], one["longest"]) for one in rows] == [
        (10, in_order[4], in_order[8], in_order[9], 9)
    ]


def test_a_trace_does_not_differ_from_itself(archive: Path) -> None:
    tables = sources.open_all([archive])
    found = difference.compare(tables, tables)
    assert [one.figure.title for one in found if one.differs] == []
    for one in found:
        assert one.difference.value == 0.0
        assert one.first.low is not None and one.first.high is not None and one.first.value is not None
        assert one.first.low < one.first.value < one.first.high


def test_what_differs_is_found(archive: Path) -> None:
    """Twice the reads."""
    tables = sources.open_all([archive])
    io = tables.io
    twice = tables.by_name | {"io": io.union(io.filter(io.operation == "read"))}
    found = difference.compare(tables, type(tables)(twice, tables.engine))
    assert {one.figure.title for one in found if one.differs} == {"read", "writes, of reads and writes"}


def test_a_row_of_a_sample_counts_by_its_weight(archive: Path) -> None:
    """Reads that stand for two each are as many as twice the reads."""
    tables = sources.open_all([archive])
    read = tables.io.operation == "read"
    twice = tables.by_name | {"io": tables.io.union(tables.io.filter(read))}
    heavy = tables.by_name | {"io": tables.io.mutate(weight=ibis.ifelse(read, 2, 1))}
    by_rows, by_weight = (difference.compare(tables, type(tables)(one, tables.engine)) for one in (twice, heavy))
    assert [one.second for one in by_rows] == [one.second for one in by_weight]


def test_the_document_has_every_metric_and_table() -> None:
    text = (CHECKOUT / "docs" / "TRACE-QUERIES.md").read_text()
    assert [name for name, one in METRICS.items() if f"| {name} | {one.formula} | {one.source} |" not in text] == []
    assert [name for name in COLUMNS if f"\n| {name} | " not in text] == []


def test_every_number_of_a_metric_has_a_unit(archive: Path) -> None:
    """Else the page would show microseconds as bare digits."""
    report = trace_report.make(sources.open_all([archive]), ["archive"])
    bare = {
        f"{name}.{column}"
        for name, answer in report.answers.items()
        for row in answer.rows
        for column, value in row.items()
        if isinstance(value, int | float) and not cells.unit_of(answer.metric, column)
    }
    assert not bare
    assert sum(bool(answer.rows) for answer in report.answers.values()) > 20


@pytest.mark.parametrize(
    ("metric", "column", "value", "text"),
    [
        ("calls", "p50", 0, "0 us"),
        ("calls", "p50", 999, "999 us"),
        ("calls", "p99", 13471, "13.5 ms"),
        ("calls", "longest", 624418, "624 ms"),
        ("calls", "longest", 12_345_678, "12.3 s"),
        ("foreground_coefficient", "busy", 2_000_000, "2 s"),
        ("foreground_coefficient", "coefficient", 0.425, "42.5 %"),
        ("known", "known", 3 << 20, "3.0 MiB"),
        ("calls", "count", 1_500_000, "1500000"),
        ("apps", "uid", -1, "unknown"),
        ("apps", "uid", 10102, "10102"),
        ("sizes", "kib", -1, "larger"),
        ("by_day", "day", 19675, "2023-11-14"),
        ("over_time", "ms", 1_700_000_000_007, "2023-11-14 22:13:20.007"),
        ("over_time", "ms", 12_345, "12.345 s"),
        ("by_day", "day", -1, "unknown"),
        ("journaling_of_journal", "factor", 1.5, "1.50"),
        ("apps", "name", None, "-"),
        ("life_spans", "life", "0 under 1 s", "under 1 s"),
        ("life_spans", "life", "unknown", "unknown"),
    ],
)
def test_a_value_is_shown_with_its_unit(metric: str, column: str, value: float | str | None, text: str) -> None:
    assert cells.cell(METRICS[metric], column, value) == text


def lost(since: float, until: float, **more: Any) -> Record:
    """A loss between two times, s of the boot clock."""
    fields = {"reason": "ring_overrun", "cpu": 1, "since": int(since * SECOND), "count": 17} | more
    return record("loss", int(until * SECOND), **fields)


def overlapped(report: Report, metric: str, key: str) -> dict[Any, int]:
    return {row[key]: row["losses"] for row in report.answers[metric].rows}


HOUR = 3600
# The boot clock's 0 is 2023-11-14 23:13:20 there: these are at 23, at 0, and at 1 o'clock.
NIGHT = [*bio(1, SECOND), *bio(2, HOUR * SECOND), *bio(3, 2 * HOUR * SECOND)]


def test_a_row_that_a_loss_overlaps_is_marked_and_others_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    report = reported(monkeypatch, [*NIGHT, lost(HOUR - 60, HOUR - 50)])
    assert overlapped(report, "by_hour", "hour") == {23: 0, 0: 1, 1: 0}
    assert list(overlapped(report, "by_day", "day").values()) == [0, 1]
    steps = list(overlapped(report, "over_time", "ms").values())
    # A step is 24 s: the bio's begins at 3576 s, after the loss.
    assert steps == [0, 0, 0]
    near = reported(monkeypatch, [*NIGHT, lost(HOUR - 60, HOUR - 1)])
    assert list(overlapped(near, "over_time", "ms").values()) == [0, 1, 0]
    assert trace_shown.coverage(near.answers["over_time"], near).endswith("in 1 of 3 rows, by the column losses")
    text = "coverage 100.0 %; rows may be missing: 1 losses overlap none"
    assert trace_shown.coverage(report.answers["over_time"], report) == text
    assert "may be too small" in trace_shown.coverage(report.answers["sizes"], report)
    told = report.to_json()["metrics"]
    assert [told[name]["lossy"] for name in ("over_time", "by_hour", "reads_writes")] == [True, True, True]


def test_a_loss_that_overlaps_no_row_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two at 2 o'clock, equal, of which no bio is left."""
    report = reported(monkeypatch, [*NIGHT, *[lost(3 * HOUR, 3 * HOUR + 1)] * 2])
    assert set(overlapped(report, "by_hour", "hour").values()) == {0}
    assert {row["elsewhere"] for row in report.answers["by_hour"].rows} == {2}
    told = report.to_json()["metrics"]
    assert told["over_time"]["lossy"] and told["by_hour"]["lossy"]
    assert {row["elsewhere"] for name in ("by_day", "installations") for row in report.answers[name].rows} == {0}


@pytest.mark.parametrize(
    ("since", "until", "hours"),
    [
        (0, 1, {23: 1, 0: 0, 1: 0}),
        (0, HOUR, {23: 1, 0: 1, 1: 0}),
        (HOUR, 2 * HOUR, {23: 0, 0: 1, 1: 1}),
        (0, 30 * HOUR, {23: 1, 0: 1, 1: 1}),
        (3 * HOUR, 4 * HOUR, {23: 0, 0: 0, 1: 0}),
    ],
)
def test_a_loss_overlaps_the_hours_between_its_ends(
    monkeypatch: pytest.MonkeyPatch, since: int, until: int, hours: dict[int, int]
) -> None:
    assert overlapped(reported(monkeypatch, [*NIGHT, lost(since, until)]), "by_hour", "hour") == hours


def test_a_loss_whose_time_nobody_knows_overlaps_all(monkeypatch: pytest.MonkeyPatch) -> None:
    damage = ("damage", {"path": "x", "at": 9, "bytes": 5, "what": "cut"})
    report = reported(monkeypatch, [*NIGHT, damage])
    assert overlapped(report, "by_hour", "hour") == {23: 1, 0: 1, 1: 1}
    assert set(overlapped(report, "over_time", "ms").values()) == {1}


def test_what_is_not_in_an_interval_does_not_mark_it(monkeypatch: pytest.MonkeyPatch) -> None:
    exported(monkeypatch, [*HEAD, *NIGHT, lost(HOUR - 60, HOUR - 50)])
    tables = logs.read([Path("logs")], engines.duckdb())
    for since, until in ((0, HOUR - 61), (HOUR, None)):
        report = trace_report.make(tables.between(since, until), ["logs"])
        assert not any(answer["lossy"] for answer in report.to_json()["metrics"].values())
    report = trace_report.make(tables.between(HOUR - 55, HOUR), ["logs"])
    assert report.to_json()["metrics"]["reads_writes"]["lossy"]


def test_what_a_sample_leaves_marks_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    report = reported(monkeypatch, [*NIGHT, lost(0, 3 * HOUR, reason="sampled")])
    assert set(overlapped(report, "by_hour", "hour").values()) == {0}


def test_what_is_slow_to_load_is_not_loaded() -> None:
    """A report of log files, a second long, does without."""
    asked = (
        "import sys; from fasttrack_lab.trace import engines, logs, sources, trace_report, trace_shown;"
        "print([one for one in ('pyarrow', 'pandas', 'deltalake', 'matplotlib') if one in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", asked], cwd=CHECKOUT / "lab", capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("hostile", ["/data/$a$b", "/data/$\\frac{$", "/data/\\alpha_{x}^", "$$", "<b>&amp;"])
def test_a_plot_shows_any_path_as_it_is(monkeypatch: pytest.MonkeyPatch, hostile: str) -> None:
    """What matplotlib takes for mathematics is text."""
    named = record("file", 3000, file=9, event="first_use", path=hostile, file_type="sqlite_db", bytes=0)
    report = reported(monkeypatch, [named, *bio(1, SECOND, file=9)])
    drawn = trace_plots.draw(report.answers["databases"])
    assert drawn is not None and html.escape(hostile, quote=False) in drawn
