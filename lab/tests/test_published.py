# SPDX-License-Identifier: GPL-2.0-only
"""The numbers that README.md and docs/ publish are those of the records in docs/RESULTS.jsonl.xz."""

from __future__ import annotations

import csv
import io
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
from fasttrack_lab.figures.measured import MEAN_TO_ALONE, MEAN_TO_STOCK, RESPONSE_S, Measured
from fasttrack_lab.figures.paper import SCENARIOS
from fasttrack_lab.figures.smartio_poster import BESIDE, CALLED
from fasttrack_lab.host.paths import CHECKOUT
from fasttrack_lab.inputs import smartio
from fasttrack_lab.inputs.background_sets import SIX, TWELVE
from fasttrack_lab.workloads.calls import ratio_text

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


def many_apps(measured: Measured) -> Iterator[str]:
    """The rows of six and twelve apps in docs/MEASUREMENTS.md."""
    for scenario, phone in product(SCENARIOS, ("s6", "n6")):
        columns: list[str] = []
        for group in (SIX, TWELVE):
            stock, fasttrack = (measured.found(scenario, phone, policy, group) for policy in ("stock", "fasttrack"))
            columns += [slowdown(stock, 1), slowdown(fasttrack, 2)]
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


def in_matrix() -> Iterator[str]:
    """The rows of programs in front of programs."""
    cells: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
    for row in of_csv("matrix.csv"):
        cells.setdefault((row["front"], row["behind"]), {})[row["policy"]] = row
    for (front, behind), rows in cells.items():
        columns = ratios(rows, ("stock", "bfq", "cgroup", "fasttrack"), "over_alone")
        longest_ms = float(rows["fasttrack"]["longest_s"]) * 1e3
        yield f"| {front} | {behind} | {float(rows['alone']['sum_s']):.3f} | {columns} | {longest_ms:.1f} |"


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


def test_the_tables_of_workloads_are_those_of_their_files() -> None:
    published = [
        line for line in WORKLOADS.read_text(encoding="utf-8").splitlines() if re.match(r"\| \w+ \| \w+ \| \d", line)
    ]
    assert published == [*in_matrix(), *in_frontier()]
