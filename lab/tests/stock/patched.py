#!/usr/bin/python3 -ESsBu
# SPDX-License-Identifier: GPL-2.0-only
"""Init of a machine with the patched kernel: what fasttrack-trace records there, and what its `top` sums up."""

from __future__ import annotations

import os
import signal
import sys
import time
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "oracle"))
sys.path.insert(0, str(Path(__file__).parent.parent / "guest"))

from trace import Collector
from typing import NoReturn

import origin
import prologue
import suite
from prologue import BEHIND, BLOCK, DATA, FRONT, OUT, QUEUE, TRACE, Shown, format_data, read, run, write
from suite import BEGUN, begun, ended, said

FILES = 7000
"""Of an app: fewer than there is room for in a histogram, and more than it is emptied at."""

MORE_FILES = 9000
"""More than there is room for."""


def reset() -> NoReturn:
    """In place of switching off, which takes ACPI."""
    write("/proc/sysrq-trigger", "b")
    time.sleep(10)
    raise SystemExit(1)


def format_stable(kind: str, features: str, options: str) -> None:
    """No page changes while it is written: what the disk is given is what was there when the bio was sent."""
    write(QUEUE / "stable_writes", "1")
    format_data(kind, features, options)


def left() -> Shown:
    """What `top` has left behind."""
    return {
        "rings": [path.name for path in (TRACE / "instances").iterdir()],
        "synthetic": read(TRACE / "synthetic_events"),
    }


def tops(program: str) -> Shown:
    """With the source that `top` chooses, and what doctor says then."""
    shown = suite.tops(program, "kernel", named=False) | left()
    return shown | {"doctor": said(program, "doctor")}


def writes_files(folder: str, count: int) -> None:
    (DATA / folder).mkdir()
    block = bytes(BLOCK)
    for number in range(count):
        handle = os.open(DATA / folder / str(number), os.O_CREAT | os.O_WRONLY, 0o666)
        os.write(handle, block)
        os.close(handle)


def files(program: str) -> Shown:
    """Pictures of more files than a histogram has room for; at last of too many at once."""
    argv = [program, "top", "--interval", "2", "--rows", "100000", "--buffer", "16384"]
    path = OUT / "pictures"

    def shown_of(folder: str) -> None:
        """All of them are on the disk, and pictures have them."""
        os.sync()
        while f"{DATA / folder}/" not in read(path):
            time.sleep(1)
        time.sleep(6)

    with path.open("w") as pictures:
        top = begun(argv, *BEGUN["kernel"], stdout=pictures)
        collector = Collector(program, "--source", "kernel", "--buffer", "16384")
        for uid in (FRONT, BEHIND):
            origin.app(uid, partial(writes_files, str(uid), FILES))
            shown_of(str(uid))
        top.send_signal(signal.SIGSTOP)
        origin.app(FRONT, partial(writes_files, "more", MORE_FILES))
        os.sync()
        top.send_signal(signal.SIGCONT)
        shown_of("more")
        status, _, errors = ended(top)
    collector.end()
    return {"status": status, "errors": errors, "pictures": read(path)} | left()


def from_boot(program: str) -> Shown:
    """A ring that the kernel has made at its start is taken over."""
    collector = Collector(program, "--ring", "boot")
    origin.app(FRONT, partial(writes_files, "from_boot", 100))
    os.sync()
    collector.end()
    return {"rings": left()["rings"], "booted": read("/proc/bootconfig")}


if __name__ == "__main__":
    prologue.power_off, prologue.format_data = reset, format_stable
    run(suite.suite, suite.stacked, suite.hotplug, tops, files, from_boot)
