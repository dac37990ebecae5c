# SPDX-License-Identifier: GPL-2.0-only
"""docs/MISSED.md has a line for every goal that docs/RESULTS.md says is missed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from test_figures import useless
from test_results import goals_of, results_text

from fasttrack_lab.commands.results import RESULTS
from fasttrack_lab.figures.markdown import GOAL_HEADINGS

MISSED = RESULTS.with_name("MISSED.md")


def tables_of(text: str) -> Iterator[list[list[str]]]:
    """The tables of a Markdown page: their rows as cells, the headings first."""
    for block in re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE):
        yield [[cell.strip() for cell in line[1:-1].split("|")] for line in block.splitlines()]


def goal_rows(results: str) -> list[list[str]]:
    """The rows of all tables of goals."""
    found = [rows[2:] for rows in tables_of(results) if tuple(rows[0][1:]) == GOAL_HEADINGS[1:]]
    return [row for rows in found for row in rows]


def name_of(what: str) -> str:
    """A goal's name, without the number of its cells."""
    return re.sub(r", worst of \d+$", "", what)


def missed_goals(results: str) -> dict[str, str]:
    """What is missed or not measured, without the number of cells, and by which number."""
    return {name_of(row[0]): row[2] for row in goal_rows(results) if row[-1] != "met"}


def said_of(missed: str) -> dict[str, str]:
    """What the lines of MISSED.md that begin with a goal's name in back quotes say of it."""
    return dict(re.findall(r"^- `([^`]*)`: (.*)$", missed, re.MULTILINE))


def without_a_line(results: str, missed: str) -> list[str]:
    """Missed goals that have no line in MISSED.md with the number by which they are missed."""
    said = said_of(missed)
    return [what for what, number in missed_goals(results).items() if what not in said or number not in said[what]]


def met_after_all(results: str, missed: str) -> list[str]:
    """Goals of RESULTS.md that have a line in MISSED.md, and are not missed."""
    goals = {name_of(row[0]) for row in goal_rows(results)}
    return sorted(goals & set(said_of(missed)) - set(missed_goals(results)))


def test_every_missed_goal_says_why() -> None:
    results = RESULTS.read_text(encoding="utf-8")
    assert goal_rows(results)
    missed = MISSED.read_text(encoding="utf-8")
    assert without_a_line(results, missed) == []
    assert met_after_all(results, missed) == []


def test_a_missed_goal_without_a_line_is_found() -> None:
    results = results_text(useless)
    said = {name_of(what) for what, row in goals_of(useless).items() if row[-1] == "missed"}
    smartio = set(missed_goals(results)) - said
    assert said and said < set(missed_goals(results))
    assert smartio == {
        "launch over stock's, mean of the apps",
        "run time over stock's, mean of the apps",
    }
    lines = "".join(f"- `{name}`: {number}\n" for name, number in missed_goals(results).items())
    assert without_a_line(results, lines) == []
    assert met_after_all(results, lines) == []
    # A longer name has the shorter in it, and a name elsewhere in a line does not count.
    lacking = lines.replace("- `slowdown, f2fs`:", "- see `slowdown, f2fs`:")
    assert "`slowdown, f2fs and MGLRU`" in lacking
    assert without_a_line(results, lacking) == ["slowdown, f2fs"]
    number = missed_goals(results)["slowdown, f2fs"]
    other = lines.replace(f"- `slowdown, f2fs`: {number}", "- `slowdown, f2fs`: 1.00")
    assert without_a_line(results, other) == ["slowdown, f2fs"]


def test_a_line_of_a_goal_that_is_met_is_found() -> None:
    results = RESULTS.read_text(encoding="utf-8")
    met = next(row[0] for row in goal_rows(results) if row[-1] == "met")
    name = name_of(met)
    assert met_after_all(results, f"- `{name}`: 1.20\n") == [name]
