# SPDX-License-Identifier: GPL-2.0-only
"""An interaction's I/O as nested spans: a row a layer, the calls above what they waited for, the device lowest."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fasttrack_lab.compare import plots
from fasttrack_lab.trace import interaction
from fasttrack_lab.trace.interaction import Interaction
from fasttrack_lab.trace.io_profile import BACKGROUND, CALLS, FOREGROUND, LAYERS, Piece, Profile, merged, of
from fasttrack_lab.trace.sources import open_all

FILE = "profile.svg"
COLOURS = {
    CALLS: "#1d4ed8",
    "page cache": "#047857",
    "file system": "#ca8a04",
    "block layer": "#9f1239",
    "device": "#6b7280",
}
_WIDTH_IN, _SIDE_IN, _HEAD_IN = 11.0, 2.3, 1.0
_DOTS = 5000
"""No span is shorter than one of so many parts of the time, so that it is seen."""
_MOST = 2000
"""Spans of a row; of more those that touch in the picture are one."""
_NAMED = 0.05
"""A call is named from this share of the time on."""
_HEIGHT = 0.8
"""Of a span, of its row."""


def make(folder: Path, told: Interaction) -> Path:
    """Draws the interaction of a recording into its directory."""
    file = folder / FILE
    file.write_text(drawn(of(open_all([folder]), told)), encoding="utf-8")
    return file


def of_folder(folder: Path) -> str | None:
    """The picture of a directory's interaction; None where none is told."""
    told = interaction.read(folder)
    return None if told is None else drawn(of(open_all([folder]), told))


def drawn(profile: Profile) -> str:
    """The picture as SVG text."""
    with mpl.rc_context(plots.STYLE):
        figure = Figure(figsize=(_WIDTH_IN, _HEAD_IN + 2 * _SIDE_IN))
        panels = figure.subplots(2, 1, sharex=True)
        figure.subplots_adjust(left=0.1, right=0.83, top=0.88, bottom=0.1, hspace=0.25)
        for axes, side in zip(panels, (FOREGROUND, BACKGROUND), strict=True):
            _side(axes, profile, side)
        panels[-1].set_xlabel(f"time since the interaction's begin ({_unit(profile)[0]})")
        figure.suptitle(profile.title, x=0.1, ha="left", fontsize=11, fontweight="bold")
        return plots.svg(figure)


def _unit(profile: Profile) -> tuple[str, float]:
    """Name and ns of the axis' unit."""
    return ("s", 1e9) if profile.end - profile.begin >= 5e9 else ("ms", 1e6)


def _side(axes: Axes, profile: Profile, side: str) -> None:
    whole, unit = max(profile.end - profile.begin, 1), _unit(profile)[1]
    for row, layer in enumerate(LAYERS):
        pieces = profile.pieces.get((side, layer), [])
        shown = merged(pieces, 0)
        if len(shown) > _MOST:
            shown = merged(pieces, whole // _MOST)
        spans = [((begin - profile.begin) / unit, max(end - begin, whole // _DOTS) / unit) for begin, end in shown]
        axes.broken_barh(spans, (row - _HEIGHT / 2, _HEIGHT), facecolor=COLOURS[layer], linewidth=0)
        busy = profile.busy(side, layer)
        axes.annotate(
            f"{busy / 1e6:.1f} ms, {busy / whole * 100:.0f} %; {len(pieces)}",
            (1.01, row),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=plots.NOTE_PT,
        )
    axes.annotate("time, share; number", (1.01, 1.03), xycoords="axes fraction", va="bottom", fontsize=plots.NOTE_PT)
    for piece in _worth_a_name(profile, side, whole):
        axes.annotate(
            piece.what,
            (((piece.begin + piece.end) / 2 - profile.begin) / unit, 0),
            ha="center",
            va="center",
            fontsize=plots.NOTE_PT,
            color="white",
        )
    axes.set_yticks(range(len(LAYERS)), LAYERS)
    axes.set_ylim(len(LAYERS) - 0.5, -0.5)
    axes.set_xlim(0, whole / unit)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color=plots.GRID)
    axes.set_title(side, loc="left", fontsize=10)


def _worth_a_name(profile: Profile, side: str, whole: int) -> list[Piece]:
    """Long calls with nothing else at their time, so that the name is of what it stands on."""
    calls = profile.pieces.get((side, CALLS), [])
    long = [piece for piece in calls if piece.end - piece.begin >= whole * _NAMED]
    return [
        one
        for one in long
        if not any(other is not one and other.begin < one.end and one.begin < other.end for other in long)
    ]
