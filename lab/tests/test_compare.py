# SPDX-License-Identifier: GPL-2.0-only
"""What a comparison runs, what it does not run again, and what it refuses."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from recorded import recorded
from test_traces import MOBIGEN, sample

from fasttrack_lab.commands import common, compare
from fasttrack_lab.compare import comparison, limits, records, report
from fasttrack_lab.compare.records import Again, Front, Request
from fasttrack_lab.host import paths
from fasttrack_lab.host.errors import InputError, UsageProblem
from fasttrack_lab.inputs import phone, policy
from fasttrack_lab.inputs.background_sets import SIX, TWELVE
from fasttrack_lab.inputs.cell import Cell
from fasttrack_lab.run import runner
from fasttrack_lab.run.boot.backend import Outcome
from fasttrack_lab.run.result import judge


def request(backgrounds: str = "update,backup", seeds: int = 2, policies: str = "stock,fasttrack") -> Request:
    """A comparison on one phone."""
    return Request(
        command="./fasttrack compare",
        fronts=(Front("gallery-launch"),),
        phones=("s6",),
        policies=compare.split_policies(policies),
        backgrounds=compare.split_backgrounds(backgrounds),
        seeds=seeds,
    )


def test_backgrounds_apart_and_together() -> None:
    assert compare.split_backgrounds("update,backup") == (("update",), ("backup",))
    assert compare.split_backgrounds("update+backup") == (("backup", "update"),)
    assert compare.split_backgrounds("none,sync") == ((), ("sync",))
    assert compare.split_backgrounds("a+b,b+a") == (("a", "b"),)
    assert compare.split_backgrounds("b+a+b,a") == (("a", "b", "b"), ("a",))
    assert compare.split_backgrounds(f"six,twelve,{SIX}") == (tuple(SIX.split("+")), tuple(TWELVE.split("+")))


@pytest.mark.parametrize("text", ["", "update,", "update++sync", "update,update"])
def test_bad_lists(text: str) -> None:
    with pytest.raises(UsageProblem, match="--backgrounds"):
        compare.split_backgrounds(text)


def test_all_policies_are_all_that_are_published_with_stock_first() -> None:
    names = compare.split_policies("all")
    assert names[0] == "stock" and list(names) == policy.published() and len(set(names)) == len(names)
    assert compare.split_policies("pa,stock") == ("pa", "stock")


def test_plan_has_the_baseline_first_and_nothing_twice() -> None:
    cells = records.plan(request())
    assert cells[:2] == [Cell("gallery-launch", "s6", "stock", (), seed) for seed in (1, 2)]
    assert len(cells) == 2 + 2 * 2 * 2
    assert len(set(cells)) == len(cells)
    assert len(records.plan(request("none", policies="stock"))) == 2


def test_plan_has_every_file_system_and_lru_with_a_baseline_of_its_own(tmp_path: Path) -> None:
    asked = replace(request(seeds=1), file_systems=compare.file_systems(["s6"], "ext4,f2fs"))
    cells = records.plan(asked)
    assert [cell.fs for cell in cells[:2]] == ["ext4", "f2fs"] and cells[0].backgrounds == cells[1].backgrounds == ()
    assert len(cells) == 2 * (1 + 2 * 2)
    assert {comparison.run_of(cell).phone.fs for cell in cells if cell.fs == "f2fs"} == {"f2fs"}
    both = replace(asked, lrus=("classic", "mglru"))
    assert [(cell.fs, cell.lru) for cell in records.plan(both)[:4]] == [
        ("ext4", "classic"),
        ("ext4", "mglru"),
        ("f2fs", "classic"),
        ("f2fs", "mglru"),
    ]
    assert {comparison.run_of(cell).cell.lru for cell in records.plan(both) if cell.lru == "mglru"} == {"mglru"}
    asked = both
    records.write_request(tmp_path, asked)
    assert records.read_request(tmp_path) == asked


def test_an_app_switch_counts_from_the_idle_app() -> None:
    asked = replace(request("none,update", seeds=1), fronts=comparison.fronts(["app-switch"]))
    assert asked.groups(asked.fronts[0]) == ["none", "update"]
    idle, *rest = records.plan(asked)
    assert idle.idle and idle.background == "idle" and idle.policy == "stock"
    assert [cell.background for cell in rest] == ["none", "none", "update", "update"]
    assert not any(cell.idle for cell in rest)
    editors = [comparison.run_of(cell).job["apps"][1] for cell in (idle, rest[0])]
    threads = [[thread["name"] for thread in editor["threads"]] for editor in editors]
    assert threads[0] == ["idle"] and "export-0" in threads[1]
    assert comparison.run_of(idle).cell.idle


@pytest.fixture
def several(tmp_path: Path) -> Request:
    """A comparison of a scenario, an app switch and a recording."""
    recording = sample(tmp_path, MOBIGEN, "session.mobigen")
    return replace(request(seeds=1), fronts=comparison.fronts(["gallery-launch", "app-switch", str(recording)]))


def test_each_of_several_scenarios_has_its_baseline_first(several: Request) -> None:
    cells = records.plan(several)
    assert [(cell.scenario, cell.background) for cell in cells[:3]] == [
        ("gallery-launch", "none"),
        ("app-switch", "idle"),
        (several.fronts[2].scenario, "none"),
    ]
    assert len(cells) == 3 * (1 + 2 * 2)


def test_a_title_names_few_scenarios_and_counts_many(several: Request) -> None:
    assert several.title == "gallery-launch, app-switch, session"
    assert replace(several, fronts=tuple(Front(name) for name in "abcde")).title == "a, b, c, d, e"
    assert replace(several, fronts=tuple(Front(name) for name in "abcdefgh")).title == "a and 7 more"


def test_a_recording_is_read_once_for_all_its_runs(several: Request) -> None:
    replayed = [cell for cell in records.plan(several) if cell.scenario == several.fronts[2].scenario]
    texts = [comparison.run_of(cell).traces["replay.trace"] for cell in replayed]
    assert len(texts) == 1 + 2 * 2 and texts[0]
    assert {id(text) for text in texts} == {id(texts[0])}


def test_what_was_asked_is_written_and_read_again(several: Request, tmp_path: Path) -> None:
    records.write_request(tmp_path, several)
    assert records.read_request(tmp_path) == several


def test_phones_have_their_own_file_system_by_default() -> None:
    own = dict.fromkeys(("n5", "n6", "s6", "p1"), ("ext4",)) | dict.fromkeys(("ufs31", "ufs40"), ("f2fs",))
    assert compare.file_systems(list(phone.phones()), None) == own
    with pytest.raises(UsageProblem, match="'ext4' is given twice"):
        compare.file_systems(["s6"], "ext4,ext4")
    with pytest.raises(UsageProblem, match="file systems: ext4, f2fs"):
        compare.file_systems(["s6"], "btrfs")


class Lab:
    """Stands in for the machine that boots guests: remembers what was run."""

    def __init__(self) -> None:
        """A kernel of some key."""
        self.ran: list[str] = []
        self.tools = SimpleNamespace(kernel=SimpleNamespace(key="kernel-1"), guest_key="guest-1")
        self.broken: set[str] = set()
        self.error = "kernel log: panic"
        self.release = "6.12-test"
        self.now_s = 1000.0
        """The clock: every run takes a minute and a half."""
        self.titles: list[str] = []
        self.takes: dict[str, float] = {}
        """Response time of a policy beside something, in s, where it is not its name's length."""
        self.limits: list[float] = []
        self.touches: list[float] = []

    def run_many(
        self,
        specs: Sequence[runner.RunSpec],
        tools: object,
        title: str,
        on_result: Callable[..., None],
        jobs: int | None = None,  # noqa: ARG002
    ) -> list[Any]:
        """Every run takes as long as its policy's name has letters."""
        assert tools is self.tools
        self.titles.append(title)
        for spec in specs:
            cell = spec.cell
            name = f"{cell.policy}/{'+'.join(cell.backgrounds)}/{cell.seed}"
            self.ran.append(name)
            response_s = self.takes.get(cell.policy, float(len(cell.policy))) if cell.backgrounds else 5.0
            self.touches.append(float(spec.job["touch_s"]))
            self.limits.append(limit_s := float(spec.job["limit_s"]))
            app = {"bytes_read": 1, "bytes_written": 1, "bytes_since_touch": 2, "longest_pause_s": 0.0}
            answer = {
                "response_s": response_s,
                "total_s": response_s,
                "foregrounds": {"front": app},
                "background": dict.fromkeys(cell.backgrounds, app),
                "kernel": self.release,
            }
            self.now_s += 90.0
            late = float(spec.job["touch_s"]) + response_s > limit_s
            ok = name not in self.broken and not late
            error = f"{limits.LIMIT_ENDED} {limit_s} s" if late else self.error
            verdict = SimpleNamespace(error=None if ok else error)
            on_result(spec, SimpleNamespace(ok=ok, verdict=verdict, to_json=lambda answer=answer: answer))
        return []


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A lab that boots nothing."""
    made = Lab()
    monkeypatch.setattr(runner.Tools, "of_checkout", classmethod(lambda _: made.tools))
    monkeypatch.setattr(runner, "run_many", made.run_many)
    monkeypatch.setattr(comparison, "monotonic", lambda: made.now_s)
    monkeypatch.setattr(common, "check_host", lambda: None)
    # Each record is on the disk before the next run; thousands of them take a minute.
    monkeypatch.setattr(records.os, "fsync", lambda _: None)
    return made


def test_an_interrupted_comparison_goes_on(lab: Lab, tmp_path: Path) -> None:
    comparison.compare(tmp_path, request())
    assert len(lab.ran) == 10
    assert lab.titles == ["gallery-launch"]
    raw = tmp_path / records.RAW
    raw.write_text("".join(line + "\n" for line in raw.read_text().splitlines()[:4]) + '{"cell": {"scen')
    lab.ran.clear()
    found = comparison.compare(tmp_path, request())
    assert len(lab.ran) == 6
    assert len(found) == 10
    lab.ran.clear()
    comparison.compare(tmp_path, request())
    assert lab.ran == []
    comparison.compare(tmp_path, request(), Again.ALL)
    assert len(lab.ran) == 10


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"),
        (59.6, "1 min 0 s"),
        (1023, "17 min 3 s"),
        (3600, "1 h 0 min 0 s"),
        (93784, "26 h 3 min 4 s"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert records.duration_text(seconds) == text


def test_real_time_is_that_of_all_parts(lab: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    comparison.compare(tmp_path, request(seeds=1))
    assert "more in" not in capsys.readouterr().err
    assert "5 runs in 7 min 30 s of real time." in (tmp_path / "report.html").read_text()
    lab.now_s += 86400.0
    found = comparison.compare(tmp_path, request(seeds=2))
    assert "5 more in 7 min 30 s of real time" in capsys.readouterr().err
    assert records.took(found) == "10 runs in 15 min 0 s of real time"
    assert "10 runs in 15 min 0 s of real time." in (tmp_path / "report.html").read_text()
    comparison.compare(tmp_path, request(seeds=2))
    assert "more in" not in capsys.readouterr().err


def test_real_time_of_records_without_it(lab: Lab, tmp_path: Path) -> None:
    """As an older lab has written them."""
    found = comparison.compare(tmp_path, request())
    bare = [replace(record, real_s=None) for record in found]
    assert records.took([*found[:3], *bare[3:]]) == "3 of 10 runs in 4 min 30 s of real time"
    raw = tmp_path / records.RAW
    raw.write_text(re.sub(r'"real_s": [0-9.]+, ', "", raw.read_text()))
    assert records.read(tmp_path) == bare
    report.make(tmp_path)
    assert records.took(bare) == "" and "real time" not in (tmp_path / report.PAGE).read_text()


def test_an_input_that_was_changed_and_changed_back(lab: Lab, tmp_path: Path) -> None:
    """The last records are of the change; the page and the table are of what is asked for."""
    asked = replace(request(seeds=1), fronts=(Front(str(tmp_path / "mine.toml")),))
    text = (paths.SCENARIOS / "gallery-launch.toml").read_text()
    made = []
    for content in (text, text.replace('touch = "2 s', 'touch = "3 s'), text):
        (tmp_path / "mine.toml").write_text(content)
        comparison.load_front.cache_clear()
        lab.ran.clear()
        made.append(comparison.compare(tmp_path / "out", asked))
    assert lab.ran == []
    assert made[0] == made[2] != made[1]
    assert records.current(records.read(tmp_path / "out"), records.read_request(tmp_path / "out")) == made[0]


def test_more_seeds_run_only_what_is_new(lab: Lab, tmp_path: Path) -> None:
    comparison.compare(tmp_path, request(seeds=1))
    lab.ran.clear()
    comparison.compare(tmp_path, request(seeds=2))
    assert {name.rsplit("/", 1)[1] for name in lab.ran} == {"2"}


def test_another_kernel_is_another_run(lab: Lab, tmp_path: Path) -> None:
    comparison.compare(tmp_path, request())
    lab.tools.kernel.key = "kernel-2"
    lab.ran.clear()
    comparison.compare(tmp_path, request())
    assert len(lab.ran) == 10
    assert len(records.read(tmp_path)) == 20


def test_a_failed_run_is_kept_until_it_is_asked_for(
    lab: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab.broken = {"fasttrack/update/1"}
    found = comparison.compare(tmp_path, request())
    assert [record.error for record in found if record.error] == ["kernel log: panic"]
    lab.broken, lab.ran = set(), []
    assert comparison.compare(tmp_path, request()) == found
    assert lab.ran == []
    assert "10 of 10 runs are in" in (said := capsys.readouterr().err)
    assert "already, 1 of them failed: --again-failed retries them" in " ".join(said.split())
    assert "Failed runs" in (tmp_path / "report.html").read_text()
    comparison.compare(tmp_path, request(), Again.FAILED)
    assert lab.ran == ["fasttrack/update/1"]
    assert "Failed runs" not in (tmp_path / "report.html").read_text()


def test_a_failed_run_of_another_kernel_is_made(lab: Lab, tmp_path: Path) -> None:
    lab.broken = {"fasttrack/update/1"}
    comparison.compare(tmp_path, request())
    lab.tools.kernel.key, lab.broken, lab.ran = "kernel-2", set(), []
    assert not any(record.error for record in comparison.compare(tmp_path, request()))
    assert "fasttrack/update/1" in lab.ran


BOOTED = "Linux version 6.12-test"


@pytest.mark.parametrize(
    ("outcome", "release"),
    [
        (Outcome(-9, BOOTED, 300.0, timed_out=True), "6.12-test"),
        (Outcome(-9, BOOTED, 20.0, timed_out=False), "6.12-test"),
        (Outcome(1, "no room", 0.1, timed_out=False), ""),
    ],
)
def test_what_the_host_ended_is_run_again(lab: Lab, tmp_path: Path, outcome: Outcome, release: str) -> None:
    """Its clock, want of memory, a guest that does not even boot: nothing that the same kernel does again."""
    lab.broken, lab.release, lab.error = {"fasttrack/update/1"}, release, judge(outcome, None).error or ""
    comparison.compare(tmp_path, request())
    lab.broken, lab.ran = set(), []
    found = comparison.compare(tmp_path, request())
    assert lab.ran == ["fasttrack/update/1"]
    assert not any(record.error for record in found)


def test_the_command(lab: Lab, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = CliRunner().invoke(
        compare.command, ["gallery-launch", "--backgrounds", "update", "--seeds", "1", "--out", str(out)]
    )
    assert done.exit_code == 0, done.output
    assert "1.80" in done.output
    assert done.output.splitlines()[-1] == "3 runs in 4 min 30 s of real time"
    names = ["compare.json", "raw.jsonl", "report.html", "runs.csv", "summary.csv"]
    assert sorted(item.name for item in out.iterdir()) == names
    again = CliRunner().invoke(compare.report_command, [str(out)])
    assert again.exit_code == 0
    assert "1.80" in again.output


def test_the_command_runs_again_what_is_asked_for(lab: Lab, tmp_path: Path) -> None:
    arguments = ["gallery-launch", "--backgrounds", "update", "--seeds", "1", "--out", str(tmp_path)]
    lab.broken = {"fasttrack/update/1"}
    assert CliRunner().invoke(compare.command, arguments).exit_code == 1
    for options, runs, status in (
        ([], 0, 1),
        (["--again-failed"], 1, 0),
        (["--again-failed"], 0, 0),
        (["--fresh"], 3, 0),
    ):
        lab.ran, lab.broken = [], set()
        done = CliRunner().invoke(compare.command, [*arguments, *options])
        assert (len(lab.ran), done.exit_code) == (runs, status), done.output


def test_the_standard_comparison(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a scenario: three of them on two phones beside one app, another, and six."""
    monkeypatch.setenv("FASTTRACK_DATA", str(tmp_path / "none"))
    arguments = ["--policies", "stock,pa", "--seeds", "1", "--out", str(tmp_path)]
    done = CliRunner().invoke(compare.command, arguments)
    assert done.exit_code == 0, done.output
    assert len(lab.ran) == 3 * 2 * (1 + 3 * 2)
    assert lab.titles == ["gallery-launch, camera-switch, game-load"]
    assert {cell.phone for cell in records.plan(records.read_request(tmp_path))} == {"s6", "n6"}
    rows = [line.split()[:5] for line in done.output.splitlines() if line.strip().startswith(("pa ", "stock "))]
    assert rows == [["pa", "18", "0.40", "0.40", "18"], ["stock", "18", "1.00", "1.00", "0"]]
    assert "the recording mobigen/facebook.mobigen is left out: FASTTRACK_DATA" in done.output
    lab.ran.clear()
    assert CliRunner().invoke(compare.command, arguments).exit_code == 0
    assert lab.ran == []


def test_the_standard_comparison_has_the_recording_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    path = recorded(comparison.RECORDING)
    assert comparison.standard() == (*comparison.SCENARIOS, f"{path}:20")
    assert [front.name for front in comparison.fronts(comparison.standard())] == [*comparison.SCENARIOS, "facebook"]
    part, whole = (comparison.load_front(given).app.trace for given in (f"{path}:20", str(path)))
    assert part and whole
    assert part.load().stats.span_s < 20 < whole.load().stats.span_s
    monkeypatch.setenv("FASTTRACK_DATA", "/nonexistent")
    assert comparison.standard() == comparison.SCENARIOS


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["galery-launch"], "gallery-launch"),
        (["gallery-launch", "game-load", "gallery-launch"], "'gallery-launch' is given twice"),
        (["gallery-launch", "/nonexistent/session.mobigen"], "/nonexistent/session.mobigen"),
        (["gallery-launch", "/nonexistent/session.mobigen:20"], "/nonexistent/session.mobigen"),
        (["gallery-launch", "--phones", ""], "--phones"),
        (["gallery-launch", "--policies", "all,stock"], "no policy 'all'"),
        (["update"], "is a background one; foreground scenarios: app-switch, camera-switch"),
        (["gallery-launch", "--phones", "s7"], "s6"),
        (["gallery-launch", "--policies", "fast"], "stock"),
        (["gallery-launch", "--backgrounds", "updat"], "update"),
        (["gallery-launch", "--backgrounds", "game-load"], "is a foreground one"),
    ],
)
def test_bad_names_are_refused_before_anything_is_built(lab: Lab, arguments: list[str], says: str) -> None:
    done = CliRunner().invoke(compare.command, arguments)
    assert isinstance(done.exception, UsageProblem)
    assert done.exception.exit_code == 2
    assert says in str(done.exception)
    assert lab.ran == []


def test_seeds_are_bounded() -> None:
    done = CliRunner().invoke(compare.command, ["gallery-launch", "--seeds", "0"])
    assert done.exit_code == 2
    assert "1<=x<=1000" in done.output


def run(lab: Lab, where: Path, capped: bool, policies: str = "stock,kyber,fasttrack") -> list[records.Record]:
    """Three policies beside two backgrounds with one seed; kyber CAPPED."""
    planned = records.plan(request("update,backup+update", 1, policies))
    runs = comparison.runs_of(planned, runner.Tools.of_checkout())
    chosen = [cell for cell in planned if cell.policy == "kyber"] if capped else []
    return comparison.run_missing(where, runs, lab.tools, Again.HOST, "x", chosen)  # type: ignore[arg-type]


def test_two_commands_do_not_make_runs_in_one_directory(lab: Lab, tmp_path: Path) -> None:
    """What is there already, both can read."""
    handle = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.raises(InputError, match="another ./fasttrack command makes runs for this directory"):
        run(lab, tmp_path, capped=False)
    assert lab.ran == []
    os.close(handle)
    made = run(lab, tmp_path, capped=False)
    handle = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    assert run(lab, tmp_path, capped=False) == made
    os.close(handle)


def test_a_long_run_is_ended_at_so_many_times_its_own_time_alone(lab: Lab, tmp_path: Path) -> None:
    """Last, the most apps first; the others have the scenario's limit."""
    lab.takes = {"kyber": 100.5, "fasttrack": 100.5}
    made = {(one.cell.policy, one.cell.background): one for one in run(lab, tmp_path, capped=True)}
    assert lab.ran[-2:] == ["kyber/backup+update/1", "kyber/update/1"]
    touches = lab.touches[-2:]
    assert lab.limits[-2:] == pytest.approx([touch_s + 20 * 5.0 for touch_s in touches])
    assert min(lab.limits[:-2]) > max(touches) + 100.5
    assert {name: one.over for name, one in made.items() if one.over} == {
        ("kyber", "update"): 20.0,
        ("kyber", "backup+update"): 20.0,
    }
    assert made["fasttrack", "update"].error is None
    assert records.failures(made.values()) == [] and list(records.ended_when_long(made.values())) == ["kyber"]
    assert records.read(tmp_path) and {one.over for one in records.read(tmp_path)} == {None, 20.0}


def test_a_run_that_ends_before_is_the_same_without_the_limit(lab: Lab, tmp_path: Path) -> None:
    lab.takes = {"kyber": 99.5}
    made = run(lab, tmp_path, capped=True)
    assert all(one.error is None and one.over is None for one in made)
    lab.ran.clear()
    assert run(lab, tmp_path, capped=False) == made
    assert lab.ran == []


def test_who_caps_nothing_makes_the_whole_run(lab: Lab, tmp_path: Path) -> None:
    lab.takes = {"kyber": 100.5}
    run(lab, tmp_path, capped=True)
    lab.ran.clear()
    assert [one.over for one in run(lab, tmp_path, capped=True) if one.over] == [20.0, 20.0] and lab.ran == []
    made = run(lab, tmp_path, capped=False)
    assert sorted(lab.ran) == ["kyber/backup+update/1", "kyber/update/1"]
    assert all(one.error is None for one in made)


def test_a_broken_run_is_no_long_one(lab: Lab, tmp_path: Path) -> None:
    lab.broken = {"kyber/update/1"}
    made = run(lab, tmp_path, capped=True)
    assert [(one.over, one.error) for one in made if one.error] == [(None, lab.error)]


def test_without_a_baseline_no_run_is_a_long_one(lab: Lab, tmp_path: Path) -> None:
    """It has the scenario's own limit then, which is no multiple of anything."""
    lab.takes, lab.broken = {"kyber": 1e6}, {"stock//1"}
    made = {(one.cell.policy, one.cell.background): one for one in run(lab, tmp_path, capped=True)}
    late = made["kyber", "update"]
    assert (late.over, (late.error or "").startswith(limits.LIMIT_ENDED)) == (None, True)


def test_tables_say_above_what_a_run_was_ended(lab: Lab, tmp_path: Path) -> None:
    """It is in no mean, and no failure."""
    lab.takes = {"kyber": 100.5}
    summed = report.summary(report.runs(run(lab, tmp_path, capped=True)))
    rows = {(row[3], row[2]): row for row in report.table_rows(summed)}
    assert rows["kyber", "update"][4:6] == ("-", "> 20x")
    assert rows["kyber", "update"][9] == "0, 1 > 20x"
    assert set(summed["failed"]) == {0}


@pytest.mark.parametrize(
    ("response_s", "total_s", "limit_s"), [(0.5, 0.5, 12.0), (0.5, 20.0, 32.0), (90.0, 90.0, 100.0)]
)
def test_think_times_of_a_recording_are_no_part_of_its_response(
    response_s: float, total_s: float, limit_s: float
) -> None:
    """They come on top; no limit is later than the scenario's own."""
    cell = Cell("gallery-launch", "s6", "kyber", ("update",), 1)
    spec = replace(comparison.run_of(cell), job={"touch_s": 2.0, "limit_s": 100.0})
    baselines = {("gallery-launch", "s6", "", cell.lru, 1): (response_s, total_s)}
    assert limits.limited(spec, cell, baselines).job["limit_s"] == limit_s
    assert limits.limited(spec, replace(cell, seed=2), baselines) is spec


def test_an_idle_app_is_the_baseline_of_a_switch() -> None:
    def made(idle: bool, response_s: float) -> records.Record:
        cell = Cell("app-switch", "s6", "stock", (), 1, idle=idle)
        return records.Record(cell, "i", "k", {"response_s": response_s, "total_s": response_s}, None)

    assert list(limits.alone([made(True, 1.0), made(False, 9.0)]).values()) == [(1.0, 1.0)]
