# SPDX-License-Identifier: GPL-2.0-only
"""Boots that count: the kernel without FastTrack and the one with it, some times each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fasttrack_lab.build import guest_program
from fasttrack_lab.build.kernel import kbuild
from fasttrack_lab.build.kernel.kbuild import Kernel
from fasttrack_lab.cost.costs import BASE_STATE
from fasttrack_lab.cost.counts import Counts, Written, parse
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


STORAGE_MIB = 192
"""Of the emulated phone: the file of the writes and a file system around it."""
PHONE = "s6"


@dataclass(frozen=True)
class Boot:
    """One boot: which kernel, and the states that it measures."""

    target: str
    states: tuple[str, ...]
    number: int
    writes: bool = False
    """A file is written on the emulated phone, in place of the paths on a device that takes no time."""

    def params(self) -> dict[str, str]:
        """The kernel's parameters."""
        params = {"cost_states": ",".join(self.states), "null_blk.nr_devices": "0"}
        if self.writes:
            params |= {"cost_writes": "1", "mflash.phone": PHONE, "mflash.size_mb": str(STORAGE_MIB)}
        return params

    @property
    def machine(self) -> Qemu:
        """What it runs on."""
        return Qemu(STORAGE_MIB if self.writes else 0, counts=True)

    def has(self, counts: Counts) -> set[str]:
        """The states that COUNTS has."""
        return set(counts.written if self.writes else counts.by_state)


def planned(states: Sequence[str], boots: int) -> list[Boot]:
    """All boots for STATES. The kernel without FastTrack is always among them."""
    ours = tuple(state for state in states if state != BASE_STATE)
    kernels = {"x86-cost-base": (BASE_STATE,), **({"x86-cost": ours} if ours else {})}
    return [Boot(target, mine, number) for number in range(1, boots + 1) for target, mine in kernels.items()]


def measure(states: Sequence[str], boots: int, jobs: int | None) -> tuple[dict[str, str], list[Counts]]:
    """Build what is needed and boot: keys of the kernels, and what was counted. What cannot be believed is an error."""
    return _boot_all(planned(states, boots), jobs)


def writes(states: Sequence[str], jobs: int | None = None) -> dict[str, dict[str, Written]]:
    """By state and pattern: a file written on the emulated phone. Each state has a boot and a new phone of its own."""
    _, counts = _boot_all(
        [Boot("x86-cost-phone", (state,), number, True) for number, state in enumerate(states, 1)], jobs
    )
    return {state: by_pattern for each_one in counts for state, by_pattern in each_one.written.items()}


def _boot_all(plan: Sequence[Boot], jobs: int | None) -> tuple[dict[str, str], list[Counts]]:
    kernels = {target: kbuild.build(target) for target in dict.fromkeys(boot.target for boot in plan)}
    guest_program.build(guest_program.COUNTER)
    counts = each(plan, lambda boot: _count(boot, kernels), "boots", jobs=jobs)
    return {target: kernel.key for target, kernel in kernels.items()}, counts


def _count(boot: Boot, kernels: Mapping[str, Kernel]) -> Counts:
    program = guest_program.build(guest_program.COUNTER)
    machine = boot.machine
    with run_dir(MEMORY_MIB + machine.storage_mib) as where:
        spec = BootSpec(kernels[boot.target].image, program, MEMORY_MIB, where, LIMIT_S, boot.number, boot.params())
        outcome = machine.boot(spec)
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
    if missing := set(boot.states) - boot.has(counts):
        raise LabError(f"boot {boot.number} of {boot.target} has not measured {', '.join(sorted(missing))}")
    return counts
