# SPDX-License-Identifier: GPL-2.0-only
"""Numbers by scenario, phone, policy and background, with two more than a comparison has.

`fg-only` stands beside the policies: the same seeds without background, under stock. `to_stock` is the response time
over that of the same phone, background and seed under stock, as the paper's Figure 10 shows it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import polars as pl

from fasttrack_lab.compare import report
from fasttrack_lab.compare.records import BASELINE_POLICY, FOREGROUND_ONLY, MeanAndRange, Record
from fasttrack_lab.inputs.cell import NONE

RESPONSE_S, TO_ALONE, TO_STOCK = "response_s", "slowdown", "to_stock"
MEAN_TO_ALONE, MEAN_TO_STOCK = f"{TO_ALONE}_mean", f"{TO_STOCK}_mean"
LONGEST_HOLD_S, LONGEST_WRITE_WAIT_S = "longest_hold_s", "longest_write_wait_s"
"""Columns of the summary."""
MEASURES = (*report.MEASURES, TO_STOCK)
_RUN = ["scenario", "phone", "background", "seed"]
_OF_THE_RUN = (
    "foreground_read_mb",
    "foreground_written_mb",
    "background_mb",
    "background_mb_s",
    "longest_pause_s",
    LONGEST_HOLD_S,
    LONGEST_WRITE_WAIT_S,
    "error",
    "over",
)
"""What `fg-only` does not take from the run that it stands beside."""


class NotMeasured(Exception):
    """A number was asked for whose runs are not there, or failed."""


def all_runs(records: Iterable[Record]) -> pl.DataFrame:
    """One row a run as `report.runs` has it, the rows of `fg-only`, and `to_stock`."""
    frame = report.runs(records)
    beside = frame.filter(pl.col("background") != NONE)
    alone = beside.unique(_RUN, keep="first", maintain_order=True).with_columns(
        pl.lit(FOREGROUND_ONLY).alias("policy"),
        pl.col("baseline_s").alias("response_s"),
        (pl.col("baseline_s") / pl.col("baseline_s")).alias(TO_ALONE),
        *(pl.lit(None, dtype=frame.schema[name]).alias(name) for name in _OF_THE_RUN),
    )
    every = pl.concat([frame, alone])
    stock = beside.filter(pl.col("policy") == BASELINE_POLICY).select(*_RUN, pl.col("response_s").alias("stock_s"))
    joined = every.join(stock, on=_RUN, how="left", maintain_order="left")
    return joined.with_columns((pl.col("response_s") / pl.col("stock_s")).alias(TO_STOCK)).drop("stock_s")


class Measured:
    """The numbers of some runs: mean, lowest and highest over the seeds."""

    def __init__(self, records: Iterable[Record]) -> None:
        """From the records of runs."""
        self.runs = all_runs(records)
        self.rows = report.summary(self.runs, MEASURES)
        self._by_name: dict[tuple[str, str, str, str], dict[str, Any]] = {
            (row["scenario"], row["phone"], row["policy"], row["background"]): row
            for row in self.rows.iter_rows(named=True)
        }

    def found(self, scenario: str, phone: str, policy: str, background: str) -> dict[str, Any]:
        """The summary of a cell's seeds; NotMeasured where no run of it counts."""
        row = self._by_name.get((scenario, phone, policy, background))
        if row is None or row[f"{RESPONSE_S}_mean"] is None:
            raise NotMeasured(f"{scenario} on {phone}, {policy}, background {background}")
        return row

    def mean(self, scenario: str, phone: str, policy: str, background: str, measure: str) -> float:
        """The mean over the seeds; NotMeasured where there is none."""
        value = self.found(scenario, phone, policy, background)[f"{measure}_mean"]
        if value is None:
            raise NotMeasured(f"{scenario} on {phone} without background or under stock")
        return float(value)

    def of_all_seeds(self, scenario: str, phone: str, policy: str, background: str, column: str) -> float:
        """A column of the summary, for a goal: infinite where a run of the cell failed."""
        row = self._by_name.get((scenario, phone, policy, background))
        if row is not None and (row["failed"] or row["over"]):
            return math.inf
        value = self.found(scenario, phone, policy, background)[column]
        if value is None:
            raise NotMeasured(f"{column} of {scenario} on {phone}, {policy}, background {background}")
        return float(value)

    def stated(self, scenario: str, phone: str, policy: str, background: str, measure: str) -> float:
        """The mean over all seeds, for a statement; NotMeasured where a run of the cell failed, or none is there."""
        value = self.of_all_seeds(scenario, phone, policy, background, f"{measure}_mean")
        if math.isinf(value):
            raise NotMeasured(f"every seed of {scenario} on {phone}, {policy}, background {background}")
        return value

    def ended_when_long(self, scenario: str, phone: str, policy: str, background: str) -> float | None:
        """Of a cell of which no run counts because all were ended: at how many times their own time alone, at least."""
        row = self._by_name.get((scenario, phone, policy, background))
        return row["over_times"] if row is not None and row["over"] and not row["failed"] else None

    def spread(self, scenario: str, phone: str, policy: str, background: str, measure: str) -> MeanAndRange | None:
        """Mean, lowest and highest, or None where nothing was measured."""
        try:
            mean = self.mean(scenario, phone, policy, background, measure)
        except NotMeasured:
            return None
        row = self.found(scenario, phone, policy, background)
        return mean, row[f"{measure}_min"], row[f"{measure}_max"]
