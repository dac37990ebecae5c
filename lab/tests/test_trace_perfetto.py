# SPDX-License-Identifier: GPL-2.0-only
"""A trace as Perfetto's: the same counts and times, slices that nest, and a file that may be cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from perfetto_trace import Decoded, decode
from trace_generator import write as generate
from trace_records import HEAD, SECOND, START_NS, Record, bio, exported, record
from trace_story import CAMERA, FSYNC, PEOPLE, sent
from trace_story import request as carried

from fasttrack_lab.host.errors import InputError, UsageProblem
from fasttrack_lab.trace import engines, logs, perfetto_export, perfetto_packets, sources
from fasttrack_lab.trace.importers import wire_encode, wire_format
from fasttrack_lab.trace.tables import Tables

RECORDS = 5000


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    folder = tmp_path_factory.mktemp("archive") / "traces"
    generate(folder, RECORDS)
    return sources.open_all([folder])


@pytest.fixture(scope="module")
def file(tables: Tables, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("perfetto") / "x.pftrace"
    perfetto_export.write(tables, out)
    return out


@pytest.fixture(scope="module")
def found(file: Path) -> Decoded:
    return decode(file.read_bytes())


def written(monkeypatch: pytest.MonkeyPatch, folder: Path, records: Sequence[Record]) -> Decoded:
    exported(monkeypatch, [*HEAD, *records])
    out = folder / "x.pftrace"
    perfetto_export.write(logs.read([Path("logs")], engines.duckdb()), out)
    assert list(folder.iterdir()) == [out]
    return decode(out.read_bytes())


@pytest.mark.parametrize("value", [0, 1, 127, 128, 1 << 32, (1 << 64) - 1, -1, -(1 << 63)])
def test_numbers_are_read_as_they_are_written(value: int) -> None:
    data = wire_encode.integer(5, value) + wire_encode.fixed64(6, value) + wire_encode.string(700, "ä" * 100)
    said = wire_format.message(data)
    assert wire_format.signed(said[5]) == wire_format.signed(said[6]) == (value if value < 1 << 63 else -1)
    assert wire_format.text(said[700]) == "ä" * 100


def test_every_row_is_there_with_its_times(tables: Tables, found: Decoded) -> None:
    for name, category in (("calls", "call"), ("waits", "wait")):
        rows = getattr(tables, name).to_pyarrow().to_pylist()
        expected = Counter((max(0, row["time"] - row["duration_us"] * 1000), row["time"], row["kind"]) for row in rows)
        assert Counter((one.begin, one.end, one.name) for one in found.of(category)) == expected
    rows = tables.requests.to_pyarrow().to_pylist()
    known = [row for row in rows if row["device_us"] is not None]
    took = Counter(
        (max(0, max(0, row["time"] - row["device_us"] * 1000) - row["queued_us"] * 1000), row["time"], row["bytes"])
        for row in known
    )
    assert Counter((one.begin, one.end, one.arguments["bytes"]) for one in found.of("request")) == took
    assert sum(one.category == "request" for one in found.instants) == len(rows) - len(known)
    assert sum(one.category == "bio" for one in found.instants) == tables.io.count().to_pyarrow().as_py()


def test_a_request_is_its_time_in_the_queue_and_in_the_device(tables: Tables, found: Decoded) -> None:
    parts: dict[int, list[tuple[str, int, int | None]]] = {}
    for one in found.slices:
        if one.category in ("queue", "device"):
            assert one.parent is not None and one.parent.category == "request"
            parts.setdefault(id(one.parent), []).append((one.category, one.begin, one.end))
    for request in found.of("request"):
        (*queue, device) = parts[id(request)]
        assert device[0] == "device" and device[2] == request.end
        assert [("queue", request.begin, device[1])] == queue if queue else device[1] == request.begin
    in_device = Counter(((one.end or 0) - one.begin, one.end) for one in found.of("device"))
    rows = tables.requests.to_pyarrow().to_pylist()
    known = [row for row in rows if row["device_us"] is not None]
    assert in_device == Counter((min(row["device_us"] * 1000, row["time"]), row["time"]) for row in known)


def test_slices_of_a_track_nest(found: Decoded) -> None:
    assert any(one.parent is not None and one.parent.category == "call" for one in found.of("wait"))
    assert all((one.end or 0) >= one.begin for one in found.slices)
    for one in found.slices:
        if one.parent is not None:
            assert one.end is not None and one.parent.end is not None
            assert one.parent.begin <= one.begin and one.end <= one.parent.end
            assert one.category in ("queue", "device") or found.tracks[one.track].name != "unknown"


def test_requests_in_the_device_are_never_below_0(found: Decoded) -> None:
    (counts,) = found.counts.values()
    assert min(count for _, count in counts) == 0 == counts[-1][1]
    steps = Counter[int]()
    for one in found.of("device"):
        assert one.end is not None
        steps[one.begin] += 1
        steps[one.end] -= 1
    inside, expected = 0, []
    for time in sorted(steps):
        inside += steps[time]
        expected.append((time, inside))
    assert counts == expected


def test_clocks(found: Decoded) -> None:
    (clock,) = found.clocks
    assert clock[1] - clock[6] == 1_790_000_000_000_000_000


def test_a_cut_file_is_read_up_to_the_cut(file: Path, found: Decoded) -> None:
    data = file.read_bytes()
    for share in (0.1, 0.5, 0.9):
        part = decode(data[: int(len(data) * share)])
        assert part.cut
        assert abs(part.packets - found.packets * share) < found.packets * 0.15
        assert [(one.begin, one.name) for one in part.slices] == [
            (one.begin, one.name) for one in found.slices[: len(part.slices)]
        ]


def named(what: str, time: int, name: str, **fields: Any) -> Record:
    """A record that has a kind."""
    kind, said = record(what, time, **fields)
    return kind, said | {"kind": name}


CALLED = named("call", 3 * SECOND, "fsync", task=2, file=2, duration_ns=2 * SECOND + 1, result=0)
WAITED = named("wait", 3 * SECOND, "transaction", task=2, duration_ns=2 * SECOND, transaction=7, dev=1)
REQUEST = record(
    "request", 2 * SECOND, dev=1, operation="write", bytes=4096, queued_ns=1000, device_ns=5000, first_bio=1, bios=1
)
COMMIT = named(
    "transaction", 3 * SECOND, "jbd2", dev=1, transaction=7, began=SECOND, trigger=2, trigger_call="fsync", blocks=9
)


def test_a_call_its_wait_its_bio_and_the_request(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sent = bio(1, 2 * SECOND - 6000, carrier=2)
    found = written(monkeypatch, tmp_path, [*sent, CALLED, WAITED, REQUEST, COMMIT])
    (call,), (wait,), (request,), (commit,) = (found.of(name) for name in ("call", "wait", "request", "transaction"))
    assert (call.name, call.begin, call.end) == ("fsync", SECOND - 1, 3 * SECOND)
    assert call.arguments["path"] == "/data/x.db"
    assert wait.parent is call and wait.arguments["journal_transaction"] == 7
    thread = found.tracks[call.track]
    assert (thread.name, thread.pid, thread.tid) == ('mail, "new"', 10, 10)
    assert [(track.pid, track.name) for track in found.tracks.values() if track.pid and track.tid is None] == [
        (10, 'mail, "new" uid 10101')
    ]
    (instant,) = found.instants
    assert instant.parent is wait and instant.track == call.track
    assert len(instant.flows) == 1 and instant.flows == request.ends_flows
    order = [one.category for one in found.begun if one.begin == instant.begin]
    assert order == ["bio", "request", "queue", "run"], "a flow leads forwards"
    assert call.flows == instant.flows
    (run,) = found.of("run")
    assert (run.name, run.end, run.arguments["number"]) == ("x.db", 2 * SECOND, 1)
    assert [track.name for number, track in found.tracks.items() if number == run.track] == ["sqlite_db"]
    assert (request.begin, request.end) == (2 * SECOND - 6000, 2 * SECOND)
    assert (commit.name, commit.begin, commit.end) == ("jbd2", SECOND, 3 * SECOND)
    assert {"trigger_call": "fsync", "blocks": 9, "trigger_uid": 10101}.items() <= commit.arguments.items()
    assert [clock[1] - clock[6] for clock in found.clocks] == [START_NS - 1000]


def test_each_thread_of_a_process_has_a_track(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What overlaps is side by side, under the thread that did it."""
    other = named("call", 3 * SECOND + 1, "read", task=2, file=4, duration_ns=2 * SECOND, result=0, thread=17)
    first = (CALLED[0], CALLED[1] | {"thread": 10})
    mine = (WAITED[0], WAITED[1] | {"thread": 10})
    found = written(monkeypatch, tmp_path, [*bio(1, 2 * SECOND, carrier=2, thread=17), first, other, mine])
    of = {one.name: found.tracks[one.track] for one in (*found.of("call"), *found.of("wait"))}
    assert {name: (track.pid, track.tid) for name, track in of.items()} == {
        "fsync": (10, 10),
        "transaction": (10, 10),
        "read": (10, 17),
    }
    (instant,) = [one for one in found.instants if one.category == "bio"]
    assert found.tracks[instant.track].tid == 17


def test_flows_are_found_by_sectors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No request says which bios it has. The journal's bio is the call's that waits for its transaction."""
    merged = [sent(7, 30, 2000, CAMERA), sent(8, 31, 2008, CAMERA), carried(35, 2000, 3, 2, bytes=8192)]
    split = [sent(9, 40, 3000, CAMERA, bytes=8192), carried(44, 3008, 0, 1), carried(46, 3000, 0, 1)]
    found = written(monkeypatch, tmp_path, [*PEOPLE, *FSYNC, *merged, *split])
    ways: dict[int, list[str]] = {}
    for one in found.begun:
        for flow in (*one.flows, *one.ends_flows):
            ways.setdefault(flow, []).append(one.category)
    assert ways == {
        1: ["call", "bio", "request"],
        2: ["call", "bio", "request"],
        7: ["bio", "request"],
        8: ["bio", "device"],
        9: ["bio", "request", "request"],
    }
    ended = [flow for one in found.begun for flow in one.ends_flows]
    assert sorted(ended) == [1, 2, 7, 8, 9]


def test_of_too_many_bios_no_flow_is_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("fasttrack_lab.trace.io_flows.MOST", 1)
    exported(monkeypatch, [*HEAD, *PEOPLE, *FSYNC])
    done = perfetto_export.write(logs.read([Path("logs")], engines.duckdb()), tmp_path / "x")
    found = decode((tmp_path / "x").read_bytes())
    assert not done.flows
    assert not any(one.flows or one.ends_flows or one.category == "run" for one in found.begun)


def test_a_flow_has_two_ends(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A bio without a request and a request whose bio is not recorded have none."""
    lone = record("request", 5 * SECOND, dev=1, operation="write", bytes=4096, device_ns=1, first_bio=99)
    found = written(monkeypatch, tmp_path, [*bio(1, SECOND), *bio(2, SECOND), REQUEST, lone])
    begun = [flow for one in found.instants for flow in one.flows]
    assert begun == [flow for one in found.slices for flow in one.ends_flows] and len(begun) == 1


def test_what_is_unknown_is_no_slice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    call = named("call", SECOND, "fsync")
    found = written(monkeypatch, tmp_path, [call, record("request", SECOND, operation="read")])
    assert found.slices == [] and not found.counts
    assert [(one.name, one.begin) for one in found.instants] == [("fsync", SECOND), ("read", SECOND)]
    assert all("path" not in one.arguments and "bytes" not in one.arguments for one in found.instants)


def test_losses_are_instants(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lost = record("loss", 5 * SECOND, reason="ring_overrun", cpu=1, since=4 * SECOND, count=17)
    damage = "damage", {"session": "ab" * 16, "log": 1, "path": "x.ftlog", "at": 7, "bytes": 3, "what": "a bad CRC"}
    found = written(monkeypatch, tmp_path, [*bio(1, SECOND), lost, damage])
    losses = [one for one in found.instants if one.category == "loss"]
    assert [(one.name, one.begin) for one in losses] == [("unreadable", SECOND), ("ring_overrun", 5 * SECOND)]
    assert losses[0].arguments["detail"] == "x.ftlog: a bad CRC at byte 7"
    assert losses[1].arguments == {"lost": 17, "cpu": 1, "since": 4 * SECOND}


def test_bytes_that_are_forgotten_are_made_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tables: Tables, file: Path
) -> None:
    """Those of texts are kept, but not of all of a long trace."""
    monkeypatch.setattr(perfetto_packets, "_KEPT", 2)
    perfetto_export.write(tables, tmp_path / "x.pftrace")
    assert (tmp_path / "x.pftrace").read_bytes() == file.read_bytes()


def test_nothing_recorded_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing is recorded"):
        written(monkeypatch, tmp_path, [])
    assert list(tmp_path.iterdir()) == []


def test_boots_are_not_mixed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Their clocks both begin at 0."""
    kind, fields = bio(9, SECOND)[0]
    other = (kind, fields | {"session": "99" * 16})
    exported(monkeypatch, [*HEAD, *bio(1, 2 * SECOND), other])
    tables = logs.read([Path("logs")], engines.duckdb())
    out = tmp_path / "x.pftrace"
    with pytest.raises(UsageProblem, match=f"2 boots.*{'99' * 16}, {'ab' * 16}"):
        perfetto_export.write(tables, out)
    with pytest.raises(UsageProblem, match="no session 'x'"):
        perfetto_export.write(tables, out, "x")
    perfetto_export.write(tables, out, "99" * 16)
    assert [one.begin for one in decode(out.read_bytes()).instants] == [SECOND]


def test_an_end_on_the_way_leaves_the_file_that_was_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tables: Tables
) -> None:
    out = tmp_path / "x.pftrace"
    out.write_bytes(b"before")
    packet = perfetto_export.Packets.event
    told = []

    def interrupted(self: perfetto_export.Packets, event: object) -> object:
        told.append(event)
        if len(told) > 100:
            raise KeyboardInterrupt
        return packet(self, event)  # type: ignore[arg-type]

    monkeypatch.setattr(perfetto_export.Packets, "event", interrupted)
    with pytest.raises(KeyboardInterrupt):
        perfetto_export.write(tables, out)
    assert list(tmp_path.iterdir()) == [out] and out.read_bytes() == b"before"
