# SPDX-License-Identifier: GPL-2.0-only
"""Tasks and requests that change sides under load: fork, exec, setuid, exit, and an app that comes to the front."""

from __future__ import annotations

import pytest
from guest_script import EXT4, FASTTRACK, ask

from fasttrack_lab.run.runner import Tools

pytestmark = pytest.mark.guest


def test_the_class_follows_fork_exec_and_setuid_under_load(tools: Tools) -> None:
    """Beside writers and a reader: an app's child and what it executes are in front; who leaves its UID is not."""
    shown = ask(tools, "lifecycle.classes", data=EXT4, settings=FASTTRACK)
    foreground = {"in front", "in front again", "forked", "executed"}
    assert {name for name, classes in shown.items() if classes == ["foreground"]} == foreground
    assert shown["behind"] == ["background"]
    assert shown["service"] == shown["root"] == ["neutral"]


def test_a_reused_pid_is_not_in_front(tools: Tools) -> None:
    """A thread group of the set ends under load: whoever gets its number is what its UID says."""
    shown = ask(tools, "lifecycle.reused_pid", data=EXT4, settings=FASTTRACK)
    assert shown["same"]
    assert shown["before"] == shown["reused"] == ["background"]
    assert shown["member"] == ["foreground"]
    assert shown["set"] == ""


@pytest.mark.parametrize("by", ["uids", "cgroups"])
def test_queued_requests_change_class_with_their_app(tools: Tools, by: str) -> None:
    """Requests in the queue are foreground when their app comes to the front, and background when it leaves."""
    shown = ask(tools, "lifecycle.comes_and_leaves", data=EXT4, settings=FASTTRACK, phone_name="n5", by=by)
    # One is in the device, which takes one at a time, and the reader in front may have one.
    for state in "behind", "left":
        assert shown[state]["background"] >= 6 and shown[state]["foreground"] <= 1, shown
    for state in "came", "in front":
        assert shown[state]["background"] == 0 and shown[state]["foreground"] >= 6, shown


def test_background_goes_on_behind_neutral_requests(tools: Tools) -> None:
    """Nobody is in front, and services keep the queue full: apps' requests get their share, also when switched off."""
    shown = ask(tools, "lifecycle.services_first", data=EXT4, settings=FASTTRACK, phone_name="n5")
    assert min(shown["reads"]) >= 4 and min(shown["off"]) >= 4, shown
    assert shown["wait_max_us"] < 1_100_000
