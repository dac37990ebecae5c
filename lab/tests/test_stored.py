# SPDX-License-Identifier: GPL-2.0-only
"""What was built is made once, is there as a whole or not at all, and goes when it is old."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fasttrack_lab.build import guest_program, stored


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FASTTRACK_CACHE", str(tmp_path))
    return tmp_path


def test_a_folder_is_made_once(cache: Path) -> None:
    made: list[Path] = []

    def make(to: Path) -> None:
        made.append(to)
        (to / "program").touch()

    folders = {stored.folder("things", "a", 2, make) for _ in range(2)}
    assert folders == {cache / "things" / "a"}
    assert len(made) == 1 and not made[0].exists()
    assert [path.name for path in (cache / "things" / "a").iterdir()] == ["program"]


def test_what_could_not_be_made_is_not_there(cache: Path) -> None:
    def fail(to: Path) -> None:
        (to / "half").touch()
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        stored.folder("things", "a", 2, fail)
    assert not (cache / "things" / "a").exists()
    assert list(stored.folder("things", "a", 2, lambda to: None).iterdir()) == []


def test_the_last_used_ones_stay(cache: Path) -> None:
    for at, key in enumerate("abc", 1):
        stored.folder("things", key, 9, lambda to: None)
        os.utime(cache / "things" / key, (at, at))
    stored.folder("things", "a", 9, lambda to: None)
    stored.folder("things", "d", 2, lambda to: None)
    assert {path.name for path in (cache / "things").iterdir()} == {"a", "d"}


def test_checkouts_have_a_cargo_of_their_own(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of them with a file as old would be given each other's programs."""
    own = guest_program.cargo_target()
    assert own == guest_program.cargo_target() and own.is_dir() and own.is_relative_to(cache)
    assert guest_program.cargo_environment()["CARGO_TARGET_DIR"] == str(own)
    monkeypatch.setattr(guest_program, "CHECKOUT", cache / "another")
    assert guest_program.cargo_target() != own


def test_another_users_folder_is_used_as_it_is(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (cache / "things" / "a").mkdir(parents=True)

    def refuse(path: Path) -> None:
        raise PermissionError(f"{path} is another user's")

    monkeypatch.setattr(os, "utime", refuse)
    assert stored.folder("things", "a", 2, lambda to: None) == cache / "things" / "a"
