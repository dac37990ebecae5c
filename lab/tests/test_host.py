# SPDX-License-Identifier: GPL-2.0-only
"""Preflight, run directories, child processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from fasttrack_lab.host import preflight, process, rundir, side_by_side
from fasttrack_lab.host.errors import LabError
from fasttrack_lab.host.paths import LAB, cache_root, newest_first, replaced, write_if_changed


def test_this_host_passes(tmp_path: Path) -> None:
    assert preflight.ptrace_works()
    (tmp_path / "kernels").mkdir()
    assert preflight.problems(tmp_path) == []


def test_each_lack_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(preflight, "ptrace_works", lambda: False)
    monkeypatch.setattr(preflight, "free_mib", lambda directory: 10)
    found = preflight.problems(tmp_path)
    assert any("SYS_PTRACE" in line for line in found)
    assert any("Set TMPDIR" in line and "10 MiB free" in line for line in found)
    assert any("set FASTTRACK_CACHE" in line for line in found)


def test_other_machines_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(preflight.platform, "machine", lambda: "aarch64")
    assert preflight.problems(tmp_path) == [
        "this is Linux on aarch64: the lab needs Linux on x86-64, because its guests run as x86-64 processes"
    ]


def test_preflight_runs_without_the_environment(tmp_path: Path) -> None:
    (tmp_path / "kernels").mkdir()
    argv = [sys.executable, "-I", str(LAB / "fasttrack_lab" / "host" / "preflight.py"), str(tmp_path)]
    assert subprocess.run(argv, check=False).returncode == 0


def test_tmpdir_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert preflight.run_room(1) == (tmp_path, "")
    # A guest's own directory is another one than the caller's.
    monkeypatch.chdir(tmp_path.parent)
    monkeypatch.setenv("TMPDIR", tmp_path.name)
    assert preflight.run_room(1) == (tmp_path, "")


def test_a_relative_cache_is_that_of_the_caller(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FASTTRACK_CACHE", raising=False)
    for name, told in (("XDG_CACHE_HOME", tmp_path / "cache" / "fasttrack"), ("FASTTRACK_CACHE", tmp_path / "cache")):
        monkeypatch.setenv(name, "cache")
        assert cache_root() == told
        monkeypatch.delenv(name)


def test_run_dir_is_gone_afterwards_and_leftovers_are_swept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    left = tmp_path / f"{rundir.PREFIX}dead"
    left.mkdir()
    (left / "lock").touch()
    with rundir.run_dir(1) as first, rundir.run_dir(1) as second:
        assert first != second and len(str(first)) == len(str(second))
        assert first.is_dir() and second.is_dir()
        assert not left.exists()
    assert list(tmp_path.iterdir()) == []


def test_no_room_is_an_error_that_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "free_mib", lambda directory: 1)
    with pytest.raises(LabError, match="Set TMPDIR to a directory with room"), rundir.run_dir(100):
        raise AssertionError("must not be reached")


def test_sparse_copy_keeps_content_and_holes(tmp_path: Path) -> None:
    source = tmp_path / "source"
    with source.open("wb") as handle:
        handle.truncate(64 << 20)
        for offset in (0, 10 << 20, (64 << 20) - 4096):
            handle.seek(offset)
            handle.write(b"x" * 4096)
    rundir.copy_sparse(source, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == source.read_bytes()
    assert rundir.held_mib(tmp_path / "copy") < 4


def test_child_that_takes_too_long_is_ended_with_its_group() -> None:
    child = process.start(["sh", "-c", "sleep 100 & sleep 100"])
    ended = process.finish(child, 0.3)
    assert ended.timed_out and ended.status == -signal.SIGKILL
    shown = subprocess.run(["ps", "-eo", "pgid=,stat="], capture_output=True, text=True, check=True).stdout
    states = [line.split()[1] for line in shown.splitlines() if line.split()[0] == str(child.pid)]
    assert all(state.startswith("Z") for state in states)


def test_missing_program_is_named() -> None:
    ended = process.finish(process.start(["/nonexistent/program"], stderr=subprocess.DEVNULL), 5)
    assert ended.status == 127 and not ended.timed_out


def test_answers_keep_the_order_of_the_questions() -> None:
    seen: list[int] = []

    def slow_first(item: int) -> int:
        time.sleep(0.05 if item == 0 else 0)
        return item * 10

    answers = side_by_side.each(range(4), slow_first, "test", lambda item, answer: seen.append(answer))
    assert answers == [0, 10, 20, 30]
    assert sorted(seen) == answers


INTERRUPTED = """
    import sys
    from fasttrack_lab.host import process, rundir, side_by_side
    process.catch_signals()

    def work(item):
        with rundir.run_dir(1) as where:
            sys.stdout.write(f"{where}\\n")
            sys.stdout.flush()
            process.finish(process.start(["sleep", "100"], cwd=where), None)

    side_by_side.each([1, 2], work, "test", jobs=2)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_all_children_and_leaves_no_file(tmp_path: Path, number: signal.Signals) -> None:
    env = os.environ | {"PYTHONPATH": str(LAB), "TMPDIR": str(tmp_path)}
    argv = [sys.executable, "-c", textwrap.dedent(INTERRUPTED)]
    child = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    where = [Path(child.stdout.readline().strip()) for _ in range(2)]
    assert all(path.is_dir() for path in where)
    child.send_signal(number)
    child.communicate(timeout=20)
    assert child.returncode != 0
    assert list(tmp_path.iterdir()) == []
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert not any(str(path) in running for path in where)


def test_two_may_write_the_same_file_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The other one is begun and done while the first has written, and not yet put the file into its place."""
    path, writes = tmp_path / "script.sh", Path.write_bytes

    def beside(self: Path, data: bytes) -> int:
        monkeypatch.setattr(Path, "write_bytes", writes)
        written = self.write_bytes(data)
        assert write_if_changed(path, data, executable=True)
        return written

    monkeypatch.setattr(Path, "write_bytes", beside)
    assert write_if_changed(path, b"#!/bin/sh\n", executable=True)
    assert list(tmp_path.iterdir()) == [path]
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"#!/bin/sh\n", 0o755)
    assert not write_if_changed(path, b"#!/bin/sh\n")


def test_a_file_that_goes_while_a_store_is_listed_is_left_out(tmp_path: Path) -> None:
    """Another process renames its unfinished file between the listing and the look at it."""
    old, new = tmp_path / "old", tmp_path / "new"
    for path, changed in (old, 1), (new, 2):
        path.touch()
        os.utime(path, (changed, changed))
    assert newest_first([old, tmp_path / "answer.f5448ce9.new", new]) == [new, old]


def test_a_file_is_replaced_whole_with_the_mode_of_any(tmp_path: Path) -> None:
    path, other = tmp_path / "x.json", tmp_path / "y"
    path.write_text("old")
    other.write_text("")
    with pytest.raises(ZeroDivisionError), replaced(path) as file:
        file.write(b"new")
        1 / 0  # noqa: B018
    assert path.read_text() == "old"
    with replaced(path) as file:
        file.write(b"new")
    assert path.read_text() == "new" and path.stat().st_mode == other.stat().st_mode
    assert sorted(tmp_path.iterdir()) == [path, other]


def test_a_link_or_a_device_is_written_to_and_stays(tmp_path: Path) -> None:
    """Else root's --json /dev/stdout would put a file in place of the link."""
    target, link, pipe = tmp_path / "target", tmp_path / "link", tmp_path / "pipe"
    target.write_text("old")
    link.symlink_to(target)
    with replaced(link) as file:
        file.write(b"new")
    assert link.is_symlink() and target.read_text() == "new"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with replaced(pipe) as file:
        file.write(b"new")
    assert os.read(reader, 9) == b"new" and pipe.is_fifo()
    os.close(reader)
