# SPDX-License-Identifier: GPL-2.0-only
"""./fasttrack calibrate: fio in the guest on every phone, beside the published figures."""

from __future__ import annotations

import click

from fasttrack_lab.commands import common
from fasttrack_lab.host.paths import PHONES
from fasttrack_lab.inputs import phone
from fasttrack_lab.run import calibrate
from fasttrack_lab.run.runner import Tools


@click.command("calibrate")
@click.option(
    "--phones", "names", default="all", show_default=True, metavar="LIST", help="all, or phone names with commas."
)
@click.option(
    "--write/--no-write",
    default=True,
    show_default=True,
    help="Write lab/phones/calibration.json (when all phones are measured).",
)
def command(names: str, write: bool) -> None:
    """Measure each phone with fio by lab/phones/phones.toml; print measured, published, and the difference."""
    known = phone.phones()
    chosen = list(known.values()) if names == "all" else [phone.load(name) for name in common.names_of(names)]
    common.check_host()
    figures = calibrate.measure(chosen, Tools.of_checkout())
    click.echo(calibrate.table(figures))
    if write and len(chosen) == len(known):
        calibrate.save(figures, PHONES / "calibration.json")
    calibrate.check(figures)
