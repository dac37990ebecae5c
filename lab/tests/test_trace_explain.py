# SPDX-License-Identifier: GPL-2.0-only
"""One call, followed: its waits, the transaction that it waited for, its bios and requests."""

from __future__ import annotations

from pathlib import Path

import pytest
from trace_records import HEAD, SECOND, Record, bio, exported, record

from fasttrack_lab.host.errors import InputError
from fasttrack_lab.trace import engines, logs
from fasttrack_lab.trace.call_story import Choice, stories, told, untold_us
from fasttrack_lab.trace.tables import Tables

MS = 1_000_000

JOURNAL = record("task", 2000, task=6, pid=12, tgid=12, uid=0, name="jbd2/sda-8", kernel_thread="true")


def said(name: str, end_ms: int, **fields: object) -> Record:
    """A record, which may have a field `kind`."""
    return name, record(name, SECOND + end_ms * MS)[1] | fields


def wait(what: str, begin_ms: int, end_ms: int, task: int = 2, **fields: object) -> Record:
    return said("wait", end_ms, task=task, kind=what, duration_ns=(end_ms - begin_ms) * MS, **fields)


def call(what: str, end_ms: int, took_ms: int, **fields: object) -> Record:
    times = {"duration_ns": took_ms * MS, "result": 0, "bytes": 0}
    return said("call", end_ms, task=2, kind=what, file=2, **times | fields)


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> Tables:
    """An fsync of 20 ms: 4 for a folio, 12 for transaction 7, which waited 11 for a buffer; and a shorter read."""
    written = bio(1, SECOND + 101 * MS, carrier=2)
    commit = bio(2, SECOND + 106 * MS, carrier=6, cause="journal", transaction=7)
    other = bio(3, SECOND + 107 * MS)
    place = {"dev": 1, "operation": "write", "bytes": 4096}
    ended = [
        record("request", SECOND + at * MS, sector=8 * number, queued_ns=1 * MS, device_ns=2 * MS, **place)
        for number, at in ((1, 104), (2, 116), (3, 117))
    ]
    seven = {"transaction": 7, "dev": 1}
    exported(
        monkeypatch,
        [
            *HEAD,
            JOURNAL,
            *written,
            *commit,
            *other,
            *ended,
            wait("folio", 100, 104, file=2, index=3),
            wait("transaction", 105, 117, transaction=7),
            wait("buffer", 105, 116, task=6, sector=16),
            wait("folio", 300, 301),
            said(
                "transaction",
                117,
                kind="jbd2",
                began=SECOND + 105 * MS,
                trigger=2,
                trigger_call="fsync",
                carrier=6,
                handles=3,
                blocks=5,
                logged=7,
                **seven,
            ),
            record("share", SECOND + 117 * MS, task=2, handles=2, blocks=4, through_flusher="false", **seven),
            record("share", SECOND + 117 * MS, handles=1, blocks=1, through_flusher="true", **seven),
            call("fsync", 120, 20),
            call("read", 302, 3, bytes=4096, result=4096),
        ],
    )
    return logs.read([Path("logs")], engines.duckdb())


def test_an_fsync(traced: Tables) -> None:
    (story,) = stories(traced, Choice())
    assert (story.call["kind"], story.call["path"]) == ("fsync", "/data/x.db")
    assert [one["kind"] for one in story.waits] == ["folio", "transaction"]
    assert story.untold_us == 4000
    (commit,) = story.transactions
    assert commit.said["journal_transaction"] == 7 and commit.waits == {"buffer": 11_000}
    assert [(one["name"], one["blocks"]) for one in commit.payers] == [('mail, "new"', 4), (None, 1)]
    # Its own and the transaction's, not the third one, which is neither's.
    assert [one["bio"] for one in story.bios] == [1, 2]
    assert [one["sector"] for one in story.requests] == [8, 16]


def test_as_text(traced: Tables) -> None:
    (story,) = stories(traced, Choice(kind="fsync"))
    lines = told(story)
    assert lines[0].startswith('mail, "new" (uid 10101): fsync of /data/x.db') and "20.000 ms" in lines[0]
    assert "  +0.000 ms  folio 3 of /data/x.db: 4.000 ms" in lines
    assert "  +5.000 ms  transaction 7: 12.000 ms" in lines
    assert "  without a recorded wait: 4.000 ms (20.0 %)" in lines
    assert any("asked for by mail" in line and "5 blocks changed, 7 written" in line for line in lines)
    assert "    it waited 11.000 ms for buffer" in lines
    assert any("unknown, through the flusher" in line for line in lines)


def test_calls_are_chosen(traced: Tables) -> None:
    def kinds(choice: Choice) -> list[str]:
        return [one.call["kind"] for one in stories(traced, choice)]

    assert kinds(Choice(count=5)) == ["fsync", "read"]
    assert kinds(Choice(kind="read", app="10101", file="x.db")) == ["read"]
    with pytest.raises(InputError, match="no such call is recorded"):
        stories(traced, Choice(app="nobody"))


def test_waits_that_overlap_count_once() -> None:
    whole = {"time": 10 * MS, "duration_us": 10_000}
    waits = [{"time": 6 * MS, "duration_us": 5000}, {"time": 8 * MS, "duration_us": 4000}]
    assert untold_us(whole, waits) == 3000
    assert untold_us(whole, []) == 10_000
