# SPDX-License-Identifier: GPL-2.0-only
"""The numbers that README.md and docs/ publish are those of the records in docs/RESULTS.jsonl.xz."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterator
from itertools import product
from statistics import fmean
from typing import Any

import pytest
from rich.console import Console

from fasttrack_lab.commands import results
from fasttrack_lab.compare import archive, demo, report
from fasttrack_lab.compare.records import FOREGROUND_ONLY, Record
from fasttrack_lab.figures import markdown
from fasttrack_lab.figures.measured import MEAN_TO_ALONE, MEAN_TO_STOCK, RESPONSE_S, Measured, NotMeasured
from fasttrack_lab.figures.paper import SCENARIOS
from fasttrack_lab.figures.smartio_poster import BESIDE, CALLED
from fasttrack_lab.host.paths import CHECKOUT
from fasttrack_lab.inputs import smartio
from fasttrack_lab.inputs.background_sets import SIX, TWELVE
from fasttrack_lab.workloads import frontier, frontier_plot
from fasttrack_lab.workloads.calls import Calls, ratio_text

PAGE = results.RESULTS
MEAN_S = f"{RESPONSE_S}_mean"


@pytest.fixture(scope="module")
def kept() -> list[Record]:
    """The records of the page."""
    found = archive.read(archive.beside(PAGE))
    if not found:
        pytest.skip(f"no {archive.beside(PAGE).name}: the page is older than the records that are kept beside it")
    return found


@pytest.fixture(scope="module")
def measured(kept: list[Record]) -> Measured:
    """Their numbers where the file system is the phone's own and the LRU the lab's."""
    return Measured(record for record in kept if (record.cell.fs, record.cell.lru) == markdown.ONE.grid.platform)


def slowdown(row: dict[str, Any], digits: int) -> str:
    """A mean over the seeds that ended, and how many did not."""
    text = f"{row[MEAN_TO_ALONE]:.{digits}f}x"
    return f"{text}, {row['failed']} failed" if row["failed"] else text


def cell_texts(measured: Measured, scenario: str, phone: str, background: str) -> list[str]:
    """The response times of a cell: alone, and under each policy with its slowdown."""
    digits = {"stock": 1, "bfq": 1, "fasttrack": 2}
    texts = [f"{measured.mean(scenario, phone, FOREGROUND_ONLY, background, RESPONSE_S):.2f}"]
    for policy, places in digits.items():
        row = measured.found(scenario, phone, policy, background)
        texts.append(f"{row[MEAN_S]:.2f} ({slowdown(row, places)})")
    return texts


def in_readme(measured: Measured) -> Iterator[str]:
    """README's rows, in its words."""
    called = {"s6": "Galaxy S6", "n6": "Nexus 6"}
    for front, scenario, behind, background, phone in (
        ("open the gallery", "gallery-launch", "an app installs", "update", "s6"),
        ("leave a recording camera", "camera-switch", "a backup", "backup", "n6"),
        ("load a game", "game-load", "an app installs", "update", "s6"),
        ("open the gallery", "gallery-launch", "six apps", SIX, "s6"),
    ):
        columns = cell_texts(measured, scenario, phone, background)
        yield f"| {front} | {behind} | {called[phone]} | {' | '.join(columns)} |"


def one_app(measured: Measured) -> Iterator[str]:
    """The rows of one background app in docs/MEASUREMENTS.md."""
    for scenario, background, phone in product(SCENARIOS, ("update", "backup"), ("s6", "n6")):
        columns = cell_texts(measured, scenario, phone, background)
        yield f"| {scenario} | {background} | {phone} | {' | '.join(columns)} |"


def beside_many(measured: Measured, scenario: str, phone: str, policy: str, background: str, digits: int) -> str:
    """The slowdown of a cell in which it may be that no seed ended."""
    try:
        return slowdown(measured.found(scenario, phone, policy, background), digits)
    except NotMeasured:
        assert measured.of_all_seeds(scenario, phone, policy, background, MEAN_TO_ALONE) == math.inf
        return "all failed"


def many_apps(measured: Measured) -> Iterator[str]:
    """The rows of six and twelve apps in docs/MEASUREMENTS.md."""
    for scenario, phone in product(SCENARIOS, ("s6", "n6")):
        columns: list[str] = []
        for group in (SIX, TWELVE):
            for policy, digits in (("stock", 1), ("fasttrack", 2)):
                columns.append(beside_many(measured, scenario, phone, policy, group, digits))
        yield f"| {scenario} | {phone} | {' | '.join(columns)} |"


def twenty_apps(measured: Measured) -> Iterator[str]:
    """The rows of docs/SMARTIO.md, without the response times alone."""

    def mean(kind: str, phone: str, policy: str, measure: str) -> float:
        return fmean(
            measured.found(smartio.name_of(app, kind), phone, policy, BESIDE[kind])[measure] for app in smartio.apps()
        )

    for kind, behind in BESIDE.items():
        digits = 2 if kind == "install" else 1
        columns = [f"`{behind}`"]
        for phone in ("s6", "n6"):
            columns += [f"{mean(kind, phone, policy, MEAN_TO_ALONE):.{digits}f}x" for policy in ("stock", "smartio")]
            columns.append(f"{mean(kind, phone, 'smartio', MEAN_TO_STOCK):.2f}")
        yield f"| {CALLED[kind]} | {' | '.join(columns)} |"


def text_of(path: str) -> str:
    return (CHECKOUT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("path", "rows"),
    [
        ("README.md", in_readme),
        ("docs/MEASUREMENTS.md", one_app),
        ("docs/MEASUREMENTS.md", many_apps),
        ("docs/SMARTIO.md", twenty_apps),
    ],
)
def test_tables_have_the_records_numbers(
    measured: Measured, path: str, rows: Callable[[Measured], Iterator[str]]
) -> None:
    published = {re.sub(r" \(alone .*? s\)", "", line) for line in text_of(path).splitlines()}
    assert [row for row in rows(measured) if row not in published] == []


def test_readme_has_no_other_results() -> None:
    """A row that no record stands for would never be checked."""
    results = text_of("README.md").split("## Results", 1)[1].split("\n## ", 1)[0]
    assert len(re.findall(r"^\|.*\dx\)", results, re.MULTILINE)) == 4


def test_the_first_screen_says_what_one_cell_says(measured: Measured) -> None:
    numbers = re.search(
        r"(\d\.\d) s on stock Linux, (\d\.\d) s with FastTrack, (\d\.\d) s when nothing else", text_of("README.md")
    )
    assert numbers
    alone = measured.mean("gallery-launch", "s6", FOREGROUND_ONLY, "update", RESPONSE_S)
    found = [measured.found("gallery-launch", "s6", policy, "update")[MEAN_S] for policy in ("stock", "fasttrack")]
    assert numbers.groups() == tuple(f"{value:.1f}" for value in (*found, alone))


def demo_rows(text: str) -> list[list[str]]:
    """The rows of the demo's table in a text, without stock's column."""
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in text.splitlines() if line.startswith("│")]
    return [[*row[:3], *row[4:]] for row in rows]


def test_readme_says_what_is_left_without_the_device(measured: Measured) -> None:
    row = measured.found("gallery-launch", "s6", "fasttrack-minus", "update")
    assert f"without it the first row is {row[MEAN_S]:.2f} s ({slowdown(row, 2)})" in text_of("README.md")


def test_readme_shows_what_the_demo_prints(kept: list[Record]) -> None:
    """Save stock's times: where memory is scarce, another image of the kernel moves those by per cents."""
    planned = set(demo.cells(report.DEMO_PHONE, seed=1))
    made = [record for record in kept if record.cell in planned]
    assert {record.cell for record in made} == planned
    printed = io.StringIO()
    Console(file=printed, width=120).print(report.demo_table(made))
    shown = demo_rows(text_of("README.md"))
    assert len(shown) == len(report.DEMO_PAIRS)
    assert shown == demo_rows(printed.getvalue())


WORKLOADS = CHECKOUT / "docs" / "WORKLOADS.md"


def of_csv(name: str) -> list[dict[str, str]]:
    """The rows of a file beside docs/WORKLOADS.md."""
    with (WORKLOADS.parent / "workloads" / name).open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def ratios(rows: dict[str, dict[str, str]], policies: tuple[str, ...], name: str) -> str:
    """A column of each policy, as cells of a table."""
    return " | ".join(ratio_text(float(rows[policy][name])) for policy in policies)


POLICIES = ("stock", "bfq", "cgroup")
ELSEWHERE = (("n6", "ext4"), ("s6", "f2fs"), ("ufs31", "f2fs"))


def cells_of(phone: str, fs: str) -> dict[tuple[str, str], dict[str, dict[str, str]]]:
    """By programs and policy."""
    cells: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
    for row in of_csv("matrix.csv"):
        if (row["phone"], row["fs"]) == (phone, fs):
            cells.setdefault((row["front"], row["behind"]), {})[row["policy"]] = row
    return cells


def in_matrix() -> Iterator[str]:
    """The rows of programs in front of programs."""
    for (front, behind), rows in cells_of("s6", "ext4").items():
        columns = ratios(rows, (*POLICIES, "fasttrack"), "over_alone")
        longest_ms = float(rows["fasttrack"]["longest_s"]) * 1e3
        yield f"| {front} | {behind} | {float(rows['alone']['sum_s']):.3f} | {columns} | {longest_ms:.1f} |"


def elsewhere() -> Iterator[str]:
    """Those of the other places: under FastTrack, and the least of the others where they were run."""
    places = [cells_of(*place) for place in ELSEWHERE]
    for cell in places[0]:
        columns = [" | ".join(cell)]
        for rows in (cells[cell] for cells in places):
            columns.append(ratio_text(float(rows["fasttrack"]["over_alone"])))
            if others := [float(rows[policy]["over_alone"]) for policy in POLICIES if policy in rows]:
                columns.append(ratio_text(min(others)))
        yield f"| {' | '.join(columns)} |"


def in_frontier() -> Iterator[str]:
    """The rows of calls with pauses."""
    points: dict[tuple[str, str, str, str], dict[str, dict[str, str]]] = {}
    for row in of_csv("frontier.csv"):
        points.setdefault((row["phone"], row["kind"], row["think_ms"], row["behind"]), {})[row["policy"]] = row
    for (phone, kind, think_ms, behind), rows in points.items():
        columns = ratios(rows, ("stock", "bfq", "fasttrack"), "p99")
        got = float(rows["fasttrack"]["throughput_over_stock"])
        share = float(rows["stock"]["alone_share"])
        yield f"| {phone} | {kind} | {float(think_ms):g} | {behind} | {share:.0%} | {columns} | {got:.2f} |"


def number(text: str) -> float | None:
    """A field of a CSV file; nothing where it is empty."""
    return float(text) if text else None


def points() -> Iterator[frontier.Row]:
    """The points of the published frontier."""
    for row in of_csv("frontier.csv"):
        place = row["phone"], row["fs"]
        point = frontier.Point(row["kind"], float(row["think_ms"]), row["behind"], int(row["apps"]), place)
        times = (number(row[name]) for name in ("p50_s", "p99_s", "longest_s"))
        calls = Calls(float(row["sum_s"]), *times, int(row["calls"])) if row["calls"] else None
        names = ("behind_mb_s", "p50", "p99", "throughput_over_idle", "throughput_over_stock", "alone_share")
        yield frontier.Row(point, row["policy"], calls, *(number(row[name]) for name in names))


def test_the_plots_of_a_frontier_are_those_of_its_points() -> None:
    found = list(points())
    for name, drawn in frontier_plot.draw(found, list(dict.fromkeys(row.policy for row in found))):
        assert drawn == (WORKLOADS.parent / "workloads" / name).read_text(encoding="utf-8"), name


def test_filled_marks_right_of_the_line_meet_the_backgrounds_goal() -> None:
    found = list(points())
    for place, behind in dict.fromkeys((row.point.place, row.point.behind) for row in found):
        mine = [row for row in found if (row.point.place, row.point.behind) == (place, behind)]
        kinds = list(dict.fromkeys(row.point.kind for row in mine))
        panels = frontier_plot.figure(mine, ["stock", "bfq", "fasttrack"]).axes
        for axes, kind in zip(panels, kinds, strict=True):
            marks = [line for line in axes.lines if line.get_marker() == "o"]
            filled = {(line.get_xdata()[0], line.get_ydata()[0]) for line in marks if line.get_mfc() != "white"}
            goals = {
                (row.behind_to_stock, row.p99): row.behind_met for row in mine if row.light and row.point.kind == kind
            }
            (goal_x,) = (line.get_xdata()[0] for line in axes.lines if list(line.get_ydata()) == [0, 1])
            assert {at: at[0] >= goal_x for at in filled} == goals and len(goals) < len(marks)


def test_a_panel_without_goals_has_no_line() -> None:
    busy = [row for row in points() if row.point.think_ms == 0 and row.point.place == ("s6", "ext4")]
    assert not any(row.light for row in busy)
    for axes in frontier_plot.figure([row for row in busy if row.point.behind == "write"], ["stock"]).axes:
        assert not any(list(line.get_ydata()) == [0, 1] for line in axes.lines)


def test_the_goals_of_workloads_are_counted() -> None:
    light = [row for row in points() if row.policy == "fasttrack" and row.light]
    behind, front = (
        sum(map(bool, met)) for met in zip(*((row.behind_met, row.front_met) for row in light), strict=True)
    )
    text = " ".join(WORKLOADS.read_text(encoding="utf-8").split())
    assert f"its goal in {behind} of {len(light)} points and the calls have theirs in {front} (" in text


def test_the_tables_of_workloads_are_those_of_their_files() -> None:
    published = [
        line for line in WORKLOADS.read_text(encoding="utf-8").splitlines() if re.match(r"\| \w+ \| \w+ \| \d", line)
    ]
    assert published == [*in_matrix(), *elsewhere(), *in_frontier()]
