# SPDX-License-Identifier: GPL-2.0-only
"""Every policy against the fastest one: what `compare --policies all` measures, as a part of docs/RESULTS.md."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import polars as pl

from fasttrack_lab.compare import ranking
from fasttrack_lab.compare.comparison import RECORDING_S, SCENARIOS, replays_recording
from fasttrack_lab.compare.records import BASELINE_POLICY, FOREGROUND_ONLY, Record
from fasttrack_lab.figures.goals import Goal, at_most, worst
from fasttrack_lab.figures.grid import Grid
from fasttrack_lab.figures.measured import RESPONSE_S, Measured, NotMeasured
from fasttrack_lab.figures.paper import BACKGROUNDS
from fasttrack_lab.figures.statements import FASTTRACK
from fasttrack_lab.inputs import policy
from fasttrack_lab.inputs.background_sets import SIX, called
from fasttrack_lab.inputs.cell import NONE, scenario_name

UNCOUNTED = (BASELINE_POLICY, "none")
"""Policies that serve everybody alike: a foreground that starves under them is what the others are to prevent."""
HEADINGS = ("foreground", "background", "phone", f"{FASTTRACK} (s)", "fastest", "fastest (s)", "over the fastest")


def grid(scenarios: tuple[str, ...]) -> Grid:
    """Its runs with these foregrounds."""
    return Grid(scenarios, ("n6", "s6"), tuple(policy.published()), (*BACKGROUNDS, SIX), most_seeds=3)


def scenarios_of(records: Iterable[Record]) -> tuple[str, ...]:
    """The foregrounds of its records: the replay's where they have it, whether or not the recording is here."""
    replays = {record.cell.scenario for record in records if replays_recording(record.cell)}
    return (*SCENARIOS, *sorted(replays))


def fronts(scenarios: Iterable[str]) -> str:
    """Its foregrounds, and which of them is a recording."""
    named = ((one, scenario_name(one)) for one in scenarios)
    replayed = f"the first {RECORDING_S} s of a replayed"
    return ", ".join(name if one == name else f"{replayed} {name} session" for one, name in named)


def seeds_of(seeds: int) -> int:
    """How many of the page's seeds it takes."""
    return grid(SCENARIOS).seeds_of(seeds)


def command(seeds: int) -> str:
    """What makes its runs."""
    return f"./fasttrack compare --policies all --seeds {seeds_of(seeds)}"


def _cells(measured: Measured) -> pl.DataFrame:
    """The summary of every policy beside every background, with how near each comes to the fastest."""
    beside = measured.rows.filter((pl.col("policy") != FOREGROUND_ONLY) & (pl.col("background") != NONE))
    return ranking.against_each_other(beside)


def goal(measured: Measured) -> list[Goal]:
    """FastTrack is the fastest or near it in every cell, and has a result in each; NotMeasured where there is none."""
    mine = _cells(measured).filter(pl.col("policy") == FASTTRACK)
    if mine.is_empty():
        raise NotMeasured(f"{FASTTRACK} in the comparison of all policies")
    to_fastest = mine.with_columns(pl.col(ranking.TO_FASTEST).fill_null(math.inf))
    over = {ranking.cell_text(row): float(row[ranking.TO_FASTEST]) for row in to_fastest.iter_rows(named=True)}
    return [at_most("response time over the fastest of all policies'", ranking.NEAR, over)]


def clean(measured: Measured) -> list[Goal]:
    """No run of FastTrack or a peer fails; NotMeasured where there are none."""
    mine = _cells(measured).filter(~pl.col("policy").is_in(UNCOUNTED))
    if mine.is_empty():
        raise NotMeasured("any run of the comparison of all policies")
    failed = {f"{row['policy']}, {ranking.cell_text(row)}": float(row["failed"]) for row in mine.iter_rows(named=True)}
    lost, ended = int(mine["failed"].sum()), int(mine["runs"].sum()) + int(mine["over"].sum())
    what = f"failed runs of {FASTTRACK} and its peers: all policies but {' and '.join(UNCOUNTED)}"
    return [Goal(what, "at most 0", f"{lost} of {lost + ended}", worst(failed, 0, digits=0), not lost)]


def ranked(measured: Measured) -> Iterator[Sequence[str]]:
    """Every policy over all cells, the fastest first."""
    beside = measured.rows.filter(pl.col("policy") != FOREGROUND_ONLY)
    return (rank.texts(cells=True) for rank in ranking.ranks(beside))


def slower(measured: Measured) -> list[Sequence[str]]:
    """Every cell in which FastTrack is neither the fastest nor near it: those without a result, then the worst."""
    cells = _cells(measured)
    first = cells.filter(pl.col(ranking.TO_FASTEST) == 1)
    fastest = {ranking.cell_text(row): row for row in first.iter_rows(named=True)}
    near = (pl.col(ranking.TO_FASTEST) <= ranking.NEAR).fill_null(value=False)
    mine = cells.filter((pl.col("policy") == FASTTRACK) & ~near)
    rows: list[Sequence[str]] = []
    for row in mine.sort(ranking.TO_FASTEST, descending=True, nulls_last=False).iter_rows(named=True):
        best, over = fastest.get(ranking.cell_text(row)), row[ranking.TO_FASTEST]
        own = ("failed", "-") if over is None else (f"{row[f'{RESPONSE_S}_mean']:.3f}", f"{over:.3f}")
        other = ("-", "-") if best is None else (best["policy"], f"{best[f'{RESPONSE_S}_mean']:.3f}")
        rows.append((row["scenario"], called(row["background"]), row["phone"], own[0], *other, own[1]))
    return rows
