# SPDX-License-Identifier: GPL-2.0-only
"""./fasttrack stress: races between two processors, on the x86-64 kernel in QEMU."""

from __future__ import annotations

import click

from fasttrack_lab.build.kernel import kbuild
from fasttrack_lab.commands import common
from fasttrack_lab.smp import boots


@click.command("stress")
@click.option(
    "--minutes",
    type=click.FloatRange(0.1),
    default=10.0,
    show_default=True,
    help="How long the guest works before the power is cut, in minutes of real time.",
)
@click.option(
    "--short-of-memory",
    "short",
    is_flag=True,
    help="Less memory, a swap file, and apps that take all of both; I/O scheduler mq-deadline.",
)
@common.seed_option("what each program does, and what the power cut leaves")
def command(minutes: float, seed: int, short: bool) -> None:
    """Boot the x86-64 kernel in QEMU and do everything at once, with lockdep; cut the power; boot again and check.

    Foreground and background apps read, write, fsync and allocate on ext4 and f2fs, fork, exec and exit. Meanwhile the
    foreground, the I/O scheduler and every knob change, and apps are stopped, frozen and killed. It fails on a bad
    message in the kernel's log, an app that makes no progress, a lost write or a damaged file system.
    """
    common.check_host()
    report = boots.stress(kbuild.build("x86"), minutes * 60, seed, short)
    for name, actor in report.actors.items():
        click.echo(
            f"{name}: {actor['beats']:.0f} rounds, longest pause {actor['longest_gap_s']:.1f} s, "
            f"started {actor['starts']:.0f} times"
        )
    click.echo(", ".join(f"{name} {value}" for name, value in report.stats.items()))
    click.echo(f"stress: clean, {report.wall_s:.0f} s")
