# SPDX-License-Identifier: GPL-2.0-only
"""The page of a matrix: sums, heat maps, every cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from fasttrack_lab.compare import report
from fasttrack_lab.compare.comparison_plots import (
    CELL_INCHES,
    FAILED_COLOUR,
    HEAD_INCHES,
    LABEL_INCHES,
    face_of,
    label_cells,
    paint_cell,
)
from fasttrack_lab.compare.plots import STYLE, svg
from fasttrack_lab.compare.records import RAW, Record, took
from fasttrack_lab.workloads.calls import ratio_text
from fasttrack_lab.workloads.matrix import (
    BESIDE,
    CSV,
    OURS,
    Asked,
    Row,
    counted,
    mark,
    ms_text,
    over_text,
    summary,
    sums,
)
from fasttrack_lab.workloads.programs import Place

PAGE = "report.html"
HOTTEST, HOTTEST_OVER_BEST = 100.0, 3.0
"""From these ratios on all cells have the same colour."""

Value = Callable[[Row], float | None]


def heat_map(found: Sequence[Row], value: Value, hottest: float) -> Figure:
    """A row a program in front, a column a kind behind; cells where we are worse than another policy are framed."""
    fronts = list(dict.fromkeys(row.front for row in found))
    behinds = list(dict.fromkeys(row.behind for row in found))
    size = (LABEL_INCHES + CELL_INCHES[0] * len(behinds), HEAD_INCHES + CELL_INCHES[1] * len(fronts))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots()
    for row in found:
        ratio = value(row)
        look = (FAILED_COLOUR, "failed") if ratio is None else (face_of(ratio, hottest), ratio_text(ratio))
        paint_cell(axes, (behinds.index(row.behind), fronts.index(row.front)), look, framed=row.worse)
    label_cells(axes, behinds, fronts)
    return figure


def _maps(found: Sequence[Row], policies: Sequence[str]) -> list[dict[str, Any]]:
    """The heat maps of every place: one a policy, and ours over the best other."""
    made = []
    for place in dict.fromkeys(row.place for row in found):
        mine = [row for row in found if row.place == place]
        drawn: list[tuple[str, Value, float]] = [
            (f"{rule}: time over alone", lambda row, rule=rule: row.over_alone(rule), HOTTEST)  # type: ignore[misc]
            for rule in policies
        ]
        if counted(mine)[1]:
            drawn.append((f"{OURS} over the fastest other policy", lambda row: row.over_best, HOTTEST_OVER_BEST))
        with mpl.rc_context(STYLE):
            maps = [(title, svg(heat_map(mine, value, hottest))) for title, value, hottest in drawn]
        made.append({"place": place_text(place), "maps": maps})
    return made


def place_text(place: Place) -> str:
    """A phone with its file system."""
    return ", ".join(place)


def _cells(found: Sequence[Row], policies: Sequence[str]) -> list[tuple[str, ...]]:
    """Every cell as text: for each policy time over alone, p50, p99 and the longest call."""
    made: list[tuple[str, ...]] = []
    for row in found:
        texts = [row.front, row.behind, place_text(row.place), "-" if row.alone is None else f"{row.alone.sum_s:.4f}"]
        for rule in policies:
            calls = row.by_policy[rule]
            times = [] if calls is None else [calls.p50_s, calls.p99_s, calls.longest_s]
            texts.append(" / ".join([over_text(row, rule), *map(ms_text, times)]) if calls else "failed")
        made.append((*texts, mark(row)))
    return made


def page(found: Sequence[Row], asked: Asked, records: Sequence[Record], failed: Sequence[str], command: str) -> str:
    """The page: self-contained HTML."""
    policies = asked.policies
    totals = [
        (one.policy, one.cells_text, one.mean_text, ratio_text(one.worst), one.where, ms_text(one.longest_s))
        for one in sums(found, policies)
    ]
    return report.render(
        "matrix.html.j2",
        asked=asked,
        beside=BESIDE,
        places=[place_text(place) for place in asked.places],
        command=command,
        kernels=sorted({str(record.result["kernel"]) for record in records if record.result}),
        took=took(records),
        total=len(records),
        failed=failed,
        summary=summary(found, policies),
        totals=totals,
        figures=_maps(found, policies),
        rows=_cells(found, policies),
        kinds=[(one.name, one.purpose) for one in (*asked.fronts, *asked.behinds)],
        notes=report.NOTES,
        data_files=(CSV, RAW),
    )
