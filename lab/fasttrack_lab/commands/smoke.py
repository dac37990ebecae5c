# SPDX-License-Identifier: GPL-2.0-only
"""./fasttrack smoke: the x86-64 kernel in QEMU, so that nothing works in UML only."""

from __future__ import annotations

from pathlib import Path

import click

from fasttrack_lab import smp
from fasttrack_lab.build.kernel import kbuild, kunit
from fasttrack_lab.build.kernel.tree import Changes
from fasttrack_lab.commands import common
from fasttrack_lab.host.errors import LabError
from fasttrack_lab.host.rundir import run_dir
from fasttrack_lab.run.boot.backend import BootSpec
from fasttrack_lab.run.boot.qemu import PROCESSORS, Qemu
from fasttrack_lab.run.result import judge_boot, tail
from fasttrack_lab.run.script import init_script

MEMORY_MIB = 1024
LIMIT_S = 900.0
DONE = "smoke: done"

SCRIPT = Path(smp.__file__).parent / "smoke.sh"


@click.command("smoke")
def command() -> None:
    """Boot the x86-64 kernel in QEMU: two processors, lockdep, KUnit, fio with verification on ext4 and f2fs."""
    common.check_host()
    kernel = kbuild.build("x86")
    with run_dir(MEMORY_MIB) as where:
        params = {"kunit.enable": "1", "mflash.phone": "ufs31", "mflash.size_mb": "256"}
        outcome = Qemu().boot(
            BootSpec(kernel.image, init_script(SCRIPT.read_text()), MEMORY_MIB, where, LIMIT_S, params=params)
        )
    suites = kunit.parse(outcome.console)
    found = kunit.problems(suites, kunit.expected(Changes.of_checkout()))
    found += [error] if (error := judge_boot(outcome)) else []
    if DONE not in outcome.console:
        found.append("the guest's script did not finish")
    if f"{PROCESSORS} processors" not in outcome.console:
        found.append(f"the guest does not have {PROCESSORS} processors")
    if found:
        raise LabError(f"{tail(outcome.console)}\nthe x86-64 kernel failed in QEMU: {'; '.join(found)}")
    passed = sum(suite.passed for suite in suites)
    click.echo(f"x86-64 kernel: clean in QEMU, {passed} KUnit tests in {len(suites)} suites, {outcome.wall_s:.0f} s")
