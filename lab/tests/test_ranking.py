# SPDX-License-Identifier: GPL-2.0-only
"""Policies against each other: ranks, and the page of several scenarios, from made-up records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from test_figures import record
from test_report import Page, shown

from fasttrack_lab.compare import comparison_plots as plots
from fasttrack_lab.compare import ranking, records, report
from fasttrack_lab.compare.records import Front, Record, Request
from fasttrack_lab.inputs.background_sets import SIX
from fasttrack_lab.inputs.cell import Cell, scenario_name

REQUEST = Request(
    command="./fasttrack compare",
    fronts=(Front("gallery-launch"), Front("traces/facebook.mobigen", "a recorded session")),
    phones=("s6", "n6"),
    policies=("stock", "kyber", "pa", "fasttrack"),
    backgrounds=(("update",), tuple(SIX.split("+"))),
    seeds=2,
    kernel="k",
)
SLOWDOWN = {"stock": 4.0, "kyber": 2.0, "pa": 1.01, "fasttrack": 1.0}


def respond(cell: Cell) -> float:
    """A second alone; six apps are as bad as one. On n6, pa is faster than fasttrack beside update."""
    if not cell.backgrounds:
        return 1.0
    where = (cell.policy, cell.phone, cell.background, cell.scenario)
    return 0.8 if where == ("pa", "n6", "update", "gallery-launch") else SLOWDOWN[cell.policy]


def made() -> list[Record]:
    """Every run; kyber never ends beside six apps."""
    return [
        record(cell, respond(cell), "the guest hung" if cell.policy == "kyber" and cell.background == SIX else None)
        for cell in records.plan(REQUEST)
    ]


def rows() -> pl.DataFrame:
    """The summary of all runs."""
    return report.summary(report.runs(made()))


def test_ranks_say_who_is_fastest_how_often_and_what_it_costs() -> None:
    ranks = {rank.policy: rank for rank in ranking.ranks(rows())}
    assert list(ranks) == ["pa", "fasttrack", "stock", "kyber"]
    fasttrack, pa, kyber = ranks["fasttrack"], ranks["pa"], ranks["kyber"]
    assert (fasttrack.cells, fasttrack.measured, fasttrack.near) == (8, 8, 7)
    assert fasttrack.over == pytest.approx(1.25)
    assert fasttrack.over_cell == "gallery-launch beside update on n6"
    # Within two per cent of the fastest counts; then no cell is named.
    assert (pa.near, pa.over_cell) == (8, "")
    assert pa.slowdown == pytest.approx((1.01**7 * 0.8) ** (1 / 8))
    assert (kyber.measured, kyber.near) == (4, 0)
    assert kyber.texts(cells=False)[1] == "4 of 8"
    # 60 bytes from the touch to the end of the response: the throughput goes with its length.
    assert ranks["stock"].background == pytest.approx(1.0)
    assert kyber.background == pytest.approx(4.0 / 2.0)


def without(policy: str, phone: str, seed: int) -> list[Record]:
    """Every run; those of POLICY on PHONE beside update with SEED fail."""
    lost = (policy, phone, "update", seed)
    return [
        replace(item, error="hung", result=None)
        if (item.cell.policy, item.cell.phone, item.cell.background, item.cell.seed) == lost
        else item
        for item in made()
    ]


def test_a_cell_with_a_failed_seed_is_no_result() -> None:
    """pa is the fastest beside update on n6 by the seed that is left, which does not count."""
    ranks = {rank.policy: rank for rank in ranking.ranks(report.summary(report.runs(without("pa", "n6", 2))))}
    assert list(ranks) == ["fasttrack", "stock", "pa", "kyber"]
    pa, fasttrack = ranks["pa"], ranks["fasttrack"]
    assert (pa.cells, pa.measured, pa.near, pa.texts(cells=False)[1]) == (8, 6, 6, "6 of 8")
    assert pa.slowdown == pytest.approx(1.01)
    assert (fasttrack.near, fasttrack.over) == (8, pytest.approx(1.0))


def ended(policy: str, phone: str, seed: int) -> list[Record]:
    """Every run; that of POLICY on PHONE beside update with SEED is ended at 20 times its own time alone."""
    long = (policy, phone, "update", seed)
    return [
        replace(item, error="late", result=None, over=20.0)
        if (item.cell.policy, item.cell.phone, item.cell.background, item.cell.seed) == long
        else item
        for item in made()
    ]


def test_a_run_that_was_ended_counts_with_what_it_is_at_least() -> None:
    """Its policy is no better for it, and does not come after those that are slower."""
    ranks = {rank.policy: rank for rank in ranking.ranks(report.summary(report.runs(ended("pa", "n6", 2))))}
    assert list(ranks) == ["fasttrack", "pa", "stock", "kyber"]
    pa, fasttrack = ranks["pa"], ranks["fasttrack"]
    assert (pa.measured, pa.ended, pa.near) == (8, 2, 6)
    assert pa.slowdown == pytest.approx((1.01**6 * (0.8 + 20) / 2 * (1.01 + 20) / 2) ** (1 / 8))
    assert pa.texts(cells=True)[3] == "≥ 10.51 (facebook beside update on n6)"
    assert (fasttrack.near, fasttrack.over, fasttrack.ended) == (8, pytest.approx(1.0), 0)
    assert fasttrack.texts(cells=True)[2] == "1.00"


def test_nobody_is_the_fastest_by_a_run_that_was_ended() -> None:
    """All are slower than 20 times here but one that failed: there is no fastest."""
    made_here = [
        replace(item, error="late", result=None, over=20.0) if item.cell.background == "update" else item
        for item in made()
    ]
    found = ranking.against_each_other(report.summary(report.runs(made_here)))
    assert found.filter(pl.col("background") == "update")[ranking.TO_FASTEST].is_null().all()


def test_a_cell_with_fewer_seeds_than_others_is_no_result() -> None:
    """As a comparison that goes on has it."""
    lost = {("pa", "n6", "gallery-launch", "update", 2)}
    items = [
        item
        for item in made()
        if (item.cell.policy, item.cell.phone, item.cell.scenario, item.cell.background, item.cell.seed) not in lost
    ]
    ranks = {rank.policy: rank for rank in ranking.ranks(report.summary(report.runs(items)))}
    assert (ranks["pa"].measured, ranks["fasttrack"].near) == (7, 8)


def test_what_failed_under_stock_is_no_measure_of_the_background() -> None:
    found = ranking.against_each_other(report.summary(report.runs(without("stock", "n6", 1))))
    beside = found.filter((pl.col("policy") == "fasttrack") & (pl.col("background") == "update"))
    assert dict(beside.select("phone", pl.col(ranking.BACKGROUND_TO_STOCK).is_null()).unique().iter_rows()) == {
        "s6": False,
        "n6": True,
    }


def test_ranks_fit_the_terminal() -> None:
    text = shown(report.terminal(report.runs(made())))
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    assert "4 of 8" in text


def test_policies_that_never_end_come_last() -> None:
    items = [
        replace(item, error="hung", result=None) if item.cell.policy in ("stock", "pa") else item
        for item in made()
        if item.cell.backgrounds
    ]
    ranks = ranking.ranks(report.summary(report.runs(items)))
    assert {rank.policy for rank in ranks if rank.measured == 0} == {"stock", "pa"}
    assert all(rank.texts(cells=True)[2:4] == ("-", "-") for rank in ranks)


def test_nothing_behind_is_no_cell() -> None:
    alone = [item for item in made() if item.cell.background == "none"]
    assert ranking.ranks(report.summary(report.runs(alone))) == []


def test_the_summary_has_both_ratios(tmp_path: Path) -> None:
    fill(tmp_path, made())
    report.make(tmp_path)
    found = pl.read_csv(tmp_path / report.SUMMARY_CSV)
    row = found.filter(
        (pl.col("scenario") == "facebook") & (pl.col("policy") == "stock") & (pl.col("background") == "update")
    )
    assert row[ranking.TO_FASTEST].to_list() == pytest.approx([4.0] * 2)
    assert row[ranking.BACKGROUND_TO_STOCK].to_list() == pytest.approx([1.0] * 2)


def fill(directory: Path, items: list[Record]) -> None:
    """A comparison's directory."""
    records.write_request(directory, REQUEST)
    for item in items:
        records.append(directory, item)


def test_one_page_has_every_scenario(tmp_path: Path) -> None:
    fill(tmp_path, made())
    report.make(tmp_path)
    page = Page()
    page.feed((tmp_path / report.PAGE).read_text(encoding="utf-8"))
    # A heat map and two scenarios' bars for each phone.
    assert page.figures == 2 * (1 + 2)
    assert all(address.startswith("#") for address in page.addresses)
    for text in ("a recorded session", "six apps", "facebook, phone n6", "1.25 (gallery-launch beside update on n6)"):
        assert text in page.text
    assert "8 of 72 runs failed" in page.text
    assert page.text.count("the guest hung") == 1


def test_two_scenarios_of_one_name_are_one_name() -> None:
    assert scenario_name("a/b/session.csv.gz") == "session"
    assert scenario_name("gallery-launch") == "gallery-launch"


COLUMNS = [("gallery-launch", "update"), ("gallery-launch", SIX)]


def values_on(phone: str, items: Sequence[Record]) -> plots.Values:
    """What the plots of a phone show of some runs."""
    return plots.values_of(report.summary(report.runs(items)).filter(pl.col("phone") == phone))


def texts_of(figure: Figure) -> list[str]:
    """What is written in the panels of a plot: beside its bars, in its cells."""
    return [text.get_text() for panel in figure.axes for text in panel.texts]


def framed(figure: Figure) -> list[str]:
    """The texts of the cells of a heat map that are said to be the fastest; headings are bold too."""
    cells = (text for panel in figure.axes for text in panel.texts if not isinstance(text, Annotation))
    return [text.get_text() for text in cells if text.get_fontweight() == "bold"]


def svg_texts(svg: str) -> set[str]:
    """All texts of a drawn plot."""
    return {
        "".join(element.itertext()) for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    }


def test_a_heat_map_has_every_cell_and_says_what_failed() -> None:
    values = values_on("n6", made())
    figure = plots.heat_map_figure(values, REQUEST.policies, COLUMNS)
    assert sorted(texts_of(figure)) == sorted(
        ["4.00", "4.00", "2.00", "failed", "0.80", "1.01", "1.00", "1.00", "gallery-launch"]
    )
    svg = plots.heat_map(values, REQUEST.policies, COLUMNS)
    assert {*texts_of(figure), "six apps", *REQUEST.policies} <= svg_texts(svg)
    assert plots.heat_map(values, REQUEST.policies, COLUMNS) == svg


def test_a_heat_map_marks_what_failed_in_part() -> None:
    figure = plots.heat_map_figure(values_on("n6", without("pa", "n6", 2)), REQUEST.policies, COLUMNS)
    assert "0.80*" in texts_of(figure)
    assert framed(figure) == ["1.00", "1.00"]


def test_bars_show_slowdown_and_throughput() -> None:
    values = values_on("s6", made())
    figure = plots.bars_figure(values, REQUEST.policies, "facebook", ["update", SIX])
    slowdown, throughput, *_ = figure.axes
    assert [text.get_text() for text in slowdown.texts] == [
        "4.00 (4.00 s)",
        "2.00 (2.00 s)",
        "1.01 (1.01 s)",
        "1.00 (1.00 s)",
    ]
    assert (slowdown.get_xlabel(), throughput.get_xlabel()) == ("slowdown", "background (MB/s)")
    assert [text.get_text() for panel in figure.axes[2:] for text in panel.texts].count("failed") == 2
    svg = plots.bars(values, REQUEST.policies, "facebook", ["update", SIX])
    assert {*texts_of(figure), "slowdown", "background (MB/s)", "six apps"} <= svg_texts(svg)


def whiskers(panel: Axes) -> list[tuple[float, float]]:
    """From where to where each whisker of a panel reaches, on its axis."""
    found = [bars.lines[2][0].get_segments()[0] for bars in panel.containers if isinstance(bars, ErrorbarContainer)]
    return [(float(segment[0][0]), float(segment[1][0])) for segment in found]


def test_bars_have_the_spread_over_the_seeds() -> None:
    """fasttrack takes half and one and a half times as long with its two seeds; stock is exact."""
    both = [
        record(cell, respond(cell) * (cell.seed - 0.5 if cell.policy == "fasttrack" else 1.0))
        for cell in records.plan(REQUEST)
        if cell.policy in ("stock", "fasttrack")
    ]
    figure = plots.bars_figure(values_on("s6", both), ("stock", "fasttrack"), "gallery-launch", ["update"])
    slowdown, throughput = map(whiskers, figure.axes)
    assert slowdown == [pytest.approx((4.0, 4.0)), pytest.approx((0.5, 1.5))]
    (exact, equal), (low, high) = throughput
    assert exact == pytest.approx(equal) and low < high


def test_the_heat_map_frames_whom_the_ranks_name() -> None:
    """A seed of two is all that there is of the fastest yet."""
    begun = [item for item in made() if (item.cell.policy, item.cell.seed) != ("pa", 2)]
    figure = plots.heat_map_figure(values_on("n6", begun), REQUEST.policies, COLUMNS)
    assert framed(figure) == ["1.00", "1.00"]


def test_the_shortest_bar_is_seen_on_a_logarithmic_axis() -> None:
    """Four times as fast as alone, beside one that is ten times as slow."""
    times = {"fasttrack": 0.25, "stock": 10.0}
    both = [
        record(cell, times[cell.policy] if cell.backgrounds else 1.0)
        for cell in records.plan(REQUEST)
        if cell.policy in times
    ]
    figure = plots.bars_figure(values_on("s6", both), ("stock", "fasttrack"), "gallery-launch", ["update"])
    slowdown = figure.axes[0]
    assert slowdown.get_xscale() == "log"
    assert [text.get_text() for text in slowdown.texts] == ["10 (10.00 s)", "0.25 (0.25 s)"]
    begin, end = slowdown.get_xlim()
    shortest, longest = sorted(bar.get_x() + bar.get_width() for bar in slowdown.patches)
    assert begin < shortest == pytest.approx(0.25) and longest == pytest.approx(10.0) and longest < end


def test_plots_of_a_comparison_that_has_just_begun() -> None:
    """What has no run yet is empty, and no failure."""
    values = values_on("s6", [item for item in made() if item.cell.policy == "stock"])
    heat = plots.heat_map_figure(values, REQUEST.policies, COLUMNS)
    assert sorted(texts_of(heat)) == ["4.00", "4.00", "gallery-launch"]
    bars = plots.bars_figure(values, REQUEST.policies, "gallery-launch", ["update"])
    assert [len(panel.patches) for panel in bars.axes] == [1, 1]
    assert [text.get_text() for text in bars.axes[0].texts] == ["4.00 (4.00 s)"]


def test_long_sets_take_several_lines() -> None:
    assert plots.wrapped("update", 20) == "update"
    assert plots.wrapped(SIX, 9) == "six apps"
    assert plots.wrapped(SIX, 5) == "six\napps"
    assert plots.wrapped("backup+download+photo-upload+scan+sync", 20) == "backup+download+\nphoto-upload+scan+\nsync"
    assert plots.wrapped("smartio-browser-launch", 9) == "smartio-\nbrowser-\nlaunch"
