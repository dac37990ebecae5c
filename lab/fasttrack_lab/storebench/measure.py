# SPDX-License-Identifier: GPL-2.0-only
"""Measure by a plan, and make a profile of what fio reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

from fasttrack_lab.host.errors import LabError
from fasttrack_lab.inputs.device import Device
from fasttrack_lab.inputs.patterns import PATTERNS, Pattern
from fasttrack_lab.inputs.profile import Depths, Point, Profile, Slowdown, tool_version
from fasttrack_lab.run import fio
from fasttrack_lab.storebench import plan
from fasttrack_lab.storebench.plan import Files, Plan, Step

Jobs = Mapping[str, dict[str, Any]]
"""What fio reports, by the names of the jobs."""

NS_PER_US = 1000


def parts(wanted: Plan, files: Files) -> list[list[Step]]:
    """All steps, by the devices that they want; on one that is not fresh, what is read is filled once, before all."""
    fill = plan.fill(wanted, files)
    curves = {one: list(plan.curve(one, wanted, files)) for one in PATTERNS}
    reads = list(chain(*(steps for one, steps in curves.items() if one.reads)))
    writes = [steps for one, steps in curves.items() if not one.reads]
    pairs = [plan.pair(one, other, wanted, files) for one, other in wanted.pairs]
    return [[fill, *reads], *writes, [fill, *pairs]] if wanted.fresh else [[fill, *reads, *chain(*writes), *pairs]]


def by_name(reports: Iterable[str]) -> Jobs:
    """All jobs of some reports."""
    return {str(job.get("jobname")): job for report in reports for job in fio.jobs(report)}


def _side(jobs: Jobs, name: str, pattern: Pattern) -> dict[str, float]:
    """Throughput and latency of a job."""
    try:
        found = fio.side(jobs[name], pattern.rw)
        figures = {
            "mb_s": found["bw_bytes"] / 1e6,
            "iops": float(found["iops"]),
            "latency_us": found["lat_ns"]["mean"] / NS_PER_US,
        }
    except (LabError, KeyError, TypeError) as error:
        raise LabError(f"{name}: fio's report: {error}") from error
    if min(figures.values()) <= 0:
        raise LabError(f"{name}: fio moved nothing in its time")
    return figures


def curves(wanted: Plan, jobs: Jobs) -> dict[str, tuple[Point, ...]]:
    """Throughput against depth, of every pattern."""
    return {
        one.name: tuple(Point(depth, **_side(jobs, plan.point_name(one, depth), one)) for depth in wanted.depths)
        for one in PATTERNS
    }


def slowdowns(wanted: Plan, jobs: Jobs, found: Mapping[str, tuple[Point, ...]]) -> tuple[Slowdown, ...]:
    """Latency beside the other, against that of the curve's first point, which is one request at a time alone."""
    return tuple(
        Slowdown(
            one.name,
            other.name,
            found[one.name][0].latency_us,
            _side(jobs, plan.pair_name(one, other), one)["latency_us"],
        )
        for one, other in wanted.pairs
    )


def profile(wanted: Plan, jobs: Jobs, device: Device, elevator: str, command: str, kernel: str) -> Profile:
    """What the jobs say."""
    found = curves(wanted, jobs)
    best = {name: plan.best_depth(curve) for name, curve in found.items()}
    slow = slowdowns(wanted, jobs, found)
    return Profile(device, elevator, Depths(**best), found, slow, command, tool_version(), kernel)
