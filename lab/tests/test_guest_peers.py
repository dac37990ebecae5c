# SPDX-License-Identifier: GPL-2.0-only
"""The policies that FastTrack is compared with, in a running guest: what they set is set, and every one runs clean."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from guest_script import script
from jobs import MIB, reader_and_writer, spec, step, thread

from fasttrack_lab.inputs import phone, policy, scenario
from fasttrack_lab.run.runner import Tools, run
from fasttrack_lab.run.specs import spec_of

pytestmark = pytest.mark.guest

TOUCH_S = 0.5
CAME, LEFT, BEHIND, SERVICE = 10106, 10107, 10201, 1000
"""UIDs: of who comes to the front, who leaves it, who is behind all the time, and of a service."""

WATCHER = script("watcher").read_text()
"""Its text is an argument: as a service it cannot read every checkout."""


def app(name: str, uid: int, role: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "uid": uid, "role": role, "start_s": 0.0, **more}


def writes(seconds: float) -> list[dict[str, Any]]:
    """Steps that write a file, sync it and live on for a while."""
    return [
        step("write", file="f", bytes=MIB, block=MIB, flags=["create"]),
        step("fsync", file="f"),
        step("think", s=seconds),
    ]


def watched(tools: Tools, policy_name: str) -> list[dict[str, Any]]:
    """What the watcher sees before and after a switch from one app to another."""
    job = {
        "mode": "play",
        "apps": [
            app("came", CAME, "foreground", threads=[thread(name, writes(1.0), after_touch=True) for name in "ab"]),
            app("left", LEFT, "background", threads=[thread("t", writes(9.0), repeat=True)]),
            app("behind", BEHIND, "background", threads=[thread("t", writes(9.0), repeat=True)]),
            app("watcher", SERVICE, "service", argv=["/usr/bin/python3", "-ISc", WATCHER]) | {"start_s": TOUCH_S - 0.2},
        ],
        "files": [],
        "touch_s": TOUCH_S,
        "limit_s": 60.0,
    }
    seen: list[dict[str, Any]] = []

    def collect(where: Path) -> None:
        seen.extend(json.loads(line) for line in (where / "watcher.out").read_text().splitlines())

    result = run(replace(spec(job, policy_name=policy_name), before_touch=(LEFT,)), tools, collect)
    assert result.ok, result.verdict.error
    assert len(seen) == 2
    return seen


REALTIME_4, IDLE, NONE = 1 << 13 | 4, 3 << 13, 0
"""As linux/ioprio.h has them: class << 13 | level; none is what a task has that was given nothing."""


@pytest.mark.parametrize("policy_name", ["ioprio-bfq", "ioprio-deadline"])
def test_every_thread_has_the_ioprio_of_its_apps_place(tools: Tools, policy_name: str) -> None:
    before, after = watched(tools, policy_name)

    def of(uid: int, look: dict[str, Any]) -> list[int]:
        return [ioprio for found, ioprio, _ in look["tasks"] if found == uid]

    # The process and its threads: two of the app that comes, one of the others.
    assert of(CAME, before) == [IDLE] * 3 and of(CAME, after) == [REALTIME_4] * 3
    assert of(LEFT, before) == [REALTIME_4] * 2 and of(LEFT, after) == [IDLE] * 2
    assert of(BEHIND, before) == of(BEHIND, after) == [IDLE] * 2
    assert of(SERVICE, before) == of(SERVICE, after) == [NONE]


def charged(io_stat: str) -> int:
    """Bytes written that a group's io.stat counts."""
    return sum(int(word.removeprefix("wbytes=")) for word in io_stat.split() if word.startswith("wbytes="))


@pytest.mark.parametrize("policy_name", [name for name in policy.names() if policy.load(name).cgroup])
def test_apps_are_in_groups_that_the_touch_changes(tools: Tools, policy_name: str) -> None:
    before, after = watched(tools, policy_name)
    names = {CAME: "came", LEFT: "left", BEHIND: "behind", SERVICE: "watcher"}
    for look in (before, after):
        assert {(uid, group) for uid, _, group in look["tasks"]} == {
            (uid, f"/app-{name}") for uid, name in names.items()
        }
    for one in policy.load(policy_name).cgroup:

        def read(app: str, look: dict[str, Any], file: str = one.file) -> str:
            text = look["files"][f"app-{app}/{file}"]
            assert isinstance(text, str)
            return text.removeprefix("default ")

        # A latency target of nothing is none, and not shown.
        front, behind = (re.sub(".*target=0", "", value) for value in (one.value.foreground, one.value.background))
        assert [read("came", before), read("came", after)] == [behind, front]
        assert [read("left", before), read("left", after)] == [front, behind]
        assert [read("behind", before), read("behind", after)] == [behind, behind]
        assert read("watcher", before) == read("watcher", after) != front
    # The kernel charges the groups with what their apps do: the controllers act on it.
    for app, wanted in ("came", 2 * MIB), ("left", MIB), ("behind", MIB):
        assert charged(after["files"][f"app-{app}/io.stat"]) >= wanted


def test_a_controller_that_the_kernel_lacks_is_told(tools: Tools) -> None:
    made = spec(reader_and_writer(), policy_name="cgroup")
    lacking = policy.Setting("/sys/fs/cgroup/cgroup.subtree_control", "+rdma")
    result = run(replace(made, policy=replace(made.policy, settings=(lacking,))), tools)
    assert result.verdict.error is not None
    assert "subtree_control" in result.verdict.error and "controllers of this kernel: " in result.verdict.error


def test_qasio_boosts_what_is_waited_for_and_prefers_nobody(tools: Tools) -> None:
    """An app behind waits for its own asynchronous write-back: that is boosted, and no bio is of the background."""
    early = policy.Setting("/proc/sys/vm/dirty_background_bytes", str(MIB))
    front = [step("think", s=4.0)]
    # A little faster than the phone writes: when it is time to sync, some of what the flusher has sent is queued.
    behind = [
        step("write", file="f", bytes=8 * MIB, block=MIB, flags=["create"], think_s=0.05),
        step("fsync", file="f"),
    ]
    job = {
        "mode": "play",
        "apps": [
            app("front", CAME, "foreground", threads=[thread("t", front, after_touch=True)]),
            app("behind", BEHIND, "background", threads=[thread("t", behind, repeat=True)]),
        ],
        "files": [],
        "touch_s": TOUCH_S,
        "limit_s": 60.0,
    }
    made = spec(job, policy_name="qasio", phone_name="n5")
    shown = run(replace(made, policy=replace(made.policy, settings=(*made.policy.settings, early))), tools).to_json()
    assert shown["ok"], shown["error"]
    counters = shown["counters"]
    assert counters["promoted"] > 0, counters
    assert counters["bios_background"] == 0 and counters["bios_foreground"] > 0, counters
    assert counters["pauses"] == counters["reclaim_protected"] == 0, counters
    # What kernel threads send is neutral, and goes in turns with the apps'.
    assert counters["dispatch_held"] <= counters["bios_neutral"], counters


@pytest.mark.parametrize(
    ("policy_name", "works"),
    [
        ("pa", {"pauses"}),
        ("pr", {"reclaim_protected"}),
        ("id", {"dispatch_held"}),
        ("faio", {"pauses"}),
        ("acclaim-fae", {"reclaim_protected"}),
        ("rcp", {"dispatch_held"}),
        ("fasttrack-minus", {"pauses", "reclaim_protected", "dispatch_held"}),
    ],
)
def test_a_part_of_fasttrack_is_that_part_alone(tools: Tools, policy_name: str, works: set[str]) -> None:
    """What a policy leaves off does nothing, and what it leaves on does something."""
    front, update = scenario.load("game-load"), scenario.load("update")
    shown = run(spec_of(front, [update], phone.load("s6"), policy.load(policy_name), 1), tools).to_json()
    assert shown["ok"], shown["error"]
    counters = {name: shown["counters"][name] for name in ("pauses", "reclaim_protected", "dispatch_held")}
    assert {name for name, count in counters.items() if count} == works, counters


@pytest.mark.parametrize("policy_name", policy.names())
def test_every_policy_runs_clean(tools: Tools, policy_name: str) -> None:
    result = run(spec(reader_and_writer(verify=True), policy_name=policy_name), tools)
    assert result.ok, result.verdict.error


@pytest.mark.parametrize(("policy_name", "bound"), [("freeze", 1.5), ("cgroup-freeze", 1.75), ("fasttrackd", 1.25)])
def test_the_daemon_does_its_work_within_its_bounds(tools: Tools, policy_name: str, bound: float) -> None:
    """It is told of the touch, and beside an update the gallery is as fast as it is alone, or nearly."""
    front, update, s6 = scenario.load("gallery-launch"), scenario.load("update"), phone.load("s6")
    alone, stock = (run(spec_of(front, behind, s6, policy.load("stock"), 1), tools) for behind in ([], [update]))
    made = replace(spec_of(front, [update], s6, policy.load(policy_name), 1), printed=True)
    counts: dict[str, int] = {}

    def collect(where: Path) -> None:
        lines = (where / "fasttrack-standin.out").read_text().splitlines()
        counts.update({name: int(count) for name, _, count in (line.rpartition(": ") for line in lines)})

    found = run(made, tools, collect)
    assert found.ok, found.verdict.error
    assert alone.response_s and stock.response_s and found.response_s
    assert stock.response_s > 3 * alone.response_s and found.response_s < bound * alone.response_s
    # Three apps' worth of events, and the touch.
    assert counts["reports"] >= 3 and counts["changes"] >= 2, counts
    if policy_name == "fasttrackd":
        assert "freezes" not in counts
    else:
        assert counts["freezes"] >= 1 and 0 < counts["longest freeze, ms"] <= 1000, counts
