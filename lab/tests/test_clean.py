# SPDX-License-Identifier: GPL-2.0-only
"""./fasttrack clean."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from fasttrack_lab.commands import build, clean
from fasttrack_lab.host.errors import LabError
from fasttrack_lab.host.paths import CHECKOUT, IN_USE, LAB, try_lock

IN_PYTHON = re.compile(
    r"""cache_dir\("([\w-]+)"|cache_root\(\) / "([\w-]+)"|stored\.folder\(\s*"([\w-]+)"|store: str = "([\w-]+)\""""
)
IN_SHELL = re.compile(r"[$](?:cache|\{cache\})/([\w-]+)")


def directories() -> set[str]:
    """Those of the cache that the code names."""
    found = [IN_PYTHON.findall(path.read_text()) for path in (LAB / "fasttrack_lab").rglob("*.py")]
    named = {name for groups in found for names in groups for name in names if name}
    scripts = [IN_SHELL.findall(path.read_text()) for path in (CHECKOUT / "scripts").glob("*.sh")]
    return named | {name for names in scripts for name in names}


def test_every_directory_of_the_cache_is_cleaned_or_kept() -> None:
    found = directories() - {"venv-"}
    assert {"kernels", "images", "setup", "deb"} <= found
    assert found - {*clean.BUILT, *clean.DOWNLOADED, *clean.KEPT} == set()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a kernel, a download, and what is somebody else's."""
    monkeypatch.setenv("FASTTRACK_CACHE", str(tmp_path / "cache"))
    for name in ("kernels/key/linux", "downloads/linux.tar.xz", "venv-key/bin/python", "mine/letter"):
        (tmp_path / "cache" / name).parent.mkdir(parents=True)
        (tmp_path / "cache" / name).write_bytes(bytes(8192))
    return tmp_path / "cache"


def left(cache: Path) -> list[str]:
    """What is left, without the locks."""
    return sorted(path.name for path in cache.iterdir() if path.name != "locks")


@pytest.mark.parametrize(("options", "stays"), [([], ["downloads"]), (["--all"], [])])
def test_what_was_built_goes(cache: Path, options: list[str], stays: list[str]) -> None:
    done = CliRunner().invoke(clean.command, options)
    assert done.exit_code == 0, done.output
    assert left(cache) == [*stays, "mine", "venv-key"]
    assert re.search(r"removed 0\.0\d GB", done.stderr)


def test_nothing_goes_while_another_command_is_under_way(cache: Path) -> None:
    before = left(cache)
    with try_lock(IN_USE, shared=True) as first, try_lock(IN_USE, shared=True) as second:
        assert first and second
        done = CliRunner().invoke(clean.command, [])
    assert isinstance(done.exception, LabError) and "another ./fasttrack command is under way" in str(done.exception)
    assert left(cache) == before


def test_a_command_that_builds_holds_the_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cleaned(_: object) -> None:
        done = CliRunner().invoke(clean.command, [])
        assert "under way" in str(done.exception)
        raise LabError("seen")

    monkeypatch.setattr("fasttrack_lab.build.kernel.kbuild.build", cleaned)
    done = CliRunner().invoke(build.command, [])
    assert str(done.exception) == "seen"
    assert left(cache) == ["downloads", "kernels", "mine", "venv-key"]
    assert CliRunner().invoke(clean.command, []).exit_code == 0


def test_where_there_is_no_cache_none_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTTRACK_CACHE", str(tmp_path / "cache"))
    done = CliRunner().invoke(clean.command, [])
    assert (done.exit_code, list(tmp_path.iterdir())) == (0, [])
