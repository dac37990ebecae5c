# SPDX-License-Identifier: GPL-2.0-only
"""The paper's figures: which runs they need, what they find in records, what the page, the CSV and the table say."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner
from rich.console import Console
from test_compare import Lab, lab  # noqa: F401
from test_report import Page

from fasttrack_lab.commands import figures as commands
from fasttrack_lab.compare import plots, report
from fasttrack_lab.compare.records import FOREGROUND_ONLY, Record, failures, noted
from fasttrack_lab.figures import figures_page, paper
from fasttrack_lab.figures.catalogue import chosen
from fasttrack_lab.figures.claims import CHANGE, NORMALISED, SECONDS, Finding, Value, numbers
from fasttrack_lab.figures.figure import Figure
from fasttrack_lab.figures.grid import Grid, cells
from fasttrack_lab.figures.measured import TO_STOCK, Measured
from fasttrack_lab.figures.paper import FIGURES
from fasttrack_lab.host.errors import UsageProblem
from fasttrack_lab.inputs import policy
from fasttrack_lab.inputs.background_sets import MANY_ORDER
from fasttrack_lab.inputs.cell import Cell

Respond = Callable[[Cell], float]

ALONE_S = {"s6": 0.45, "n6": 0.6}


def paper_world(cell: Cell) -> float:
    """Response times as the paper's statements want them."""
    alone, apps, update = ALONE_S.get(cell.phone, 0.5), len(cell.backgrounds), cell.background == "update"
    if not apps:
        return alone
    stock = 5.8 * apps - 10.6 if apps > 1 else 16.0 if cell.phone in ("n5", "n6") else 7.9
    minus = {("gallery-launch", "update"): 0.18, ("camera-switch", "photo-upload"): 0.39}
    over_alone = {
        "pa": stock * (0.5 if update else 0.8),
        "pr": stock * (0.8 if update else 0.5),
        "id": stock * 0.89,
        "fasttrack-minus": stock * minus.get((cell.scenario, cell.background), 0.26),
        "fasttrack": 1.1 + 0.0425 * (apps - 2) if apps > 1 else 1.25 if update else 1.0,
    }
    return alone * over_alone.get(cell.policy, stock)


def useless(cell: Cell) -> float:
    """Nothing helps: every policy is stock."""
    return (1.0 + len(cell.backgrounds)) * (1 + (cell.seed - 1) / 10)


def record(cell: Cell, response_s: float, error: str | None = None) -> Record:
    """A run that took so long."""
    app = {
        "bytes_read": 10,
        "bytes_written": 90,
        "bytes_since_touch": 60,
        "longest_pause_s": 0.25 * cell.seed,
        "ops": 5,
    }
    result = {
        "response_s": response_s,
        "total_s": response_s,
        "foregrounds": {"front": {"uid": 10101, "bytes_read": 70, "bytes_written": 5}},
        "background": dict.fromkeys(cell.backgrounds, app),
        "counters": dict.fromkeys(report.HOLDS, 0),
        "elevator": {"write_wait_max_us": 105_000} if cell.policy == "smartio" else {},
        "kernel": "6.12.117-test",
    }
    return Record(cell, "i", "k", None if error else result, error)


def records_of(figures: Sequence[Figure], respond: Respond, seeds: int = 2) -> list[Record]:
    """All runs of some figures."""
    return [record(cell, respond(cell)) for cell in cells((g for f in figures for g in f.grids), seeds)]


def found_in(respond: Respond) -> dict[str, Finding]:
    """The finding of every statement."""
    found = figures_page.findings(FIGURES, Measured(records_of(FIGURES, respond)))
    return {claim.id: finding for _, claim, finding in found}


def test_the_papers_numbers_agree_with_the_paper() -> None:
    found = found_in(paper_world)
    assert list(found) == [f"F{number}" for number in range(9, 19)]
    assert {name: finding.why for name, finding in found.items() if not finding.agrees} == {}


def test_a_useless_policy_differs_and_both_numbers_are_said() -> None:
    found = found_in(useless)
    assert {name for name, finding in found.items() if finding.agrees} == set()
    assert found["F10"].why == "fasttrack-minus +0 % here, -74 % in the paper (74 points above)"
    assert found["F16"].why == "fasttrack 2.00x here, 1.00x in the paper (100 % above)"
    assert "7.00x here, 1.27x in the paper" in found["F17"].why
    assert found["F13"].here == "slower in 24 of 24; eMMC 2.00x, UFS 2.00x"


def test_order_of_the_parts_is_told() -> None:
    found = found_in(paper_world)
    assert found["F12"].here == "update: pa -50 %, pr -20 %, id -11 %; backup: pr -50 %, pa -20 %, id -11 %"
    swapped = {"pa": "pr", "pr": "pa"}
    other = found_in(
        lambda cell: paper_world(
            Cell(cell.scenario, cell.phone, swapped.get(cell.policy, cell.policy), cell.backgrounds, cell.seed)
        )
    )
    assert other["F12"].agrees is False
    assert other["F12"].here.startswith("update: pr -50 %")


def test_what_makes_things_slower_helps_nobody() -> None:
    """Every part makes a run longer: the one that should help most does the least harm."""

    def world(cell: Cell) -> float:
        return paper_world(cell) * (4 if cell.policy in ("pa", "pr", "id") else 1)

    found = found_in(world)["F12"]
    assert found.here == "update: pa +100 %, pr +220 %, id +256 %; backup: pr +100 %, pa +220 %, id +256 %"
    assert found.agrees is False


@pytest.mark.parametrize(
    ("value", "agrees"),
    [
        (Value("x", 2.0, 2.5, SECONDS), True),
        (Value("x", 2.0, 2.6, SECONDS), False),
        (Value("x", 2.0, 1.4, SECONDS), False),
        (Value("x", 1.0, 1.11, NORMALISED), False),
        (Value("x", -0.5, -0.59, CHANGE), True),
        (Value("x", -0.5, -0.61, CHANGE), False),
    ],
)
def test_what_agrees(value: Value, agrees: bool) -> None:
    assert numbers([value]).agrees is agrees
    assert numbers([Value("y", 1.0, 1.0, SECONDS), value]).agrees is agrees
    assert ("above" in value.text() or "below" in value.text()) is not agrees


def test_lacking_and_failed_runs_are_not_measured() -> None:
    made = records_of(FIGURES, paper_world)
    without = [one for one in made if one.cell.policy != "pa"]
    failed = [
        record(one.cell, 0, "panic") if one.cell.background == "photo-upload" and one.cell.policy != "stock" else one
        for one in without
    ]
    found = {claim.id: finding for _, claim, finding in figures_page.findings(FIGURES, Measured(failed))}
    lacking = {name for name, finding in found.items() if finding.agrees is None}
    assert lacking == {"F12", "F14"}
    assert found["F12"].verdict == "not measured"
    assert found["F14"].why.startswith("no result: every seed of camera-switch on s6, fasttrack-minus")


def test_a_statement_is_not_measured_by_the_seeds_that_are_left() -> None:
    made = [
        record(one.cell, 0, "panic") if (one.cell.policy, one.cell.background, one.cell.seed) == lost else one
        for lost in [("fasttrack-minus", "photo-upload", 2)]
        for one in records_of(FIGURES, paper_world)
    ]
    found = {claim.id: finding for _, claim, finding in figures_page.findings(FIGURES, Measured(made))}
    assert {name for name, finding in found.items() if finding.agrees is None} == {"F14"}
    assert found["F14"].why.startswith("no result: every seed of camera-switch on s6, fasttrack-minus")


def test_over_stock_counts_by_seed() -> None:
    grid = Grid(("camera-switch",), ("s6",), ("stock", "fasttrack"), ("update",))
    response = {"": (1.0, 2.0), "stock": (4.0, 10.0), "fasttrack": (2.0, 2.5)}
    made = [record(cell, response[cell.policy if cell.backgrounds else ""][cell.seed - 1]) for cell in cells([grid], 2)]
    measured = Measured(made)
    assert measured.spread("camera-switch", "s6", "fasttrack", "update", TO_STOCK) == pytest.approx((0.375, 0.25, 0.5))
    assert measured.mean("camera-switch", "s6", FOREGROUND_ONLY, "update", TO_STOCK) == pytest.approx(0.225)
    assert measured.mean("camera-switch", "s6", "fasttrack", "update", "slowdown") == pytest.approx((2 + 1.25) / 2)


def test_figures_share_their_runs() -> None:
    by_name = {figure.name: cells(figure.grids, 3) for figure in FIGURES}
    assert set(by_name["fig6"]) < set(by_name["fig10"])
    assert set(by_name["fig12"]) < set(by_name["fig10"])
    every = cells((grid for figure in FIGURES for grid in figure.grids), 3)
    assert len(every) == len(set(every)) < sum(map(len, by_name.values()))


def test_background_apps_come_in_one_by_one() -> None:
    """From each point of the figure to the next, one app more; the statements are of its ends."""
    (fig13,) = chosen(("fig13",), paper.PHONES)
    sets = sorted({cell.backgrounds for cell in cells(fig13.grids, 1)} - {()}, key=len)
    assert list(map(len, sets)) == [2, 3, 4, 5, 6]
    assert all(set(fewer) < set(more) for fewer, more in pairwise(sets))
    assert [sorted(set(more) - set(fewer)) for fewer, more in pairwise(sets)] == [[name] for name in MANY_ORDER[2:]]
    world = Measured(records_of([fig13], paper_world))
    lacking = Measured(one for one in records_of([fig13], paper_world) if len(one.cell.backgrounds) < 6)
    assert [claim.find(world, ("s6",)).agrees for claim in fig13.claims] == [True, True]
    assert [claim.find(lacking, ("s6",)).agrees for claim in fig13.claims] == [None, None]


def test_chosen_figures_and_phones() -> None:
    assert chosen((), paper.PHONES) == list(FIGURES)
    assert [figure.name for figure in chosen(("fig12", "fig6", "fig12"), paper.PHONES)] == ["fig12", "fig6"]
    assert [figure.name for figure in chosen((), ("n6",))] == ["fig10", "fig12"]
    assert chosen(("fig10",), ("p1", "n5"))[0].phones == ("n5", "p1")


@pytest.mark.parametrize(
    ("names", "phones", "says"),
    [
        (("fig9",), ("s6",), "unknown figure 'fig9'.*valid: fig6, fig10, fig11, fig12, fig13"),
        (("fig10", "fig6"), ("n6",), "fig6 is of s6: --phones has none of them"),
        ((), ("ufs31",), "no figure is of ufs31; valid: n5, n6, s6, p1"),
    ],
)
def test_what_cannot_be_drawn_is_refused(names: tuple[str, ...], phones: tuple[str, ...], says: str) -> None:
    with pytest.raises(UsageProblem, match=says):
        chosen(names, phones)


def test_page_has_plots_statements_and_verdicts(tmp_path: Path) -> None:
    made = records_of(FIGURES, paper_world)
    figures_page.make(tmp_path, FIGURES, made, 2, "./fasttrack figures --seeds 2")
    text = (tmp_path / figures_page.PAGE).read_text(encoding="utf-8")
    seen = Page()
    seen.feed(text)
    assert seen.figures == len(FIGURES)
    assert all(address.startswith("#") for address in seen.addresses)
    assert not re.search(r"url\((?!#)|@import", text)
    assert seen.text.count("agrees:") == 10
    assert "On the S6 with stock" in seen.text
    assert "The paper's own Figure 11 is not made here" in seen.text
    assert "stock 3.56 s" in seen.text
    assert "./fasttrack compare camera-switch --phones s6 --policies stock --backgrounds backup --seeds 2" in seen.text
    assert "Failed runs" not in text


def test_csv_files_have_every_number(tmp_path: Path) -> None:
    figures_page.make(tmp_path, FIGURES, records_of(FIGURES, useless, 3), 3, "c")
    frame = pl.read_csv(tmp_path / figures_page.FIGURES_CSV)
    assert frame.group_by("figure").len().sort("figure").rows() == [
        ("fig10", 4 * 6 * 7),
        ("fig11", 2 * 3),
        ("fig12", 2 * 4),
        ("fig13", 5 * 3),
        ("fig6", 2),
    ]
    row = frame.row(by_predicate=(pl.col("figure") == "fig6") & (pl.col("policy") == "stock"), named=True)
    assert row["response_s_mean"] == pytest.approx(2.2)
    assert (row["response_s_min"], row["response_s_max"]) == pytest.approx((2.0, 2.4))
    claims = pl.read_csv(tmp_path / figures_page.CLAIMS_CSV)
    assert claims["verdict"].unique().to_list() == ["differs"]
    assert claims.height == 10


def test_a_page_of_failures_alone_names_reasons_once(tmp_path: Path) -> None:
    made = [record(one.cell, 0, "no such knob") for one in records_of(FIGURES[:2], useless)]
    found, _ = figures_page.make(tmp_path, FIGURES[:2], made, 2, "c")
    assert {finding.verdict for _, _, finding in found} == {"not measured"}
    assert (tmp_path / figures_page.PAGE).read_text().count("no such knob") == 1
    (line,) = failures(made)
    assert line.startswith(f"{len(made)} failed: camera-switch on s6, stock, background none, seed 1; ")
    assert line.endswith("; ...: no such knob")


def test_what_was_noted_is_listed_by_policy() -> None:
    first, *others = records_of(FIGURES[:1], useless)
    assert first.result is not None
    marked = replace(first, result=first.result | {"log_problems": ["page allocation failure (line 7): x"]})
    assert noted([marked, *others]) == {first.cell.policy: [first.cell.text()]}
    assert noted([replace(marked, error="it hung"), *others]) == {}


def test_terminal_table_fits() -> None:
    table = figures_page.terminal_table(figures_page.findings(FIGURES, Measured(records_of(FIGURES, useless))))
    columns = {str(column.header): list(column.cells) for column in table.columns}
    assert columns["id"] == [f"F{number}" for number in range(9, 19)]
    assert set(columns["verdict"]) == {"differs"}
    console = Console(file=io.StringIO(), width=80, no_color=True)
    assert console.measure(table).minimum <= 80, "no word of it is cut"


def test_every_policy_has_its_own_colour() -> None:
    assert set(policy.names()) < set(plots.COLOURS)
    colours = (*plots.COLOURS.values(), *plots.OTHER_COLOURS)
    assert len(set(colours)) == len(colours)
    assert plots.colour("stock") != plots.colour("my-own") == plots.colour("my-own")


def figures(*arguments: str) -> str:
    """The command; its output."""
    done = CliRunner().invoke(commands.command, list(arguments))
    assert done.exit_code == 0, done.output
    return done.output


def test_what_is_there_is_not_run_again(lab: Lab, tmp_path: Path) -> None:  # noqa: F811
    out = ("--seeds", "2", "--out", str(tmp_path))
    shown = figures("fig6", *out)
    assert "F9" in shown and "differs" in shown
    assert "4 runs in 6 min 0 s of real time" in shown
    assert "4 runs in 6 min 0 s of real time." in (tmp_path / figures_page.PAGE).read_text()
    assert lab.ran == ["stock//1", "stock//2", "stock/backup/1", "stock/backup/2"]
    assert sorted(item.name for item in tmp_path.iterdir()) == [
        "claims.csv",
        "figures.csv",
        "figures.html",
        "raw.jsonl",
        "runs.csv",
    ]
    lab.ran.clear()
    figures("fig6", *out)
    assert lab.ran == []
    figures("fig13", *out)
    assert len(lab.ran) == 5 * 2 * 2
    assert not any(name.startswith("stock//") for name in lab.ran)
    lab.ran.clear()
    figures("fig6", *out, "--fresh")
    assert len(lab.ran) == 4


def test_a_failed_run_fails_the_command_and_is_run_again_if_asked(lab: Lab, tmp_path: Path) -> None:  # noqa: F811
    lab.broken = {"stock/backup/1"}
    done = CliRunner().invoke(commands.command, ["fig6", "--out", str(tmp_path)])
    assert done.exit_code == 1
    assert "kernel log: panic" in done.output
    assert "panic" in (tmp_path / figures_page.PAGE).read_text()
    lab.broken, lab.ran = set(), []
    assert CliRunner().invoke(commands.command, ["fig6", "--out", str(tmp_path)]).exit_code == 1
    assert lab.ran == []
    figures("fig6", "--out", str(tmp_path), "--again-failed")
    assert lab.ran == ["stock/backup/1"]
    assert "panic" not in (tmp_path / figures_page.PAGE).read_text()


def test_an_unknown_figure_builds_nothing(lab: Lab) -> None:  # noqa: F811
    done = CliRunner().invoke(commands.command, ["fig6", "fig7"])
    assert isinstance(done.exception, UsageProblem)
    assert done.exception.exit_code == 2
    assert lab.ran == []
