# SPDX-License-Identifier: GPL-2.0-only
"""Scenario files: the project's own, the grammar's errors with their lines, and the jobs that come of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fasttrack_lab.host.errors import InputError
from fasttrack_lab.host.toml_lines import Lines
from fasttrack_lab.inputs import scenario

NAMES = {
    "gallery-launch": "foreground",
    "camera-switch": "foreground",
    "game-load": "foreground",
    "split-screen": "foreground",
    "app-switch": "foreground",
    "update": "background",
    "backup": "background",
    "download": "background",
    "scan": "background",
    "photo-upload": "background",
    "sync": "background",
    "install": "background",
    "readers": "background",
}
PREPARED_LIMIT = 1_500_000_000

GOOD = """\
description = "a test"
touch = "1 s ± 0.5 s"

[[app]]
name = "front"
uid = 10150
role = "foreground"

[[app.file]]
path = "data{i}"
count = 3
bytes = "1 MiB ± 50 %"
[[app.file]]
path = "db"
kind = "sqlite"
rows = 10
row_bytes = "100 B"

[[app.thread]]
name = "ui"
steps = [
  { op = "repeat", times = 3, steps = [
    { op = "read", file = "data{i}", block = "64 KiB", think = "1 ms ± 50 %" },
  ] },
  { op = "sqlite", file = "db", kind = "select", transactions = 2, rows = 3 },
  { op = "write", file = "out", bytes = "1 MB", pace = "8 Mbit/s", block = "100 kB", flags = ["create"] },
  { op = "fsync", file = "out" },
]
"""


def write(tmp_path: Path, text: str) -> Path:
    """A scenario file."""
    path = tmp_path / "test.toml"
    path.write_text(text, encoding="utf-8")
    return path


def all_steps(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Steps and the steps inside them."""
    return [inner for step in steps for inner in (step, *all_steps(step.get("steps", [])))]


def test_the_scenarios_are_there() -> None:
    assert {name: scenario.load(name).role for name in scenario.available()} == NAMES
    assert set(scenario.available("background")) == {name for name, role in NAMES.items() if role == "background"}


@pytest.mark.parametrize("name", NAMES)
def test_own_scenarios_are_bounded(name: str) -> None:
    loaded = scenario.load(name)
    assert 0 < loaded.prepared_bytes <= PREPARED_LIMIT
    assert loaded.description.startswith(loaded.role)
    first = 10101 if loaded.role == "foreground" else 10201
    assert first <= loaded.app.uid < first + 9


def test_own_scenarios_run_together() -> None:
    front = scenario.load("gallery-launch")
    behind = [scenario.load(name) for name in scenario.available("background")]
    job = scenario.build_job(front, behind, 1, None)
    behind_apps = sum(len(one.apps) for one in behind)
    assert [app["role"] for app in job["apps"]] == ["foreground"] + ["background"] * behind_apps
    assert len({app["uid"] for app in job["apps"]}) == 1 + behind_apps
    assert job["limit_s"] > job["touch_s"] >= 2.3
    for app in job["apps"][1:]:
        assert all(thread["repeat"] for thread in app["threads"])


@pytest.mark.parametrize("front", ["gallery-launch", "camera-switch"])
def test_background_apps_are_in_their_heavy_phase_at_the_touch(front: str) -> None:
    update = scenario.load("update")
    assert update.app.lead is not None
    drawn = set()
    for seed in range(20):
        job = scenario.build_job(scenario.load(front), [update], seed, None)
        start_s = job["apps"][1]["start_s"]
        assert start_s >= 0
        drawn.add(round(job["touch_s"] - start_s, 6))
    assert update.app.lead.low <= min(drawn) < max(drawn) <= update.app.lead.high
    assert len(drawn) == 20


def test_a_job_depends_on_scenario_and_seed_alone() -> None:
    front, behind = scenario.load("gallery-launch"), [scenario.load("update")]
    first, again = (scenario.build_job(front, behind, 7, None) for _ in range(2))
    other = scenario.build_job(front, behind, 8, None)
    assert json.dumps(first) == json.dumps(again)
    assert first["touch_s"] != other["touch_s"]
    assert first["touch_s"] - first["apps"][1]["start_s"] != other["touch_s"] - other["apps"][1]["start_s"]
    assert first["files"] == other["files"], "prepared images must serve every seed"


def test_conversion(tmp_path: Path) -> None:
    loaded = scenario.load(str(write(tmp_path, GOOD)))
    job = scenario.build_job(loaded, [], 3, None)
    files = job["files"]
    assert [item["path"] for item in files] == ["data0", "data1", "data2", "db"]
    assert all(0.5 * 2**20 <= item["bytes"] <= 1.5 * 2**20 and item["bytes"] % 4096 == 0 for item in files[:3])
    assert len({item["bytes"] for item in files[:3]}) > 1
    assert files[3] == {"app": "front", "path": "db", "bytes": 1000, "kind": "sqlite", "rows": 10, "row_bytes": 100}
    (thread,) = job["apps"][0]["threads"]
    assert thread["after_touch"] is True
    assert thread["repeat"] is False
    repeat, sqlite, write_step, fsync = thread["steps"]
    assert (repeat["times"], repeat["cycle"]) == (3, 3)
    assert 0.0005 <= repeat["steps"][0]["think_s"] <= 0.0015
    assert repeat["steps"][0]["block"] == 65536
    assert sqlite["journal"] == "wal"
    assert write_step["think_s"] == pytest.approx(0.1)
    assert fsync == {"op": "fsync", "file": "out"}
    assert 0.5 <= job["touch_s"] <= 1.5
    assert job["limit_s"] == pytest.approx(job["touch_s"] + scenario.DEFAULT_LIMIT_S)


def test_copies_have_files_and_times_of_their_own() -> None:
    job = scenario.build_job(scenario.load("game-load"), [scenario.load("update")], 1, None)
    installs = [thread for thread in job["apps"][1]["threads"] if thread["name"].startswith("install-")]
    assert [thread["name"] for thread in installs] == ["install-0", "install-1"]
    for number, thread in enumerate(installs):
        names = {step["file"] for step in all_steps(thread["steps"]) if "file" in step}
        assert names == {
            f"session/split{number}-{{i}}.apk",
            f"install/asset{number}-{{i}}",
            f"install/asset{number}-31",
        }
    assert len({thread["steps"][0]["s"] for thread in installs}) == 2


def test_the_recording_waits_at_its_touch_step() -> None:
    (thread,) = scenario.build_job(scenario.load("camera-switch"), [], 1, None)["apps"][0]["threads"]
    assert thread["after_touch"] is False
    assert [step["op"] for step in thread["steps"]][:5] == ["write", "fsync", "write", "touch", "fsync"]


ERRORS = [
    ("touch =", "tuch =", 2, r"unknown key 'tuch' \(did you mean 'touch'\?\)"),
    ('bytes = "1 MiB ± 50 %"', 'bytes = "1 Mib"', 12, "is not a unit of a size; valid: B, kB"),
    ('bytes = "1 MiB ± 50 %"', 'bytes = "-1 MiB"', 12, "cannot be negative"),
    ('op = "fsync", file = "out"', 'op = "fsink", file = "out"', 27, "unknown operation 'fsink'.*valid: read"),
    ('op = "fsync", file = "out"', 'op = "fsync", file = "oat"', 27, "file 'oat' is missing: prepare it"),
    ('op = "fsync", file = "out"', 'op = "fsync", file = "../out"', 27, "inside the app's own directory"),
    ('op = "fsync", file = "out"', 'op = "fsync"', 27, "'file' is missing"),
    ("times = 3", "times = 4", 23, "file 'data3' is missing"),
    ('role = "foreground"', 'role = "front"', 7, "unknown role 'front'; valid: foreground, background, service"),
    ("uid = 10150", "uid = 1013", 6, "does not fit the role foreground; valid: 10000 to 19999"),
    ('file = "db", kind', 'file = "data0", kind', 25, "not prepared with kind"),
    ('pace = "8 Mbit/s"', 'pace = "8 Mbit/s", think = "1 ms"', 26, "exclude each other"),
    ('flags = ["create"]', 'flags = ["creat"]', 26, "unknown write flag 'creat'.*did you mean 'create'"),
    ("times = 3, steps", "cycle = 3, steps", 19, "never ends"),
    ('path = "data{i}"', 'path = "data"', 10, "3 files need '{i}'"),
    ("count = 3", "count = true", 11, "a whole number is wanted"),
    ("count = 3", "count = = 3", 11, "not valid TOML"),
    ('name = "front"', 'name = "fr/ont"', 5, "letters, digits"),
]


@pytest.mark.parametrize(("old", "new", "line", "says"), ERRORS)
def test_errors_name_file_line_and_what_is_valid(tmp_path: Path, old: str, new: str, line: int, says: str) -> None:
    assert GOOD.count(old) == 1
    path = write(tmp_path, GOOD.replace(old, new))
    with pytest.raises(InputError, match=says) as caught:
        scenario.load_file(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)


BEHIND = """
[[app]]
name = "left"
uid = 10151
role = "background"
[[app.file]]
path = "clip"
bytes = "1 MiB"
[[app.thread]]
name = "go on"
repeat = true
steps = [{ op = "read", file = "clip", think = "1 ms" }]
"""
SWITCH = GOOD.replace("touch =", 'before_touch = "left"\ntouch =') + BEHIND


def test_the_app_before_the_touch_is_named_and_can_be_idle(tmp_path: Path) -> None:
    loaded = scenario.load_file(write(tmp_path, SWITCH))
    assert loaded.role == "foreground" and loaded.app.name == "front"
    assert loaded.uids_before_touch == loaded.idled().uids_before_touch == (10151,)
    busy, idle = (scenario.build_job(one, [], 3, None) for one in (loaded, loaded.idled()))
    (thread,) = idle["apps"][1]["threads"]
    assert thread["repeat"] and [step["op"] for step in thread["steps"]] == ["think"]
    assert thread["steps"][0]["s"] > idle["limit_s"]
    assert busy["apps"][1]["threads"][0]["name"] == "go on"
    assert busy["apps"][0] == idle["apps"][0] and busy["files"] == idle["files"]
    with pytest.raises(InputError, match="'gallery-launch' sends no app to the background"):
        scenario.load("gallery-launch").idled()


def test_a_foreground_app_is_in_front_before_the_touch_too(tmp_path: Path) -> None:
    loaded = scenario.load_file(write(tmp_path, SWITCH.replace('"left"\ntouch', '"front"\ntouch')))
    assert loaded.uids_before_touch == (10150,) and loaded.left == ""
    with pytest.raises(InputError, match="sends no app to the background"):
        loaded.idled()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (SWITCH.replace('"left"\ntouch', '"lift"\ntouch'), "unknown app 'lift'.*did you mean 'left'"),
        (SWITCH.replace('"left"\ntouch', '"nobody"\ntouch'), "unknown app 'nobody'.*valid: front, left"),
        (SWITCH.replace('"left"\ntouch', '""\ntouch'), "before_touch: text is wanted"),
        ('description = "x"\nbefore_touch = "left"\n' + BEHIND, "needs a foreground app"),
    ],
)
def test_wrong_before_touch(tmp_path: Path, text: str, says: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(InputError, match=says) as caught:
        scenario.load_file(path)
    assert str(caught.value).startswith(f"{path}:2: ")


def test_duplicate_app(tmp_path: Path) -> None:
    second = '\n[[app]]\nname = "other"\nuid = 10150\nrole = "background"\ncommand = ["true"]\n'
    path = write(tmp_path, GOOD + second)
    with pytest.raises(InputError, match="duplicate app: uid 10150 is also that of app 'front'") as caught:
        scenario.load_file(path)
    assert caught.value.line == len(GOOD.splitlines()) + 4


def test_one_background_twice() -> None:
    update = scenario.load("update")
    with pytest.raises(InputError, match="duplicate app: 'update'"):
        scenario.build_job(scenario.load("gallery-launch"), [update, update], 1, None)


def test_roles_are_checked() -> None:
    with pytest.raises(InputError, match="is a foreground one; background scenarios: backup"):
        scenario.load_background("game-load")
    with pytest.raises(InputError, match="no foreground app"):
        scenario.build_job(scenario.load("update"), [], 1, None)


def test_unknown_name_lists_the_valid_ones() -> None:
    with pytest.raises(InputError, match=r"unknown scenario 'galery-launch' \(did you mean 'gallery-launch'.*backup"):
        scenario.load("galery-launch")


def test_a_background_loop_must_sleep(tmp_path: Path) -> None:
    text = """\
description = "never sleeps"
[[app]]
name = "busy"
uid = 10250
role = "background"
[[app.thread]]
name = "loop"
repeat = true
steps = [{ op = "write", file = "out", bytes = "1 MB", flags = ["create"] }]
"""
    with pytest.raises(InputError, match="never sleeps: add a think") as caught:
        scenario.load_file(write(tmp_path, text))
    assert caught.value.line == 6


def test_trace_app(tmp_path: Path) -> None:
    recording = tmp_path / "small.csv"
    recording.write_text("process,device,rw_flag,sector,size,timestamp\na,1,R,80,8,1.0\na,1,W,160,16,1.5\n")
    text = """\
description = "foreground: a recording"
[[app]]
name = "recorded"
uid = 10160
role = "foreground"
trace = { file = "small.csv", format = "pixel6a" }
"""
    loaded = scenario.load_file(write(tmp_path, text))
    job = scenario.build_job(loaded, [], 1, None)
    assert job["apps"][0]["trace"] == "recorded.trace"
    assert job["files"] == [{"app": "recorded", "path": "blocks", "bytes": 3 * 4096, "kind": "data"}]
    texts = scenario.trace_texts([loaded])
    assert texts == {"recorded.trace": "1\t0\tbread\t0\t4096\n1\t500000\tbwrite\t4096\t8192\n"}
    missing = text.replace("small.csv", "smaller.csv")
    with pytest.raises(InputError, match=r"smaller\.csv is not there"):
        scenario.load_file(write(tmp_path, missing))


def test_lines_of_nested_places() -> None:
    text = """\
a = 1

[b.c]  # [x]
d = '''
[[no]]
'''
[[e]]
f = [
  { g = "]" },
  { g = 2, "h i" = [3, 4] },
]
[[e]]
f = []
[e.k]
l = 1
"""
    lines = Lines(text)
    assert lines.of(("a",)) == 1
    assert lines.of(("b", "c", "d")) == 4
    assert lines.of(("e", 0)) == 7
    assert lines.of(("e", 0, "f", 0, "g")) == 9
    assert lines.of(("e", 0, "f", 1, "h i", 1)) == 10
    assert lines.of(("e", 1, "f")) == 13
    assert lines.of(("e", 1, "k", "l")) == 15
    assert lines.of(("e", 0, "f", 1, "absent")) == 10
