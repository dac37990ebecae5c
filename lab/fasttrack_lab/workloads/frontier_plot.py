# SPDX-License-Identifier: GPL-2.0-only
"""The plot of a frontier: throughput behind to the right, latency in front upwards, a line a policy.

Filled marks are of points that have goals: those left of the upright line do not meet the background's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from fasttrack_lab.compare.plots import BASELINE_COLOUR, GRID, STYLE, colour, svg
from fasttrack_lab.workloads.frontier import Row, behind_goal

PANEL_INCHES = (3.4, 2.6)
MARK_PT = (3, 9)
"""Of the shortest and the longest pause."""


def draw(found: Sequence[Row], policies: Sequence[str]) -> Iterator[tuple[str, str]]:
    """For each place and kind of program behind a name and an SVG: a row a number of apps, a column a kind in front."""
    groups = {(row.point.place, row.point.behind): None for row in found}
    for place, behind in groups:
        mine = [row for row in found if (row.point.place, row.point.behind) == (place, behind)]
        with mpl.rc_context(STYLE):
            yield f"frontier-{'-'.join(place)}-{behind}.svg", svg(figure(mine, policies))


def figure(found: Sequence[Row], policies: Sequence[str]) -> Figure:
    """One place and kind of program behind, before it is drawn."""
    kinds = list(dict.fromkeys(row.point.kind for row in found))
    apps = list(dict.fromkeys(row.point.apps for row in found))
    size = (0.6 + PANEL_INCHES[0] * len(kinds), 0.8 + PANEL_INCHES[1] * len(apps))
    canvas = Figure(figsize=size, layout="constrained")
    panels = canvas.subplots(len(apps), len(kinds), squeeze=False, sharex=True)
    for across, count in zip(panels, apps, strict=True):
        for axes, kind in zip(across, kinds, strict=True):
            mine = [row for row in found if (row.point.kind, row.point.apps) == (kind, count)]
            _panel(axes, mine, policies)
            axes.set_title(f"{kind}, {count} behind", loc="left", fontsize=10, fontweight="bold")
    for axes in panels[-1]:
        axes.set_xlabel("throughput behind over stock's, same cell")
    for axes in panels[:, 0]:
        axes.set_ylabel("p99 over alone")
    handles, labels = panels[0][0].get_legend_handles_labels()
    canvas.legend(handles, labels, frameon=False, fontsize=9, loc="outside upper center", ncols=len(labels))
    return canvas


def _panel(axes: Axes, found: Sequence[Row], policies: Sequence[str]) -> None:
    """A line a policy over its pauses; the longer the pause, the larger the mark."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(10, subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    thinks = sorted({row.point.think_ms for row in found})
    for rule in policies:
        points = [
            (row.behind_to_stock, row.p99, row)
            for row in found
            if row.policy == rule and row.behind_to_stock is not None and row.p99 is not None
        ]
        axes.plot([x for x, _, _ in points], [y for _, y, _ in points], color=colour(rule), linewidth=1, label=rule)
        for x, y, row in points:
            step = thinks.index(row.point.think_ms) / max(len(thinks) - 1, 1)
            size = MARK_PT[0] + step * (MARK_PT[1] - MARK_PT[0])
            face = colour(rule) if row.light else "white"
            axes.plot([x], [y], "o", markersize=size, color=colour(rule), markerfacecolor=face)
    if any(row.light for row in found):
        axes.axvline(behind_goal(found[0].point.place), color=BASELINE_COLOUR, linestyle="--", linewidth=1)
    axes.axhline(1.0, color=BASELINE_COLOUR, linestyle="--", linewidth=1)
    axes.set_xlim(left=0.0)
    axes.grid(color=GRID)
