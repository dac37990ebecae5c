# SPDX-License-Identifier: GPL-2.0-only
"""README's picture: how many times slower an app answers while others work, from the records of docs/RESULTS.md."""

from __future__ import annotations

from collections.abc import Iterable

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from fasttrack_lab.compare import plots
from fasttrack_lab.compare.records import MeanAndRange, Record
from fasttrack_lab.figures.measured import TO_ALONE, Measured
from fasttrack_lab.inputs.background_sets import NAMED
from fasttrack_lab.inputs.lru import KERNEL_LRU

NAME = "slowdown.svg"
PHONE = "s6"
POLICIES = ("stock", "bfq", "fasttrack")
SCENARIOS = {
    "gallery-launch": "open\nthe gallery",
    "camera-switch": "leave\nthe camera",
    "game-load": "load\na game stage",
}
PANELS = {"update": "while one app installs", NAMED["six"]: "while six apps work"}
INCHES = (9.0, 3.2)
TICKS = (0.5, 1, 2, 5, 10, 20, 50, 100)
ROOM = 2.0
"""The axis is so much longer than the longest bar: its number stands above it."""


def _panel(axes: Axes, measured: Measured, background: str, title: str) -> None:
    def value(policy: str, place: int) -> MeanAndRange | None:
        return measured.spread(list(SCENARIOS)[place], PHONE, policy, background, TO_ALONE)

    axes.set_yscale("log")
    axes.set_ylim(TICKS[0], TICKS[-1] * ROOM)
    plots.bars(axes, POLICIES, list(SCENARIOS.values()), value)
    axes.set_ylim(TICKS[0], TICKS[-1] * ROOM)
    axes.yaxis.set_major_locator(FixedLocator(TICKS))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda tick, _: f"{tick:g}x"))
    axes.axhline(1, color=plots.INK, linewidth=1)
    axes.set_title(title, loc="left", fontsize=10, fontweight="bold")


def wanted(records: Iterable[Record]) -> list[Record]:
    """The records that the picture is made of."""
    return [
        record
        for record in records
        if record.cell.phone == PHONE
        and record.cell.lru == KERNEL_LRU
        and record.cell.fs == ""
        and record.cell.policy in POLICIES
        and record.cell.scenario in SCENARIOS
    ]


def draw(records: Iterable[Record]) -> str:
    """The picture as SVG text."""
    measured = Measured(wanted(records))
    with mpl.rc_context(plots.STYLE):
        figure = Figure(figsize=INCHES, layout="constrained")
        panels = figure.subplots(1, len(PANELS), sharey=True)
        for axes, (background, title) in zip(panels, PANELS.items(), strict=True):
            _panel(axes, measured, background, title)
        panels[0].set_ylabel("response time, times alone")
        panels[0].legend(loc="upper left", frameon=False, ncols=len(POLICIES))
        return plots.svg(figure)
