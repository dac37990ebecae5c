# SPDX-License-Identifier: GPL-2.0-only
"""Nobody pays who is not background: kernel threads, others' write-back, an app in front that sleeps or fills a cgroup.

All in virtual time, so exact.
"""

from __future__ import annotations

import pytest
from guest_script import EXT4, FASTTRACK, Data, ask

from fasttrack_lab.run.runner import Tools

pytestmark = pytest.mark.guest

BOUND_MS = 1000
"""background_pause_ms."""


def test_the_worker_of_a_loop_device_does_not_pause(tools: Tools) -> None:
    """It reads and writes a file for whoever uses the device: root here, who is neutral."""
    shown = ask(tools, "bystanders.loop_device", data=EXT4, settings=FASTTRACK)
    assert shown["pauses"] == 0
    assert shown["longest_ms"] < BOUND_MS / 2


def test_a_foreground_that_sleeps_for_ever_holds_nobody(tools: Tools) -> None:
    """Two threads in front read one terminal: the second sleeps in a mutex until somebody presses a key."""
    shown = ask(tools, "bystanders.sleeper", data=EXT4, settings=FASTTRACK)
    assert shown["at_first"] > 0
    assert shown["later"] == 0
    assert shown["mib"] > 100


def test_an_app_in_front_fills_its_cgroup_with_dirty_pages(tools: Tools) -> None:
    """It is throttled for those, as on stock, and not killed."""
    stock, fasttrack = (
        ask(tools, "bystanders.dirty_cgroup", data=EXT4, settings=settings) for settings in ((), FASTTRACK)
    )
    for shown in (stock, fasttrack):
        assert shown["status"] == 0
        assert "oom_kill 0" in shown["events"]


def test_a_paused_fsync_lets_others_write_back_on_f2fs(tools: Tools) -> None:
    """f2fs writes nothing back for others while somebody syncs data; a background fsync takes long."""
    shown = ask(tools, "bystanders.paused_fsync", data=Data("f2fs"), settings=FASTTRACK, phone_name="n5")
    assert shown["syncs"] and shown["still_syncs"]
    assert shown["clean_ms"] < BOUND_MS
