# SPDX-License-Identifier: GPL-2.0-only
"""./fasttrack kunit: the kernel's unit tests."""

from __future__ import annotations

import click

from fasttrack_lab.build.kernel import kbuild, kunit
from fasttrack_lab.build.kernel.tree import Changes
from fasttrack_lab.commands import common
from fasttrack_lab.host.errors import LabError
from fasttrack_lab.host.rundir import run_dir
from fasttrack_lab.run.boot.backend import BootSpec
from fasttrack_lab.run.boot.uml import Uml
from fasttrack_lab.run.result import judge_boot, tail
from fasttrack_lab.run.script import init_script

POWER_OFF = "#!/bin/sh\nmount -t proc none /proc\necho o > /proc/sysrq-trigger\nsleep 10\n"
MEMORY_MIB = 512
LIMIT_S = 300.0


@click.command("kunit")
@click.option("--target", type=click.Choice(["um", "um-debug"]), default="um", show_default=True, help="Which kernel.")
def command(target: str) -> None:
    """Run the kernel's KUnit suites in UML; a suite of the overlay that does not run is a failure."""
    common.check_host()
    kernel = kbuild.build(target)
    with run_dir(MEMORY_MIB) as where:
        spec = BootSpec(kernel.image, init_script(POWER_OFF), MEMORY_MIB, where, LIMIT_S, 1, {"kunit.enable": "1"})
        outcome = Uml().boot(spec)
    suites = kunit.parse(outcome.console)
    for suite in suites:
        skipped = f", skipped {', '.join(suite.skipped)}" if suite.skipped else ""
        click.echo(f"{suite.name}: {suite.problem or f'{suite.passed} passed'}{skipped}")
    found = kunit.problems(suites, kunit.expected(Changes.of_checkout()))
    error = judge_boot(outcome)
    if error:
        found.append(error)
    if found:
        raise LabError(f"{tail(outcome.console)}\nKUnit failed:\n" + "\n".join(found))
    click.echo(f"KUnit: {sum(suite.passed for suite in suites)} tests in {len(suites)} suites passed")
