# SPDX-License-Identifier: GPL-2.0-only
"""An interaction's I/O by side and layer, and its picture."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from trace_records import SECOND, exported, write
from trace_story import CAMERA, MS, STORY, at, call, request, run, sent, wait

from fasttrack_lab.commands.trace import command
from fasttrack_lab.host.errors import InputError, UsageProblem
from fasttrack_lab.inputs.cell import Cell
from fasttrack_lab.run.result import Result, Verdict
from fasttrack_lab.trace import engines, interaction, io_profile, io_profile_drawn, logs
from fasttrack_lab.trace.interaction import Interaction
from fasttrack_lab.trace.io_profile import BACKGROUND, FOREGROUND, Piece, Profile

MAIL_UID, CAMERA_UID = 10101, 10102
BEHIND = (
    sent(90, 2, 9000, CAMERA),
    run(90, 2, file=6, owner=CAMERA),
    request(7, 9000, 1, 4),
    call(1, 8, "read", CAMERA, file=6),
    wait(3, 5, "tag", CAMERA),
)
TOLD = Interaction("mail", (MAIL_UID,), 0.010)


def profiled(monkeypatch: pytest.MonkeyPatch, told: Interaction = TOLD) -> Profile:
    exported(monkeypatch, [*STORY, *BEHIND])
    return io_profile.of(logs.read([Path("logs")], engines.duckdb()), told)


def test_spans_are_of_their_side_and_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    found = profiled(monkeypatch)
    assert (found.begin, found.end) == (at(0), at(10))
    assert [found.busy(FOREGROUND, layer) / MS for layer in ("calls", "page cache", "file system")] == [10, 3, 6]
    behind = {layer: found.pieces.get((BACKGROUND, layer)) for layer in io_profile.LAYERS}
    assert behind == {
        "calls": [Piece(at(1), at(2), "read"), Piece(at(1), at(8), "read")],
        "page cache": [Piece(at(1.2), at(1.9), "folio")],
        "file system": None,
        "block layer": [Piece(at(2), at(3), "write"), Piece(at(3), at(5), "tag")],
        "device": [Piece(at(1.1), at(1.9), "read"), Piece(at(3), at(7), "write")],
    }
    front = found.summed(FOREGROUND, "device")
    unknown = found.summed(io_profile.UNKNOWN, "device")
    assert front > 0 and found.coefficient == front / (front + unknown + found.summed(BACKGROUND, "device"))
    assert found.bytes_of(BACKGROUND, at(2), at(10)) == 4096
    assert found.bytes_of(BACKGROUND, at(7), at(10)) == 4096
    assert found.bytes_of(BACKGROUND, at(7.1), at(10)) == 0


def test_the_page_of_a_report_has_it(tmp_path: Path) -> None:
    """Of a directory that says what was in front; of an interval it would be another picture."""
    write(tmp_path, [*STORY, *BEHIND])
    for told, options, there in ((False, [], False), (True, [], True), (True, ["--since", "1"], False)):
        if told:
            TOLD.write(tmp_path)
        out = tmp_path / "page"
        done = CliRunner().invoke(command, ["report", str(tmp_path), "--out", str(out), *options])
        assert done.exit_code == 0, done.output
        assert ('id="profile"' in (out / "report.html").read_text()) is there


def test_only_the_interaction_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    half = profiled(monkeypatch, Interaction("mail", (MAIL_UID,), 0.005))
    assert half.begin == at(5)
    assert half.busy(BACKGROUND, "device") == 2 * MS
    assert half.pieces.get((BACKGROUND, "block layer")) is None


def test_nobody_in_front_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageProblem, match="no call of uid 10999"):
        profiled(monkeypatch, Interaction("x", (10999,), 1.0))
    with pytest.raises(UsageProblem, match="nobody is in front"):
        profiled(monkeypatch, Interaction("x", (), 1.0))


def test_spans_that_touch_are_one() -> None:
    pieces = [Piece(0, 10, "a"), Piece(5, 7, "b"), Piece(12, 13, "c"), Piece(20, 21, "d")]
    assert io_profile.merged(pieces, 0) == [(0, 10), (12, 13), (20, 21)]
    assert io_profile.merged(pieces, 2) == [(0, 13), (20, 21)]


def test_the_picture_has_both_sides_and_all_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    text = io_profile_drawn.drawn(profiled(monkeypatch))
    for said in ("mail", FOREGROUND, BACKGROUND, *io_profile.LAYERS, "10.0 ms, 100 %; 1", "fsync", "(ms)"):
        assert said in text, said


def test_a_run_tells_of_its_interaction(tmp_path: Path) -> None:
    apps = [{"uid": MAIL_UID, "role": "foreground"}, {"uid": CAMERA_UID, "role": "background"}]
    guest = {"ok": True, "apps": apps, "touch_ns": 2 * SECOND, "end_ns": 5 * SECOND}
    cell = Cell("launch", "s6", "stock", ("update",), 1)
    told = Interaction.of_result(Result(cell, Verdict(True, None, (), guest), "6.12", 1.0))
    assert told == Interaction("launch, update: s6, stock", (MAIL_UID,), 3.0)
    told.write(tmp_path)
    assert interaction.read(tmp_path) == told
    assert Interaction.of_result(Result(cell, Verdict(False, "x", (), guest), "6.12", 1.0)) is None
    (tmp_path / interaction.FILE).write_text('{"title": "x"}')
    with pytest.raises(InputError, match="no interaction"):
        interaction.read(tmp_path)


def test_the_command(tmp_path: Path) -> None:
    write(tmp_path, [*STORY, *BEHIND])
    asked = CliRunner().invoke(command, ["profile", str(tmp_path)])
    assert isinstance(asked.exception, UsageProblem) and "--foreground and --seconds" in str(asked.exception)
    done = CliRunner().invoke(
        command, ["profile", str(tmp_path), "--foreground", str(MAIL_UID), "--seconds", "0.01"], catch_exceptions=False
    )
    assert done.exit_code == 0
    assert (tmp_path / io_profile_drawn.FILE).read_text().startswith("<svg")
