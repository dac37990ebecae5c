# SPDX-License-Identifier: GPL-2.0-only
"""./fasttrack build: the kernel and the guest program."""

from __future__ import annotations

import click

from fasttrack_lab.build import guest_program
from fasttrack_lab.build.kernel import kbuild
from fasttrack_lab.commands import common


@click.command("build")
@click.option(
    "--target",
    type=click.Choice(list(kbuild.TARGETS)),
    default="um",
    show_default=True,
    help="um: the lab's kernel; um-debug: with lock and memory checks; um-base: without any of FastTrack; um-off: "
    "FastTrack configured off; x86: for QEMU.",
)
@click.option("--kernel-only", is_flag=True, help="Leave the guest program out.")
def command(target: str, kernel_only: bool) -> None:
    """Build the kernel and the guest program, or find them in the cache; prints where they are."""
    common.check_host()
    kernel = kbuild.build(target)
    click.echo(f"kernel ({target}): {kernel.image}")
    if not kernel_only:
        click.echo(f"guest program: {guest_program.build()}")
