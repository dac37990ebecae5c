# SPDX-License-Identifier: GPL-2.0-only
"""The figures of a comparison, as SVG text that needs no network and no font file."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

BASELINE_COLOUR = "#6b7280"
COLOURS = ("#c2410c", "#1d4ed8", "#047857", "#7e22ce", "#b45309", "#0e7490", "#be185d", "#4d7c0f")
"""One a policy, in the order of the command line; told apart by lightness too."""
STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "fasttrack",
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "figure.constrained_layout.w_pad": 0.12,
}
BAR_SHARE = 0.8
"""Of the space of a group, the part that its bars take."""


def _svg(figure: Figure) -> str:
    """The figure as an element to put into a page."""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    return text[text.index("<svg") :]


def _value(rows: pl.DataFrame, policy: str, background: str, column: str) -> tuple[float, float, float] | None:
    """Mean, lowest and highest over the seeds of one bar, or None where nothing was measured."""
    row = rows.filter((pl.col("policy") == policy) & (pl.col("background") == background))
    if row.is_empty() or row[f"{column}_mean"][0] is None:
        return None
    return row[f"{column}_mean"][0], row[f"{column}_min"][0], row[f"{column}_max"][0]


def _bars(axes: Axes, rows: pl.DataFrame, policies: Sequence[str], groups: Sequence[str], column: str) -> None:
    """Bars of every policy in every group of backgrounds, the spread over the seeds as a whisker, the mean as text."""
    width = BAR_SHARE / len(policies)
    for index, policy in enumerate(policies):
        label: str | None = policy
        for place, group in enumerate(groups):
            value = _value(rows, policy, group, column)
            if value is None:
                continue
            mean, low, high = value
            x = place + (index - (len(policies) - 1) / 2) * width
            axes.bar(x, mean, width * 0.92, color=COLOURS[index % len(COLOURS)], label=label)
            label = None
            axes.errorbar(x, mean, yerr=[[mean - low], [high - mean]], color="#111827", capsize=3, linewidth=1)
            axes.annotate(
                f"{mean:.2f}" if mean < 100 else f"{mean:.0f}",
                (x, high),
                textcoords="offset points",
                xytext=(0, 4),
                ha="center",
                fontsize=8,
            )
    axes.set_xticks(range(len(groups)), groups)
    axes.set_xlim(-0.6, len(groups) - 0.4)
    axes.grid(axis="y", color="#e5e7eb")
    axes.margins(y=0.15)


def response(rows: pl.DataFrame, policies: Sequence[str], groups: Sequence[str], baseline_s: float | None) -> str:
    """Response time of each policy under each background, beside the response without any."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(max(5.0, 1.2 + 1.1 * len(groups) * len(policies)), 3.6), layout="constrained")
        axes = figure.subplots()
        _bars(axes, rows, policies, groups, "response_s")
        if baseline_s is not None:
            axes.axhline(baseline_s, color=BASELINE_COLOUR, linestyle="--", linewidth=1.4, label="baseline")
        axes.set_ylabel("response time (s)")
        axes.set_xlabel("background")
        axes.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        return _svg(figure)


def slowdown_and_throughput(rows: pl.DataFrame, policies: Sequence[str], groups: Sequence[str]) -> str:
    """Slowdown on the left; on the right the background's throughput, which is what a slowdown may cost."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(max(9.0, 2.0 + 1.8 * len(groups) * len(policies)), 3.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        _bars(left, rows, policies, groups, "slowdown")
        left.axhline(1.0, color=BASELINE_COLOUR, linestyle="--", linewidth=1.4)
        left.set_ylabel("slowdown (baseline = 1)")
        _bars(right, rows, policies, groups, "background_mb_s")
        right.set_ylabel("background throughput (MB/s)")
        for axes in (left, right):
            axes.set_xlabel("background")
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles, labels, frameon=False, fontsize=9, loc="outside upper center", ncols=len(policies))
        return _svg(figure)
