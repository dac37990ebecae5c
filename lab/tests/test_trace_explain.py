# SPDX-License-Identifier: GPL-2.0-only
"""One call followed through all layers: what belongs to it and nothing else; what is unknown stays so."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import ibis.expr.types as ir
import pytest
from click.testing import CliRunner
from trace_records import HEAD, SECOND, Record, exported, record
from trace_story import (
    CAMERA,
    DEV,
    FSYNC,
    MAIL,
    MS,
    PEOPLE,
    STORY,
    at,
    call,
    request,
    run,
    sent,
    share,
    transaction,
    wait,
)

from fasttrack_lab.commands.trace import command
from fasttrack_lab.host.errors import UsageProblem
from fasttrack_lab.trace import (
    engines,
    explaining,
    logs,
    perfetto_export,
    scene_loading,
    trace_explain,
)
from fasttrack_lab.trace.explaining import Explained, Wanted
from fasttrack_lab.trace.tables import NO_LOSS, Tables


def tables_of(monkeypatch: pytest.MonkeyPatch, records: Sequence[Record]) -> Tables:
    exported(monkeypatch, records)
    return logs.read([Path("logs")], engines.duckdb())


@pytest.fixture(scope="module")
def story() -> Iterator[Tables]:
    with pytest.MonkeyPatch.context() as patch:
        yield tables_of(patch, STORY)


def explained(tables: Tables, **wanted: str) -> Explained:
    (one,) = explaining.explain(tables, explaining.choose(tables, Wanted(1, **wanted)))
    return one


def test_waits_nest_and_cover(story: Tables) -> None:
    one = explained(story)
    assert [(nested.what.kind, nested.depth) for nested in one.inside] == [
        ("folio", 0),
        ("transaction", 0),
        ("buffer", 1),
    ]
    assert (one.waited_ns, one.shared_ns, one.unexplained_ns) == (9 * MS, 0, MS)
    assert {layer.name: layer.ns for layer in one.layers} == {
        "page cache": 3 * MS,
        "journal": 6 * MS,
        "elevator": MS + MS // 2,
        "device": 6 * MS,
    }


def test_the_database_is_not_asked_for_each_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    to_pyarrow = ir.Table.to_pyarrow

    def counted(table: ir.Table) -> object:
        asked.append(table)
        return to_pyarrow(table)

    monkeypatch.setattr(ir.Table, "to_pyarrow", counted)
    explained(tables_of(monkeypatch, STORY))
    few = len(asked)
    waits = [wait(1 + place / 100, 1 + place / 100 + 0.005, "folio", file=2, index=place) for place in range(90)]
    many = explained(tables_of(monkeypatch, [*STORY, *waits]))
    assert sum(one.what.kind == "folio" for one in many.inside) > 90
    assert len(asked) == 2 * few


def test_the_transaction_with_all_its_parties(story: Tables) -> None:
    one = explained(story)
    (made,) = one.transactions
    assert (made.transaction, made.trigger_name, made.trigger_call, made.carrier) == (
        7,
        'mail, "new"',
        "fsync",
        "jbd2/sda-8",
    )
    assert [(part.name, part.blocks, part.through_flusher) for part in made.shares] == [
        ('mail, "new"', 3, False),
        ("camera", 1, True),
    ]
    assert [other.transaction for other in one.behind] == [6]


def test_bios_are_those_of_the_call(story: Tables) -> None:
    found = explained(story).bios
    assert [(one.bio.bio, one.why, one.shared) for one in found] == [(1, "sent", False), (2, "waited for", False)]
    assert [(part.queued_ns, part.device_ns) for one in found for part in one.bio.requests] == [
        (MS, 2 * MS),
        (MS // 2, 4 * MS),
    ]


def test_text(story: Tables) -> None:
    text = "\n".join(trace_explain.calls(story, Wanted()).lines)
    for said in (
        'fsync by mail, "new" (pid 10, uid 10101) on /data/x.db: 10.000 ms, result 0',
        "transaction 7 of 8:0: commit began at +4.200 ms, took 5.200 ms",
        'trigger: mail, "new" (pid 10, uid 10101) by fsync',
        "carrier: jbd2/sda-8 (pid 16, the kernel's)",
        "it waited 4.000 ms for buffer",
        "25.0 %  1 blocks, 2 handles: camera (pid 20, uid 10102), through the flusher",
        "behind transaction 6, which ended at +4.000 ms: trigger camera (pid 20, uid 10102)",
        "class foreground, cause journal",
        "queued 0.500 ms, in the device 4.000 ms",
        "unexplained 1.000 ms, 10.0 %",
    ):
        assert said in text


def test_bios_of_one_request_are_told_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """With their blocks by file; another bio that went alone is told alone."""
    records = [
        call(0, 10, "fsync"),
        *(sent(number, 0.1 * number, 100 + 8 * number, MAIL, cause="fsync") for number in range(1, 31)),
        *(run(number, 0.1 * number, file=2, index=2 * number, owner=MAIL, call="write") for number in range(1, 31)),
        request(5, 108, 0, 1, bytes=30 * 4096),
        sent(31, 6, 900, MAIL, cause="fsync"),
        run(31, 6, file=2, index=7, owner=MAIL, call="write"),
        request(8, 900, 0, 2),
    ]
    tables = tables_of(monkeypatch, [*HEAD, *records])
    told = trace_explain.calls(tables, Wanted())
    bios = [line.strip() for line in told.lines if "  bio " in line]
    assert bios == [
        "+0.100 ms  bio 1 to 30, 30 of them: write 120.0 KiB (sync); it sent",
        "+6.000 ms  bio 31: write 4.0 KiB (sync); it sent",
    ]
    blocks = [line.strip() for line in told.lines if "data of" in line]
    assert [line.split(", owner")[0] for line in blocks] == [
        "120.0 KiB data of /data/x.db, 30 places from page 2 on",
        "4.0 KiB data of /data/x.db page 7",
    ]
    assert sum("request write" in line for line in told.lines) == 2
    (one,) = told.json["calls"]
    assert len(one["bios"]) == 31


@pytest.mark.parametrize(
    ("wanted", "kind"),
    [
        ({}, "fsync"),
        ({"app": "10102"}, "read"),
        ({"app": "camera"}, "read"),
        ({"file": "photo.jpg"}, "read"),
        ({"file": "/data/photo.jpg"}, "read"),
        ({"kind": "read"}, "read"),
        ({"call": f"{at(2)}:{CAMERA}"}, "read"),
        ({"call": "3.0015"}, "fsync"),
        ({"call": "3.0015", "app": "camera"}, "read"),
    ],
)
def test_choice(story: Tables, wanted: dict[str, str], kind: str) -> None:
    assert explained(story, **wanted).call.kind == kind


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        ({"kind": "write"}, "no call is a 'write'; there are: fsync, read"),
        ({"app": "nobody"}, "none of the 2 calls is like that"),
        ({"call": "9"}, "none of the 2 calls is like that"),
        ({"call": "yesterday"}, "'yesterday' is no call: an id as explain prints it"),
    ],
)
def test_what_is_not_there(story: Tables, wanted: dict[str, str], error: str) -> None:
    with pytest.raises(UsageProblem, match=error):
        explained(story, **wanted)


def test_the_slowest_first(story: Tables) -> None:
    assert [one.kind for one in explaining.choose(story, Wanted(5))] == ["fsync", "read"]


def test_a_scene_is_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbours have one, and are told as each alone is; what is far away is not in it."""
    far = call(200_000, 200_009, "fsync", file=4)
    tables = tables_of(monkeypatch, [*STORY, far])
    calls = explaining.choose(tables, Wanted(9))
    alone = [explaining.explain(tables, [one])[0].to_json() for one in calls]
    scenes = []
    load = scene_loading.load
    monkeypatch.setattr(scene_loading, "load", lambda some: scenes.append(load(some)) or scenes[-1])
    assert [one.to_json() for one in explaining.explain(tables, calls)] == alone
    assert len(calls) == 3 and len(scenes) == 2
    assert [len(scene.calls) for scene in scenes] == [2, 1]


def test_threads_of_a_process_are_not_mixed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wait on a call's file is that call's; of others nobody knows; what sticks out is another thread's."""
    other = [
        call(1, 9, "fdatasync", file=4),
        wait(2, 3, "folio", file=4, index=0),
        wait(4, 5, "dirty_throttle"),
        wait(8, 12, "folio", file=4, index=1),
    ]
    tables = tables_of(monkeypatch, [*HEAD, call(0, 10, "fsync"), *other])
    one = explained(tables, kind="fsync")
    assert [(nested.what.kind, nested.shared) for nested in one.inside] == [
        ("fdatasync", True),
        ("dirty_throttle", True),
    ]
    assert (one.waited_ns, one.shared_ns, one.unexplained_ns) == (0, MS, 9 * MS)
    text = "\n".join(trace_explain.calls(tables, Wanted(kind="fsync")).lines)
    assert "(?) of it or of another call of its process: 1.000 ms, 10.0 %" in text


def test_a_thread_has_what_it_does_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads of a process sync one file at once, and one of them faults a page in meanwhile."""
    records = [
        call(0, 10, "fsync", thread=10),
        call(1, 9, "fdatasync", thread=17),
        call(2, 4, "fault", thread=17),
        wait(2, 3, "folio", thread=17, file=2, index=0),
        wait(5, 9, "transaction", thread=10, transaction=7),
        sent(1, 1.5, 100, MAIL, cause="fdatasync", thread=17),
        run(1, 1.5, file=4),
        request(3, 100, 0, 1),
    ]
    tables = tables_of(monkeypatch, [*HEAD, *records])
    first, second = explained(tables, kind="fsync"), explained(tables, kind="fdatasync")
    assert [(one.what.kind, one.shared, one.depth) for one in first.inside] == [("transaction", False, 0)]
    assert [(one.what.kind, one.shared, one.depth) for one in second.inside] == [
        ("fault", False, 0),
        ("folio", False, 1),
    ]
    assert [(one.waited_ns, one.shared_ns) for one in (first, second)] == [(4 * MS, 0), (MS, 0)]
    assert [[(one.bio.bio, one.why, one.shared) for one in each.bios] for each in (first, second)] == [
        [],
        [(1, "sent", False)],
    ]


def test_a_read_that_waits_for_read_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bio was sent before the call, by another call; it is that of the page."""
    records = [
        call(0, 4, "read", bytes=4096, offset=8192),
        wait(1, 4, "folio", file=2, index=2),
        sent(1, -5, 100, MAIL, operation="read", bytes=16384),
        run(1, -5, file=2, index=0, bytes=16384, owner=MAIL),
        request(4, 100, 0, 9, operation="read", bytes=16384),
        sent(2, -5, 800, MAIL, operation="read"),
        run(2, -5, file=2, index=70, owner=MAIL),
    ]
    one = explained(tables_of(monkeypatch, [*HEAD, *records]))
    assert [(found.bio.bio, found.why) for found in one.bios] == [(1, "waited for")]


def test_a_checkpoint_has_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    records = [
        call(0, 9, "fsync"),
        wait(1, 8, "checkpoint"),
        transaction(3, 2, 7, kind="checkpoint"),
        transaction(4, 12, 13, kind="checkpoint"),
    ]
    one = explained(tables_of(monkeypatch, [*HEAD, *records]))
    assert [made.transaction for made in one.transactions] == [3]


def test_unknown_stays_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    records = [
        record("call", at(5), task=99, kind="fsync", duration_ns=5 * MS),
        wait(0, 1, "transaction", 99, transaction=5),
        record("loss", at(4), reason="ring_overrun", since=at(2), count=17),
    ]
    stock = [(kind, {name: value for name, value in said.items() if name != "calls_over_us"}) for kind, said in HEAD]
    tables = tables_of(monkeypatch, [*stock, *records])
    lines = trace_explain.calls(tables, Wanted()).lines
    assert lines[0] == "calls that this trace has: fsync and fdatasync, on a kernel without FastTrack's events"
    text = "\n".join(lines)
    assert "fsync by unknown on unknown: 5.000 ms, result unknown" in text
    assert "LOST (ring_overrun): 17 records" in text
    assert "transaction 5: the trace has no record of it" in text
    assert "bios: none is known to belong to it" in text
    assert "unexplained 4.000 ms, 80.0 %" in text


def test_without_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    without = [one for one in STORY if one[0] != "call"]
    tables = tables_of(monkeypatch, without)
    told = trace_explain.calls(tables, Wanted())
    assert told.lines[0].startswith("the trace has no calls: its kernel does not tell of them")
    assert "Its slowest request instead" in told.lines[0]
    assert [one["bio"] for one in told.json["bios"]] == [2]
    with pytest.raises(UsageProblem, match="no calls: .* --bio N and --transaction N explain what it has"):
        trace_explain.calls(tables, Wanted(kind="fsync"))
    none = [one for one in without if one[0] != "request"]
    assert "Its slowest transaction instead" in trace_explain.calls(tables_of(monkeypatch, none), Wanted()).lines[0]
    assert trace_explain.calls(tables_of(monkeypatch, HEAD), Wanted()).lines[0].endswith("There is no I/O")


def test_a_bio_and_a_transaction(story: Tables) -> None:
    text = "\n".join(trace_explain.bio(story, 4).lines)
    assert "bio 4: write 4.0 KiB (sync)" in text
    assert "its end is unknown" in text
    text = "\n".join(trace_explain.transaction(story, 7).lines)
    assert "payers" in text and "bio 2: write" in text
    with pytest.raises(UsageProblem, match="there is no bio 77 among 4"):
        trace_explain.bio(story, 77)
    with pytest.raises(UsageProblem, match="there is no transaction 77 among 2"):
        trace_explain.transaction(story, 77)


def requests_of(monkeypatch: pytest.MonkeyPatch, records: Sequence[Record]) -> dict[int | None, list[int]]:
    found = scene_loading.load(tables_of(monkeypatch, [*HEAD, *records]))
    return {bio.bio: [one.time for one in bio.requests] if bio.done is not None else [] for bio in found.bios}


def test_requests_of_bios(monkeypatch: pytest.MonkeyPatch) -> None:
    """Merged, split, flushes first, the same place again; after a loss nobody knows."""
    merged = [sent(1, 0, 100, MAIL), sent(2, 1, 108, MAIL), request(5, 100, 1, 3, bytes=8192)]
    assert requests_of(monkeypatch, merged) == {1: [at(5)], 2: [at(5)]}
    front = [sent(1, 0, 108, MAIL), sent(2, 1, 100, MAIL), request(5, 100, 1, 3, bytes=8192)]
    assert requests_of(monkeypatch, front) == {1: [at(5)], 2: [at(5)]}
    split = [sent(1, 0, 100, MAIL, bytes=8192), request(4, 108, 0, 3), request(5, 100, 0, 3)]
    assert requests_of(monkeypatch, split) == {1: [at(4), at(5)]}
    half = [sent(1, 0, 100, MAIL, bytes=8192), request(5, 100, 0, 3)]
    assert requests_of(monkeypatch, half) == {1: []}
    flush = record("request", at(2), dev=DEV, operation="flush", bytes=0, error=0)
    flushed = [sent(1, 0, 100, MAIL, preflush="true"), flush, request(5, 100, 0, 3)]
    assert requests_of(monkeypatch, flushed) == {1: [at(2), at(5)]}
    again = [sent(1, 0, 100, MAIL), sent(2, 4, 100, MAIL), request(3, 100, 0, 2), request(6, 100, 0, 1)]
    assert requests_of(monkeypatch, again) == {1: [at(3)], 2: [at(6)]}
    lost = [sent(1, 0, 100, MAIL), record("loss", at(1), reason="ring_overrun"), request(3, 100, 0, 2)]
    assert requests_of(monkeypatch, lost) == {1: []}


def test_what_is_no_loss_has_its_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Payers in the share of nobody lose no record, nor does a sample."""
    fsync = record("call", at(5), task=MAIL, kind="fsync", duration_ns=5 * MS)
    for reason, words in (
        ("payers", "payers of a transaction without a share of their own: 9 handles and blocks are in the share of no"),
        ("sampled", "of a sample: 9 bios are left out"),
    ):
        assert reason in NO_LOSS
        left = record("loss", at(4), reason=reason, since=at(2), count=9)
        text = "\n".join(trace_explain.calls(tables_of(monkeypatch, [*HEAD, *PEOPLE, fsync, left]), Wanted()).lines)
        assert words in text and "LOST" not in text


def test_a_number_that_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    records = [
        transaction(7, 0, 1),
        share(7, 1, MAIL, 2),
        transaction(7, 100, 101),
        share(7, 101, CAMERA, 3),
    ]
    found = scene_loading.load(tables_of(monkeypatch, [*HEAD, *PEOPLE, *records])).transactions
    assert [[part.blocks for part in one.shares] for one in found] == [[2], [3]]


def test_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    exported(monkeypatch, STORY)
    (tmp_path / "00000001.ftlog").touch()
    done = CliRunner().invoke(command, ["explain", str(tmp_path), "--json", "-"], catch_exceptions=False)
    (one,) = json.loads(done.output)["calls"]
    assert (one["id"], one["waited_ns"], one["unexplained_ns"]) == (f"{at(10)}:{MAIL}", 9 * MS, MS)
    assert [bio["bio"] for bio in one["bios"]] == [1, 2]
    for wrong in (["--bio", "1", "--transaction", "2"], ["--bio", "1", "--app", "x"]):
        with pytest.raises(UsageProblem):
            CliRunner().invoke(command, ["explain", str(tmp_path), *wrong], catch_exceptions=False)


def test_a_call_as_tracks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What takes place beside it is there, too; what comes long after is not."""
    story = tables_of(monkeypatch, [*STORY, sent(9, 100_000, 5000, MAIL)])
    told = trace_explain.calls(story, Wanted(kind="fsync"))
    done = trace_explain.tracks(story, told, tmp_path / "call.pftrace")
    whole = perfetto_export.write(story, tmp_path / "whole.pftrace")
    assert done.slices > 0 and done.instants < whole.instants
    assert done.flows and (tmp_path / "call.pftrace").stat().st_size == done.bytes
    with pytest.raises(UsageProblem, match="there is no call"):
        trace_explain.tracks(story, trace_explain.transaction(story, 7), tmp_path / "none.pftrace")


def test_only_what_is_near_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    far = sent(9, 100_000, 5000, MAIL)
    tables = tables_of(monkeypatch, [*HEAD, *PEOPLE, *FSYNC, far])
    assert [bio.bio for bio in explaining.around(tables, at(0), at(10)).bios] == [1, 2]
    assert SECOND == 1000 * MS
