# SPDX-License-Identifier: GPL-2.0-only
"""Answers that are kept until a file changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fasttrack_lab.host import known


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FASTTRACK_CACHE", str(tmp_path / "cache"))
    source = tmp_path / "source"
    source.write_text("one")
    return source


def test_an_answer_is_worked_out_once_and_again_when_a_file_changes(asked: Path) -> None:
    made: list[str] = []

    def work_out() -> str:
        made.append(asked.read_text())
        return made[-1]

    assert [known.remembered("x", [asked], [], work_out) for _ in range(3)] == ["one"] * 3
    assert made == ["one"]
    assert known.remembered("y", [asked], [], work_out) == "one"
    assert known.remembered("x", [asked], ["an option"], work_out) == "one"
    assert made == ["one"] * 3
    before = asked.stat()
    asked.write_text("two")
    os.utime(asked, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert known.remembered("x", [asked], [], work_out) == "two"
    asked.unlink()
    with pytest.raises(FileNotFoundError):
        known.remembered("x", [asked], [], work_out)


def test_old_answers_go(asked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known, "KEPT", 2)
    for number in range(4):
        known.remembered("x", [asked], [str(number)], lambda: "answer")
    assert len(list((known.cache_dir("known", "x")).iterdir())) == 2
