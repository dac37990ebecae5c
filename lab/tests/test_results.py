# SPDX-License-Identifier: GPL-2.0-only
"""docs/RESULTS.md: what it has, and what it says of runs that failed."""

from __future__ import annotations

import lzma
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from test_compare import Lab, lab  # noqa: F401
from test_figures import Respond, record, useless

from fasttrack_lab.commands import results
from fasttrack_lab.compare import archive, comparison, records, report
from fasttrack_lab.compare.records import Record
from fasttrack_lab.figures import goals, markdown
from fasttrack_lab.figures.grid import cells
from fasttrack_lab.figures.paper import FIGURES
from fasttrack_lab.host.errors import InputError, LabError
from fasttrack_lab.inputs.cell import Cell
from fasttrack_lab.inputs.lru import KERNEL_LRU


@pytest.fixture(autouse=True)
def no_recordings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page has a recording where there is one."""
    monkeypatch.setenv("FASTTRACK_DATA", "/nonexistent")


def results_text(respond: Respond, hung: Callable[[Cell], bool] = lambda _: False) -> str:
    """docs/RESULTS.md of some world, two seeds, where some runs have HUNG."""
    planned = cells(markdown.grids(), 2)
    made = [record(one, respond(one), "it hung" if hung(one) else None) for one in planned]
    return markdown.markdown(made, 2, "abcd")


def says_failed(text: str) -> bool:
    """Whether a cell of a table or the list at the end says so."""
    return bool(re.search(r"\d failed|\| failed \||# Failed", text))


def test_results_have_every_cell_and_its_command() -> None:
    text = results_text(useless)
    lines = text.splitlines()
    assert "| camera-switch | update | n5 | 1.05 (1.00–1.10) | 2.00 | 2.00 | 2.00 | 2.00 | 2.00 |" in lines
    assert "| camera-switch | update | n5 | 0.50 | 0.50 | 0.50 | 0.50 | 0.50 |" in lines
    assert "| gallery-launch | twelve apps | s6 | 1.05 (1.00–1.10) | 13.00 | 13.00 | 13.00 |" in lines
    assert sum(line.startswith("| gallery-launch | ") for line in lines) == 2 * (4 * (2 * 4 + 2 * 2) + 2 * 2)
    assert (
        "./fasttrack compare game-load --phones n5,n6,s6,p1 --policies stock,none,kyber,bfq,fasttrack "
        "--backgrounds update,backup --seeds 2" in text.replace(" \\\n  ", " ")
    )
    assert sum(line.startswith("| F1") and line.endswith("| differs |") for line in lines) == 9
    assert all(note in " ".join(text.split()) for note in report.NOTES)
    assert not says_failed(text)


def test_every_policy_is_ranked_and_where_fasttrack_is_slower_is_said() -> None:
    """FastTrack is a tenth slower than id beside six apps on s6, and not slower than anybody elsewhere."""

    def world(cell: Cell) -> float:
        slower = cell.phone == "s6" and len(cell.backgrounds) == 6 and cell.scenario == "game-load"
        return 1.1 if slower and cell.policy != "id" else 1.0

    text = results_text(world)
    part = text[text.index("## Every policy") : text.index("## The paper's statements")]
    assert "| id | 18 | 1.00 | 1.00 (gallery-launch beside update on n6) | 18 | 1.00 | 1.01 |" in part.splitlines()
    assert "| game-load | six apps | s6 | 1.100 | id | 1.000 | 1.100 |" in part.splitlines()
    assert "compare --policies all --seeds 2" in part
    assert "game-load beside six apps on s6 1.10 | missed |" in text


def test_a_cell_where_a_seed_of_fasttrack_failed_is_said() -> None:
    """The seed that is left is the fastest."""
    lost = ("fasttrack", "s6", "game-load", "update", 2)
    text = results_text(
        lambda one: 0.5 if one.policy == "fasttrack" else 1.0,
        lambda one: (one.policy, one.phone, one.scenario, one.background, one.seed) == lost,
    )
    part = text[text.index("## Every policy") : text.index("## The paper's statements")]
    assert re.search(r"^\| game-load \| update \| s6 \| failed \| [a-z-]+ \| 1\.000 \| - \|$", part, re.MULTILINE)
    assert "\n| fasttrack | 17 of 18 | 0.50 | " in part
    assert "\n| id | 18 | 1.00 | " in part
    assert "response time over the fastest of all policies', worst of 18 | at most 1.02 | failed | " in text


def test_statements_that_differ_have_a_cause() -> None:
    text = results_text(useless)
    differ = {line.split(" | ")[0].strip("| ") for line in text.splitlines() if line.endswith("| differs |")}
    causes = {line[2:].split(": ")[0] for line in text.splitlines() if line.startswith(("- F", "- S")) and ": " in line}
    assert differ and differ <= causes


def goals_of(respond: Respond) -> dict[str, list[str]]:
    """Goal, number, where it is missed, and verdict, by what it is about, in some world."""
    return goals_in(results_text(respond))


def goals_in(text: str) -> dict[str, list[str]]:
    """The same, of a page."""
    part = text[text.index("## Goals") : text.index("## One background app")]
    rows = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| ")][2:]
    return {row[0]: row[1:] for row in rows}


def test_goals_are_met_where_nothing_is_slower() -> None:
    found = goals_of(lambda cell: 0.26 if cell.policy in ("fasttrack-minus", "fasttrack") else 1.0)
    assert len(found) == 39
    assert {row[-1] for row in found.values()} == {"met"}
    assert found["fasttrack-minus against stock, average"] == ["-74 %", "-74.0 %", "-", "met"]


def test_what_is_little_over_a_goal_does_not_look_like_it() -> None:
    goal = goals.at_most("x", 0.80, {"on s6": 0.804, "on n6": 0.69})
    assert (goal.goal, goal.here, goal.missed, goal.verdict) == ("at most 0.80", "0.804", "on s6 0.804", "missed")
    assert goals.at_most("x", 0.80, {"on s6": 0.796}).here == "0.80"


def test_every_platform_has_goals_of_its_own() -> None:
    """Slowdown and longest hold, of the cells of the platform alone."""
    called = {
        ("", KERNEL_LRU): "one app",
        ("f2fs", KERNEL_LRU): "f2fs",
        ("", "mglru"): "MGLRU",
        ("f2fs", "mglru"): "f2fs and MGLRU",
    }
    assert set(called) == {section.grid.platform for section in markdown.SECTIONS}

    def held(cell: Cell, platform: tuple[str, str]) -> Record:
        made = record(cell, 1.0)
        here = cell.policy == "fasttrack" and (cell.fs, cell.lru, cell.phone) == (*platform, "n5")
        assert made.result is not None
        counters = made.result["counters"] | {"pause_max_us": 1_500_000 * here}
        return replace(made, result=made.result | {"counters": counters})

    for platform, name in called.items():
        made = [held(one, platform) for one in cells(markdown.grids(), 1)]
        found = goals_in(markdown.markdown(made, 1, "k"))
        holds = {what: row for what, row in found.items() if what.startswith("longest hold")}
        assert {what for what, row in holds.items() if row[-1] == "missed"} == {
            f"longest hold of a background task less one request of the device, {name}, worst of 24"
        }
        assert f"slowdown, {name}, worst of 24" in found


@pytest.mark.parametrize(("policy", "verdict"), [("stock", "met"), ("fasttrack", "missed")])
def test_a_failed_atomic_allocation_under_fasttrack_misses_a_goal(policy: str, verdict: str) -> None:
    """Under stock it does not: Linux does it by itself."""
    made = [record(one, 1.0) for one in cells(markdown.grids(), 1)]
    index = next(i for i, one in enumerate(made) if one.cell.policy == policy)
    first = made[index]
    assert first.result is not None
    noticed = first.result | {"log_problems": ["page allocation failure (line 7): x"]}
    made[index] = replace(first, result=noticed)
    text = markdown.markdown(made, 1, "k")
    row = goals_in(text)["runs of fasttrack with a failed atomic allocation"]
    assert row[-1] == verdict
    assert (row[2] == first.cell.text()) == (policy == "fasttrack")
    assert f"- {policy}, 1: {first.cell.text()}" in text.splitlines()


AVERAGE = "average, none counted as faster than alone"
EVERYWHERE = ("", *(f", {called}" for called, _, _ in markdown.OTHER_PLATFORMS))
"""How the goals of each platform end."""


def test_missed_goals_name_the_worst_cells() -> None:
    """On f2fs alone, FastTrack is slow beside update on n5; elsewhere it loses to bfq once; twelve apps hurt."""

    def world(cell: Cell) -> float:
        where = (cell.fs, cell.lru, cell.scenario, cell.phone, cell.background)
        if cell.policy == "fasttrack" and where == ("f2fs", KERNEL_LRU, "game-load", "n5", "update"):
            return 1.4
        if cell.policy == "bfq" and where == ("", KERNEL_LRU, "game-load", "p1", "backup"):
            return 0.8
        return 1.2 if cell.policy == "fasttrack" and len(cell.backgrounds) == 12 else 1.0

    found = goals_of(world)
    missed = {name: row for name, row in found.items() if row[-1] == "missed"}
    assert missed == {
        "response time over the best of stock, none, kyber, bfq, worst of 24": [
            "at most 1.00",
            "1.25",
            "game-load beside backup on p1 1.25",
            "missed",
        ],
        "response time over the best of stock, bfq, six and twelve apps, worst of 12": [
            "at most 1.00",
            "1.20",
            "gallery-launch beside twelve apps on n6 1.20; gallery-launch beside twelve apps on s6 1.20; "
            "camera-switch beside twelve apps on n6 1.20; and 3 more",
            "missed",
        ],
        "slowdown, f2fs, worst of 24": ["at most 1.10", "1.40", "game-load beside update on n5 1.40", "missed"],
        "response time over the best of stock, none, kyber, bfq, f2fs, worst of 24": [
            "at most 1.00",
            "1.40",
            "game-load beside update on n5 1.40",
            "missed",
        ],
        **{
            f"fasttrack-minus against stock{where}, average": ["-74 %", "+0.0 %", "-", "missed"] for where in EVERYWHERE
        },
        **{
            f"slowdown with twelve apps less that with six{where}, worst of 6": [
                "at most 0.05",
                "0.20",
                "gallery-launch on n6 0.20; gallery-launch on s6 0.20; camera-switch on n6 0.20; and 3 more",
                "missed",
            ]
            for where in EVERYWHERE
        },
    }
    assert found[f"slowdown, f2fs, {AVERAGE}"][1] == "1.02"


def test_faster_than_alone_is_no_part_of_an_average() -> None:
    """Half of the cells take a third of the time alone, the others 1.2 times as long."""

    def world(cell: Cell) -> float:
        return {"update": 1 / 3, "backup": 1.2}.get(cell.background, 1.0)

    assert goals_of(world)[f"slowdown, one app, {AVERAGE}"] == ["at most 1.05", "1.10", "-", "missed"]


def test_a_goal_is_missed_where_a_seed_failed() -> None:
    """The seed that is left is fast, and holds nobody."""
    lost = ("mglru", "game-load", "n5", "backup", 2)
    text = results_text(
        lambda one: 0.1 if one.policy.startswith("fasttrack") else 1.0,
        lambda one: (one.lru, one.scenario, one.phone, one.background, one.seed) == lost,
    )
    found = goals_in(text)
    where = "game-load beside backup on n5 failed"
    assert {what: row for what, row in found.items() if row[-1] != "met"} == {
        name: [goal, "failed", place, "missed"]
        for called in ("MGLRU", "f2fs and MGLRU")
        for name, goal, place in (
            (f"slowdown, {called}, worst of 24", "at most 1.10", where),
            (f"slowdown, {called}, {AVERAGE}", "at most 1.05", "-"),
            (f"response time over the best of stock, none, kyber, bfq, {called}, worst of 24", "at most 1.00", where),
            (
                f"longest hold of a background task less one request of the device, {called}, worst of 24",
                "at most 1.000 s",
                where,
            ),
            (f"fasttrack-minus against stock, {called}, average", "-74 %", where),
        )
    }


def test_a_seed_that_failed_is_no_part_of_what_the_device_brings() -> None:
    lost = ("fasttrack-minus", "camera-switch", "n6", "update", 1)
    text = results_text(
        lambda one: 0.1 if one.policy == "fasttrack-minus" else 1.0,
        lambda one: (one.policy, one.scenario, one.phone, one.background, one.seed) == lost,
    )
    found = goals_in(text)["fasttrack-minus against stock, average"]
    assert found == ["-74 %", "failed", "camera-switch beside update on n6 failed", "missed"]


def test_a_goal_without_its_counters_is_not_measured() -> None:
    made = [record(one, 1.0) for one in cells(markdown.grids(), 1)]
    bare = [replace(one, result=(one.result or {}) | {"counters": {}}) for one in made]
    lacking = {what for what, row in goals_in(markdown.markdown(bare, 1, "k")).items() if row[-1] == "not measured"}
    assert lacking and all(what.startswith("no result: longest_hold_s of gallery-launch on ") for what in lacking)


CLEAN = "failed runs of fasttrack and its peers: all policies but stock and none"


def test_every_run_of_a_peer_is_to_end() -> None:
    """stock and none do not count, nor do runs of other parts of the page."""
    assert goals_of(useless)[CLEAN] == ["at most 0", "0 of 720", "-", "met"]
    broken = {
        "stock": ("gallery-launch",),
        "none": markdown.SCENARIOS,
        "kyber": ("game-load",),
        "bfq": markdown.SCENARIOS,
    }
    made = [
        record(
            one,
            1.0,
            "hung"
            if one.scenario in broken.get(one.policy, ()) and one.backgrounds and (one.policy, one.seed) != ("bfq", 2)
            else None,
        )
        for one in cells(markdown.grids(), 2)
    ]
    (line,) = (line for line in markdown.markdown(made, 2, "k").splitlines() if line.startswith(f"| {CLEAN}"))
    assert line.split(" | ")[2] == "30 of 720"
    worst = line.split(" | ")[3].split("; ")
    assert [name[-1] for name in worst[:3]] == ["2"] * 3 and worst[3] == "and 21 more"
    assert worst[0].startswith("kyber, game-load beside ")
    assert line.endswith(" | missed |")


def test_failed_runs_are_said_where_they_are_missed() -> None:
    text = results_text(useless, lambda one: (one.policy, one.seed) == ("kyber", 2))
    assert "| camera-switch | update | n5 | 1.05 (1.00–1.10) | 2.00 | 2.00 | 2.00, 1 failed | 2.00 | 2.00 |" in text
    assert "## Failed runs" in text
    assert "- 102 failed: gallery-launch on n5, kyber, background update, seed 2; " in text
    assert text.endswith("; ...: it hung\n")


def test_runs_that_were_ended_are_shown_and_in_no_mean() -> None:
    """All of kyber's beside a backup, and one seed of bfq's."""

    def over(cell: Cell) -> bool:
        return bool(cell.backgrounds) and (
            (cell.policy, cell.background) == ("kyber", "backup") or (cell.policy, cell.seed) == ("bfq", 2)
        )

    planned = cells(markdown.grids(), 2)
    made = [replace(record(one, useless(one), "late"), over=20.0) if over(one) else record(one, 1.0) for one in planned]
    lines = markdown.markdown(made, 2, "k").splitlines()
    assert "| camera-switch | backup | n5 | 1.00 | 1.00 | 1.00 | > 20x | 1.00, 1 > 20x | 1.00 |" in lines
    assert "## Runs that were ended" in lines and "## Failed runs" not in lines
    assert any(line.startswith(f"| {CLEAN} | at most 0 | 0 of 720 | ") for line in lines)


def test_what_is_ended_when_long_is_of_peers_alone() -> None:
    planned = cells(markdown.grids(), 5)
    capped = markdown.capped(planned, 5)
    assert capped and all(cell.backgrounds for cell in capped)
    assert {"stock", "fasttrack", "fasttrack-minus"}.isdisjoint({cell.policy for cell in capped})
    stated = {cell for figure in FIGURES for grid in figure.grids for cell in cells([grid], 5)}
    assert capped.isdisjoint(stated)
    assert {"bfq", "kyber", "none", "rcp"} <= {cell.policy for cell in capped}


def test_the_command(lab: Lab, tmp_path: Path) -> None:  # noqa: F811
    target = tmp_path / "docs" / "RESULTS.md"
    arguments = ["--seeds", "1", "--out", str(tmp_path / "out"), "--file", str(target)]
    lab.broken = {"kyber/update/1"}
    failed = CliRunner().invoke(results.command, arguments)
    assert failed.exit_code == 1
    assert "| failed |" in target.read_text()
    lab.broken, lab.ran = set(), []
    assert CliRunner().invoke(results.command, arguments).exit_code == 1
    assert lab.ran == []
    done = CliRunner().invoke(results.command, [*arguments, "--again-failed"])
    assert done.exit_code == 0, done.output
    assert set(lab.ran) == {"kyber/update/1"}
    assert target.read_text().startswith("# Results\n")
    count = len(cells(markdown.grids(), 1))
    time = f"{count} runs in {records.duration_text(count * 90)} of real time"
    assert time in done.output and f"`. {time}.\n" in target.read_text()
    assert not says_failed(target.read_text())


def test_the_pages_records_have_nothing_of_the_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A recording is found where it is on this machine, and kept by its name."""
    there = tmp_path / "here" / comparison.RECORDING
    there.parent.mkdir(parents=True)
    there.touch()
    path = tmp_path / "RESULTS.jsonl.xz"
    ran = record(Cell(f"{there}:20", "s6", "stock", ("update",), 1), 2.0)
    assert ran.cell.text() == "facebook.mobigen:20 on s6, stock, background update, seed 1"
    assert ran.result is not None
    ran.result["host"] = {"log": str(tmp_path / "log")}
    archive.write(path, [ran])
    assert str(tmp_path).encode() not in lzma.decompress(path.read_bytes())
    assert [one.cell.scenario for one in archive.read(path)] == [f"{there.name}:20"]
    monkeypatch.setenv("FASTTRACK_DATA", str(tmp_path / "here"))
    assert [one.cell for one in archive.read(path)] == [ran.cell]
    assert "host" not in (archive.read(path)[0].result or {})


def test_the_published_page_needs_no_recording() -> None:
    """In a checkout without recordings, the page is what its archive says: the replay's records are in there."""
    text = results.RESULTS.read_text(encoding="utf-8")
    asked = re.search(r"`\./fasttrack results --seeds (\d+)`", text)
    assert asked and "a replayed facebook session" in text
    found, kernel = results.archived(archive.beside(results.RESULTS), int(asked[1]))
    assert text == markdown.markdown(found, int(asked[1]), kernel)


def test_the_replay_stays_on_a_page_that_is_made_again_elsewhere(
    lab: Lab,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    there = tmp_path / "here" / comparison.RECORDING
    there.parent.mkdir(parents=True)
    there.touch()
    target = tmp_path / "RESULTS.md"
    with monkeypatch.context() as here:
        here.setenv("FASTTRACK_DATA", str(tmp_path / "here"))
        planned = cells(markdown.grids(), 1)
    made = [record(one, 1.0) for one in planned]
    assert sum(comparison.replays_recording(one) for one in planned) > 0
    archive.write(archive.beside(target), made)
    arguments = ["--seeds", "1", "--out", str(tmp_path / "out"), "--file", str(target), "--no-runs"]
    assert CliRunner().invoke(results.command, arguments).exit_code == 0
    assert "a replayed facebook session" in target.read_text()
    assert target.read_text() == markdown.markdown(made, 1, made[0].kernel)
    assert lab.ran == []


@pytest.mark.parametrize(
    ("other", "what"),
    [
        ({"kernel": "k2"}, "several kernels: k, k2;"),
        ({"inputs": "0123456789abcdef" + "guest--2"}, "several guest programs: guest--1, guest--2;"),
    ],
)
def test_records_of_several_programs_make_no_page(other: dict[str, str], what: str, tmp_path: Path) -> None:
    planned = [Cell("game-load", "s6", "stock", (), seed) for seed in (1, 2)]
    first, second = (replace(record(one, 1.0), inputs="0123456789abcdef" + "guest--1") for one in planned)
    assert results.recorded([first, second], planned, tmp_path) == ([first, second], "k")
    with pytest.raises(LabError, match=what):
        results.recorded([first, replace(second, **other)], planned, tmp_path)


def test_a_damaged_archive_is_said(tmp_path: Path) -> None:
    path = tmp_path / "RESULTS.jsonl.xz"
    assert archive.read(path) == []
    path.write_bytes(b"no xz")
    with pytest.raises(InputError, match="damaged"):
        archive.read(path)


def test_the_page_again_without_runs(lab: Lab, tmp_path: Path) -> None:  # noqa: F811
    target = tmp_path / "RESULTS.md"
    arguments = ["--seeds", "1", "--out", str(tmp_path / "out"), "--file", str(target)]
    lab.broken = {"kyber/update/1"}
    CliRunner().invoke(results.command, arguments)
    text, lab.ran = target.read_text(), []
    target.unlink()
    again = CliRunner().invoke(results.command, [*arguments, "--no-runs"])
    assert again.exit_code == 1
    assert (target.read_text(), lab.ran) == (text, [])
    (tmp_path / "out" / records.RAW).unlink()
    made_ns = archive.beside(target).stat().st_mtime_ns
    kept = CliRunner().invoke(results.command, [*arguments, "--no-runs"])
    assert kept.exit_code == 1
    assert (target.read_text(), lab.ran) == (text, [])
    # It may have more seeds than the page that is made of it now.
    assert archive.beside(target).stat().st_mtime_ns == made_ns
    lacking = CliRunner().invoke(results.command, [*arguments, "--no-runs", "--seeds", "2"])
    assert "lacks" in str(lacking.exception) and "leave out --no-runs" in str(lacking.exception)
    assert lab.ran == []
