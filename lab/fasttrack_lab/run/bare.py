# SPDX-License-Identifier: GPL-2.0-only
"""Boots that run a shell script on a phone's bare device: no file system, no elevator, the stock device scheduler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from fasttrack_lab.host.errors import LabError
from fasttrack_lab.host.rundir import run_dir
from fasttrack_lab.inputs import policy
from fasttrack_lab.inputs.phone import Phone
from fasttrack_lab.run.boot.backend import BootSpec
from fasttrack_lab.run.image import ROOM_MIB, storage_params
from fasttrack_lab.run.result import judge_boot, tail
from fasttrack_lab.run.runner import Tools
from fasttrack_lab.run.script import init_script

DEVICE = "/dev/sda"
OUT = "/run/out"
"""In the guest, the run's directory."""

LIMIT_S = 600.0
"""Real time after which such a guest counts as hung."""

SEED = 1

Answer = TypeVar("Answer")


def script(lines: Sequence[str]) -> str:
    """LINES between what every such boot needs: its mounts, the device without an elevator, and the power off."""
    begin = [
        "#!/bin/sh",
        "mount -t proc none /proc && mount -t sysfs none /sys && mount -t tmpfs none /tmp && mount -t tmpfs none /run",
        f"mkdir {OUT} && mount -t hostfs -o /proc/self/cwd/. none {OUT}",
        f"[ -b {DEVICE} ] || {{ echo fasttrack-guest: error: no {DEVICE}; echo o > /proc/sysrq-trigger; sleep 10; }}",
        "echo none > /sys/block/sda/queue/scheduler",
        "cd /tmp",
    ]
    return "\n".join([*begin, *lines, "sync", "echo o > /proc/sysrq-trigger", "sleep 10"]) + "\n"


def boot(phone: Phone, tools: Tools, lines: Sequence[str], what: str, collect: Callable[[Path, str], Answer]) -> Answer:
    """Run LINES on a fresh device; what COLLECT makes of the run's directory and console. WHAT is for the error."""
    stock = policy.load("stock")
    with run_dir(phone.guest_mib + ROOM_MIB) as where:
        params = storage_params(tools.backend, phone) | {"mflash.scheduler": stock.device_scheduler}
        init = init_script(script(lines))
        outcome = tools.backend.boot(BootSpec(tools.kernel.image, init, phone.guest_mib, where, LIMIT_S, SEED, params))
        error = judge_boot(outcome)
        if error:
            raise LabError(f"{what} failed: {error}\n{tail(outcome.console)}")
        return collect(where, outcome.console)
