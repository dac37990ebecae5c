# SPDX-License-Identifier: GPL-2.0-only
"""./fasttrack results: docs/RESULTS.md and README's picture, from records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from fasttrack_lab.commands import common, figures
from fasttrack_lab.compare import archive, comparison, records
from fasttrack_lab.compare.records import Again, Record
from fasttrack_lab.figures import markdown, peers, picture
from fasttrack_lab.figures.grid import cells
from fasttrack_lab.host import ui
from fasttrack_lab.host.errors import LabError
from fasttrack_lab.host.paths import CHECKOUT
from fasttrack_lab.inputs.cell import Cell

RESULTS = CHECKOUT / "docs" / "RESULTS.md"


def by_inputs_of_today(made: Iterable[Record], planned: Iterable[Cell]) -> list[Record]:
    """The records that a run of today could have made."""
    inputs = {cell: comparison.inputs_key(comparison.run_of(cell)) for cell in planned}
    return [record for record in made if record.inputs.startswith(inputs.get(record.cell, ""))]


def recorded(made: Iterable[Record], planned: Sequence[Cell], place: Path) -> tuple[list[Record], str]:
    """The last record of every planned run, of those MADE, and the key of the one kernel. PLACE is where they are."""
    latest = records.latest(made)
    lacking = [cell for cell in planned if cell not in latest]
    if lacking:
        first = lacking[0].text()
        raise LabError(
            f"{place} lacks {len(lacking)} of {len(planned)} runs, such as {first}; "
            "name the --seeds that there are, or leave out --no-runs to make them"
        )
    found = [latest[cell] for cell in planned]
    kernels = sorted({record.kernel for record in found})
    guests = sorted({comparison.guest_of(record) for record in found})
    for what, keys in (("kernels", kernels), ("guest programs", guests)):
        if len(keys) > 1:
            raise LabError(
                f"the records in {place} are of several {what}: {', '.join(keys)}; run them again without --no-runs"
            )
    return found, kernels[0]


def archived(path: Path, seeds: int) -> tuple[list[Record], str]:
    """The same of a page's archive, with the replay where it has that: no recording is needed."""
    made = archive.read(path)
    return recorded(made, cells(markdown.grids(peers.scenarios_of(made)), seeds), path)


@click.command("results")
@common.seeds_option(3)
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
    help="Make the page from the records that are there; it needs all of them. If --out has none, the page's own are "
    "taken: FILE with the ending .jsonl.xz.",
)
def command(seeds: int, out: Path, fresh: bool, again_failed: bool, target: Path, no_runs: bool) -> None:
    """Write docs/RESULTS.md: goals, slowdowns under every policy, and the paper's statements, with their commands.

    Next to it goes slowdown.svg, the picture of README.

    It makes 4314 runs with three seeds, 5930 with five, and 402 more with the replayed recording of `compare`; the
    figures' runs are among them, and `figures` finds them. The comparison of all policies and SmartIO's twenty apps
    have three seeds at most. A peer's run is ended at 20 times its own time alone, which the page shows. The page is
    made from records alone, which are kept next to it (FILE with the ending .jsonl.xz); failed runs are listed at its
    end.
    """
    kept = archive.beside(target)
    made = records.read(out) if no_runs else []
    if made:
        planned = cells(markdown.grids(), seeds)
        found, kernel = recorded(by_inputs_of_today(made, planned), planned, out)
    elif no_runs:
        found, kernel = archived(kept, seeds)
    else:
        again = Again.asked(fresh, again_failed)
        capped = markdown.capped(cells(markdown.grids(), seeds), seeds)
        found, kernel = figures.measured_for(markdown.grids(), seeds, out, again, "docs/RESULTS.md", capped)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(markdown.markdown(found, seeds, kernel), encoding="utf-8")
    ui.say(f"written: {target}")
    drawn = target.with_name(picture.NAME)
    drawn.write_text(picture.draw(found), encoding="utf-8")
    ui.say(f"written: {drawn}")
    if made or not no_runs:
        archive.write(kept, found)
        ui.say(f"written: {kept}")
    common.end(found)
