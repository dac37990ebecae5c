# SPDX-License-Identifier: GPL-2.0-only
"""A directory of figures: one self-contained page, the numbers as CSV, and a table for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from rich import box
from rich.table import Table

from fasttrack_lab.compare import report
from fasttrack_lab.compare.records import FOREGROUND_ONLY, RAW, Record, failures, took
from fasttrack_lab.figures.claims import RULE, Claim, Finding
from fasttrack_lab.figures.figure import Figure
from fasttrack_lab.figures.goals import Goal
from fasttrack_lab.figures.measured import Measured, NotMeasured
from fasttrack_lab.figures.paper import PHONES

PAGE = "figures.html"
FIGURES_CSV = "figures.csv"
CLAIMS_CSV = "claims.csv"
GOALS_CSV = "goals.csv"

Found = tuple[Figure, Claim, Finding]
Met = tuple[Figure, Goal]


def findings(figures: Iterable[Figure], measured: Measured) -> list[Found]:
    """Every statement about the figures and what came of it."""
    return [(figure, claim, claim.find(measured, figure.phones)) for figure in figures for claim in figure.claims]


def reached(figures: Iterable[Figure], measured: Measured) -> list[Met]:
    """Every goal of the figures and how far it is reached."""
    met: list[Met] = []
    for figure in figures:
        for check in figure.goals:
            try:
                met += [(figure, goal) for goal in check(measured, figure.phones)]
            except NotMeasured as lacking:
                met.append((figure, Goal(f"no result: {lacking}", "-", "-", "-", None)))
    return met


def _numbers(figure: Figure, measured: Measured) -> pl.DataFrame:
    """The summary of a figure's runs, with its name."""
    parts = [
        measured.rows.filter(
            pl.col("scenario").is_in(grid.scenarios)
            & pl.col("phone").is_in(grid.phones)
            & pl.col("background").is_in(grid.backgrounds)
            & pl.col("policy").is_in([FOREGROUND_ONLY, *grid.policies])
        )
        for grid in figure.grids
    ]
    return pl.concat(parts).select(pl.lit(figure.name).alias("figure"), pl.all())


def _claim_row(found: Found) -> dict[str, str]:
    figure, claim, finding = found
    return {
        "figure": figure.name,
        "id": claim.id,
        "source": claim.source,
        "statement": claim.statement,
        "paper": claim.paper,
        "here": finding.here,
        "verdict": finding.verdict,
        "why": finding.why,
        "because": claim.because if finding.agrees is False else "",
    }


def _goal_row(met: Met) -> dict[str, str]:
    figure, goal = met
    return {
        "figure": figure.name,
        "what": goal.what,
        "goal": goal.goal,
        "here": goal.here,
        "verdict": goal.verdict,
        "missed": goal.missed,
    }


def _figure(
    figure: Figure, measured: Measured, seeds: int, rows: Sequence[dict[str, str]], goals: Sequence[dict[str, str]]
) -> dict[str, Any]:
    """What the template shows of a figure."""
    # Loads matplotlib, which takes a second or two: --help does not wait for it.
    from fasttrack_lab.figures.drawing import draw  # noqa: PLC0415

    return {
        "name": figure.name,
        "title": figure.title,
        "note": figure.note,
        "wide": figure.plot.wide,
        "svgs": [draw(plot, measured, figure.phones) for plot in (figure.plot, *figure.more)],
        "claims": [row for row in rows if row["figure"] == figure.name],
        "goals": [row for row in goals if row["figure"] == figure.name],
        "commands": [request.command for grid in figure.grids for request in grid.requests(seeds)],
    }


def make(
    directory: Path, figures: Sequence[Figure], records: Sequence[Record], seeds: int, command: str
) -> tuple[list[Found], list[Met]]:
    """Writes the page and the CSV files; returns what came of the statements and of the goals."""
    measured = Measured(records)
    found = findings(figures, measured)
    rows = [_claim_row(one) for one in found]
    met = reached(figures, measured)
    goals = [_goal_row(one) for one in met]
    measured.runs.write_csv(directory / report.RUNS_CSV)
    pl.concat([_numbers(figure, measured) for figure in figures]).write_csv(directory / FIGURES_CSV)
    pl.DataFrame(rows).write_csv(directory / CLAIMS_CSV)
    if goals:
        pl.DataFrame(goals).write_csv(directory / GOALS_CSV)
    else:
        (directory / GOALS_CSV).unlink(missing_ok=True)
    text = report.render(
        "figures.html.j2",
        command=command,
        total=len(records),
        seeds=seeds,
        phones=[phone for phone in PHONES if any(phone in figure.phones for figure in figures)],
        kernels=sorted(set(measured.runs["kernel"].drop_nulls().to_list())),
        sources=list(dict.fromkeys(figure.source for figure in figures)),
        figures=[_figure(figure, measured, seeds, rows, goals) for figure in figures],
        took=took(records),
        failed=failures(records),
        rule=RULE,
        notes=report.NOTES,
        data_files=(FIGURES_CSV, CLAIMS_CSV, *([GOALS_CSV] if goals else []), report.RUNS_CSV, RAW),
    )
    (directory / PAGE).write_text(text, encoding="utf-8")
    return found, met


def terminal_table(found: Sequence[Found], met: Sequence[Met] = ()) -> Table:
    """Every statement, then every goal, in a line or two of 80 characters."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for heading in ("figure", "id", "paper", "here", "verdict"):
        table.add_column(heading, no_wrap=heading in ("figure", "id", "verdict"))
    for figure, claim, finding in found:
        table.add_row(figure.name, claim.id, claim.paper, finding.here, finding.verdict)
    for figure, goal in met:
        table.add_row(figure.name, "goal", goal.goal, f"{goal.what}: {goal.here}", goal.verdict)
    return table
