#!/usr/bin/python3 -ESsBu
# SPDX-License-Identifier: GPL-2.0-only
"""Writers and readers that keep the device busy, and what the elevator sends meanwhile, in order."""

from __future__ import annotations

import subprocess
import time

from prologue import DEBUG, QUEUE, TRACE, Shown, enable, events_of, fill_disk, fio, fio_job, read, run, write

IOSCHED = QUEUE / "iosched"
Jobs = dict[str, list[str]]
"""Command lines of fio, by name."""


def begin(jobs: Jobs) -> dict[str, subprocess.Popen[bytes]]:
    return {name: fio(argv) for name, argv in jobs.items()}


def ended(running: dict[str, subprocess.Popen[bytes]]) -> Shown:
    """Operations of each, and their mean and longest time in ms."""
    shown: Shown = {}
    for name, process in running.items():
        job = fio_job(process)
        side = job["read"] if job["read"]["total_ios"] else job["write"]
        times = side["clat_ns"]
        shown[name] = {"ios": side["total_ios"], "mean_ms": times["mean"] / 1e6, "max_ms": times["max"] / 1e6}
    return shown


def trace(*events: str) -> None:
    for event in events:
        enable(event)
    write(TRACE / "buffer_size_kb", "16384")


def wait_max_ms() -> float | None:
    """The longest wait of a write, if the elevator counts it."""
    counter = IOSCHED / "write_wait_max_us"
    return int(read(counter)) / 1e3 if counter.exists() else None


def at_once(jobs: Jobs) -> Shown:
    fill_disk(128)
    return ended(begin(jobs)) | {"wait_max_ms": wait_max_ms()}


def traced(jobs: Jobs) -> Shown:
    """With all that the elevator smartio sends."""
    fill_disk(128)
    trace("smartio/smartio_dispatch")
    shown: Shown = {}
    sent = events_of("smartio_dispatch", lambda: shown.update(ended(begin(jobs))))
    return shown | {"sent": sent, "wait_max_ms": wait_max_ms()}


def most(turns: dict[str, dict[str, int]], jobs: Jobs) -> Shown:
    """Of each turn, a job with these depths: the most requests that were in the device at a time, and operations."""
    fill_disk(128)
    trace("smartio/smartio_dispatch", "block/block_rq_complete")
    shown: Shown = {}
    for name, depths in turns.items():
        for kind, depth in depths.items():
            write(IOSCHED / f"{kind}_depth", str(depth))
        (TRACE / "trace").open("w").close()
        done = ended(begin({name: jobs[name]}))[name]
        inside, highest = 0, 0
        for line in read(TRACE / "trace").splitlines():
            inside += ("smartio_dispatch: " in line) - ("block_rq_complete: " in line)
            highest = max(highest, inside)
        shown[name] = [highest, done["ios"]]
    return shown


def changes(jobs: Jobs) -> Shown:
    """Elevators come and go under load."""
    fill_disk(128)
    running = begin(jobs)
    for turn in range(20):
        time.sleep(0.05)
        write(QUEUE / "scheduler", ("smartio", "none", "smartio", "fasttrack")[turn % 4])
    shown = ended(running)
    write(QUEUE / "scheduler", "smartio")
    return shown | {"state": read(DEBUG / "block/sda/sched/state").splitlines()}


if __name__ == "__main__":
    run(at_once, traced, most, changes)
