# SPDX-License-Identifier: GPL-2.0-only
"""SmartIO's twenty apps: what the table makes of each, what the block layer counts, what the figures say of them."""

from __future__ import annotations

import io
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from jobs import step, thread
from rich.console import Console
from test_figures import Respond, record

from fasttrack_lab.compare.records import Record
from fasttrack_lab.figures import catalogue, figures_page, paper
from fasttrack_lab.figures import smartio_poster as figures
from fasttrack_lab.figures.grid import cells
from fasttrack_lab.figures.measured import Measured
from fasttrack_lab.host.errors import InputError, UsageProblem
from fasttrack_lab.inputs import phone, policy, scenario, smartio
from fasttrack_lab.inputs.cell import Cell
from fasttrack_lab.inputs.smartio import generate
from fasttrack_lab.inputs.smartio.generate import PLACE
from fasttrack_lab.inputs.smartio.mix import Mix, Overhead, launch_mix, run_mix
from fasttrack_lab.inputs.smartio.table import rows
from fasttrack_lab.inputs.steps import Step
from fasttrack_lab.run.runner import RunSpec, Tools, run_many
from fasttrack_lab.run.specs import spec_of

APPS = smartio.apps()
PREPARED_LIMIT = 250 << 20
NONE = Overhead(0, 0)
LIMIT_OF_ROUNDING = 0.06
"""A transaction is 13 writes, a synced file 3."""


def split(app: str, kind: str) -> tuple[list[Step], list[Step]]:
    """All steps of a scenario, before and after the touch."""
    before: list[Step] = []
    after: list[Step] = []
    for one in scenario.load(smartio.name_of(app, kind)).app.threads:
        at = -1 if one.after_touch else [inner.op for inner in one.steps].index("touch")
        before += one.steps[: max(at, 0)]
        after += one.steps[at + 1 :]
    return before, after


def counted(steps: list[Step]) -> Mix:
    """The mix of some steps, without what belongs to no single one."""
    kinds = Counter(step.fields.get("kind", step.op) for step in steps)
    reads = Counter(str(step.fields["file"]).startswith("cache/") for step in steps if step.op == "read")
    return Mix(
        faults=kinds["mmap"],
        large=reads[True],
        selects=kinds["select"],
        small=reads[False],
        inserts=kinds["insert"],
        synced=kinds["fsync"],
        plain=kinds["write"] - kinds["fsync"],
        overhead=NONE,
    )


def test_there_are_twenty_apps_and_sixty_scenarios() -> None:
    assert len(APPS) == len(set(APPS)) == 20
    assert len({row.seed for row in rows().values()}) == 20
    names = smartio.names()
    assert len(names) == 60 and names[:3] == [
        "smartio-browser-launch",
        "smartio-browser-run",
        "smartio-browser-install",
    ]
    loaded = [scenario.load(name) for name in names]
    assert [one.name for one in loaded] == names
    assert len({one.app.uid for one in loaded}) == 20
    assert all(one.role == "foreground" and one.prepared_bytes <= PREPARED_LIMIT for one in loaded)
    assert not set(names) & set(scenario.available()), "the list of scenarios would not fit a line"


@pytest.mark.parametrize("app", APPS)
def test_a_launch_has_five_reads_to_a_write_and_run_time_half_its_ios(app: str) -> None:
    row = rows()[app]
    launch, run = launch_mix(row), run_mix(row)
    ios = launch.reads + launch.writes
    assert ios == pytest.approx(row.ios, rel=LIMIT_OF_ROUNDING)
    assert launch.reads / launch.writes == pytest.approx(5, rel=LIMIT_OF_ROUNDING)
    assert (run.reads + run.writes) / ios == pytest.approx(0.5, rel=LIMIT_OF_ROUNDING)
    assert run.reads / run.writes == pytest.approx(2, rel=LIMIT_OF_ROUNDING)
    assert min(launch.small, run.small, launch.synced, run.synced) > 0


@pytest.mark.parametrize("app", APPS)
def test_scenarios_do_what_the_mix_says(app: str) -> None:
    row = rows()[app]
    nothing, launch = split(app, "launch")
    before, run = split(app, "run")
    assert nothing == []
    assert counted(launch) == replace(launch_mix(row), overhead=NONE)
    assert counted(run) == replace(run_mix(row), overhead=NONE)
    assert [(step.op, step.fields) for step in before] == [(step.op, step.fields) for step in launch]


@pytest.mark.parametrize("app", APPS)
def test_every_read_is_new_and_as_large_as_the_table_says(app: str) -> None:
    """No read finds in the cache what another has brought."""
    row = rows()[app]
    steps = [step for part in split(app, "run") for step in part]
    pieces = [step.fields for step in steps if step.op == "read" and step.fields["file"] == "base.apk"]
    places = [piece["offset"] / PLACE for piece in pieces]
    assert all(place == int(place) for place in places) and len(set(places)) == len(places)
    assert all(row.small.low <= piece["bytes"] <= row.small.high for piece in pieces)
    whole = [
        step.fields["file"] for step in steps if step.op == "mmap" or step.fields.get("file", "").startswith("cache/")
    ]
    sizes = {item.path: item.bytes for item in scenario.load(smartio.name_of(app, "run")).app.files}
    assert len(set(whole)) == len(whole)
    assert {sizes[file] >= (128 << 10) for file in whole if file.startswith("lib/")} == {True}
    assert all(row.item.low <= sizes[file] <= row.item.high for file in whole if file.startswith("cache/"))
    assert max(sizes[file] for file in whole) <= 512 << 10, "n6 would need two requests"
    written = [step.fields for step in steps if step.op == "write"]
    assert all(row.write.low <= one["bytes"] <= row.write.high for one in written)


@pytest.mark.parametrize("app", APPS)
def test_the_scenarios_of_an_app_share_a_prepared_phone(app: str) -> None:
    loaded = [scenario.load(smartio.name_of(app, kind)) for kind in smartio.KINDS]
    assert len({(one.app.name, one.app.uid, one.app.files) for one in loaded}) == 1
    assert sum(one.app.files[0].bytes for one in loaded[:1]) == rows()[app].package


def test_a_row_and_its_seed_are_the_scenario() -> None:
    row = rows()["maps"]
    for make in smartio.KINDS.values():
        assert make(row) == make(replace(row))
        assert make(row) != make(replace(row, seed=row.seed + 1))


def test_the_launch_before_run_time_ends_before_the_writer_starts() -> None:
    touch = scenario.load("smartio-racing-run").touch
    lead = scenario.load_background(figures.WRITER).app.lead
    assert lead is not None
    slowest_s = max(row.think_s for row in rows().values()) * 3
    assert touch.low - lead.high > slowest_s


@pytest.mark.parametrize("kind", smartio.KINDS)
def test_every_app_runs_beside_its_background(kind: str) -> None:
    behind = [scenario.load_background(figures.BESIDE[kind])]
    for app in APPS:
        front = scenario.load(smartio.name_of(app, kind))
        job = spec_of(front, behind, phone.load("s6"), policy.load("stock"), 1).job
        assert job["apps"][0]["name"] == app
        assert len({entry["uid"] for entry in job["apps"]}) == 1 + len(behind[0].apps)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("smartio-browser-lunch", "did you mean 'smartio-browser-launch'"),
        ("smartio-crhome-run", "smartio-APP-launch|run|install with APP one of browser, mail, maps, "),
        ("galery-launch", "did you mean 'gallery-launch'"),
    ],
)
def test_an_unknown_name_names_the_pattern(name: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        scenario.load(name)
    text = str(caught.value)
    assert says in text and "\n" not in text
    assert len(re.findall(r"smartio-[a-z]+-", text)) <= 2, "the names of all apps' scenarios are not listed"


def test_an_installer_is_not_a_background() -> None:
    with pytest.raises(InputError, match="is a foreground one; background scenarios: .*install, .*readers"):
        scenario.load_background("smartio-browser-install")


def table(tmp_path: Path, **changed: str) -> Path:
    """A table of two rows; the second is changed."""
    good = {
        "name": '"one"',
        "what": '"an app"',
        "seed": "1",
        "ios": "120",
        "mmap": "0.2",
        "large": "0.1",
        "sqlite": "0.3",
        "small": '"4 KiB .. 8 KiB"',
        "item": '"8 KiB .. 16 KiB"',
        "write": '"4 KiB .. 8 KiB"',
        "fsync": "0.5",
        "loaders": "1",
        "think": '"100 ms"',
        "package": '"8 MiB"',
    }
    other = good | {"name": '"two"'} | changed
    lines = ["  { " + ", ".join(f"{key} = {value}" for key, value in row.items()) + " }," for row in (good, other)]
    path = tmp_path / "apps.toml"
    path.write_text("\n".join(["app = [", *lines, "]"]), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"name": '"one"'}, "app 'one' is there twice"),
        ({"name": '"Two-2"'}, "small letters and digits"),
        ({"mmap": "1.5"}, "mmap: 1.5 must be a number from 0 to 1"),
        ({"mmap": "0.6", "large": "0.6"}, "more than all"),
        ({"fsync": "0"}, "give a part above 0"),
        ({"loaders": "0"}, "loaders: 0 is below 1"),
        ({"think": '"fast"'}, "think: .*is not a time"),
        ({"speed": "3"}, "unknown key 'speed'"),
    ],
)
def test_a_bad_row_is_named_by_its_line(tmp_path: Path, changed: dict[str, str], says: str) -> None:
    assert list(rows(table(tmp_path))) == ["one", "two"]
    rows.cache_clear()
    with pytest.raises(InputError, match=rf"apps.toml:3: .*{says}"):
        rows(table(tmp_path, **changed))


def test_a_package_too_small_for_its_reads_is_refused(tmp_path: Path) -> None:
    row = rows(table(tmp_path, package='"1 MiB"'))["two"]
    with pytest.raises(InputError, match="app 'two' reads .* places, its package has 16"):
        generate.launch(row)


# What the block layer counts.

COUNTED = ("chat", "puzzle")
"""One that lives in its database, one that reads content."""
PARTS = ("neutral", "background", "foreground")


def doing_nothing(spec: RunSpec) -> RunSpec:
    """The same phone with an app that only waits."""
    (app,) = spec.job["apps"]
    nothing = thread("ui", [step("think", s=1.0)], after_touch=True)
    return replace(spec, job={**spec.job, "apps": [app | {"threads": [nothing]}]})


@pytest.mark.guest
@pytest.mark.parametrize("phone_name", figures.PHONES)
@pytest.mark.parametrize("app", COUNTED)
def test_the_block_layer_counts_what_the_table_says(tools: Tools, app: str, phone_name: str) -> None:
    """Commands at the device, beside those of mounting."""
    on, stock = phone.load(phone_name), policy.load("stock")
    fronts = [scenario.load(smartio.name_of(app, kind)) for kind in ("launch", "run")]
    launch, run = (spec_of(front, [], on, stock, 1) for front in fronts)
    shown = [result.to_json() for result in run_many([doing_nothing(launch), launch, run], tools)]
    assert all(one["ok"] for one in shown), [one["error"] for one in shown]
    reads, writes = (
        [sum(one["device"][f"{op}_{part}"] for part in PARTS) for one in shown] for op in ("read", "write")
    )
    launch_reads, launch_writes = reads[1] - reads[0], writes[1] - writes[0]
    run_reads, run_writes = reads[2] - reads[1], writes[2] - writes[1]
    print(f"{app} on {phone_name}: launch {launch_reads}:{launch_writes}, run time {run_reads}:{run_writes}")
    assert launch_reads + launch_writes == pytest.approx(rows()[app].ios, rel=0.15)
    assert launch_reads / launch_writes == pytest.approx(5, rel=0.2)
    assert (run_reads + run_writes) / (launch_reads + launch_writes) == pytest.approx(0.5, rel=0.15)
    assert run_reads / run_writes == pytest.approx(2, rel=0.2)


# The figures.


def poster_world(cell: Cell) -> float:
    """Delays as the poster has them: the best app by its numbers, the others by less."""
    if not cell.backgrounds:
        return 0.5
    if cell.policy == "stock":
        return 1.0
    best = "browser" in cell.scenario
    return {"launch": 0.622 if best else 0.75, "run": 0.704 if best else 0.85, "install": 1.076}[
        cell.scenario.rsplit("-", 1)[1]
    ]


def records_of(respond: Respond, broken: str = "") -> list[Record]:
    """All runs of SmartIO's figures; those of a broken scenario failed."""
    every = cells((grid for figure in figures.FIGURES for grid in figure.grids), 1)
    return [record(cell, respond(cell), "it hung" if cell.scenario == broken else None) for cell in every]


def test_runs_of_the_figures() -> None:
    by_name = {figure.name: cells(figure.grids, 3) for figure in figures.FIGURES}
    assert {name: len(found) for name, found in by_name.items()} == {
        "smartio-fig2": 20 * 2 * 3 * 2 * 3,
        "smartio-install": 20 * 3 * 2 * 3,
    }
    assert {cell.policy for cell in by_name["smartio-fig2"]} == {"stock", "smartio"}
    assert {cell.background for cell in by_name["smartio-install"]} == {"none", "readers"}


def test_the_figures_are_made_when_named() -> None:
    assert catalogue.chosen((), paper.PHONES) == list(paper.FIGURES)
    assert [one.name for one in catalogue.chosen(("smartio-install", "fig6"), paper.PHONES)] == [
        "smartio-install",
        "fig6",
    ]
    assert catalogue.chosen(("smartio-fig2",), ("s6",))[0].phones == ("s6",)
    with pytest.raises(UsageProblem, match="smartio-fig2 is of n6, s6"):
        catalogue.chosen(("smartio-fig2",), ("p1",))


def test_the_posters_numbers_agree_and_reach_the_goals() -> None:
    measured = Measured(records_of(poster_world))
    found = {claim.id: finding for _, claim, finding in figures_page.findings(figures.FIGURES, measured)}
    assert {name: finding.agrees for name, finding in found.items()} == {"S2": True, "S3": True}
    assert found["S2"].why.endswith("run time, most -30 % here, -30 % in the poster")
    assert [goal.verdict for _, goal in figures_page.reached(figures.FIGURES, measured)] == ["met"] * 6


def test_stock_in_its_place_differs_and_misses() -> None:
    measured = Measured(records_of(lambda cell: 1.0 if cell.policy == "stock" or "chat" not in cell.scenario else 1.2))
    found = {claim.id: finding for _, claim, finding in figures_page.findings(figures.FIGURES, measured)}
    assert found["S2"].agrees is False and found["S3"].here == "mean +1 %"
    goals = [goal for _, goal in figures_page.reached(figures.FIGURES, measured)]
    assert [goal.verdict for goal in goals] == ["missed", "missed", "missed", "met", "met", "met"]
    assert goals[0].missed == "on n6 1.01; on s6 1.01"
    assert goals[2].missed.startswith(
        "launch of chat on n6 1.20; launch of chat on s6 1.20; run time of chat on n6 1.20"
    )


def test_writes_that_wait_too_long_miss_their_goal() -> None:
    made = records_of(poster_world)
    for one in made:
        if one.result and one.cell.scenario == "smartio-chat-run" and one.cell.policy == "smartio":
            one.result["elevator"]["write_wait_max_us"] = 112_000
    goals = [goal for _, goal in figures_page.reached(figures.FIGURES, Measured(made))]
    assert [goal.verdict for goal in goals] == ["met", "met", "met", "missed", "met", "met"]
    assert goals[3].missed == "run time of chat on n6 0.106; run time of chat on s6 0.104"
    for one in made:
        if one.result:
            one.result.pop("elevator")
    unknown = [
        goal for _, goal in figures_page.reached(figures.FIGURES, Measured(made)) if goal.verdict == "not measured"
    ]
    assert len(unknown) == 2


def test_a_failed_run_leaves_its_statement_unmeasured_and_misses_its_goal() -> None:
    measured = Measured(records_of(poster_world, broken="smartio-radio-install"))
    verdicts = {claim.id: finding.verdict for _, claim, finding in figures_page.findings(figures.FIGURES, measured)}
    assert verdicts == {"S2": "agrees", "S3": "not measured"}
    *_, mean, waits = (goal for _, goal in figures_page.reached(figures.FIGURES, measured))
    assert (mean.here, mean.verdict) == ("failed", "missed")
    assert (waits.here, waits.verdict) == ("failed", "missed") and "installation of radio on " in waits.missed


def test_the_page_has_plots_goals_and_the_source(tmp_path: Path) -> None:
    made = records_of(poster_world)
    found, met = figures_page.make(
        tmp_path, figures.FIGURES, made, 1, "./fasttrack figures smartio-fig2 smartio-install"
    )
    text = (tmp_path / figures_page.PAGE).read_text(encoding="utf-8")
    assert text.count("<svg") == 3
    assert "MobiSys 2014 poster" in text and "USENIX ATC" not in text
    assert text.count("<td>met</td>") == 6
    assert pl.read_csv(tmp_path / figures_page.GOALS_CSV)["verdict"].to_list() == ["met"] * 6
    console = Console(file=io.StringIO(), width=80, no_color=True)
    console.print(figures_page.terminal_table(found, met))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert max(map(len, shown.splitlines())) <= 80
    assert shown.count("goal ") == 6 and "at most 1.10" in shown
