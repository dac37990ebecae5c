# SPDX-License-Identifier: GPL-2.0-only
"""Perfetto's own trace processor reads what trace perfetto writes, and the tracepoints by device/trace/perfetto/."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from perfetto_trace import decode
from test_trace_perfetto import CALLED, COMMIT, REQUEST, WAITED
from trace_generator import write as generate
from trace_processor import Unavailable, asked, fetched
from trace_records import HEAD, SECOND, bio, exported

from fasttrack_lab.host.paths import CHECKOUT
from fasttrack_lab.trace import engines, logs, perfetto_export, sources
from fasttrack_lab.trace.importers.wire_encode import blob, integer, string

PERFETTO = CHECKOUT / "device" / "trace" / "perfetto"
SQL = (PERFETTO / "fasttrack.sql").read_text()
EVENTS = CHECKOUT / "kernel" / "overlay" / "include" / "trace" / "events"
WRONG = "SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0"


@pytest.fixture(scope="module")
def processor() -> Path:
    try:
        return fetched()
    except Unavailable as reason:
        pytest.skip(f"Perfetto's trace processor: {reason}")


def test_it_has_what_was_written(processor: Path, tmp_path: Path) -> None:
    generate(tmp_path / "archive", 5000)
    out = tmp_path / "x.pftrace"
    perfetto_export.write(sources.open_all([tmp_path / "archive"]), out)
    data = out.read_bytes()
    expected = decode(data)
    wrong, slices, sums, counts, processes = asked(
        processor,
        data,
        [
            WRONG,
            "SELECT category, count(*) AS n, sum(dur) AS dur FROM slice GROUP BY category",
            "SELECT count(*) AS n, count(parent_id) AS inner, sum(dur < 0) AS open FROM slice",
            "SELECT count(*) AS n, cast_int!(min(value)) AS least FROM counter",
            "SELECT count(*) AS n FROM process WHERE name = 'app-10001 uid 10001'",
        ],
    )
    assert wrong == []
    every = [*expected.slices, *expected.instants]
    number, took = Counter(one.category for one in every), Counter[str]()
    for one in every:
        took[one.category] += (one.end or 0) - one.begin
    assert {row["category"]: (row["n"], row["dur"]) for row in slices} == {
        category: (count, took[category]) for category, count in number.items()
    }
    assert sums == [{"n": len(every), "inner": sum(one.parent is not None for one in every), "open": 0}]
    assert counts == [{"n": sum(map(len, expected.counts.values())), "least": 0}]
    assert processes == [{"n": 1}]


def test_it_reads_a_cut_file_up_to_the_cut(processor: Path, tmp_path: Path) -> None:
    generate(tmp_path / "archive", 2000)
    out = tmp_path / "x.pftrace"
    perfetto_export.write(sources.open_all([tmp_path / "archive"]), out)
    data = out.read_bytes()
    data = data[: len(data) // 2]
    expected = decode(data)
    assert expected.cut
    (rows,) = asked(processor, data, ["SELECT count(*) AS n FROM slice"])
    assert rows == [{"n": len(expected.slices) + len(expected.instants)}]


def test_flows_clocks_and_threads(processor: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exported(monkeypatch, [*HEAD, *bio(1, 2 * SECOND - 6000, carrier=2), CALLED, WAITED, REQUEST, COMMIT])
    out = tmp_path / "x.pftrace"
    perfetto_export.write(logs.read([Path("logs")], engines.duckdb()), out)
    wrong, flows, threads, nested = asked(
        processor,
        out.read_bytes(),
        [
            WRONG,
            "SELECT a.category AS a, b.category AS b FROM flow JOIN slice a ON a.id = slice_out "
            "JOIN slice b ON b.id = slice_in",
            "SELECT tid, thread.name AS thread, pid FROM slice JOIN thread_track t ON t.id = track_id "
            "JOIN thread USING (utid) JOIN process USING (upid) WHERE category = 'call'",
            "SELECT ts, dur, extract_arg(arg_set_id, 'debug.path') AS path FROM slice WHERE category = 'call'",
        ],
    )
    assert wrong == []
    assert flows == [{"a": "call", "b": "bio"}, {"a": "bio", "b": "request"}]
    assert threads == [{"tid": 10, "thread": 'mail, "new"', "pid": 10}]
    assert nested == [{"ts": SECOND - 1, "dur": 2 * SECOND + 1, "path": "/data/x.db"}]


def test_the_names_are_those_of_the_contract() -> None:
    enums = tomllib.loads(logs.CONTRACT.read_text())["enum"]
    told: dict[str, dict[int, str]] = {}
    for what, number, name in re.findall(r"\('(\w+)', (\d+), '(\w+)'\)", SQL):
        told.setdefault(what, {})[int(number)] = name
    # Numbers of operations are the kernel's, REQ_OP_*.
    operations = told.pop("operation")
    assert set(operations.values()) < set(enums["operation"]["names"])
    assert told == {what: dict(enumerate(enums[what]["names"])) for what in told}
    assert {"block_type", "call_kind", "cause", "class", "transaction_kind", "wait_kind"} <= told.keys()


def test_views_and_configuration_name_events_that_are_there() -> None:
    headers = {path.stem: path.read_text() for path in EVENTS.glob("*.h")}
    views = re.findall(r"VIEW (\w+) AS\nSELECT\n(.*?)FROM ftrace_event\nWHERE name = '(\w+)'", SQL, re.DOTALL)
    assert len(views) == 8
    for _, columns, event in views:
        (fields,) = re.findall(rf"TRACE_EVENT_FN\({event},.*?TP_fast_assign", headers["io_origin"], re.DOTALL)
        for name in re.findall(r"extract_arg\(arg_set_id, '(\w+)'\)", columns):
            assert re.search(rf"__(field\(\w+, {name}\)|string\({name}, )", fields), (event, name)
    config = (PERFETTO / "fasttrack.cfg").read_text()
    systems = set(re.findall(r'ftrace_events: "(\w+)/\*"', config))
    assert systems == {"io_origin", "fasttrack"} and systems <= headers.keys()


def block(time: int, field: int) -> bytes:
    """An event of a request's: inserted, issued or completed."""
    rwbs = string(5, "WS")
    return blob(
        2, integer(1, time) + integer(2, 10) + blob(field, integer(1, 8 << 8) + integer(2, 8) + integer(3, 8) + rwbs)
    )


def generic(time: int, event: str, pid: int = 10, /, **fields: Any) -> bytes:
    """An ftrace event that Perfetto has no message for."""
    said = string(1, event)
    for key, value in fields.items():
        said += blob(2, string(1, key) + (string(3, value) if isinstance(value, str) else integer(5, value)))
    return blob(2, integer(1, time) + integer(2, pid) + blob(327, said))


def test_views(processor: Path) -> None:
    """Of events as Perfetto's own recorder writes them."""
    dev = 8 << 20 | 1
    events = [
        generic(1000, "io_task", task=2, tgid=10, uid=10101, name="mail", kernel_thread=0),
        generic(1000, "io_file", file=3, event=0, dev=dev, inode=12, bytes=7, path="/data/x.db"),
        generic(5000, "io_bio", bio=1, dev=dev, operation=1, sector=8, bytes=4096, cause=3, carrier=2, **{"class": 2}),
        generic(5000, "io_segment", bio=1, offset=0, bytes=4096, block_type=1, file=3, index=0, owner=2, call=3),
        generic(9000, "io_wait", task=2, dev=dev, file=3, kind=3, number=7, took_ns=3000, **{"class": 2}),
        generic(9500, "io_call", task=2, file=3, call=3, offset=0, bytes=0, took_ns=5000, result=0),
        generic(
            9600, "io_transaction", dev=dev, transaction=7, kind=0, trigger=2, trigger_call=3, took_ns=600, blocks=9
        ),
    ]
    events += [
        generic(9700, "io_share", dev=dev, transaction=7, kind=0, task=2, handles=3, blocks=9, through_flusher=1),
        *(block(*event) for event in ((5000, 126), (6000, 45), (8000, 125), (8500, 45), (8700, 125))),
        generic(9800, "io_wait", 11, task=2, dev=dev, file=3, kind=2, number=0, took_ns=1000, **{"class": 2}),
    ]
    trace = blob(1, blob(1, integer(1, 0) + b"".join(events)))
    results = asked(
        processor,
        trace,
        [
            SQL,
            WRONG,
            "SELECT call, f.path, k.name, c.ts, c.dur FROM fasttrack_call c JOIN fasttrack_file f USING (file) "
            "JOIN fasttrack_task k USING (task)",
            "SELECT ts, dur, kind, class, number FROM fasttrack_wait WHERE kind = 'transaction'",
            "SELECT dev, operation, class, cause, block_type, call FROM fasttrack_bio "
            "JOIN fasttrack_segment USING (bio)",
            "SELECT ts, dur, kind, trigger_call, trigger_task, blocks FROM fasttrack_transaction",
            "SELECT task, blocks, through_flusher FROM fasttrack_share",
            "SELECT ts, dur, dev, operation, bytes, queued_ns, device_ns FROM fasttrack_request ORDER BY ts",
            "SELECT call, kind, dur FROM fasttrack_call_wait",
        ],
    )
    assert results[1] == []
    assert [list(row.values()) for rows in results[2:] for row in rows] == [
        ["fsync", "/data/x.db", "mail", 4500, 5000],
        [6000, 3000, "transaction", "foreground", 7],
        ["8:1", "write", "foreground", "fsync", "data", "fsync"],
        [9000, 600, "jbd2", "fsync", 2, 9],
        [2, 9, 1],
        [5000, 3000, "8:0", "write", 4096, 1000, 2000],
        [8500, 200, "8:0", "write", 4096, None, 200],
        # The other wait is another thread's.
        ["fsync", "transaction", 3000],
    ]
