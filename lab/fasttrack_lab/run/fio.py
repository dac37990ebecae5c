# SPDX-License-Identifier: GPL-2.0-only
"""fio: its command line, and what its JSON report says. Used in guests and on the host alike."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from fasttrack_lab.host.errors import LabError

PROGRAM = "fio"


@dataclass(frozen=True)
class Job:
    """One job: direct I/O by libaio. SIZE is the range that it works in, as fio writes sizes."""

    name: str
    file: str
    rw: str
    block: str
    depth: int
    size: str
    runtime_s: float = 0
    """Ends it early; 0: when all of its range, or of io_size, is done."""
    sync: bool = False
    options: tuple[str, ...] = ()


def _options(job: Job) -> list[str]:
    words = [
        f"--name={job.name}",
        f"--filename={job.file}",
        "--ioengine=libaio",
        "--direct=1",
        # fio's own clock reads the host's time stamp counter, which is not a guest's time.
        "--clocksource=clock_gettime",
        "--thread",
        f"--rw={job.rw}",
        f"--bs={job.block}",
        f"--iodepth={job.depth}",
        f"--size={job.size}",
        "--randrepeat=1",
        "--output-format=json",
    ]
    if job.runtime_s:
        # fio takes 0.5 s for no limit.
        words.append(f"--runtime={max(round(job.runtime_s * 1e6), 1)}us")
    if job.sync:
        words.append("--sync=1")
    return [*words, *job.options]


def argv(*jobs: Job) -> list[str]:
    """The command line of jobs that run at once."""
    return [PROGRAM, *(word for job in jobs for word in _options(job))]


def jobs(report: str) -> list[dict[str, Any]]:
    """The jobs of a JSON report, at least one, in the order of the command line; fio may print warnings before it."""
    try:
        found = json.loads(report[report.index("{") :])["jobs"]
    except (ValueError, KeyError) as problem:
        raise LabError(f"fio's report cannot be read: {problem!r}") from problem
    if not isinstance(found, list) or not found or not all(isinstance(job, dict) for job in found):
        raise LabError("fio's report has no jobs")
    return found


def side(job: dict[str, Any], rw: str) -> dict[str, Any]:
    """The reads or writes of a job, by RW."""
    figures = job.get("read" if "read" in rw else "write")
    if job.get("error", 0) or not isinstance(figures, dict):
        raise LabError(f"fio reports error {job.get('error', 0)}")
    return figures
