# SPDX-License-Identifier: GPL-2.0-only
"""The plots of a comparison: a heat map of slowdowns, and bars of slowdown beside the background's throughput."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import matplotlib as mpl
import polars as pl
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from fasttrack_lab.compare.plots import BAR_SHARE, BASELINE_COLOUR, GRID, INK, NOTE_PT, STYLE, colour, svg
from fasttrack_lab.compare.ranking import TO_FASTEST, against_each_other
from fasttrack_lab.compare.records import over_text
from fasttrack_lab.inputs.background_sets import called

Column = tuple[str, str]
"""Of a heat map: a scenario and what is behind."""
Values = Mapping[tuple[str, str, str], Mapping[str, Any]]
"""The summary's row of a scenario, a background and a policy."""

COLOUR_MAP = "YlOrRd"
HOTTEST = 10.0
"""The slowdown from which on all cells have the same colour: the user waits ten times as long."""
FAILED_COLOUR = "#d1d5db"
DARK = 0.2
"""Relative luminance (WCAG 2.2, 0 to 1) below which white stands out more than `INK`: a cell's text is white."""
CELL_INCHES = (0.78, 0.27)
BAR_INCHES = 0.25
PANEL_INCHES = 2.1
LABEL_INCHES = 1.5
HEAD_INCHES = 0.8
"""Room above a heat map's cells for names of one line."""
PT_PER_INCH = 72
HEADING_PT, LINE_PT = 24, 11
"""Height of a scenario's name above a heat map, and of each further line of a name, points."""
LOGARITHMIC_FROM = 8.0
"""Slowdowns with a higher one among them are drawn on a logarithmic axis: short bars stay apart."""
LOGARITHMIC_BEGIN = 0.5
"""Where such an axis begins, over the shortest bar, or over 1 if that is less: all bars are to be seen."""
CLOSE_TICKS_TO = 30.0
"""Slowdowns up to here leave room on such an axis for ticks between the powers of ten."""
ROOM = 1.5
"""Axes are so much longer than the longest bar: its text stands behind it."""
TITLE_CHARACTERS = 20
"""In a line above bars."""
CELL_CHARACTERS = 9
"""In a line above one cell of a heat map."""


def values_of(rows: pl.DataFrame) -> Values:
    """The rows of a phone's summary by their names, each with how near it comes to the fastest."""
    ranked = against_each_other(rows)
    return {(row["scenario"], row["background"], row["policy"]): row for row in ranked.iter_rows(named=True)}


def wrapped(name: str, characters: int) -> str:
    """A scenario or a set of background apps, by its short name if it has one, in lines of so many CHARACTERS.

    A word that is longer stands alone in its line.
    """
    lines = [""]
    for word in re.findall(r"[^-+ ]*[-+ ]|[^-+ ]+", called(name)):
        if lines[-1] and len((lines[-1] + word).rstrip()) > characters:
            lines.append("")
        lines[-1] += word
    return "\n".join(line.rstrip() for line in lines)


def ink_on(face: str) -> str:
    """The colour of a text on FACE."""
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(face))
    return "white" if 0.2126 * red + 0.7152 * green + 0.0722 * blue < DARK else INK


def number_text(value: float) -> str:
    """A slowdown, in as many digits as a cell has room for."""
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def _without_result(row: Mapping[str, Any]) -> str:
    """What stands where no run counts."""
    if row["failed"]:
        return "failed"
    return over_text(row["over_times"]) if row["over"] else "-"


def face_of(slowdown: float, hottest: float = HOTTEST) -> str:
    """The colour of a slowdown; the same for all from the HOTTEST on."""
    return to_hex(mpl.colormaps[COLOUR_MAP](LogNorm(1.0, hottest, clip=True)(slowdown)))


def paint_cell(axes: Axes, place: tuple[int, int], look: tuple[str, str], *, framed: bool) -> None:
    """A cell of a heat map: its colour and its text."""
    face, text = look
    corner = (place[0] - 0.5, place[1] - 0.5)
    axes.add_patch(Rectangle(corner, 1, 1, facecolor=face, edgecolor="white", linewidth=1))
    if framed:
        axes.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor=INK, linewidth=1.6, zorder=3))
    weight = "bold" if framed else "normal"
    axes.text(*place, text, ha="center", va="center", fontsize=NOTE_PT, color=ink_on(face), fontweight=weight)


def label_cells(axes: Axes, columns: Sequence[str], rows: Sequence[str]) -> None:
    """Columns and rows of a heat map: a name above each and beside each."""
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xticks(range(len(columns)), columns, fontsize=9)
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _cell(axes: Axes, place: tuple[int, int], row: Mapping[str, Any] | None, fastest: bool) -> None:
    """One cell: slowdown and its colour; grey where all runs failed, empty where there was none."""
    if row is None:
        return
    slowdown = row["slowdown_mean"]
    face, text = FAILED_COLOUR, _without_result(row)
    if slowdown is not None:
        face = face_of(slowdown)
        text = number_text(slowdown) + ("*" if row["failed"] or row["over"] else "")
    paint_cell(axes, place, (face, text), framed=fastest)


def _fastest(values: Values, column: Column, policies: Sequence[str]) -> str | None:
    """The fastest policy in a column, if there are others with a result."""
    rows = {name: values[*column, name] for name in policies if (*column, name) in values}
    over = {name: row[TO_FASTEST] for name, row in rows.items() if row[TO_FASTEST] is not None}
    return min(over, key=over.__getitem__) if len(over) > 1 else None


def heat_map(values: Values, policies: Sequence[str], columns: Sequence[Column]) -> str:
    """Slowdown of every policy in every column of one phone; colours are logarithmic, the fastest is framed."""
    with mpl.rc_context(STYLE):
        return svg(heat_map_figure(values, policies, columns))


def heat_map_figure(values: Values, policies: Sequence[str], columns: Sequence[Column]) -> Figure:
    """The heat map before it is drawn."""
    labels, headings = _background_labels(columns), _headings(columns)
    lines = _lines(labels) + _lines(text for text, _, _ in headings)
    height = HEAD_INCHES + LINE_PT / PT_PER_INCH * lines + CELL_INCHES[1] * len(policies)
    figure = Figure(figsize=(LABEL_INCHES + CELL_INCHES[0] * len(columns), height), layout="constrained")
    axes = figure.subplots()
    for x, column in enumerate(columns):
        fastest = _fastest(values, column, policies)
        for y, policy in enumerate(policies):
            _cell(axes, (x, y), values.get((*column, policy)), policy == fastest)
    label_cells(axes, labels, policies)
    _scenario_headings(axes, headings, HEADING_PT + LINE_PT * _lines(labels))
    return figure


def _background_labels(columns: Sequence[Column]) -> list[str]:
    """What stands above each column."""
    return [wrapped(background, CELL_CHARACTERS) for _, background in columns]


def _lines(texts: Iterable[str]) -> int:
    """Lines of the longest text after its first."""
    return max(text.count("\n") for text in texts)


Heading = tuple[str, int, int]
"""A scenario's name in lines, its first column, and how many it has."""


def _headings(columns: Sequence[Column]) -> list[Heading]:
    """The scenarios of the columns."""
    found: list[Heading] = []
    start = 0
    for scenario, part in groupby(columns, key=lambda column: column[0]):
        count = len(list(part))
        found.append((wrapped(scenario, count * CELL_CHARACTERS), start, count))
        start += count
    return found


def _scenario_headings(axes: Axes, headings: Sequence[Heading], above_pt: float) -> None:
    """The scenarios so many points ABOVE the cells, with a line between two."""
    for text, start, count in headings:
        axes.annotate(
            text,
            (start + (count - 1) / 2, -0.5),
            xytext=(0, above_pt),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=9,
            fontweight="bold",
        )
        if start:
            axes.axvline(start - 0.5, color=INK, linewidth=1)


def bars(values: Values, policies: Sequence[str], scenario: str, backgrounds: Sequence[str]) -> str:
    """Slowdown, and beside it the background's throughput, which is what a slowdown may cost.

    A pair of panels for every set of backgrounds, a bar a policy, the lowest and highest seed as a whisker.
    """
    with mpl.rc_context(STYLE):
        return svg(bars_figure(values, policies, scenario, backgrounds))


def bars_figure(values: Values, policies: Sequence[str], scenario: str, backgrounds: Sequence[str]) -> Figure:
    """The bars before they are drawn."""
    size = (LABEL_INCHES + 2 * PANEL_INCHES * len(backgrounds), 1.0 + BAR_INCHES * len(policies))
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(1, 2 * len(backgrounds), sharey=True, squeeze=False)[0]
    for index, background in enumerate(backgrounds):
        rows = [values.get((scenario, background, policy)) for policy in policies]
        slowdown, throughput = panels[2 * index], panels[2 * index + 1]
        _slowdowns(slowdown, policies, rows)
        _panel(throughput, policies, rows, "background_mb_s", lambda row: number_text(row["background_mb_s_mean"]))
        slowdown.set_title(wrapped(background, TITLE_CHARACTERS), loc="left", fontsize=10, fontweight="bold")
        throughput.set_xlabel("background (MB/s)")
    panels[0].set_yticks(range(len(policies)), policies)
    panels[0].set_ylim(len(policies) - 0.5, -0.5)
    return figure


Rows = Sequence[Mapping[str, Any] | None]
Text = Callable[[Mapping[str, Any]], str]
"""What stands behind the bar of a summary's row."""


def _slowdowns(axes: Axes, policies: Sequence[str], rows: Rows) -> None:
    """Slowdowns, the response time behind each."""

    def text(row: Mapping[str, Any]) -> str:
        return f"{number_text(row['slowdown_mean'])} ({row['response_s_mean']:.2f} s)"

    longest = max((row["slowdown_max"] or 0.0 for row in rows if row), default=0.0)
    if longest > LOGARITHMIC_FROM:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(10, subs=(1.0, 3.0) if longest < CLOSE_TICKS_TO else (1.0,)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_locator(NullLocator())
    _panel(axes, policies, rows, "slowdown", text)
    axes.axvline(1.0, color=BASELINE_COLOUR, linestyle="--", linewidth=1.4)
    axes.set_xlabel("slowdown")


def _begin(rows: Rows) -> float:
    """Where a logarithmic axis of slowdowns begins: the shortest bar is to be seen."""
    least: list[float] = [row["slowdown_min"] for row in rows if row is not None and row["slowdown_min"] is not None]
    return LOGARITHMIC_BEGIN * min(1.0, *least)


def _panel(axes: Axes, policies: Sequence[str], rows: Rows, measure: str, text: Text) -> None:
    """A bar a policy, with its spread and its text; what failed says so."""
    longest = 0.0
    low = _begin(rows) if axes.get_xscale() == "log" else 0.0
    for place, (policy, row) in enumerate(zip(policies, rows, strict=True)):
        if row is None:
            continue
        mean, lowest, highest = (row[f"{measure}_{part}"] for part in ("mean", "min", "max"))
        if mean is None:
            note, end = _without_result(row), low
        else:
            axes.barh(place, mean - low, BAR_SHARE, left=low, color=colour(policy))
            reach = [[mean - lowest], [highest - mean]]
            axes.errorbar(mean, place, xerr=reach, color=INK, capsize=2, linewidth=1)
            note, end = text(row), highest
        longest = max(longest, end)
        axes.annotate(
            note,
            (end, place),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=NOTE_PT - 1,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
        )
    axes.grid(axis="x", color=GRID)
    if longest > low:
        axes.set_xlim(low, low * (longest / low) ** ROOM if low else longest * ROOM)
