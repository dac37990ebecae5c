# SPDX-License-Identifier: GPL-2.0-only
"""The numbers that docs/RESULTS.md and README.md publish are those of the records beside the page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from statistics import fmean
from typing import Any

import pytest

from fasttrack_lab.commands import results
from fasttrack_lab.compare import archive
from fasttrack_lab.compare.comparison import RECORDING
from fasttrack_lab.compare.records import FOREGROUND_ONLY, Record
from fasttrack_lab.figures import markdown
from fasttrack_lab.figures.grid import cells
from fasttrack_lab.figures.measured import MEAN_TO_ALONE, MEAN_TO_STOCK, RESPONSE_S, Measured
from fasttrack_lab.figures.paper import SCENARIOS
from fasttrack_lab.figures.smartio_poster import BESIDE, CALLED
from fasttrack_lab.host.paths import CHECKOUT, recording
from fasttrack_lab.inputs import smartio
from fasttrack_lab.inputs.background_sets import SIX, TWELVE

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


def test_the_page_is_what_the_records_say(kept: list[Record]) -> None:
    if recording(RECORDING) is None:
        pytest.skip(f"no recording {RECORDING}: its replay is on the page")
    text = PAGE.read_text(encoding="utf-8")
    asked = re.search(r"`\./fasttrack results --seeds (\d+)`", text)
    assert asked
    seeds = int(asked[1])
    found, kernel = results.recorded(kept, cells(markdown.grids(), seeds), archive.beside(PAGE))
    assert text == markdown.markdown(found, seeds, kernel)


def slowdown(row: dict[str, Any], digits: int) -> str:
    """A mean over the seeds that ended, and how many did not."""
    text = f"{row[MEAN_TO_ALONE]:.{digits}f}x"
    return f"{text}, {row['failed']} failed" if row["failed"] else text


def one_app(measured: Measured) -> Iterator[str]:
    """README's rows of one background app."""
    digits = {"stock": 1, "bfq": 1, "fasttrack": 2}
    for scenario, background, phone in product(SCENARIOS, ("update", "backup"), ("s6", "n6")):
        alone = measured.mean(scenario, phone, FOREGROUND_ONLY, background, RESPONSE_S)
        columns = [f"{alone:.2f}"]
        for policy, places in digits.items():
            row = measured.found(scenario, phone, policy, background)
            columns.append(f"{row[MEAN_S]:.2f} ({slowdown(row, places)})")
        yield f"| {scenario} | {background} | {phone} | {' | '.join(columns)} |"


def many_apps(measured: Measured) -> Iterator[str]:
    """README's rows of six and twelve."""
    for scenario, phone in product(SCENARIOS, ("s6", "n6")):
        columns: list[str] = []
        for group in (SIX, TWELVE):
            stock, fasttrack = (measured.found(scenario, phone, policy, group) for policy in ("stock", "fasttrack"))
            columns += [slowdown(stock, 1), slowdown(fasttrack, 2)]
        yield f"| {scenario} | {phone} | {' | '.join(columns)} |"


def twenty_apps(measured: Measured) -> Iterator[str]:
    """README's rows of SmartIO's apps, without the response times alone."""

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


def test_readme_has_the_pages_numbers(measured: Measured) -> None:
    lines = (CHECKOUT / "README.md").read_text(encoding="utf-8").splitlines()
    published = {re.sub(r" \(alone .*? s\)", "", line) for line in lines}
    rows = [*one_app(measured), *many_apps(measured), *twenty_apps(measured)]
    assert [row for row in rows if row not in published] == []
