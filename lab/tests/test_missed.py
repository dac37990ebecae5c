# SPDX-License-Identifier: GPL-2.0-only
"""docs/MISSED.md has a row for every goal that docs/RESULTS.md says is missed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from test_figures import useless
from test_results import goals_of, results_text

from fasttrack_lab.commands.results import RESULTS
from fasttrack_lab.figures.tables import GOAL_HEADINGS

MISSED = RESULTS.with_name("MISSED.md")


def tables_of(text: str) -> Iterator[list[list[str]]]:
    """The tables of a Markdown page: their rows as cells, the headings first."""
    for block in re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE):
        yield [[cell.strip() for cell in line[1:-1].split("|")] for line in block.splitlines()]


def goal_rows(results: str) -> list[list[str]]:
    """The rows of all tables of goals."""
    found = [rows[2:] for rows in tables_of(results) if tuple(rows[0][1:]) == GOAL_HEADINGS[1:]]
    return [row for rows in found for row in rows]


def missed_goals(results: str) -> list[str]:
    """What is missed or not measured, without the number of cells."""
    return [re.sub(r", worst of \d+$", "", row[0]) for row in goal_rows(results) if row[-1] != "met"]


def without_a_row(results: str, missed: str) -> list[str]:
    """Missed goals whose name, in back quotes, is in the first column of no row of MISSED.md."""
    named = {name for rows in tables_of(missed) for row in rows for name in re.findall(r"`([^`]*)`", row[0])}
    return [what for what in missed_goals(results) if what not in named]


def test_every_missed_goal_says_why() -> None:
    results = RESULTS.read_text(encoding="utf-8")
    assert goal_rows(results)
    assert without_a_row(results, MISSED.read_text(encoding="utf-8")) == []


def test_a_missed_goal_without_a_row_is_found() -> None:
    results = results_text(useless)
    said = {re.sub(r", worst of \d+$", "", what) for what, row in goals_of(useless).items() if row[-1] == "missed"}
    smartio = set(missed_goals(results)) - said
    assert said and said < set(missed_goals(results))
    assert smartio == {
        "launch over stock's, mean of the apps",
        "run time over stock's, mean of the apps",
    }
    rows = "".join(f"| `{name}`: why not | x |\n" for name in sorted(said | smartio))
    assert without_a_row(results, f"| goal | missed by |\n|---|---|\n{rows}") == []
    # A longer name has the shorter in it, and the second column does not count.
    lacking = rows.replace("| `slowdown, f2fs`: why not | x |", "| slowdown, f2fs | `slowdown, f2fs` |")
    assert "`slowdown, f2fs and MGLRU`" in lacking
    assert without_a_row(results, lacking) == ["slowdown, f2fs"]
