# SPDX-License-Identifier: GPL-2.0-only
"""The plots of a report: bars that lie, of shares, counts or percentiles; lines over time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from fasttrack_lab.compare import plots
from fasttrack_lab.trace.cells import cell
from fasttrack_lab.trace.trace_report import Answer

COLOURS = ("#1d4ed8", "#ca8a04", "#047857", "#9f1239")
CLASS_COLOURS = {"foreground": "#1d4ed8", "neutral": "#6b7280", "background": "#c2410c", "unknown": "#a855f7"}
WIDTH_IN, ROW_IN, BESIDE_IN = 5.4, 0.3, 1.1
CHARACTER_IN = 0.085
"""Of a label, on the average."""


def _bars(
    answer: Answer,
    labels: Sequence[str],
    series: Mapping[str, str],
    axis: str,
    scale: float = 1.0,
    log: bool = False,
) -> Figure:
    """A group of lying bars a row: SERIES is column -> name, values are divided by SCALE."""
    rows = answer.rows[:_MOST]
    height = BESIDE_IN + ROW_IN * max(len(rows), 1) * (0.5 + 0.5 * len(series))
    names = [" ".join(dict.fromkeys(cell(answer.metric, label, row[label]) for label in labels)) for row in rows]
    figure = Figure(figsize=(WIDTH_IN, height))
    axes = figure.subplots()
    left = max(len(name) for name in names) * CHARACTER_IN + 0.15
    _place(figure, min(left, WIDTH_IN / 2), height)
    if log:
        _decades(axes, [(row[column] or 0) / scale for row in rows for column in series])
    else:
        # Numbers of six digits have room on a phone.
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.margins(x=0.15)
    thick = plots.BAR_SHARE / len(series)
    for index, (column, name) in enumerate(series.items()):
        places = [plots.place_of(place, index, len(series)) for place in range(len(rows))]
        values = [(row[column] or 0) / scale for row in rows]
        axes.barh(places, values, thick * 0.9, color=COLOURS[index], label=name)
        for place, value in zip(places, values, strict=True):
            axes.annotate(
                _short(value),
                (max(value, axes.get_xlim()[0]) if log else value, place),
                textcoords="offset points",
                xytext=(3, 0),
                va="center",
                fontsize=plots.NOTE_PT,
            )
    axes.set_yticks(range(len(rows)), names)
    axes.invert_yaxis()
    axes.grid(axis="x", color=plots.GRID)
    axes.set_xlabel(axis)
    _legend(figure, axes)
    return figure


def _decades(axes: Axes, values: Iterable[float]) -> None:
    """A logarithmic axis from the decade below VALUES on, with room for the longest's number."""
    there = [value for value in values if value > 0] or [1.0]
    axes.set_xscale("log")
    axes.set_xlim(10.0 ** math.floor(math.log10(min(there))), max(there) * 4)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _place(figure: Figure, left_in: float, height_in: float) -> None:
    """Room for labels and the legend. Matplotlib would measure every text, which takes longer than all else."""
    figure.subplots_adjust(
        left=left_in / WIDTH_IN, right=1 - 0.1 / WIDTH_IN, bottom=0.55 / height_in, top=1 - 0.4 / height_in
    )


def _legend(figure: Figure, axes: Axes) -> None:
    handles, names = axes.get_legend_handles_labels()
    if len(names) > 1:
        figure.legend(handles, names, loc="upper left", ncols=len(names), frameon=False, fontsize=9)


def _short(value: float) -> str:
    """A value in as few characters as tell it."""
    if 0 < value < 0.001:
        return "< 0.001"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


_SHARES = {"count_share": "count", "bytes_share": "volume"}
_PERCENTILES = {"p50": "half", "p90": "90 %", "p99": "99 %"}
_MOST = 12
"""Rows of a plot: the table has all."""


def _shares(*labels: str) -> Any:
    return lambda answer: _bars(answer, labels, _SHARES, "share (%)", 0.01)


def _times(*labels: str) -> Any:
    return lambda answer: _bars(answer, labels, _PERCENTILES, "time (ms)", 1000.0, log=True)


def _moved(*labels: str) -> Any:
    return lambda answer: _bars(answer, labels, {"read": "read", "written": "written"}, "volume (MiB)", float(1 << 20))


def _over_time(answer: Answer) -> Figure:
    """Read and written, a line a class."""
    rows = answer.rows
    figure = Figure(figsize=(WIDTH_IN, 3.6))
    panels = figure.subplots(2, 1, sharex=True)
    _place(figure, 0.75, 3.6)
    begin, step = rows[0]["ms"], rows[0]["step_ms"]
    places = range(begin, rows[-1]["ms"] + step, step)
    for axes, column, name in zip(panels, ("read", "written"), ("read (MB/s)", "written (MB/s)"), strict=True):
        for shown in sorted({row["app_class"] for row in rows}):
            at = {row["ms"]: row[column] / 1e3 / step for row in rows if row["app_class"] == shown}
            axes.plot(
                [(place - begin) / 1e3 for place in places],
                [at.get(place, 0.0) for place in places],
                drawstyle="steps-post",
                color=CLASS_COLOURS.get(shown, COLOURS[-1]),
                label=shown,
            )
        axes.set_ylabel(name)
        axes.grid(axis="y", color=plots.GRID)
        axes.set_ylim(bottom=0)
    panels[-1].set_xlabel("time since the first I/O (s)")
    _legend(figure, panels[0])
    return figure


_PLOTS: dict[str, Any] = {
    "reads_writes": _shares("operation"),
    "block_types": _shares("operation", "block_type"),
    "file_types": _shares("operation", "file_type"),
    "sizes": lambda answer: _bars(answer, ["operation", "kib"], {"count": "bios"}, "bios (by size up to, KiB)"),
    "sequentiality": lambda answer: _bars(
        answer, ["operation"], {"sequential_share": "sequential"}, "sequential share (%)", 0.01
    ),
    "by_hour": lambda answer: _bars(answer, ["hour", "operation"], {"bytes": "volume"}, "volume (MiB)", float(1 << 20)),
    "over_time": _over_time,
    "apps": _moved("uid", "name"),
    "sync_calls": _shares("cause"),
    "calls": _times("kind"),
    "journals": _shares("journal"),
    "device_time": _times("app_class", "operation"),
    "queue_time": _times("app_class", "operation"),
    "waits": lambda answer: _bars(answer, ["app_class", "kind"], {"sum": "sum"}, "waited (s)", 1e6),
    "layers": lambda answer: _bars(
        answer,
        ["app_class"],
        {"page_cache": "page cache", "journal": "journal", "block_layer": "block layer", "device": "device"},
        "time (s)",
        1e6,
    ),
    "payers": lambda answer: _bars(answer, ["uid", "name"], {"blocks": "blocks"}, "blocks"),
    "known": lambda answer: _bars(answer, ["what"], {"known_share": "known"}, "known share of bytes (%)", 0.01),
}
"""Metric -> how its rows are drawn."""


def draw(answer: Answer) -> str | None:
    """A plot as SVG text; None for a metric that is read better as a table."""
    drawn = _PLOTS.get(answer.metric.name)
    if drawn is None or not answer.rows:
        return None
    with mpl.rc_context(plots.STYLE):
        return plots.svg(drawn(answer))
