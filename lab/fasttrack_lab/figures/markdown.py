# SPDX-License-Identifier: GPL-2.0-only
"""docs/RESULTS.md: goals, tables of slowdowns and pauses, and what became of the paper's statements, from records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

from fasttrack_lab.compare import ranking, report
from fasttrack_lab.compare.comparison import standard
from fasttrack_lab.compare.records import BASELINE_POLICY as STOCK
from fasttrack_lab.compare.records import FOREGROUND_ONLY, Record, ended_when_long, failures, noted, over_text, took
from fasttrack_lab.figures import goals, peers, smartio_poster
from fasttrack_lab.figures.claims import RULE
from fasttrack_lab.figures.figures_page import Found, findings, reached
from fasttrack_lab.figures.fold import folded
from fasttrack_lab.figures.goals import PEERS, Goal
from fasttrack_lab.figures.grid import Grid, cells
from fasttrack_lab.figures.measured import RESPONSE_S, TO_ALONE, Measured, NotMeasured
from fasttrack_lab.figures.paper import BACKGROUNDS, FIGURES, PHONES, SCENARIOS
from fasttrack_lab.figures.statements import FASTTRACK, MINUS
from fasttrack_lab.inputs.background_sets import MANY_ORDER, SIX, TWELVE, called
from fasttrack_lab.inputs.cell import Cell
from fasttrack_lab.inputs.lru import KERNEL_LRU


@dataclass(frozen=True)
class Section:
    """A part of the page, and what was run for it."""

    title: str
    text: str
    grid: Grid


ONE = Section(
    "One background app",
    "`stock` is mq-deadline; the device serves reads first under every policy but `fasttrack`.",
    Grid(SCENARIOS, PHONES, (*PEERS, FASTTRACK), BACKGROUNDS),
)
MANY = Section(
    "Six and twelve background apps",
    f"Six are {', '.join(MANY_ORDER[:-1])} and {MANY_ORDER[-1]}; twelve are two of each.",
    Grid(SCENARIOS, ("n6", "s6"), (STOCK, "bfq", FASTTRACK), (SIX, TWELVE)),
)
# Most of today's Android phones have both f2fs and MGLRU.
OTHER_PLATFORMS = (("f2fs", "f2fs", KERNEL_LRU), ("MGLRU", "", "mglru"), ("f2fs and MGLRU", "f2fs", "mglru"))
"""What they are called, file system and LRU."""
ELSEWHERE = tuple(
    Section(
        f"One background app, {called}",
        f"The phones of the paper with {called}.",
        Grid(SCENARIOS, PHONES, (*PEERS, MINUS, FASTTRACK), BACKGROUNDS, fs=fs, lru=lru),
    )
    for called, fs, lru in OTHER_PLATFORMS
)
MANY_ELSEWHERE = tuple(
    Section(
        f"Six and twelve background apps, {called}",
        "FastTrack alone.",
        Grid(SCENARIOS, ("n6", "s6"), (FASTTRACK,), (SIX, TWELVE), fs=fs, lru=lru),
    )
    for called, fs, lru in OTHER_PLATFORMS
)
NEWER = Section(
    "Newer phones",
    "UFS 3.1 and 4.0, with f2fs, as these phones have it.",
    Grid(SCENARIOS, ("ufs31", "ufs40"), (STOCK, FASTTRACK), BACKGROUNDS),
)
SECTIONS = (ONE, MANY, *(part for pair in zip(ELSEWHERE, MANY_ELSEWHERE, strict=True) for part in pair), NEWER)
TWENTY_APPS = tuple(replace(grid, most_seeds=3) for figure in smartio_poster.FIGURES for grid in figure.grids)
"""Runs of the SmartIO poster's figures."""
WITHOUT_DEVICE = Grid(SCENARIOS, PHONES, (STOCK, MINUS), BACKGROUNDS)
"""Of Figure 10's runs."""
ATOMIC = (
    "Runs that are in the numbers above, in whose kernel log an allocation of one page that may not sleep found none. "
    "Its callers expect that, and Linux does it without FastTrack: with one processor, while all free pages are in its "
    "lists."
)

ENDED = (
    "A peer's run that takes so many times its own time alone is ended, and is shown as that. It is in no mean: a mean "
    "of the other seeds says how many are missing in it."
)
Check = Callable[[Grid, Measured], list[Goal]]


def _everywhere(what: str, where: str, one: Grid, minus: Grid, many: Grid) -> list[tuple[Grid, Check]]:
    """The goals of one file system and LRU. WHAT and WHERE are for their names."""
    return [
        (one, partial(goals.one_app, what)),
        (one, partial(goals.against_peers, where)),
        (one, partial(goals.holds, what)),
        (minus, partial(goals.without_device, where)),
        (many, partial(goals.many_apps, where)),
        (many, partial(goals.holds, f"six and twelve apps{where}")),
    ]


GOALS: tuple[tuple[Grid, Check], ...] = (
    *_everywhere("one app", "", ONE.grid, WITHOUT_DEVICE, MANY.grid),
    (MANY.grid, partial(goals.against_peers, ", six and twelve apps")),
    *(
        check
        for (called, _, _), one, many in zip(OTHER_PLATFORMS, ELSEWHERE, MANY_ELSEWHERE, strict=True)
        for check in _everywhere(called, f", {called}", one.grid, one.grid, many.grid)
    ),
    (NEWER.grid, partial(goals.one_app, "newer phones")),
    (NEWER.grid, partial(goals.holds, "newer phones")),
)
"""What to check on which runs."""
GOAL_HEADINGS = ("what, under fasttrack", "goal", "here", "where it is missed", "")


def _table(headings: Sequence[str], rows: Iterator[Sequence[str]]) -> list[str]:
    """A Markdown table."""
    lines = [headings, ["---"] * len(headings), *rows]
    return [f"| {' | '.join(line)} |" for line in lines] + [""]


Column = tuple[str, Callable[[dict[str, Any]], str]]
"""A policy, and what is shown of its summary."""


def _text(measured: Measured, name: tuple[str, str, str, str], shown: Callable[[dict[str, Any]], str]) -> str:
    """One number; says where runs failed."""
    try:
        row = measured.found(*name)
    except NotMeasured:
        ended = measured.ended_when_long(*name)
        return over_text(ended) if ended else "failed"
    return shown(row) + report.lost(row)


def _rows(section: Section, measured: Measured, columns: Sequence[Column]) -> Iterator[list[str]]:
    """One row a scenario, background and phone."""
    grid = section.grid
    for scenario, background, phone in product(grid.scenarios, grid.backgrounds, grid.phones):
        texts = [_text(measured, (scenario, phone, policy, background), shown) for policy, shown in columns]
        yield [scenario, called(background), phone, *texts]


Platforms = dict[tuple[str, str], Measured]
"""The numbers of each file system and LRU: names of cells are unique in one of them only."""


def _platforms(records: Sequence[Record]) -> Platforms:
    """The records of each, measured."""
    parts: dict[tuple[str, str], list[Record]] = {section.grid.platform: [] for section in SECTIONS}
    for record in records:
        parts[record.cell.fs, record.cell.lru].append(record)
    return {platform: Measured(part) for platform, part in parts.items()}


def _section(section: Section, measured: Measured, seeds: int) -> list[str]:
    """Slowdowns, longest calls, and the commands that make them."""
    names, policies = ["foreground", "background", "phone"], list(section.grid.policies)
    alone: Column = (FOREGROUND_ONLY, lambda row: report.spread(row, RESPONSE_S, 2))
    slowdown: list[Column] = [(policy, lambda row: report.spread(row, TO_ALONE, 2)) for policy in policies]
    call: list[Column] = [(policy, lambda row: f"{row['longest_pause_s']:.2f}") for policy in policies]
    slowdowns = _rows(section, measured, [alone, *slowdown])
    calls = _rows(section, measured, call)
    return [
        f"## {section.title}",
        "",
        section.text,
        "",
        "Slowdown:",
        "",
        *_table([*names, "alone (s)", *policies], slowdowns),
        "Longest call of the background, seconds:",
        "",
        *_table([*names, *policies], calls),
        "```",
        *(request.command for request in section.grid.requests(seeds)),
        "```",
        "",
    ]


def _goal_rows(found: Iterable[Goal]) -> Iterator[list[str]]:
    """A row a goal, in the order of the headings."""
    return ([one.what, one.goal, one.here, one.missed, one.verdict] for one in found)


def _goals(records: Sequence[Record], platforms: Platforms, every_policy: Measured) -> list[str]:
    """What is to be reached, and what is."""
    rows: list[list[str]] = []
    checks = [partial(check, grid, platforms[grid.platform]) for grid, check in GOALS]
    checks += [partial(peers.goal, every_policy), partial(peers.clean, every_policy)]
    for check in [*checks, partial(goals.no_failed_allocation, records)]:
        try:
            rows += _goal_rows(check())
        except NotMeasured as lacking:
            rows.append([f"no result: {lacking}", "", "", "", "not measured"])
    return [
        "## Goals",
        "",
        "Means over the seeds. A hold is a pause of a background task in the page cache, or a wait of its read or of a "
        "write that it waits for in the dispatcher; the longest is over all seeds, of those that have ended. `failed` "
        "is where a seed did not end. [MISSED.md](MISSED.md) says why a goal is missed, and [STEPS.md](STEPS.md) what "
        "each step brought.",
        "",
        *_table(GOAL_HEADINGS, iter(rows)),
    ]


def _said(found: Sequence[Found]) -> list[str]:
    """Published statements and what came of them, and why where they differ."""
    rows = ([claim.id, claim.source, claim.statement, finding.here, finding.verdict] for _, claim, finding in found)
    differ = [f"- {claim.id}: {claim.because}" for _, claim, finding in found if finding.agrees is False]
    because = ["Why they differ:", "", *differ, ""] if differ else []
    return [*_table(["id", "where", "published", "here", ""], rows), *because]


def _statements(found: Sequence[Found], seeds: int) -> list[str]:
    """The paper's statements."""
    return [
        "## The paper's statements",
        "",
        RULE,
        "",
        *_said(found),
        "```",
        f"./fasttrack figures --seeds {seeds}",
        "```",
        "",
    ]


def grids(compared: tuple[str, ...] | None = None) -> list[Grid]:
    """Everything that the page is made of. COMPARED: who is in front under every policy, if not as usual."""
    of_figures = [grid for figure in FIGURES for grid in figure.grids]
    return [*of_figures, *(section.grid for section in SECTIONS), peers.grid(compared or standard()), *TWENTY_APPS]


def capped(planned: Iterable[Cell], seeds: int) -> set[Cell]:
    """The runs that are ended at so many times their own time alone.

    Those of peers. Not FastTrack's, nor stock's, which the others' times and throughputs are measured by, nor any that
    a published statement is about: its number is to be compared.
    """
    of_figures = (grid for figure in (*FIGURES, *smartio_poster.FIGURES) for grid in figure.grids)
    stated = set(cells(of_figures, seeds))
    full = (STOCK, MINUS, FASTTRACK)
    return {cell for cell in planned if cell.backgrounds and cell.policy not in full} - stated


def _of(records: Sequence[Record], grids: Sequence[Grid], seeds: int) -> Measured:
    """The numbers of some grids, each of as many seeds as it takes."""
    planned = set(cells(grids, seeds))
    return Measured(record for record in records if record.cell in planned)


def _peers(measured: Measured, scenarios: tuple[str, ...], seeds: int) -> list[str]:
    """Every policy against the others."""
    slower = peers.slower(measured)
    lines = [
        "## Every policy",
        "",
        f"{peers.fronts(scenarios)} beside update, backup and six apps on n6 and s6 under every policy of "
        f"[lab/policies](../lab/policies/README.md), seeds 1 to {peers.seeds_of(seeds)}. {ranking.LEGEND}",
        "",
        *_table(ranking.HEADINGS, peers.ranked(measured)),
    ]
    if slower:
        lines += [
            f"Where `{FASTTRACK}` is neither the fastest nor within {ranking.WITHIN} of it ([why](MISSED.md)):",
            "",
            *_table(peers.HEADINGS, iter(slower)),
        ]
    return [*lines, "```", peers.command(seeds), "```", ""]


def _smartio(records: Sequence[Record], seeds: int) -> list[str]:
    """The SmartIO poster's statements, and what its elevator is to reach here."""
    measured, used = _of(records, TWENTY_APPS, seeds), TWENTY_APPS[0].seeds_of(seeds)
    names = " ".join(figure.name for figure in smartio_poster.FIGURES)
    met = (goal for _, goal in reached(smartio_poster.FIGURES, measured))
    return [
        "## SmartIO's twenty apps",
        "",
        f"The elevator `smartio` against `stock`; seeds 1 to {used}. {smartio_poster.SOURCE}.",
        "",
        *_table(["what, under smartio", *GOAL_HEADINGS[1:]], _goal_rows(met)),
        *_said(findings(smartio_poster.FIGURES, measured)),
        "```",
        f"./fasttrack figures {names} --seeds {used}",
        "```",
        "",
    ]


def markdown(records: Sequence[Record], seeds: int, kernel_key: str) -> str:
    """The whole page."""
    platforms = _platforms(records)
    measured = platforms[ONE.grid.platform]
    found = findings(FIGURES, measured)
    kernels = ", ".join(sorted(set(measured.runs["kernel"].drop_nulls().to_list())))
    time = took(records)
    lines = [
        "# Results",
        "",
        f"Written by `./fasttrack results --seeds {seeds}` from the records of its runs; not edited by hand. "
        f"Kernel {kernels}, built from sources of key `{kernel_key}`." + (f" {time}." if time else ""),
        "",
        "Slowdown is the response time over that of the same phone and seed without background under `stock`. A "
        f"longest call is the longest time that one I/O call of a background app took. Means of seeds 1 to {seeds}, "
        "with lowest and highest; of calls the highest.",
        "",
        *(f"- {note}" for note in report.NOTES),
        "",
    ]
    compared = peers.scenarios_of(records)
    every_policy = _of(records, [peers.grid(compared)], seeds)
    lines += _goals(records, platforms, every_policy)
    for section in SECTIONS:
        lines += _section(section, platforms[section.grid.platform], seeds)
    lines += _peers(every_policy, compared, seeds)
    lines += _statements(found, seeds)
    lines += _smartio(records, seeds)
    over = ended_when_long(records)
    if over:
        lines += ["## Runs that were ended", "", ENDED, ""]
        lines += [f"- {policy}, {len(names)}: {'; '.join(names)}" for policy, names in over.items()]
        lines += [""]
    failed = failures(records)
    if failed:
        lines += ["## Failed runs", "", "They are in no number above.", "", *(f"- {line}" for line in failed), ""]
    runs = noted(records)
    if runs:
        lines += ["## Failed atomic allocations", "", ATOMIC, ""]
        lines += [f"- {policy}, {len(cells)}: {'; '.join(cells)}" for policy, cells in runs.items()]
    return "\n".join(folded(lines)).rstrip() + "\n"
