# SPDX-License-Identifier: GPL-2.0-only
"""./fasttrack results: docs/RESULTS.md, from records."""

from __future__ import annotations

from pathlib import Path

import click

from fasttrack_lab import ui
from fasttrack_lab.commands import figures
from fasttrack_lab.figures import page, tables
from fasttrack_lab.figures.paper import FIGURES
from fasttrack_lab.paths import CHECKOUT

RESULTS = CHECKOUT / "docs" / "RESULTS.md"


@click.command("results")
@figures.seeds_option
@figures.out_option
@figures.fresh_option
@click.option(
    "--file",
    "target",
    type=click.Path(dir_okay=False, path_type=Path),
    default=RESULTS,
    help="The page to write  [default: docs/RESULTS.md of the checkout]",
)
def command(seeds: int, out: Path, fresh: bool, target: Path) -> None:
    """Write docs/RESULTS.md: goals, slowdowns under every policy, and the paper's statements, with their commands.

    Its runs include the figures', which `figures` then finds: 1452 with three seeds. The page is made from records
    alone; runs that failed are listed at its end.
    """
    grids = [grid for figure in FIGURES for grid in figure.grids] + [section.grid for section in tables.SECTIONS]
    records, kernel = figures.measured_for(grids, seeds, out, fresh, "docs/RESULTS.md")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(tables.markdown(records, seeds, kernel), encoding="utf-8")
    ui.say(f"written: {target}")
    figures.end(page.failures(records))
