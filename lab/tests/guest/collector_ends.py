#!/usr/bin/python3 -ESsBu
# SPDX-License-Identifier: GPL-2.0-only
"""fasttrack-trace is killed while it records, or its disk loses power; what it had finished is read, none twice."""

from __future__ import annotations

import json
import mmap
import os
import random
import subprocess
import time
from pathlib import Path
from trace import Collector, sends

from power_cut import MFLASH, PHONE, mount_phone, program
from prologue import BLOCK, FRONT, SEEN, Shown, end, run, start, write

RATE = 2000
"""Direct writes a second."""

SENT = 0
"""Place of the counter of writes in SEEN."""

DAMAGED = 3
"""Exit status of cat."""


def read_bios(collector: str, logs: Path) -> tuple[dict[str, list[int]], str]:
    """Numbers of the bios of each session, in the order of the files; and what is damaged."""
    argv = [collector, "cat", "--json", "--type", "session,bio", str(logs)]
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    if done.returncode not in (0, DAMAGED):
        raise ChildProcessError(done.stderr)
    found: dict[str, list[int]] = {}
    session = ""
    for line in done.stdout.splitlines():
        record = json.loads(line)
        if record["record"] == "session":
            session = record["session"]
        else:
            found.setdefault(session, []).append(record["bio"])
    return found, done.stderr


def killed(collector: str, times: int, seed: int) -> Shown:
    """By SIGKILL at random moments: after how long each, and the bios that are read of it."""
    draw = random.Random(seed)
    logs = Path("/run/logs")
    shown: Shown = {"kills": [], "wrong": []}
    before: dict[str, list[int]] = {}
    child = start(FRONT, lambda: sends(10_000_000, RATE))
    for number in range(times):
        # Some in its first block, and some after several files.
        after_s = draw.choice([0.3, 1.5]) * draw.random()
        first = Collector(collector, "--block-time", "0.05", "--file-size", "16", logs=logs)
        time.sleep(after_s)
        end(first.process.pid)
        now, damage = read_bios(collector, logs)
        new = {session: bios for session, bios in now.items() if session not in before}
        if any(now.get(session) != bios for session, bios in before.items()) or len(new) > 1:
            shown["wrong"].append(f"kill {number}: what was there has changed")
        if damage:
            shown["wrong"].append(f"kill {number}: {damage}")
        shown["kills"].append([after_s, *new.values()])
        before = now
    end(child)
    shown["files"] = len(list(logs.glob("*.ftlog")))
    return shown


def counts() -> None:
    """Direct writes, and how many there were is on the console: what it shows was written before the cut."""
    handle = os.open(PHONE / "direct", os.O_CREAT | os.O_RDWR | os.O_DIRECT, 0o644)
    block = mmap.mmap(-1, BLOCK)
    for number in range(10_000_000):
        os.pwritev(handle, [block], number % 256 * BLOCK)
        SEEN[SENT] = number + 1
        time.sleep(1 / RATE)


def records(collector: str, fs: str, options: str, argv: list[str], command: int) -> Shown:
    """To the disk that loses power, so many commands from now."""
    program(*argv)
    mount_phone(fs, options)
    PHONE.chmod(0o1777)
    Collector(collector, "--block-time", "0.05", "--file-size", "16", "--sync", "block", logs=PHONE / "logs")
    write(MFLASH / "power_cut_after", str(command))
    start(FRONT, counts)
    while True:
        time.sleep(0.01)
        os.write(1, f"sent {SEEN[SENT]} at {time.monotonic_ns()}\n".encode())


def reads(collector: str, fs: str, options: str) -> Shown:
    """After the cut: what is read, and that the next collector continues."""
    mount_phone(fs, options)
    logs = PHONE / "logs"
    if not logs.exists():
        # It was cut before the first records came.
        return {"bios": [], "damage": "", "kept": True}
    first, damage = read_bios(collector, logs)
    second = Collector(collector, logs=logs)
    second.end()
    both, _ = read_bios(collector, logs)
    kept = all(both[session][: len(bios)] == bios for session, bios in first.items())
    return {"bios": [*first.values()], "damage": damage, "kept": kept}


if __name__ == "__main__":
    run(killed, records, reads)
