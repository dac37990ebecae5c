# SPDX-License-Identifier: GPL-2.0-only
"""Child processes in groups of their own, so that none outlives the command that started it."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, NoReturn

from fasttrack_lab.host.errors import Interrupted, LabError

_groups: set[int] = set()
_groups_lock = threading.RLock()  # guards _groups; a signal handler may interrupt its holder
_stopping = threading.Event()

# The kernel kills the child when this process dies, even by SIGKILL; a crash of the child leaves no core file.
LEASH = ("prlimit", "--core=0", "setpriv", "--pdeathsig", "KILL")


@dataclass(frozen=True)
class Ended:
    """How a child process ended. A negative status is the signal that killed it."""

    status: int
    timed_out: bool


def start(
    argv: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    stdout: int | IO[bytes] | None = None,
    stderr: int | IO[bytes] | None = subprocess.STDOUT,
) -> subprocess.Popen[bytes]:
    """Start ARGV in a new process group that stop_all() knows."""
    if _stopping.is_set():
        raise Interrupted("interrupted")
    try:
        child = subprocess.Popen(
            [*LEASH, *argv],
            cwd=cwd,
            env=dict(env) if env is not None else None,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            process_group=0,
        )
    except FileNotFoundError as error:
        raise LabError(f"cannot start {argv[0]}: {error.filename} is missing; run scripts/setup.sh") from error
    with _groups_lock:
        _groups.add(child.pid)
    if _stopping.is_set():
        # stop_all() came between the check and the fork.
        _kill_group(child.pid)
    return child


def finish(child: subprocess.Popen[bytes], limit_s: float | None) -> Ended:
    """Wait for CHILD at most LIMIT_S real seconds, then end whatever is left of its group."""
    timed_out = False
    try:
        child.wait(limit_s)
    except subprocess.TimeoutExpired:
        timed_out = True
    finally:
        _kill_group(child.pid)
        child.wait()
        with _groups_lock:
            _groups.discard(child.pid)
    if _stopping.is_set():
        raise Interrupted("interrupted")
    return Ended(child.returncode, timed_out)


def _kill_group(group: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def stop_all() -> None:
    """End every child group; start() refuses from now on."""
    _stopping.set()
    with _groups_lock:
        for group in _groups:
            _kill_group(group)


def go_on() -> None:
    """start() works again, for a program that goes on after stop_all()."""
    _stopping.clear()


def stopping() -> bool:
    """Whether stop_all() was called."""
    return _stopping.is_set()


def _on_signal(number: int, _frame: FrameType | None) -> NoReturn:
    stop_all()
    raise Interrupted(f"interrupted by {signal.Signals(number).name}")


def catch_signals() -> None:
    """SIGINT, SIGTERM and SIGHUP end all children, and the command with exit status 130."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _on_signal)


def output(argv: Sequence[str]) -> str:
    """Standard output of a short helper command."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise LabError(f"{argv[0]} is missing; run scripts/setup.sh") from error
    if done.returncode:
        raise LabError(f"{' '.join(argv)}: exit status {done.returncode}: {done.stderr.strip()}")
    return done.stdout
