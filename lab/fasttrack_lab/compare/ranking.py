# SPDX-License-Identifier: GPL-2.0-only
"""Policies against each other: how near each comes to the fastest, and what it costs the background.

A cell is a foreground beside a background on a phone, with its file system and LRU. A policy has a result in it where
no seed has failed: a mean over those that are left would compare other runs than the others' means. A seed that was
ended when long counts with what it is at least, and nobody is the fastest by such a number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from statistics import geometric_mean
from typing import Any

import polars as pl
from rich import box
from rich.table import Table

from fasttrack_lab.compare.records import BASELINE_POLICY
from fasttrack_lab.inputs.background_sets import called
from fasttrack_lab.inputs.cell import IDLE, NONE, platform_text

CELL = ["scenario", "phone", "fs", "lru", "background"]
TO_FASTEST = "to_fastest"
BACKGROUND_TO_STOCK = "background_to_stock"
NEAR = 1.02
"""A response time up to this much over the fastest policy's counts as the fastest."""
WITHIN = f"{(NEAR - 1) * 100:.0f} %"
HEADINGS = (
    "policy",
    "cells",
    "slowdown",
    "worst",
    f"fastest or within {WITHIN}",
    "over the fastest",
    "background",
)
TERMINAL_HEADINGS = ("policy", "cells", "slowdown", "worst", "fastest", "over it", "behind")
LEGEND = (
    "Slowdown: geometric mean over the cells, and the worst of them. Fastest: in how many cells the policy is the "
    f"fastest or within {WITHIN} of it; over the fastest: its response time over the fastest's, at most. "
    "Background: its throughput from the touch on, over that under stock, mean over the cells in which no run was "
    "ended when long; ≥: such runs count with what they are at least. "
    "Policies without a result of every seed in some cells come last: their means are of the other cells."
)


def against_each_other(rows: pl.DataFrame) -> pl.DataFrame:
    """The summary of runs with two more columns, for each cell.

    `to_fastest` is the mean response time over the fastest policy's, at least; `background_to_stock` the background's
    mean throughput over that under stock. Both are null where a policy has no result; the second where it, or stock,
    has a run that was ended when long.
    """
    counted = pl.col("runs") + pl.col("over")
    whole = (pl.col("failed") == 0) & (counted == counted.max())
    exact = whole & (pl.col("over") == 0)
    response_s = pl.when(whole).then(pl.col("response_s_least"))
    fastest_s = pl.when(exact).then(pl.col("response_s_mean")).min().over(CELL)
    throughput = pl.when(exact).then(pl.col("background_mb_s_mean"))
    stock = rows.with_columns(stock_mb_s=throughput).filter(pl.col("policy") == BASELINE_POLICY)
    return (
        rows.join(stock.select(*CELL, "stock_mb_s"), on=CELL, how="left", maintain_order="left")
        .with_columns(
            (response_s / fastest_s).alias(TO_FASTEST),
            pl.when(pl.col("stock_mb_s") > 0).then(throughput / pl.col("stock_mb_s")).alias(BACKGROUND_TO_STOCK),
        )
        .drop("stock_mb_s")
    )


@dataclass(frozen=True)
class Rank:
    """A policy over all cells."""

    policy: str
    measured: int
    """Cells where it has a result: none of its seeds failed."""
    ended: int
    """Those of them in which a run was ended when long: the means are at least what they say."""
    cells: int
    slowdown: float | None
    worst: float | None
    worst_cell: str
    near: int
    """Cells where it is the fastest or near it."""
    over: float | None
    over_cell: str
    background: float | None

    def texts(self, cells: bool) -> tuple[str, ...]:
        """Its row, in the order of the headings; with the CELLS where it is worst, or without."""
        return (
            self.policy,
            str(self.cells) if self.measured == self.cells else f"{self.measured} of {self.cells}",
            self._least(self.slowdown),
            self._least(self.worst, self.worst_cell if cells else ""),
            str(self.near),
            self._least(self.over, self.over_cell if cells else ""),
            _text(self.background),
        )

    def _least(self, value: float | None, cell: str = "") -> str:
        return ("≥ " if self.ended and value is not None else "") + _text(value, cell)


def _text(value: float | None, cell: str = "") -> str:
    number = "-" if value is None else f"{value:.2f}"
    return f"{number} ({cell})" if cell else number


def cell_text(row: Mapping[str, Any]) -> str:
    """What a cell is called."""
    platform = platform_text(row["phone"], row["fs"], row["lru"])
    return f"{row['scenario']} beside {called(row['background'])} on {platform}"


def _highest(rows: pl.DataFrame, column: str) -> tuple[float | None, str]:
    """The highest value, and its cell."""
    found = rows.filter(pl.col(column).is_not_null()).sort(column, descending=True, maintain_order=True)
    return (None, "") if found.is_empty() else (found[column][0], cell_text(found.row(0, named=True)))


def _geometric_mean(rows: pl.DataFrame, column: str) -> float | None:
    values = rows[column].drop_nulls()
    return geometric_mean(values) if len(values) and (values > 0).all() else None


def nothing_behind(row: Mapping[str, Any]) -> bool:
    """Whether no app behind the foreground did anything, as it should be, in a row of the summary."""
    return row["background"] in (NONE, IDLE) and not row["background_mb"]


def ranks(rows: pl.DataFrame) -> list[Rank]:
    """Every policy of a summary over the cells with something behind: the fastest first, what lacks cells last."""
    beside = against_each_other(rows.filter([not nothing_behind(row) for row in rows.iter_rows(named=True)]))
    cells = beside.select(CELL).n_unique()
    found: list[Rank] = []
    for (policy,), every in beside.group_by(["policy"], maintain_order=True):
        mine = every.filter(pl.col(TO_FASTEST).is_not_null())
        worst, over = _highest(mine, "slowdown_least"), _highest(mine, TO_FASTEST)
        near, ended = mine.filter(pl.col(TO_FASTEST) <= NEAR).height, mine.filter(pl.col("over") > 0).height
        slowdown = _geometric_mean(mine, "slowdown_least")
        background = mine.select(pl.col(BACKGROUND_TO_STOCK).mean()).item()
        over_cell = over[1] if near < mine.height else ""
        measured = (mine.height, ended, cells)
        found.append(Rank(str(policy), *measured, slowdown, *worst, near, over[0], over_cell, background))
    return sorted(found, key=lambda rank: (rank.measured < cells, inf if rank.slowdown is None else rank.slowdown))


def terminal_table(rows: pl.DataFrame) -> Table:
    """The ranks for the terminal."""
    table = Table(title="Over all cells", title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, caption=LEGEND)
    table.caption_justify = "left"
    for index, heading in enumerate(TERMINAL_HEADINGS):
        table.add_column(heading, justify="right" if index else "left", no_wrap=True)
    for rank in ranks(rows):
        table.add_row(*rank.texts(cells=False))
    return table
