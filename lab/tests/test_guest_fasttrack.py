# SPDX-License-Identifier: GPL-2.0-only
"""FastTrack's core in a running kernel: its files, its classes, whose I/O is whose, and what the dispatcher sets."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
from guest_script import ask

from fasttrack_lab.host.paths import CHECKOUT
from fasttrack_lab.run.runner import Tools

pytestmark = pytest.mark.guest

CONTRACT = CHECKOUT / "contract"
OVERLAY = CHECKOUT / "kernel" / "overlay"
FILES: list[dict[str, Any]] = tomllib.loads((CONTRACT / "sysfs.toml").read_text())["file"]
EVENTS: dict[str, dict[str, Any]] = tomllib.loads((CONTRACT / "tracepoints.toml").read_text())
FULL = " ".join(str(number) for number in range(2000, 2513))
"""One entry more than a list takes."""

LONG = "1 " * 2048
"""A page."""

ELEVATORS = sorted({one["elevator"] for one in FILES if "elevator" in one})


def test_files_and_events_are_the_contract(tools: Tools) -> None:
    shown = ask(tools, "fasttrack_files.files_and_events", elevators=ELEVATORS, systems=list(EVENTS))
    agreed = {one["path"].format(disk="sda"): one for one in FILES}
    assert sorted(shown["files"]) == sorted(agreed)
    for path, (mode, value) in shown["files"].items():
        assert mode == oct(int(agreed[path]["mode"], 8)), path
        assert value == agreed[path].get("default", "0"), path
    for system, formats in shown["events"].items():
        assert sorted(formats) == sorted(EVENTS[system])
        for name, text in formats.items():
            fields = [one for one in re.findall(r"field:.*?(\w+);", text) if not one.startswith("common_")]
            assert fields == EVENTS[system][name]["fields"], name


def test_every_file_is_documented() -> None:
    pages = (OVERLAY / "Documentation" / "ABI" / "testing").glob("sysfs-*")
    what = {line.split()[1] for page in pages for line in page.read_text().splitlines() if line.startswith("What:")}
    assert {one["path"].replace("{disk}", "<disk>") for one in FILES} == what


def wrong(one: dict[str, Any]) -> list[str]:
    """What a switch or a number of the contract does not take."""
    if one["type"] == "bool":
        return ["2", "x", "maybe", "\n"]
    low, high = one["range"]
    return [str(low - 1), str(high + 1), "1.5", "x", "\n"]


def test_the_ends_of_every_range_are_taken(tools: Tools) -> None:
    numbers = [one for one in FILES if one["mode"] == "0644" and one["type"] == "integer"]
    ends = {one["path"].format(disk="sda"): one["range"] for one in numbers}
    elevators = {one["path"].format(disk="sda"): one["elevator"] for one in numbers if "elevator" in one}
    assert len(ends) == 23
    shown = ask(tools, "fasttrack_files.takes", values=ends, elevators=elevators)
    assert shown == {path: [["ok", str(end)] for end in both] for path, both in ends.items()}


def test_wrong_input_changes_nothing(tools: Tools) -> None:
    numbers = [one for one in FILES if one["mode"] == "0644" and one["type"] in ("bool", "integer")]
    knobs = {one["path"].format(disk="sda"): wrong(one) for one in numbers}
    elevators = {one["path"].format(disk="sda"): one["elevator"] for one in numbers if "elevator" in one}
    assert len(knobs) == 27
    uids = ["10101 x", "+-1", "+1 2", "4294967295", FULL, LONG]
    tgids = ["0", "+-1", "1 zwei", "4194304", LONG]
    ranges = ["5-", "7-6", "1-100000", "a-b", "4294967296-4294967297", FULL, LONG]
    cgroups = ["/no/such/cgroup", "app.slice", "/ app.slice"]
    by_type = {
        "list of UIDs": uids,
        "list of PIDs": tgids,
        "list of UID ranges": ranges,
        "list of cgroup paths": cgroups,
    }
    lists = {one["path"]: by_type[one["type"]] for one in FILES if one["type"].startswith("list")}
    assert len(lists) == 10
    shown = ask(tools, "fasttrack_files.refuses", values=lists | knobs, elevators=elevators)
    for path, tried in shown.items():
        for value, said, before, after in tried:
            assert said != "ok", (path, value)
            assert before == after, (path, value)
            assert said == {
                FULL: "No space left on device",
                LONG: "Argument list too long",
                "4194304": "No such process",
                "/no/such/cgroup": "No such file or directory",
            }.get(value, "Invalid argument"), (path, value)


def test_no_pause_comes_near_to_an_ejection(tools: Tools) -> None:
    shown = ask(tools, "fasttrack_files.bounds")
    assert shown["said"] == ["Invalid argument", "ok", "Invalid argument", "ok"]
    assert shown["hold"] == ["29000", "30000"]


def test_what_tells_of_apps_is_for_root_alone() -> None:
    private = [one for one in FILES if one["type"].startswith("list") or one["type"] in ("counter", "maximum")]
    own = [one for one in private if "elevator" not in one]
    assert len(own) == 32
    assert {one["mode"] for one in own} == {"0600", "0400"}


def test_class_by_uid_thread_group_and_cgroup(tools: Tools) -> None:
    shown = ask(tools, "classes.by_membership")
    only = {
        name: {"neutral": int(name == "neutral"), "background": int(name == "background"), "foreground": 0}
        for name in ("none", "neutral", "background")
    }
    foreground = {"neutral": 0, "background": 0, "foreground": 1}
    assert shown["off"] == only["none"]
    assert shown["no apps"] == only["neutral"]
    assert shown["app"] == only["background"]
    assert shown["service"] == only["neutral"]
    assert shown["uid"] == foreground
    assert shown["uid removed"] == only["background"]
    assert shown["tgid shown"]
    assert shown["leader forks"] == only["none"]
    assert shown["grandchild"] == foreground
    assert shown["tgid dead"] == ""
    assert shown["grandchild removed"] == only["background"]
    assert shown["cgroups"] == ["/app.slice", "/app.slice/editor.scope"]
    assert shown["cgroup in front"] == foreground
    assert shown["cgroup behind"] == only["background"]
    assert shown["no app's cgroup"] == only["neutral"]
    assert shown["off again"] == only["none"]


def test_whose_io_and_why(tools: Tools) -> None:
    shown = ask(tools, "classes.by_work")

    def seen(name: str, cause: str) -> set[tuple[str, str]]:
        found = {(one["uid"], one["class"]) for one in shown[name] if one["cause"] == cause}
        assert found, f"{name}: no bio with cause={cause} in {shown[name]}"
        return found

    assert seen("write-back 10101", "writeback") == {("10101", "foreground")}
    assert seen("write-back 10102", "writeback") == {("10102", "background")}
    # Root waits for all that is dirty.
    assert seen("sync", "writeback") == {("10102", "neutral")}
    assert seen("fsync", "fsync") == {("10101", "foreground")}
    # The journal's thread works for the foreground that waits for it, else for nobody.
    assert seen("fsync", "journal") == {("-1", "foreground")}
    assert seen("fdatasync", "fdatasync") == {("10102", "background")}
    assert seen("fdatasync", "journal") == {("-1", "neutral")}
    assert seen("O_DSYNC", "sync_write") == {("10102", "background")}
    assert seen("read", "read") == {("10101", "foreground")}


def test_dispatcher_leaves_write_back_throttling_on(tools: Tools) -> None:
    """With nobody in front it throttles as for other elevators."""
    shown = ask(tools, "fasttrack_files.throttling")
    assert shown["bfq"] == [0]
    assert all(value > 0 for value in shown["mq-deadline"] + shown["kyber"] + shown["fasttrack"])
    assert [line.split()[0] for line in shown["state"]] == [
        "neutral",
        "background",
        "foreground",
        "front",
    ]
