# SPDX-License-Identifier: GPL-2.0-only
"""The plots of the figures: bars a phone, or lines over a count; the paper's numbers as marks beside ours."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FixedLocator, FormatStrFormatter, NullLocator

from fasttrack_lab.compare import plots
from fasttrack_lab.compare.records import FOREGROUND_ONLY, MeanAndRange
from fasttrack_lab.figures.measured import RESPONSE_S, Measured
from fasttrack_lab.figures.plot import Bars, Group, Lines
from fasttrack_lab.inputs import phone as phones_of_lab

LINE_TICKS = (1, 2, 5, 10, 20, 50, 100)


def draw(plot: Bars | Lines, measured: Measured, phones: Sequence[str]) -> str:
    """The plot as SVG text."""
    with mpl.rc_context(plots.STYLE):
        canvas = _lines(plot, measured, phones) if isinstance(plot, Lines) else _bars(plot, measured, phones)
        return plots.svg(canvas)


def _title(axes: Axes, phone: str) -> None:
    """The phone and its storage, above a panel."""
    axes.set_title(f"{phone} ({phones_of_lab.load(phone).storage})", loc="left", fontsize=10, fontweight="bold")


def _group_label(plot: Bars, group: Group, measured: Measured, phone: str) -> str:
    if plot.reference is None:
        return group.label
    found = measured.spread(group.scenario, phone, plot.reference, group.background, RESPONSE_S)
    return group.label if found is None else f"{group.label}\n{plot.reference} {found[0]:.2f} s"


def _bars(plot: Bars, measured: Measured, phones: Sequence[str]) -> Canvas:
    """One panel a phone, above each other."""
    count = len(plot.groups) * len(plot.policies)
    size = (max(4.6, 1.4 + (0.24 if plot.dense else 0.36) * count), 0.6 + (3.0 if plot.dense else 2.5) * len(phones))
    canvas = Canvas(figsize=size, layout="constrained")
    panels = canvas.subplots(len(phones), 1, squeeze=False)[:, 0]
    for axes, phone in zip(panels, phones, strict=True):

        def value(policy: str, place: int, phone: str = phone) -> MeanAndRange | None:
            group = plot.groups[place]
            return measured.spread(group.scenario, phone, policy, group.background, plot.measure)

        labels = [_group_label(plot, group, measured, phone) for group in plot.groups]
        plots.bars(axes, plot.policies, labels, value, plot.paper, upright=plot.dense)
        if plot.reference is not None:
            axes.axhline(1.0, color=plots.colour(plot.reference), linestyle="--", linewidth=1.4, label=plot.reference)
        axes.set_ylabel(plot.label)
        _title(axes, phone)
    _legend(canvas, panels[0], plot.policies)
    return canvas


def _lines(plot: Lines, measured: Measured, phones: Sequence[str]) -> Canvas:
    """One panel a phone, above each other."""
    canvas = Canvas(figsize=(6.4, 0.6 + 3.4 * len(phones)), layout="constrained")
    panels = canvas.subplots(len(phones), 1, squeeze=False)[:, 0]
    for axes, phone in zip(panels, phones, strict=True):
        axes.axhline(1.0, color=plots.colour(FOREGROUND_ONLY), linestyle="--", linewidth=1.4, label=FOREGROUND_ONLY)
        axes.set_yscale("log")
        axes.margins(x=0.08, y=0.15)
        shown = [one for policy in plot.policies for one in _line(axes, plot, policy, measured, phone)]
        axes.yaxis.set_major_locator(FixedLocator(LINE_TICKS))
        axes.yaxis.set_major_formatter(FormatStrFormatter("%g"))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.set_xticks([count for count, _ in plot.points])
        axes.grid(axis="y", color=plots.GRID)
        axes.set_xlabel(plot.across)
        axes.set_ylabel(plot.label)
        _title(axes, phone)
        for count, value, mark in shown:
            plots.note(axes, count, value, mark)
    _legend(canvas, panels[0], plot.policies)
    return canvas


Shown = tuple[int, MeanAndRange, float | None]
"""A point of a line, its value and the paper's."""


def _line(axes: Axes, plot: Lines, policy: str, measured: Measured, phone: str) -> list[Shown]:
    """The line of a policy with the paper's marks; the points that are to be noted."""
    found = [
        (count, value, plot.paper.get((policy, count)))
        for count, group in plot.points
        if (value := measured.spread(group.scenario, phone, policy, group.background, plot.measure)) is not None
    ]
    if found:
        counts, means = [count for count, _, _ in found], [mean for _, (mean, _, _), _ in found]
        reach = [[mean - low for _, (mean, low, _), _ in found], [high - mean for _, (mean, _, high), _ in found]]
        axes.errorbar(
            counts, means, yerr=reach, color=plots.colour(policy), marker="o", markersize=5, capsize=3, label=policy
        )
    for count, _, mark in found:
        if mark is not None:
            plots.paper_mark(axes, count, mark)
    return found


def _legend(canvas: Canvas, axes: Axes, policies: Sequence[str]) -> None:
    """One legend above all panels: the policies in their order, then what stands beside them."""
    handles = dict(zip(*axes.get_legend_handles_labels()[::-1], strict=True))
    names = [*(name for name in policies if name in handles), *(name for name in handles if name not in policies)]
    canvas.legend(
        [handles[name] for name in names],
        names,
        frameon=False,
        fontsize=9,
        loc="outside upper center",
        ncols=len(names),
    )
