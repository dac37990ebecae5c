# SPDX-License-Identifier: GPL-2.0-only
"""Figures 1, 2, 3, 6 and 11 of the FastTrack paper, from traces: foreground and background by user id, not by class."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from fasttrack_lab.compare import plots
from fasttrack_lab.trace import interaction, io_profile
from fasttrack_lab.trace.evaluation import NEAR, TOLERANCE, Evaluation, Found, Outcome, share, times
from fasttrack_lab.trace.interaction import Interaction
from fasttrack_lab.trace.io_profile import BACKGROUND, FOREGROUND, LAYERS, Profile
from fasttrack_lab.trace.recordings import Recording
from fasttrack_lab.trace.sources import open_all
from fasttrack_lab.trace.trace_plots import CLASS_COLOURS, WIDTH_IN

PAPER = "Hahn et al., FastTrack (USENIX ATC 2018)"
LAUNCH, SWITCH, LOAD = "gallery-launch", "camera-switch", "game-load"
UPDATE, BACKUP, UPLOAD = ("update",), ("backup",), ("photo-upload",)
MINUS = "fasttrack-minus"

SLOWER = (
    (Recording(LAUNCH, UPDATE, "n6"), 2.4),
    (Recording(LAUNCH, BACKUP, "n6"), 1.6),
    (Recording(LAUNCH, UPDATE, "s6"), 2.6),
    (Recording(LAUNCH, BACKUP, "s6"), 1.7),
    (Recording(SWITCH, UPDATE, "s6"), 19.5),
    (Recording(SWITCH, UPDATE, "n6"), 11.0),
    (Recording(LOAD, UPDATE, "n5"), 2.7),
    (Recording(LOAD, UPDATE, "p1"), 2.0),
)
COEFFICIENTS = ((LAUNCH, 0.42), (SWITCH, 0.77), (LOAD, 0.53))
_CACHE_TIMES, _CACHE_SHARE = 12.0, (0.32, 0.51)
_ALONE_S, _BEHIND_S = 0.45, 3.55
_GAINS = ((LAUNCH, UPDATE, -0.87), (SWITCH, UPLOAD, -0.61))
_STEPS = 80
"""Of a picture of throughput, of the longest interaction in it."""


def _alone(one: Recording) -> Recording:
    return Recording(one.front, (), one.phone, one.policy)


def _told(out: Path, one: Recording) -> Interaction:
    found = interaction.read(one.folder(out))
    assert found is not None
    return found


@cache
def _profile(out: Path, one: Recording) -> Profile:
    """Of a recording, which several figures have."""
    return io_profile.of(open_all([one.folder(out)]), _told(out, one))


def _called(one: Recording) -> str:
    return " + ".join((one.front, *one.behind)) + f", {one.phone}"


def slower(out: Path, there: Sequence[Recording]) -> Outcome:
    """Figure 1."""
    del there
    found = []
    for one, paper in SLOWER:
        ratio = _told(out, one).seconds / _told(out, _alone(one)).seconds
        found.append(times(_called(one), "slower than alone", paper, ratio))
    return Outcome(found)


def coefficients(out: Path, there: Sequence[Recording]) -> Outcome:
    """Figure 2."""
    del there
    found = []
    for front, paper in COEFFICIENTS:
        one = Recording(front, UPDATE)
        found.append(share(_called(one), "foreground, of device time", paper, _profile(out, one).coefficient))
    return Outcome(found)


def breakdown(out: Path, there: Sequence[Recording]) -> Outcome:
    """Figure 3."""
    del there
    found = []
    for front, _ in COEFFICIENTS:
        one = Recording(front, UPDATE)
        quiet, busy = _profile(out, _alone(one)), _profile(out, one)
        for layer in LAYERS[1:]:
            before, after = quiet.busy(FOREGROUND, layer), busy.busy(FOREGROUND, layer)
            more = f"{after / before:.1f}x" if before else "-"
            said = f"{before / 1e6:.0f} ms alone, {after / 1e6:.0f} ms: {more}"
            paper = {"page cache": "12x on average", "block layer": "negligible"}.get(layer, "")
            if layer == "device" and front == SWITCH:
                paper = "5x"
            found.append(Found(_called(one), layer, paper, said))
        low, high = _CACHE_SHARE
        above = sum(busy.busy(FOREGROUND, layer) for layer in ("page cache", "file system"))
        part = above / max(1, busy.end - busy.begin)
        found.append(
            Found(
                _called(one),
                "page cache and file system, of the whole",
                f"{low * 100:.0f} to {high * 100:.0f} %",
                f"{part * 100:.0f} %",
                low - TOLERANCE <= part <= high + TOLERANCE,
            )
        )
    return Outcome(found)


def _rate(profile: Profile, side: str) -> float:
    """MB/s of a side over the interaction."""
    return profile.bytes_of(side, profile.begin, profile.end + 1) / 1e6 / max((profile.end - profile.begin) / 1e9, 1e-9)


def throughput(title: str, named: dict[str, Profile]) -> str:
    """Throughput of both sides over time, a panel a recording, all to one scale."""
    with mpl.rc_context(plots.STYLE):
        figure = Figure(figsize=(WIDTH_IN, 1.1 + 1.8 * len(named)), layout="constrained")
        panels = figure.subplots(len(named), 1, squeeze=False, sharex=True, sharey=True)[:, 0]
        step = max(one.end - one.begin for one in named.values()) // _STEPS + 1
        for axes, (name, one) in zip(panels, named.items(), strict=True):
            begins = range(one.begin, one.end + 1, step)
            for side in (FOREGROUND, BACKGROUND):
                rates = [one.bytes_of(side, begin, begin + step) / 1e6 / (step / 1e9) for begin in begins]
                at = [(begin - one.begin) / 1e9 for begin in begins]
                axes.plot(at, rates, drawstyle="steps-post", linewidth=1, color=CLASS_COLOURS[side], label=side)
            axes.set_ylabel("done (MB/s)")
            axes.grid(axis="y", color=plots.GRID)
            axes.set_title(name, loc="left", fontsize=10)
        handles, sides = panels[0].get_legend_handles_labels()
        figure.suptitle(title, x=0.02, ha="left", fontsize=10, fontweight="bold")
        figure.legend(handles, sides, loc="outside lower left", ncols=len(sides), frameon=False, fontsize=9)
        panels[0].set_ylim(bottom=0)
        panels[-1].set_xlabel("time since the interaction's begin (s)", loc="right")
        return plots.svg(figure)


def against_reads(out: Path, there: Sequence[Recording]) -> Outcome:
    """Figure 6."""
    del there
    one = Recording(SWITCH, BACKUP)
    runs = {"alone": _alone(one), "with backup": one}
    profiles = {name: _profile(out, run) for name, run in runs.items()}
    found = []
    for (name, run), paper in zip(runs.items(), (_ALONE_S, _BEHIND_S), strict=True):
        here = _told(out, run).seconds
        found.append(
            Found(_called(run), f"response, {name}", f"{paper} s", f"{here:.2f} s", abs(here / paper - 1) <= NEAR)
        )
        for side in (FOREGROUND, BACKGROUND):
            found.append(Found(_called(run), f"{side}, {name}", "", f"{_rate(profiles[name], side):.1f} MB/s"))
    return Outcome(found, {"fig6.svg": throughput(_called(one), profiles)})


def gains(out: Path, there: Sequence[Recording]) -> Outcome:
    """Figure 11."""
    del there
    found: list[Found] = []
    pictures = {}
    for front, behind, paper in _GAINS:
        stock, ours = Recording(front, behind), Recording(front, behind, policy=MINUS)
        profiles = {name: _profile(out, run) for name, run in (("stock", stock), (MINUS, ours))}
        change = _told(out, ours).seconds / _told(out, stock).seconds - 1
        agrees = abs(change - paper) <= TOLERANCE
        found.append(
            Found(_called(stock), f"response, {MINUS}", f"{paper * 100:+.0f} %", f"{change * 100:+.0f} %", agrees)
        )
        for name, profile in profiles.items():
            for side in (FOREGROUND, BACKGROUND):
                found.append(Found(_called(stock), f"{side}, {name}", "", f"{_rate(profile, side):.1f} MB/s"))
        pictures[f"fig11-{front}.svg"] = throughput(_called(stock), profiles)
    return Outcome(found, pictures)


def _with_alone(*wanted: Recording) -> tuple[Recording, ...]:
    return tuple(dict.fromkeys(each for one in wanted for each in (_alone(one), one)))


_WITH_UPDATE = tuple(Recording(front, UPDATE) for front, _ in COEFFICIENTS)
_SCENARIOS = "The scenarios' I/O is ours, made after the paper's description; its own apps are not published"

EVALUATIONS = (
    Evaluation(
        "fig1",
        "Figure 1: how much slower the foreground is",
        PAPER,
        _with_alone(*(one for one, _ in SLOWER)),
        slower,
        _SCENARIOS + ". Linux 6.12 writes back, throttles and reads ahead otherwise than 3.10, and the processor is "
        "infinitely fast: of what the paper's apps compute only think times are left, so ratios are larger where it "
        "computes much. One seed.",
    ),
    Evaluation(
        "fig2",
        "Figure 2: the foreground coefficient",
        PAPER,
        _WITH_UPDATE,
        coefficients,
        "The paper does not say of which times it is. Here: device time of requests whose blocks are mostly the "
        "foreground's, of all requests' in the interaction, with update behind. With a queue of 32 a background write "
        "waits in the device beside others, and each counts in full: that makes the foreground's share smaller.",
    ),
    Evaluation(
        "fig3",
        "Figure 3: an interaction by layer",
        PAPER,
        _with_alone(*_WITH_UPDATE),
        breakdown,
        "The global page lock of 3.10 is gone; waits for the journal took its place, which here are the file system's. "
        "Under stock, waits for tags have no record, so the block layer has queue times alone. Layers overlap.",
    ),
    Evaluation(
        "fig6",
        "Figure 6: foreground writes against background reads",
        PAPER,
        _with_alone(Recording(SWITCH, BACKUP)),
        against_reads,
        _SCENARIOS
        + ". The reader is bound by its network, and mq-deadline takes reads first. Throughput is of requests when "
        "they end: see fig6.svg.",
    ),
    Evaluation(
        "fig11",
        "Figure 11: foreground and background under FastTrack without its device scheduler",
        PAPER,
        tuple(Recording(front, behind, policy=name) for front, behind, _ in _GAINS for name in ("stock", MINUS)),
        gains,
        "The numbers are of slides 30 and 31, which do not name the phone; s6 is our choice. "
        + _SCENARIOS
        + ". Our photo-upload waits for its network and slows stock by little, so there is little to gain.",
    ),
)
