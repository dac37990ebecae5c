# SPDX-License-Identifier: GPL-2.0-only
"""The papers' evaluations: numbers that are the recordings', what is lacking said, and nothing made twice."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from trace_records import HEAD, SECOND, Record, bio, write
from trace_story import STORY

from fasttrack_lab.cost.counts import Written
from fasttrack_lab.host.errors import UsageProblem
from fasttrack_lab.host.paths import CHECKOUT, RECORDINGS, recording
from fasttrack_lab.inputs.cell import Cell
from fasttrack_lab.run.result import Result, Verdict
from fasttrack_lab.run.runner import RunSpec
from fasttrack_lab.trace import (
    androtrace_evaluations,
    evaluating,
    fasttrack_evaluations,
    most_way,
    recordings,
    sources,
)
from fasttrack_lab.trace.evaluation import Found, share, times
from fasttrack_lab.trace.interaction import Interaction
from fasttrack_lab.trace.recordings import FACEBOOK, Recording


def put(out: Path, one: Recording, records: Sequence[Record], seconds: float = 0.010, uid: int = 10101) -> None:
    """A recording that is there, as CSV."""
    folder = one.folder(out)
    folder.mkdir(parents=True)
    write(folder, [*HEAD, *records])
    Interaction(one.name, (uid,), seconds).write(folder)


@pytest.fixture(autouse=True)
def csv_is_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(androtrace_evaluations, "logs_of", lambda wanted, out: [one.folder(out) for one in wanted])


def numbers(found: Sequence[Found]) -> dict[tuple[str, str], str]:
    return {(one.of, one.what): one.here for one in found}


WRITES = (
    *bio(1, SECOND),
    *bio(2, 2 * SECOND, cause="fdatasync", file=4),
    *bio(3, 3 * SECOND, cause="journal"),
    *bio(4, 4 * SECOND, cause="writeback", sync="false", file=4),
    *bio(9, 5 * SECOND, operation="read", cause="read", sync="false"),
)


def test_androtraces_numbers_are_the_recordings(tmp_path: Path) -> None:
    one = androtrace_evaluations.REPLAY
    put(tmp_path, one, WRITES)
    of = "facebook replay"
    there = [one]
    found = [
        *androtrace_evaluations.reads_and_writes(tmp_path, there).found,
        *androtrace_evaluations.sync_share(tmp_path, there).found,
        *androtrace_evaluations.sync_calls(tmp_path, there).found,
        *androtrace_evaluations.journals(tmp_path, there).found,
    ]
    told = numbers(found)
    assert told[of, "writes over reads, by count"] == "4.0x"
    assert told[of, "synchronous, of writes"] == "75 %"
    assert told[of, "fsync, of synchronous writes"] == told[of, "fdatasync, of synchronous writes"] == "33 %"
    assert told[of, "others"] == "33 %"
    assert told[of, "journal: SQLite's, of data, by count"] == "40 %"
    assert {one.of for one in found} == {of}


def test_a_share_agrees_within_ten_points() -> None:
    assert share("x", "y", 0.73, 0.82).agrees and not share("x", "y", 0.73, 0.84).agrees
    assert share("x", "y", 0.73, None) == Found("x", "y", "73 %", "not recorded", False)
    assert times("x", "y", 2.0, 2.4).agrees and not times("x", "y", 2.0, 2.6).agrees


def test_fasttracks_numbers_are_the_recordings(tmp_path: Path) -> None:
    wanted = dict.fromkeys(one for name in ("fig1", "fig3") for one in evaluating.EVALUATIONS[name].recordings)
    for one in wanted:
        put(tmp_path, one, STORY, seconds=0.010 if one.behind else 0.004)
    slower = fasttrack_evaluations.slower(tmp_path, []).found
    assert {one.here for one in slower} == {"2.5x"}
    assert [one.agrees for one in slower if one.of == "gallery-launch + update, s6"] == [True]
    (one, *_) = fasttrack_evaluations.coefficients(tmp_path, []).found
    profile = fasttrack_evaluations.io_profile.of(
        sources.open_all([Recording("gallery-launch", ("update",)).folder(tmp_path)]), Interaction("", (10101,), 0.010)
    )
    assert profile.coefficient is not None
    assert one.here == f"{profile.coefficient * 100:.0f} %"
    layers = numbers(fasttrack_evaluations.breakdown(tmp_path, []).found)
    assert layers["gallery-launch + update, s6", "page cache"] == "0 ms alone, 3 ms: -"
    for one in evaluating.EVALUATIONS["fig6"].recordings:
        if not one.folder(tmp_path).exists():
            put(tmp_path, one, STORY, seconds=3.6)
    outcome = fasttrack_evaluations.against_reads(tmp_path, [])
    assert numbers(outcome.found)["camera-switch + backup, s6", "response, with backup"] == "3.60 s"
    assert outcome.pictures["fig6.svg"].startswith("<svg")


def test_tracers_are_compared_with_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ns = {"off": 1000, "trace-origin": 1060, "trace-block": 1004, "trace-blktrace": 1700}

    def writes(states: Sequence[str]) -> dict[str, dict[str, Written]]:
        return {state: {"direct-random": Written(16_000, ns[state])} for state in states}

    monkeypatch.setattr(androtrace_evaluations.counting, "writes", writes)
    found = androtrace_evaluations.tracing_slows(tmp_path, []).found
    assert [(one.of, one.here, one.agrees) for one in found] == [
        ("direct, random, 16000 MB/s", "+6.0 %", False),
        ("direct, random, 16000 MB/s", "+0.4 %", None),
        ("direct, random, 16000 MB/s", "+70.0 %", None),
        ("all patterns", "+70.0 %", True),
    ]


def test_what_the_paper_has_no_number_of_has_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Androtrace has no step after tracing."""
    one = Recording("", ("sync",), minutes=1)
    put(tmp_path, one, bio(1, SECOND))
    monkeypatch.setattr(androtrace_evaluations, "_report_s", lambda folder: 100.0)
    monkeypatch.setattr(most_way, "seconds", lambda tables, where: (90.0, 1, 1))
    found = androtrace_evaluations.post_processing(tmp_path, [one]).found
    assert [(one.here, one.agrees) for one in found] == [
        ("100.0 s for 1 bios", None),
        ("90 s, from 1 of 1 blocks", None),
    ]


def test_a_relative_folder_is_that_of_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`trace evaluate A3` without --out has relative folders, and the report runs in another directory."""
    monkeypatch.chdir(tmp_path)
    one = Recording("", ("sync",), minutes=1)
    put(Path("out"), one, bio(1, SECOND))
    assert androtrace_evaluations._report_s(one.folder(Path("out"))) > 0


@dataclass
class Lab:
    """Runs that only leave their names."""

    ran: list[str] = field(default_factory=list)
    ok: bool = True

    def run(self, spec: RunSpec, tools: Tools) -> Result:
        assert tools.guest_key
        assert spec.trace_to is not None
        self.ran.append(spec.trace_to.name)
        (spec.trace_to / "00000001.ftlog").touch()
        apps = [{"uid": app["uid"], "role": app["role"]} for app in spec.job["apps"]]
        guest = {"ok": True, "apps": apps, "touch_ns": 0, "end_ns": SECOND}
        return Result(Cell("x", "s6", "stock", (), 1), Verdict(self.ok, "x", (), guest), "6.12", 1.0)


@dataclass(frozen=True)
class Kernel:
    key: str


@dataclass(frozen=True)
class Tools:
    kernel: Kernel
    guest_key: str = "g"


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Lab:
    made = Lab()
    monkeypatch.setattr(recordings.runner, "run", made.run)
    return made


def test_a_recording_is_made_once_for_a_kernel(lab: Lab, tmp_path: Path) -> None:
    one, timed = Recording("gallery-launch", ("update",)), Recording("", ("sync",), minutes=3)
    for kernel in ("a", "a", "b"):
        for each in (one, timed):
            each.make(tmp_path, Tools(Kernel(kernel)))  # type: ignore[arg-type]
    assert lab.ran == ["gallery-launch-update-s6-stock", "3-min-sync-s6-stock"] * 2
    assert recordings.logs_of([one, Recording("game-load")], tmp_path) == [one.folder(tmp_path)]


def test_a_failed_recording_is_not_kept(lab: Lab, tmp_path: Path) -> None:
    lab.ok = False
    for _ in range(2):
        with pytest.raises(recordings.LabError, match="gallery-launch-alone-s6-stock failed"):
            Recording("gallery-launch").make(tmp_path, Tools(Kernel("a")))  # type: ignore[arg-type]
    assert len(lab.ran) == 2


def test_what_is_lacking_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(RECORDINGS, str(tmp_path / "none"))
    monkeypatch.setattr(recordings, "make_all", lambda wanted, out: None)
    for one in androtrace_evaluations.DAY:
        put(tmp_path, one, WRITES)
    (made,) = evaluating.make(evaluating.chosen(["A5"]), tmp_path)
    assert {one.of for one in made.outcome.found} == {"mixed use"}
    assert [FACEBOOK in why for why in made.lacking] == [True]
    assert json.loads((tmp_path / "A5.json").read_text())["found"][0]["here"] == "75 %"


def test_names() -> None:
    assert [one.name for one in evaluating.chosen(["fig2", "A4", "fig2"])] == ["fig2", "A4"]
    assert len(evaluating.chosen([])) == len(evaluating.EVALUATIONS)
    with pytest.raises(UsageProblem, match="unknown evaluation 'A9'"):
        evaluating.chosen(["A9"])


def test_mosts_way_asks_for_some_blocks_and_counts_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(most_way, "SAMPLE", 2)
    monkeypatch.setattr(most_way, "_DISK_MIB", 256)
    (tmp_path / "trace").mkdir()
    write(tmp_path / "trace", [*HEAD, *WRITES])
    took, asked, whole = most_way.seconds(sources.open_all([tmp_path / "trace"]), tmp_path)
    assert (asked, whole) == (2, 5) and took > 0


@pytest.mark.skipif(recording(FACEBOOK) is None, reason=f"{RECORDINGS} names no directory with {FACEBOOK}")
def test_the_facebook_recording_is_replayed(lab: Lab, tmp_path: Path) -> None:
    one = androtrace_evaluations.REPLAY
    assert one.lacking() is None
    one.make(tmp_path, Tools(Kernel("a")))  # type: ignore[arg-type]
    assert lab.ran == ["facebook-alone-s6-stock"]


def test_the_document_has_every_evaluation() -> None:
    """Its recordings, its command, and a table of the paper's numbers and these."""
    text = (CHECKOUT / "docs" / "TRACE-EVALUATIONS.md").read_text()
    for one in evaluating.EVALUATIONS.values():
        assert f"\n| {one.name} | {one.title} | " in text
        _, _, told = text.partition(f"\n## {one.name}: {one.title}\n\n`./fasttrack trace evaluate {one.name}`\n\n")
        assert told.startswith("| of | what | paper | here | |\n")
        assert one.because.split(". ")[-1].split("`")[-1].split()[-1] in told.partition("\n## ")[0]
