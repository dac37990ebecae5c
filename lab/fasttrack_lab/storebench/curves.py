# SPDX-License-Identifier: GPL-2.0-only
"""The curves of a profile: throughput against queue depth, one panel a pattern, the best depth marked."""

from __future__ import annotations

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from fasttrack_lab.compare import plots
from fasttrack_lab.inputs.patterns import PATTERNS, Pattern
from fasttrack_lab.inputs.profile import Profile
from fasttrack_lab.storebench.points import best, rate, unit

READ_COLOUR, WRITE_COLOUR = plots.COLOURS["fasttrack"], plots.COLOURS["stock"]
SIZE = (11.0, 2.7)
"""Inches of one device's four panels."""


def _panel(axes: Axes, profile: Profile, pattern: Pattern) -> None:
    curve, marked = profile.curves[pattern.name], best(profile, pattern)
    colour = READ_COLOUR if pattern.reads else WRITE_COLOUR
    depths = [point.depth for point in curve]
    axes.plot(depths, [rate(pattern, point) for point in curve], color=colour, marker="o", markersize=4)
    axes.plot([marked.depth], [rate(pattern, marked)], **plots.PAPER_MARK | {"markeredgecolor": colour}, zorder=5)
    best_text = f"best at {marked.depth}: {rate(pattern, marked):,.0f} {unit(pattern)}"
    axes.text(0.97, 0.05, best_text, transform=axes.transAxes, ha="right", fontsize=plots.NOTE_PT)
    axes.set_xscale("log", base=2)
    axes.set_xticks(depths, [str(depth) for depth in depths])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_ylim(0, 1.15 * max(rate(pattern, point) for point in curve))
    axes.grid(axis="y", color=plots.GRID)
    axes.set_xlabel("requests at once")
    axes.set_ylabel(unit(pattern))
    axes.set_title(pattern.title, loc="left", fontsize=10, fontweight="bold")


def figure(profile: Profile) -> Figure:
    """All four panels beside each other."""
    with mpl.rc_context(plots.STYLE):
        canvas = Figure(figsize=SIZE, layout="constrained")
        for axes, pattern in zip(canvas.subplots(1, len(PATTERNS)), PATTERNS, strict=True):
            _panel(axes, profile, pattern)
        return canvas


def draw(profile: Profile) -> str:
    """The figure as SVG text."""
    with mpl.rc_context(plots.STYLE):
        return plots.svg(figure(profile))
