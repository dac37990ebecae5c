# SPDX-License-Identifier: GPL-2.0-only
"""./fasttrack lint-kernel: static checks of the kernel part."""

from __future__ import annotations

import click

from fasttrack_lab.build.kernel import lint
from fasttrack_lab.host.errors import LabError


@click.command("lint-kernel")
def command() -> None:
    """Check the overlay and the patches: checkpatch --strict, W=1 and sparse."""
    findings, skipped = lint.run()
    for finding in findings:
        for line in finding.lines:
            click.echo(line)
        click.echo(f"{finding.check}: {f'{len(finding.lines)} findings' if finding.lines else 'clean'}")
    for reason in skipped:
        click.echo(f"SKIPPED {reason}")
    if any(finding.lines for finding in findings):
        raise LabError("the kernel sources are not clean")
