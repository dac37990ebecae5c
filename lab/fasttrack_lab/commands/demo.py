# SPDX-License-Identifier: GPL-2.0-only
"""./fasttrack demo: stock against FastTrack in one table."""

from __future__ import annotations

import click

from fasttrack_lab.commands import common
from fasttrack_lab.compare import demo, report
from fasttrack_lab.run.runner import Tools


@click.command("demo")
@common.seed_option()
def command(seed: int) -> None:
    """Start the gallery during an app update, leave the camera during a backup: stock, FastTrack, no background.

    Prints response times in virtual seconds and the slowdown that the background causes. Takes some 20 s on two cores
    once the kernel is built.
    """
    planned = demo.cells(report.DEMO_PHONE, seed)
    common.check_host()
    demo.show(demo.records(planned, Tools.of_checkout()))
