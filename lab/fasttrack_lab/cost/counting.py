# SPDX-License-Identifier: GPL-2.0-only
"""Boots that count: the kernel without FastTrack and the one with it, some times each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fasttrack_lab.build import guest_program
from fasttrack_lab.build.kernel import kbuild
from fasttrack_lab.build.kernel.kbuild import Kernel
from fasttrack_lab.cost.costs import BASE_STATE
from fasttrack_lab.cost.counts import Counts, parse
from fasttrack_lab.host.errors import LabError
from fasttrack_lab.host.paths import cache_dir
from fasttrack_lab.host.rundir import run_dir
from fasttrack_lab.host.side_by_side import each
from fasttrack_lab.run.boot.backend import BootSpec
from fasttrack_lab.run.boot.qemu import Qemu
from fasttrack_lab.run.result import judge_boot, tail

MEMORY_MIB = 512
LIMIT_S = 900.0
"""Real time of a boot on a busy host; on an idle one it takes a minute."""


@dataclass(frozen=True)
class Boot:
    """One boot: which kernel, and the states that it measures."""

    target: str
    states: tuple[str, ...]
    number: int


def planned(states: Sequence[str], boots: int) -> list[Boot]:
    """All boots for STATES. The kernel without FastTrack is always among them."""
    ours = tuple(state for state in states if state != BASE_STATE)
    kernels = {"x86-cost-base": (BASE_STATE,), **({"x86-cost": ours} if ours else {})}
    return [Boot(target, mine, number) for number in range(1, boots + 1) for target, mine in kernels.items()]


def measure(states: Sequence[str], boots: int, jobs: int | None) -> tuple[dict[str, str], list[Counts]]:
    """Build what is needed and boot: keys of the kernels, and what was counted. What cannot be believed is an error."""
    plan = planned(states, boots)
    kernels = {target: kbuild.build(target) for target in dict.fromkeys(boot.target for boot in plan)}
    guest_program.build(guest_program.COUNTER)
    counts = each(plan, lambda boot: _count(boot, kernels), "boots", jobs=jobs)
    return {target: kernel.key for target, kernel in kernels.items()}, counts


def _count(boot: Boot, kernels: Mapping[str, Kernel]) -> Counts:
    program = guest_program.build(guest_program.COUNTER)
    with run_dir(MEMORY_MIB) as where:
        params = {"cost_states": ",".join(boot.states), "null_blk.nr_devices": "0"}
        spec = BootSpec(kernels[boot.target].image, program, MEMORY_MIB, where, LIMIT_S, boot.number, params)
        outcome = Qemu(counts=True).boot(spec)
        written = where / "counts"
        text = written.read_text() if written.is_file() else None
    if error := judge_boot(outcome) or (None if text else "the guest has counted nothing"):
        log = cache_dir("failed") / f"cost-{boot.target}-{boot.number}.log"
        log.write_text(outcome.console)
        raise LabError(
            f"{tail(outcome.console)}\nboot {boot.number} of {boot.target} failed: {error}; whole log: {log}"
        )
    counts = parse(text or "")
    counts.check()
    if missing := set(boot.states) - set(counts.by_state):
        raise LabError(f"boot {boot.number} of {boot.target} has not measured {', '.join(sorted(missing))}")
    return counts
