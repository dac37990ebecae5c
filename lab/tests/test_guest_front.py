# SPDX-License-Identifier: GPL-2.0-only
"""Who is in front: what the kernel counts of the apps of a run, by class."""

from __future__ import annotations

from typing import Any

import pytest
from jobs import MIB, spec, step, thread

from fasttrack_lab.result import Result
from fasttrack_lab.runner import Tools, run

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
    assert 32 <= foreground < 48 and background >= 16
