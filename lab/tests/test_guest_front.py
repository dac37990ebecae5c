# SPDX-License-Identifier: GPL-2.0-only
"""Who is in front: what the kernel counts of the apps of a run, by class; what the lists of apps take and forget."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from guest_script import EXT4, FASTTRACK, ask
from jobs import MIB, spec, step, thread

from fasttrack_lab.inputs import phone, policy, scenario
from fasttrack_lab.run.result import Result
from fasttrack_lab.run.runner import Tools, run, run_many
from fasttrack_lab.run.specs import spec_of

pytestmark = pytest.mark.guest

BLOCK = 4096


def app(name: str, uid: int, role: str, *threads: dict[str, Any]) -> dict[str, Any]:
    """An app with a prepared file `f`."""
    return {"name": name, "uid": uid, "role": role, "start_s": 0.0, "threads": list(threads)}


def overwrite(blocks: int, think_s: float = 0.001) -> dict[str, Any]:
    """Writes that are one bio each: past the page cache, one at a time, where blocks are allocated already."""
    return step("write", file="f", bytes=blocks * BLOCK, block=BLOCK, flags=["direct"], think_s=think_s)


def job(*apps: dict[str, Any]) -> dict[str, Any]:
    """A job of these apps."""
    return {
        "mode": "play",
        "apps": list(apps),
        "files": [{"app": one["name"], "path": "f", "bytes": MIB, "kind": "data"} for one in apps],
        "touch_s": 0.5,
        "limit_s": 60.0,
    }


def bios(result: Result) -> tuple[int, int]:
    """Foreground and background bios of a good run."""
    shown = result.to_json()
    assert shown["ok"], shown["error"]
    return shown["counters"]["bios_foreground"], shown["counters"]["bios_background"]


def test_all_apps_of_a_split_screen_are_in_front(tools: Tools) -> None:
    def split(role: str) -> dict[str, Any]:
        left = app("left", 10104, "foreground", thread("t", [overwrite(32)], after_touch=True))
        right = app("right", 10105, role, thread("t", [overwrite(16)], after_touch=True))
        return job(left, right)

    both = run(spec(split("foreground"), policy_name="fasttrack"), tools)
    foreground, background = bios(both)
    assert foreground >= 48 and background == 0
    shown = both.to_json()["foregrounds"]
    assert shown["left"]["response_s"] > shown["right"]["response_s"] > 0
    assert both.response_s == shown["left"]["response_s"]
    foreground, background = bios(run(spec(split("background"), policy_name="fasttrack"), tools))
    # The run ends with the app in front; the other one has got as far as its share went.
    assert 32 <= foreground < 48 and background > 0


@pytest.mark.parametrize("switches", [True, False])
def test_after_a_switch_the_one_app_is_behind_and_the_other_in_front(tools: Tools, switches: bool) -> None:
    work = thread("t", [overwrite(64), step("touch"), overwrite(32)])
    left = app("left", 10107, "background", work)
    # Long enough for the background to end, whatever its share.
    came = app("came", 10106, "foreground", thread("t", [overwrite(16), step("think", s=5.0)], after_touch=True))
    made = spec(job(came, left), policy_name="fasttrack")
    result = run(replace(made, before_touch=(10107,) if switches else ()), tools)
    foreground, background = bios(result)
    before = 64 if switches else 0
    assert result.to_json()["background"]["left"]["bytes_written"] == 32 * BLOCK
    assert before + 16 <= foreground < before + 32
    assert 96 - before <= background < 96 - before + 32


def test_what_was_dirtied_in_front_is_written_back_as_background_after_the_switch(tools: Tools) -> None:
    # Every file is a bio of its own.
    write = step("write", file="g{i}", bytes=BLOCK, block=BLOCK, flags=["create"])
    dirty = step("repeat", times=16, steps=[write])
    left = app("left", 10107, "background", thread("t", [dirty, step("touch"), step("think", s=1000.0)]))
    # Longer than the flusher lets a page be dirty.
    came = app("came", 10106, "foreground", thread("t", [step("think", s=50.0)], after_touch=True))
    made = spec(job(came, left), policy_name="fasttrack")
    foreground, background = bios(run(replace(made, before_touch=(10107,)), tools))
    assert foreground < 16 <= background


@pytest.mark.slow
def test_app_switch_is_slow_on_stock_and_runs_under_every_policy(tools: Tools) -> None:
    """If a commit is under way at the touch, its FLUSH is of what the editor wrote in front: 1.3 to 2.1 of idle."""
    front, s6 = scenario.load("app-switch"), phone.load("s6")
    names = [name for name in policy.names() if name != "stock"]
    specs = [spec_of(front, [], s6, policy.load("stock"), 1, idle=True)]
    specs += [spec_of(front, [], s6, policy.load(name), 1) for name in ("stock", *names)]
    specs += [spec_of(front, [], s6, policy.load("fasttrack"), seed) for seed in (2, 5, 7)]
    idle, stock, *others = run_many(specs, tools)
    assert all(result.ok for result in (idle, stock, *others)), [result.verdict.error for result in (stock, *others)]
    assert idle.response_s is not None and stock.response_s is not None
    assert stock.response_s > 4 * idle.response_s
    fasttrack = [result.response_s for result in (others[names.index("fasttrack")], *others[len(names) :])]
    seconds = sorted(response_s for response_s in fasttrack if response_s is not None)
    assert len(seconds) == 4
    assert seconds[0] < 1.5 * idle.response_s
    assert seconds[-1] < 2.2 * idle.response_s


def test_a_split_screen_is_fast_beside_an_update(tools: Tools) -> None:
    """One app in front reads, the other writes and syncs: neither is behind."""
    front, s6, behind = scenario.load("split-screen"), phone.load("s6"), [scenario.load_background("update")]
    kinds = [("stock", []), ("stock", behind), ("fasttrack", behind)]
    results = run_many([spec_of(front, others, s6, policy.load(name), 1) for name, others in kinds], tools)
    assert all(result.ok for result in results), [result.verdict.error for result in results]
    alone, stock, fasttrack = (
        [app["response_s"] for app in result.to_json()["foregrounds"].values()] for result in results
    )
    assert len(alone) == 2
    assert max(stock) > 5 * max(alone)
    for mine, best in zip(fasttrack, alone, strict=True):
        assert mine < 1.1 * best


# --- what a class means for a task


def test_who_is_perceptible_excepted_or_real_time_is_not_held_beside_a_working_foreground(tools: Tools) -> None:
    shown = ask(tools, "front.held", data=EXT4, settings=FASTTRACK)
    behind = [shown.pop("background"), shown.pop("background again")]
    for one in behind:
        assert one["pauses"] > 0
    assert len(shown) == 7
    for name, one in shown.items():
        assert one["pauses"] == 0, name
        assert one["writes"] > 4 * max(held["writes"] for held in behind), (name, one, behind)
        assert one["reads"] > 2 * max(held["reads"] for held in behind), (name, one, behind)


# --- what the lists take


LONG = " ".join(str(number) for number in range(1000, 1900))
FULL = [str(number) for number in range(20000, 20512)]
FAULT, NO_ROOM, NO_GROUP, NO_CGROUP, TOO_LONG = (
    "Invalid argument",
    "No space left on device",
    "No such process",
    "No such file or directory",
    "Argument list too long",
)


@pytest.mark.parametrize("name", ["foreground_uids", "perceptible_uids", "neutral_uids", "app_uids"])
def test_a_word_with_a_sign_changes_one_entry(tools: Tools, name: str) -> None:
    steps = {
        "10102 10101 10101": ("ok", ["10101", "10102"]),
        "+10103 -10101": ("ok", ["10102", "10103"]),
        "+10102 -10199": ("ok", ["10102", "10103"]),
        "+10104 10105": (FAULT, ["10102", "10103"]),
        "10105 -10102": (FAULT, ["10102", "10103"]),
        "-10102 +x": (FAULT, ["10102", "10103"]),
        "+": (FAULT, ["10102", "10103"]),
        " ".join(FULL): ("ok", FULL),
        "+1": (NO_ROOM, FULL),
        "-20000 +1 -20001": ("ok", ["1", *FULL[2:]]),
        LONG: (TOO_LONG, ["1", *FULL[2:]]),
        "-1": ("ok", FULL[2:]),
        "\n": ("ok", []),
    }
    assert 4096 <= len(LONG) < 8192
    shown = ask(tools, "front.lists", steps=[(name, value) for value in steps])
    ranges = name in ("neutral_uids", "app_uids")
    for (value, (said, held)), found in zip(steps.items(), shown["steps"], strict=True):
        full = [f"{one}-{one}" for one in held] if ranges else held
        assert found[0] == said, value
        # As many as a page shows.
        assert found[1].split() == full[: len(found[1].split())], value
        assert len(found[1]) + len(" 20000-20000\n") >= 4096 or len(found[1].split()) == len(full), value
    assert shown["log"] == []


def test_who_is_not_there_fails_alone_and_is_named(tools: Tools) -> None:
    steps = [
        ("foreground_tgids", "1", "ok", "1"),
        ("foreground_tgids", "4194304", NO_GROUP, "1"),
        ("foreground_tgids", "+4194304", NO_GROUP, "1"),
        ("foreground_tgids", "4194304 1 4194303", "ok", "1"),
        ("foreground_tgids", "+4194304 -1", "ok", ""),
        ("perceptible_tgids", "-1 -4194304", "ok", ""),
        ("app_cgroups", "/no/such", NO_CGROUP, ""),
        ("app_cgroups", "app.slice", FAULT, ""),
    ]
    shown = ask(tools, "front.lists", steps=[(file, value) for file, value, *_ in steps])
    assert shown["steps"] == [[said, held] for *_, said, held in steps]
    named = [line.split(":")[1:3] for line in shown["log"]]
    assert named == [[" foreground_tgids", f" {word} is left out"] for word in ("4194304", "4194303", "+4194304")]


def test_what_has_died_leaves_the_lists(tools: Tools) -> None:
    shown = ask(tools, "front.dead")
    assert len(shown["log"]) == 1 and "foreground_cgroups: /never is left out" in shown["log"][0]
    assert shown["shown"].split() == ["/stays", "/goes"]
    assert shown["cgroup gone"] == ["0 1 1"] and shown["generations"] == 1
    assert shown["shown then"] == "/stays"
    # Not shown, and there for its child.
    assert shown["leader gone"] == ["", "1 1 1"]
    assert shown["all gone"] == ["1 0 1"]


def test_more_cgroups_than_a_page_shows(tools: Tools) -> None:
    shown = ask(tools, "front.many", count=512)
    assert shown["said"] == ["ok"] and shown["too many"] == NO_ROOM
    assert shown["whole"] and 80 < shown["shown"] < 90
    assert shown["last in front"] and not shown["last then"]
    assert shown["last removed"] == ["0 0 511"] and shown["another"] == ["0 0 512"]


# --- generation and lease


def test_a_generation_can_be_waited_for(tools: Tools) -> None:
    assert ask(tools, "front.generation") == {
        "nothing": [0, False],
        "uids": [1, True],
        "the same": [1, False],
        "perceptible": [1, False],
        "tgids": [2, True],
        "nobody": [3, True],
        "off": [3, False],
    }


def test_nobody_is_in_front_when_the_lease_has_run_out(tools: Tools) -> None:
    shown = ask(tools, "front.lease")
    assert shown["for ever"] == ["10101", "", "", "", "1"]
    held = ["10101", "1", "/app", "10102", "3"]
    assert shown["set"] == shown["renewed"] == shown["by itself"] == held
    assert shown["refused"] == [FAULT]
    assert shown["events"] == ["0 0 0"] and shown["once"] == []
    assert shown["over"] == ["", "", "", "10102", "4"]
    assert shown["again"] == shown["given up"] == ["10101", "", "", "10102", "5"]
    assert shown["log"] == ["fasttrack: nobody is in front: the lease of 500 ms has run out"]
