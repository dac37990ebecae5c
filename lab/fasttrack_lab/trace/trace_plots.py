# SPDX-License-Identifier: GPL-2.0-only
"""The plots of a report: lying bars of shares, counts or percentiles, standing bars by hour or day, lines over time.

A plot is as wide as a phone's screen, so that its text is not made smaller there.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from fasttrack_lab.compare import plots
from fasttrack_lab.trace.cells import cell
from fasttrack_lab.trace.trace_report import Answer, Row

COLOURS = (
    "#1d4ed8",
    "#ca8a04",
    "#047857",
    "#9f1239",
    "#7e22ce",
    "#0891b2",
    "#78350f",
    "#6b7280",
    "#f472b6",
    "#84cc16",
)
CLASS_COLOURS = {"foreground": "#1d4ed8", "neutral": "#6b7280", "background": "#c2410c", "unknown": "#a855f7"}
WIDTH_IN, ROW_IN, BESIDE_IN, STANDING_IN = 4.0, 0.28, 0.8, 2.6
VALUES_IN = 0.85
"""Left of upright axes: their name and their numbers."""
CHARACTER_IN = 0.085
"""Of a label, on the average."""
LABEL_CHARACTERS = 20
"""Of a line of a bar's name: of a longer word, a path, the end is shown."""
LEGEND_IN, LEGEND_COLUMNS = 0.22, 3
MIB = float(1 << 20)

Values = Mapping[str, Sequence[float]]
"""Name of a series -> its value in each row."""
Drawn = Callable[[Answer], Figure]


def draw(answer: Answer) -> str | None:
    """A plot as SVG text; None for a metric that is read better as a table."""
    drawn = _PLOTS.get(answer.metric.name)
    if drawn is None or not answer.rows:
        return None
    with mpl.rc_context(plots.STYLE):
        return plots.svg(drawn(answer))


def left_out(answer: Answer) -> int:
    """Rows of a list that are in the table alone."""
    return max(0, len(answer.rows) - _MOST) if answer.metric.name in _LISTS else 0


_MOST = 12
"""Rows of the plot of a list, which begins with the largest."""
_LISTS = ("apps", "top_files", "databases", "app_latency", "payers")


def _lying(names: Sequence[str], values: Values, axis: str, log: bool = False, stacked: bool = False) -> Figure:
    """A group of bars for each name, one for each series; STACKED: one with a part for each series."""
    bars = 1 if stacked else len(values)
    head = _head_in(len(values))
    height = BESIDE_IN + head + ROW_IN * len(names) * (0.5 + 0.5 * bars)
    figure = Figure(figsize=(WIDTH_IN, height))
    axes = figure.subplots()
    _place(figure, max(len(line) for name in names for line in name.split("\n")) * CHARACTER_IN + 0.15, height, head)
    if log:
        _decades(axes, [value for one in values.values() for value in one])
    else:
        longest = max(map(sum, zip(*values.values(), strict=True)) if stacked else map(max, values.values()))
        # Numbers of six digits have room on a phone.
        axes.set_xlim(0, longest * 1.25 or 1)
        axes.xaxis.set_major_locator(MaxNLocator(3, integer="number" in axis))
        if axis.endswith("(%)") and longest > 50:
            axes.set_xlim(0, 125)
            axes.set_xticks([0, 50, 100])
    ends = [0.0] * len(names)
    for index, (name, series) in enumerate(values.items()):
        places = [plots.place_of(place, 0 if stacked else index, bars) for place in range(len(names))]
        begins = list(ends) if stacked else [0.0] * len(names)
        axes.barh(places, series, plots.BAR_SHARE / bars * 0.9, begins, color=_colour(name, index), label=name)
        ends = [begin + value for begin, value in zip(begins, series, strict=True)]
        if not stacked or index == len(values) - 1:
            for place, end in zip(places, ends, strict=True):
                _number(axes, (max(end, axes.get_xlim()[0]) if log else end, place), end)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(axis="x", color=plots.GRID)
    axes.set_xlabel(axis, loc="right")
    _legend(figure, axes)
    return figure


def _colour(series: str, index: int) -> str:
    return CLASS_COLOURS.get(series) or COLOURS[index % len(COLOURS)]


def _number(axes: Axes, end: tuple[float, float], value: float) -> None:
    axes.annotate(_short(value), end, textcoords="offset points", xytext=(3, 0), va="center", fontsize=plots.NOTE_PT)


def _decades(axes: Axes, values: Iterable[float]) -> None:
    """A logarithmic axis from the decade below VALUES on, with room for the shortest bar and the longest's number."""
    there = [value for value in values if value > 0] or [1.0]
    axes.set_xscale("log")
    axes.set_xlim(10.0 ** math.floor(math.log10(min(there) / 1.5)), max(there) * 8)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _head_in(series: int) -> float:
    """Room for the legend."""
    return LEGEND_IN * math.ceil(series / LEGEND_COLUMNS) if series > 1 else 0.0


def _place(figure: Figure, left_in: float, height_in: float, head_in: float) -> None:
    """Room for labels and the legend. Matplotlib would measure every text, which takes longer than all else."""
    figure.subplots_adjust(
        left=min(left_in, WIDTH_IN / 2) / WIDTH_IN,
        right=1 - 0.12 / WIDTH_IN,
        bottom=0.55 / height_in,
        top=1 - (head_in + 0.15) / height_in,
    )


def _legend(figure: Figure, axes: Axes) -> None:
    handles, names = axes.get_legend_handles_labels()
    if len(names) > 1:
        figure.legend(
            handles,
            names,
            loc="upper left",
            ncols=LEGEND_COLUMNS,
            frameon=False,
            fontsize=9,
            handlelength=1.2,
            columnspacing=1.0,
            labelspacing=0.3,
            borderaxespad=0.1,
        )


def _short(value: float) -> str:
    """A value in as few characters as tell it."""
    if 0 < value < 0.001:
        return "< 0.001"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _name(answer: Answer, labels: Sequence[str], row: Row) -> str:
    """A row's name: the texts of its labels, each once, on as many lines as they need."""
    text = " ".join(dict.fromkeys(cell(answer.metric, label, row[label]) for label in labels))
    words = (word if len(word) <= LABEL_CHARACTERS else "…" + word[1 - LABEL_CHARACTERS :] for word in text.split())
    return textwrap.fill(" ".join(words), LABEL_CHARACTERS)


def _columns(
    labels: Sequence[str],
    series: Mapping[str, str],
    axis: str,
    scale: float = 1.0,
    log: bool = False,
    stacked: bool = False,
) -> Drawn:
    """Bars of columns: SERIES is column -> name, values are divided by SCALE."""

    def drawn(answer: Answer) -> Figure:
        rows = answer.rows[:_MOST] if answer.metric.name in _LISTS else answer.rows
        names = [_name(answer, labels, row) for row in rows]
        values = {name: [(row[column] or 0) / scale for row in rows] for column, name in series.items()}
        return _lying(names, values, axis, log, stacked)

    return drawn


def _parts(answer: Answer, label: str, part: str, column: str, scale: float) -> tuple[list[Any], Values]:
    """The values of LABEL, what nobody knows last, and of each PART what COLUMN, over SCALE, is there; 0 if nothing."""
    keys = sorted({row[label] for row in answer.rows}, key=lambda key: (key == -1, key))
    found = {(row[label], row[part]): (row[column] or 0) / scale for row in answer.rows}
    parts = sorted({row[part] for row in answer.rows})
    return keys, {part: [found.get((key, part), 0.0) for key in keys] for part in parts}


def _by_part(
    label: str, part: str, column: str, axis: str, scale: float = 1.0, stacked: bool = False, unit: str = ""
) -> Drawn:
    """Bars of a column, a series for each value of PART; the names of LABEL are followed by their UNIT."""

    def drawn(answer: Answer) -> Figure:
        keys, values = _parts(answer, label, part, column, scale)
        texts = [cell(answer.metric, label, key) for key in keys]
        return _lying([f"{text} {unit}" if text.isdigit() else text for text in texts], values, axis, False, stacked)

    return drawn


def _shares(*labels: str) -> Drawn:
    return _columns(labels, {"count_share": "count", "bytes_share": "volume"}, "share (%)", 0.01)


def _times(*labels: str) -> Drawn:
    series = {"p50": "half take up to", "p90": "90 %", "p99": "99 %"}
    return _columns(labels, series, "time (ms)", 1000.0, log=True)


def _calendar(key: str, axis: str, whole: Sequence[int] = ()) -> Drawn:
    """Standing bars, read and written on top of each other, at the numbers of KEY, hours or days, or all the WHOLE.

    What is of nobody knows when is the last bar.
    """

    def drawn(answer: Answer) -> Figure:
        keys, values = _parts(answer, key, "operation", "bytes", MIB)
        figure = Figure(figsize=(WIDTH_IN, STANDING_IN))
        axes = figure.subplots()
        _place(figure, VALUES_IN, STANDING_IN, _head_in(2))
        last = max(whole or keys)
        places = [place if place >= 0 else last + 2 for place in keys]
        ends = [0.0] * len(keys)
        for index, (name, series) in enumerate(values.items()):
            axes.bar(places, series, plots.BAR_SHARE, ends, color=COLOURS[index], label=name)
            ends = [end + value for end, value in zip(ends, series, strict=True)]
        known = sorted({*whole, *(place for place in keys if place >= 0)})
        ticks = {place: cell(answer.metric, key, place) for place in _ticks(known)}
        if -1 in keys:
            ticks[last + 2] = "unknown"
        axes.set_xticks(list(ticks), list(ticks.values()))
        room = max(0.6, 2 - len(known))
        axes.set_xlim(min([*known, *places]) - room, max([*known, *places]) + room)
        axes.yaxis.set_major_locator(MaxNLocator(4))
        axes.grid(axis="y", color=plots.GRID)
        axes.set_xlabel(axis, loc="right")
        axes.set_ylabel("volume (MiB)")
        _legend(figure, axes)
        return figure

    return drawn


def _ticks(places: Sequence[int]) -> Sequence[int]:
    """Of hours every sixth; of days the first and the last, and of many one between."""
    if not places:
        return []
    first, last = places[0], places[-1]
    if (first, last) == (_HOURS[0], _HOURS[-1]):
        return [*range(0, 24, 6), last]
    return sorted({first, last} | ({(first + last) // 2} if last - first > 2 else set()))


_HOURS = range(24)


def _over_time(answer: Answer) -> Figure:
    """Read and written, a line a class."""
    rows = answer.rows
    height = 3.6
    classes = sorted({row["app_class"] for row in rows})
    figure = Figure(figsize=(WIDTH_IN, height))
    panels = figure.subplots(2, 1, sharex=True)
    _place(figure, VALUES_IN, height, _head_in(len(classes)))
    begin, step = rows[0]["ms"], rows[0]["step_ms"]
    places = range(begin, rows[-1]["ms"] + step, step)
    for axes, column, name in zip(panels, ("read", "written"), ("read (MB/s)", "written (MB/s)"), strict=True):
        for shown in classes:
            at = {row["ms"]: row[column] / 1e3 / step for row in rows if row["app_class"] == shown}
            axes.plot(
                [(place - begin) / 1e3 for place in places],
                [at.get(place, 0.0) for place in places],
                drawstyle="steps-post",
                linewidth=1,
                color=CLASS_COLOURS.get(shown, COLOURS[-1]),
                label=shown,
            )
        axes.set_ylabel(name)
        axes.yaxis.set_major_locator(MaxNLocator(4))
        axes.grid(axis="y", color=plots.GRID)
        axes.set_ylim(bottom=0)
    panels[-1].set_xlabel("time since the first I/O (s)")
    _legend(figure, panels[0])
    return figure


_PLOTS: dict[str, Drawn] = {
    "reads_writes": _shares("operation"),
    "block_types": _shares("operation", "block_type"),
    "file_types": _by_part("file_type", "operation", "bytes_share", "share of the operation's bytes (%)", 0.01),
    "sizes": _by_part("kib", "operation", "count", "bios of up to that size (number)", unit="KiB"),
    "sequentiality": _columns(["operation"], {"sequential_share": "sequential"}, "sequential share (%)", 0.01),
    "by_hour": _calendar("hour", "hour of the day, in the device's time zone (h)", _HOURS),
    "by_day": _calendar("day", "date, in the device's time zone (days)"),
    "over_time": _over_time,
    "life_spans": _by_part("life", "file_type", "count", "files that ended (number)", stacked=True),
    "apps": _columns(
        ["uid", "name"],
        {"read": "read", "written": "written", "sync_written": "of it synchronous"},
        "volume (MiB)",
        MIB,
    ),
    "top_files": _columns(["path"], {"sync_writes": "synchronous"}, "synchronous writes (number of segments)"),
    "databases": _columns(
        ["database"],
        {
            "db_written": "database",
            "journal_written": "rollback journal",
            "wal_written": "WAL",
            "temp_written": "temporary",
        },
        "written (MiB)",
        MIB,
        stacked=True,
    ),
    "sync_calls": _shares("cause"),
    "calls": _times("kind"),
    "journals": _shares("journal"),
    "device_time": _times("app_class", "operation"),
    "queue_time": _times("app_class", "operation"),
    "app_latency": _times("uid", "operation"),
    "waits": _by_part("kind", "app_class", "sum", "waited (s)", 1e6, stacked=True),
    "layers": _columns(
        ["app_class"],
        {"page_cache": "page cache", "journal": "journal", "block_layer": "block layer", "device": "device"},
        "time (s)",
        1e6,
    ),
    "payers": _columns(["uid", "name"], {"blocks": "blocks"}, "blocks (number)"),
    "known": _columns(["what"], {"known_share": "known"}, "known share of bytes (%)", 0.01),
}
"""Metric -> how its rows are drawn."""
