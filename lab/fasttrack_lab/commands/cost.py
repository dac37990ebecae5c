# SPDX-License-Identifier: GPL-2.0-only
"""./fasttrack cost: what FastTrack costs in processor instructions."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from fasttrack_lab.commands import common
from fasttrack_lab.cost import costs
from fasttrack_lab.host import ui

BOOTS = 5


@click.command("cost")
@click.option(
    "--boots",
    type=click.IntRange(1, 99),
    default=BOOTS,
    show_default=True,
    help="Boots of each kernel, whose medians count.",
)
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(costs.STATES),
    metavar="STATE",
    help="off; uid-TASK, cgroup-TASK: on, apps named by UIDs or control groups, and TASK is measured; trace-origin, "
    "trace-block, trace-blktrace: off and traced. Several times  [default: all]",
)
@click.option(
    "--csv",
    "csv_path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a line a path and state to this file.",
)
@common.json_option
@common.jobs_option
def command(
    boots: int, states: tuple[str, ...], csv_path: Path | None, json_path: str | None, jobs: int | None
) -> None:
    """Count the processor instructions of I/O paths: the kernel without FastTrack, off, on, and traced.

    In QEMU's counting mode, where the guest's clock goes by instructions, on null_blk: exact, and the same on a busy
    machine. Prints instructions more for an operation of 4 KiB than without FastTrack, and per cent. Ends with status
    1 if a goal is not met: off at most +0.3 %, on at most +3 %, io_origin's events at most a third of blktrace. Builds
    two kernels the first time, which takes 10 minutes or more; then a boot takes about a minute.
    """
    from fasttrack_lab.cost import counting  # noqa: PLC0415 # slow to import; --help does not wait for it

    chosen = tuple(state for state in costs.STATES if state in states or not states)
    common.check_json_path(json_path)
    if csv_path:
        common.check_file("--csv", csv_path)
    common.check_host()
    kernels, counts = counting.measure(chosen, boots, jobs)
    found = costs.costs(counts)
    if csv_path:
        costs.write_csv(csv_path, found)
        ui.say(f"written: {csv_path}")
    common.write_json(json_path, costs.to_json(found, kernels))
    if json_path != "-":
        title = f"Instructions an operation, and those more than without FastTrack; medians of {boots} boots"
        common.print_tables(costs.table(found, chosen, title))
        if costs.has_traces(found):
            common.print_tables(costs.trace_table(found))
    if missed := costs.missed(found):
        for line in missed:
            ui.say(f"misses its goal: {line}")
        sys.exit(1)
