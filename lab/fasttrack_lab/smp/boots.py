# SPDX-License-Identifier: GPL-2.0-only
"""The host's side of ./fasttrack stress: two boots of one machine, the first of which ends in a power cut."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fasttrack_lab.build.kernel.kbuild import Kernel
from fasttrack_lab.host.errors import LabError
from fasttrack_lab.host.paths import cache_dir
from fasttrack_lab.host.rundir import run_dir
from fasttrack_lab.run.boot.backend import BootSpec, Outcome
from fasttrack_lab.run.boot.qemu import Qemu
from fasttrack_lab.run.result import judge_boot, judge_power_cut, tail
from fasttrack_lab.run.script import init_script
from fasttrack_lab.smp import workload

GUEST = Path(workload.__file__)
PHONE = "ufs31"
MEMORY_MIB = 256
"""So little that hogs, the page cache and the reserve get into each other's way."""

SHORT_MEMORY_MIB = 192
"""So little that the hogs reclaim from each other, and swap."""

STORAGE_MIB = 768
"""For DEVICE_MIB, the tables of the flash translation layer, and what is over-provisioned."""

DEVICE_MIB = 512
EXTRA_S = 600.0
"""Real time beside the stress itself: boot, mkfs and the end, on a busy host."""

MECHANISMS = ("pauses", "depended")
"""Counters that no stress leaves at zero: of the page allocator, of waits for others."""

DISPATCHERS, RECLAIMERS = ("dispatch_held", "promoted"), ("reclaim_protected",)
"""Those of the elevator, which a stress that is short of memory leaves alone; and those that only it has."""

DONE = "stress: file systems are whole"


@dataclass(frozen=True)
class Report:
    """What a stress has done."""

    actors: dict[str, dict[str, float]]
    stats: dict[str, int]
    wall_s: float
    short: bool = False
    """Of memory."""

    def problems(self) -> list[str]:
        """Actors and mechanisms that did nothing, actors that stood still; one line each."""
        found = [f"{name} did nothing" for name, actor in self.actors.items() if not actor["beats"]]
        counted = (*MECHANISMS, *(RECLAIMERS if self.short else DISPATCHERS))
        found += [f"FastTrack counts no {name}" for name in counted if not self.stats[name]]
        return found + [
            f"{name} stood still for {actor['longest_gap_s']} s"
            for name, actor in self.actors.items()
            if actor["longest_gap_s"] > workload.GAP_LIMIT_S
        ]


def _boot(kernel: Kernel, where: Path, phase: str, duration_s: float, seed: int, short: bool) -> Outcome:
    params = {
        "stress_phase": phase,
        "stress_s": str(duration_s),
        "stress_seed": str(seed),
        "stress_short": str(int(short)),
        "mflash.phone": PHONE,
        "mflash.size_mb": str(DEVICE_MIB),
        "mflash.seed": str(seed),
        # Freed memory is poisoned and checked.
        "slab_debug": "FZP",
    }
    limit_s = duration_s + EXTRA_S
    memory_mib = SHORT_MEMORY_MIB if short else MEMORY_MIB
    spec = BootSpec(kernel.image, init_script(GUEST.read_text()), memory_mib, where, limit_s, seed, params)
    return Qemu(STORAGE_MIB).boot(spec)


def _require(outcome: Outcome, error: str | None, phase: str) -> None:
    if error:
        log = cache_dir("failed") / f"stress-{phase}.log"
        log.write_text(outcome.console)
        raise LabError(f"{tail(outcome.console)}\nthe stress failed in its phase {phase}: {error}; whole log: {log}")


def stress(kernel: Kernel, duration_s: float, seed: int, short: bool) -> Report:
    """Run it; an error if a log is not clean, an actor made no progress, or something acknowledged is lost."""
    with run_dir(MEMORY_MIB + STORAGE_MIB) as where:
        played = _boot(kernel, where, "play", duration_s, seed, short)
        _require(played, judge_power_cut(played), "play")
        raw: dict[str, Any] = json.loads((where / "progress.json").read_text())
        checked = _boot(kernel, where, "check", duration_s, seed, short)
        missing = None if DONE in checked.console else "the guest's check did not come to its end"
        _require(checked, judge_boot(checked) or missing, "check")
    report = Report(raw["actors"], raw["stats"], played.wall_s + checked.wall_s, short)
    found = report.problems()
    _require(played, "; ".join(found) or None, "play")
    return report
