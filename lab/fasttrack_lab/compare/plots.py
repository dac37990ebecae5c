# SPDX-License-Identifier: GPL-2.0-only
"""What plots share: colours, bars, texts; SVG text that needs no network and no font file."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from zlib import crc32

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fasttrack_lab.compare.records import FOREGROUND_ONLY, MeanAndRange

INK = "#111827"
BASELINE_COLOUR = "#6b7280"
GRID = "#e5e7eb"
"""Of the lines at the ticks."""
COLOURS = {
    FOREGROUND_ONLY: BASELINE_COLOUR,
    "stock": "#c2410c",
    "fasttrack": "#1d4ed8",
    "fasttrack-minus": "#60a5fa",
    "bfq": "#047857",
    "kyber": "#7e22ce",
    "none": "#ca8a04",
    "pa": "#14b8a6",
    "pr": "#a855f7",
    "id": "#ec4899",
    "smartio": "#65a30d",
    "qasio": "#9f1239",
    "rcp": "#fb7185",
    "faio": "#06b6d4",
    "acclaim-fae": "#c4b5fd",
    "ioprio-bfq": "#16a34a",
    "ioprio-deadline": "#bef264",
    "cgroup": "#92400e",
    "cgroup-prio": "#f59e0b",
    "cgroup-iocost": "#fdba74",
    "cgroup-iolatency": "#fde047",
    "freeze": "#475569",
    "cgroup-freeze": "#d97706",
    "fasttrackd": "#0f766e",
    "fasttrack-off": "#a3a3a3",
    "fasttrack-nobody": "#93c5fd",
}
"""A policy has one colour in every plot."""
OTHER_COLOURS = ("#4d7c0f", "#be185d", "#0e7490", "#78350f")
"""For policies that users add: told by the name."""
STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "fasttrack",
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.size": 10,
    # Paths and names of apps are texts, whatever is in them.
    "text.parse_math": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "figure.constrained_layout.w_pad": 0.12,
}
MARK_PT, NOTE_PT = 6, 8
"""Height of a mark and of the text of a value, points."""
PAPER_MARK: Any = {"marker": "D", "markersize": MARK_PT, "markerfacecolor": "white", "markeredgecolor": INK}
BAR_SHARE = 0.8
"""Of the space of a group, the part that its bars take."""


Lookup = Callable[[str, int], "MeanAndRange | None"]
"""The value of a policy in the group at a place, or None where nothing was measured."""


def colour(policy: str) -> str:
    """The colour of a policy."""
    return COLOURS.get(policy) or OTHER_COLOURS[crc32(policy.encode()) % len(OTHER_COLOURS)]


def svg(figure: Figure) -> str:
    """The figure as an element to put into a page."""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    return text[text.index("<svg") :]


def place_of(group: int, index: int, count: int) -> float:
    """Where the bar INDEX of COUNT stands in a group."""
    return group + (index - (count - 1) / 2) * BAR_SHARE / count


def paper_mark(axes: Axes, x: float, value: float) -> None:
    """The paper's number."""
    axes.plot([x], [value], linestyle="none", label="paper", zorder=5, **PAPER_MARK)


def note(axes: Axes, x: float, value: MeanAndRange, mark: float | None = None, upright: bool = False) -> None:
    """The mean as text above the whisker, or above a mark that stands just there. The axes have their limits."""
    mean, _, high = value
    if mark is not None and -MARK_PT < _height_pt(axes, mark) - _height_pt(axes, high) < NOTE_PT + MARK_PT:
        high = max(high, mark)
    axes.annotate(
        f"{mean:.2f}" if mean < 100 else f"{mean:.0f}",
        (x, high),
        textcoords="offset points",
        xytext=(0, 4 if mark is None else MARK_PT),
        ha="center",
        rotation=90 if upright else 0,
        fontsize=NOTE_PT,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.5},
    )


def _height_pt(axes: Axes, y: float) -> float:
    """Where a value stands on the figure, in points."""
    return float(axes.transData.transform((0, y))[1]) * 72 / axes.figure.dpi


def bars(
    axes: Axes,
    policies: Sequence[str],
    groups: Sequence[str],
    lookup: Lookup,
    marks: Mapping[tuple[int, str], float] | None = None,
    upright: bool = False,
) -> None:
    """Bars of every policy in every group, the spread over the seeds as a whisker, the mean as text.

    MARKS are numbers of others, by a group's place and a policy. UPRIGHT is for many groups: texts stand.
    """
    width = BAR_SHARE / len(policies)
    shown: list[tuple[float, MeanAndRange, float | None]] = []
    for index, policy in enumerate(policies):
        label: str | None = policy
        for place in range(len(groups)):
            value = lookup(policy, place)
            if value is None:
                continue
            mean, low, high = value
            x = place_of(place, index, len(policies))
            axes.bar(x, mean, width * 0.92, color=colour(policy), label=label)
            label = None
            axes.errorbar(x, mean, yerr=[[mean - low], [high - mean]], color=INK, capsize=3, linewidth=1)
            mark = (marks or {}).get((place, policy))
            if mark is not None:
                paper_mark(axes, x, mark)
            shown.append((x, value, mark))
    axes.set_xticks(range(len(groups)), groups, rotation=90 if upright else 0)
    axes.set_xlim(-0.6, len(groups) - 0.4)
    axes.grid(axis="y", color=GRID)
    axes.margins(y=0.25 if upright else 0.15)
    for x, value, mark in shown:
        note(axes, x, value, mark, upright)
