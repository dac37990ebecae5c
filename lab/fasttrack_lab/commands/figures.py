# SPDX-License-Identifier: GPL-2.0-only
"""./fasttrack figures: published figures, made again."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Collection, Iterable
from pathlib import Path

import click
from rich.console import Console

from fasttrack_lab.commands import common
from fasttrack_lab.commands.common import split_list
from fasttrack_lab.compare.records import Again, Record
from fasttrack_lab.figures import figures_page
from fasttrack_lab.figures.catalogue import FIGURES, chosen
from fasttrack_lab.figures.grid import Grid, cells, measure
from fasttrack_lab.figures.paper import PHONES
from fasttrack_lab.host import ui
from fasttrack_lab.inputs import phone
from fasttrack_lab.inputs.cell import Cell

WIDTH = max(len(figure.name) for figure in FIGURES)
LIST = "\n".join(f"  {figure.name:<{WIDTH}} {figure.title.split(': ', 1)[1]}" for figure in FIGURES)

out_option: common.Decorator = common.out_option(Path("results") / "figures", "records, page and numbers")


def measured_for(
    grids: Iterable[Grid], seeds: int, out: Path, again: Again, what: str, capped: Collection[Cell] = ()
) -> tuple[list[Record], str]:
    """Says what will be run and makes what is lacking, CAPPED ones with a limit: the records, and the kernel's key."""
    planned = cells(grids, seeds)
    common.check_host()
    phones = ", ".join(dict.fromkeys(cell.phone for cell in planned))
    ui.say(f"{len(planned)} runs for {what}: phones {phones}, {'seed 1' if seeds == 1 else f'seeds 1 to {seeds}'}")
    return measure(out, planned, again, what, capped)


@click.command("figures", epilog=f"\b\nFigures:\n{LIST}")
@click.argument("names", metavar="[FIGURE]...", nargs=-1)
@common.seeds_option(3)
@click.option(
    "--phones", default=",".join(PHONES), show_default=True, help="Only these phones; a figure takes its own of them."
)
@out_option
@common.fresh_option
@common.again_failed_option
def command(names: tuple[str, ...], seeds: int, phones: str, out: Path, fresh: bool, again_failed: bool) -> None:
    """Make the figures of the FastTrack paper again: all, or those named. The SmartIO poster's are made when named.

    Writes figures.html (each plot next to the paper's statement, and whether they agree), figures.csv, claims.csv and
    runs.csv; goals.csv where a figure has goals. Runs are kept in raw.jsonl by kernel and inputs: they are not
    repeated, and figures share them. With three seeds, FastTrack's figures are 504 runs on four phones, some 15 minutes
    on two cores; SmartIO's are 1080 runs on two phones and take as long again.
    """
    wanted = split_list(phones, "--phones")
    for name in wanted:
        phone.load(name)
    figures = chosen(names, wanted)
    grids = [grid for figure in figures for grid in figure.grids]
    again = Again.asked(fresh, again_failed)
    records, _ = measured_for(grids, seeds, out, again, ", ".join(figure.name for figure in figures))
    found, met = figures_page.make(out, figures, records, seeds, shlex.join(["./fasttrack", *sys.argv[1:]]))
    Console().print(figures_page.terminal_table(found, met))
    ui.say(f"page: {out / figures_page.PAGE}")
    common.end(records)
