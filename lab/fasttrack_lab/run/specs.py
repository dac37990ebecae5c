# SPDX-License-Identifier: GPL-2.0-only
"""From scenarios to the runs that the runner takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fasttrack_lab.inputs import scenario
from fasttrack_lab.inputs.cell import Cell
from fasttrack_lab.inputs.instances import instances
from fasttrack_lab.inputs.lru import KERNEL_LRU
from fasttrack_lab.inputs.phone import Phone
from fasttrack_lab.inputs.policy import Policy
from fasttrack_lab.inputs.scenario import Scenario
from fasttrack_lab.run.runner import LIMIT_S, RunSpec


def spec_of(
    front: Scenario,
    behind: Sequence[Scenario],
    phone: Phone,
    policy: Policy,
    seed: int,
    *,
    limit_s: float = LIMIT_S,
    verify: bool = False,
    lru_name: str = KERNEL_LRU,
    idle: bool = False,
    why_interval_ns: int = 0,
    trace_to: Path | None = None,
) -> RunSpec:
    """The run of a foreground scenario with background scenarios behind it, some more than once.

    LIMIT_S is real time. IDLE leaves the app that is in front until the touch idle. WHY_INTERVAL_NS is the virtual time
    between two samples of where the foreground waits; 0 takes none. TRACE_TO is a directory for a trace's logs.
    """
    before = front.uids_before_touch
    front = front.idled() if idle else front
    behind = instances(front, behind)
    job = scenario.build_job(front, behind, seed, phone) | {"verify": verify}
    if why_interval_ns:
        job["why_interval_ns"] = why_interval_ns
    names = tuple(one.name for one in behind)
    cell = Cell(front.name, phone.name, policy.name, names, seed, lru=lru_name, idle=idle)
    texts = scenario.trace_texts([front, *behind])
    return RunSpec(cell, phone, policy, job, texts, limit_s=limit_s, before_touch=before, trace_to=trace_to)
