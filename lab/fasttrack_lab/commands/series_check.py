# SPDX-License-Identifier: GPL-2.0-only
"""./fasttrack series-check: the kernel builds with each patch more."""

from __future__ import annotations

import click

from fasttrack_lab.build.kernel import series
from fasttrack_lab.commands import common


@click.command("series-check")
@click.option(
    "--from", "first", default="", metavar="NUMBER", help="Begin with this patch, such as 0113.  [default: all]"
)
def command(first: str) -> None:
    """Build the lab's kernel after each patch, with FastTrack configured on and off, warnings being errors.

    At the end also with file systems, SCSI and I/O schedulers as modules. Names the patch after which it does not
    build. Takes half an hour on two cores, and 2 GiB of disk.
    """
    common.check_host()
    counts = series.check(first)
    click.echo(", ".join(f"{name}: {count} builds" for name, count in counts.items()))
