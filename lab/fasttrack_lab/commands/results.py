# SPDX-License-Identifier: GPL-2.0-only
"""./fasttrack results: docs/RESULTS.md, from records."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from fasttrack_lab import archive, compare, records, ui
from fasttrack_lab.commands import common, figures
from fasttrack_lab.errors import LabError
from fasttrack_lab.figures import tables
from fasttrack_lab.figures.grid import Grid, cells
from fasttrack_lab.paths import CHECKOUT
from fasttrack_lab.records import Again, Record

RESULTS = CHECKOUT / "docs" / "RESULTS.md"


def recorded(grids: Iterable[Grid], seeds: int, out: Path, kept: Path) -> tuple[list[Record], str]:
    """The last record of every run, and the key of the one kernel that made them.

    Those in the directory OUT by inputs of today; where it has none at all, those of the archive KEPT.
    """
    planned = cells(grids, seeds)
    made = records.read(out)
    if made:
        inputs = {cell: compare.inputs_key(compare.spec_of(cell)) for cell in planned}
        made = [record for record in made if record.inputs.startswith(inputs.get(record.cell, ""))]
    else:
        out, made = kept, archive.read(kept)
    latest = records.latest(made)
    lacking = [cell for cell in planned if cell not in latest]
    if lacking:
        first = lacking[0].text()
        raise LabError(
            f"{out} lacks {len(lacking)} of {len(planned)} runs, such as {first}; without --no-runs they are made"
        )
    found = [latest[cell] for cell in planned]
    kernels = sorted({record.kernel for record in found})
    if len(kernels) > 1:
        raise LabError(
            f"the records in {out} are of several kernels: {', '.join(kernels)}; run them again without --no-runs"
        )
    return found, kernels[0]


@click.command("results")
@figures.seeds_option
@figures.out_option
@common.fresh_option
@common.again_failed_option
@click.option(
    "--file",
    "target",
    type=click.Path(dir_okay=False, path_type=Path),
    default=RESULTS,
    help="The page to write  [default: docs/RESULTS.md of the checkout]",
)
@click.option(
    "--no-runs",
    is_flag=True,
    help="Make the page from the records that are there; none may be lacking. Where --out has none, from the page's "
    "own: FILE with the ending .jsonl.xz.",
)
def command(seeds: int, out: Path, fresh: bool, again_failed: bool, target: Path, no_runs: bool) -> None:
    """Write docs/RESULTS.md: goals, slowdowns under every policy, and the paper's statements, with their commands.

    Its runs include the figures', which `figures` then finds: 4206 with three seeds, 5822 with five, and 366 more with
    the replayed recording of `compare`. The comparison of all policies and SmartIO's twenty apps have three seeds at
    most. The page is made from records alone, which are kept beside it (FILE with the ending .jsonl.xz); runs that
    failed are listed at its end.
    """
    if no_runs:
        found, kernel = recorded(tables.grids(), seeds, out, archive.beside(target))
    else:
        again = Again.asked(fresh, again_failed)
        found, kernel = figures.measured_for(tables.grids(), seeds, out, again, "docs/RESULTS.md")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(tables.markdown(found, seeds, kernel), encoding="utf-8")
    archive.write(archive.beside(target), found)
    ui.say(f"written: {target} and {archive.beside(target).name}")
    common.end(found)
