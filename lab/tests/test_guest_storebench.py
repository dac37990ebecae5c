# SPDX-License-Identifier: GPL-2.0-only
"""storebench and storebench-apply as somebody types them, on a real kernel: its sysfs, its mounts, its elevator."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from guest_script import EXT4, ask

from fasttrack_lab.host import paths
from fasttrack_lab.inputs import profile
from fasttrack_lab.run.runner import Tools

pytestmark = pytest.mark.guest

KNOWN = {"sequential_read": 7, "random_read": 7, "sequential_write": 7, "random_write": 7}
"""In the knobs before."""


@pytest.fixture(scope="module")
def said(tools: Tools) -> dict[str, Any]:
    """Of each command on s6: exit status, what it said, and what is in the elevator's knobs then."""
    return ask(
        tools,
        "storebench.commands",
        data=EXT4,
        python=sys.executable,
        lab=str(paths.LAB),
        profiles=str(profile.PROFILES),
    )


def test_a_profile_reaches_the_elevator(said: dict[str, Any]) -> None:
    """The numbers of the device's own profile are in the knobs; --dry-run names them and writes nothing."""
    saved = profile.for_phone("s6")
    assert saved
    wanted = dict(saved.depths.items())
    status, text, knobs = said["dry"]
    assert (status, knobs) == (0, KNOWN)
    assert all(f"{name}_depth" in text for name in wanted)
    status, text, knobs = said["applied"]
    assert (status, knobs) == (0, wanted), text


@pytest.mark.parametrize(
    ("command", "knobs", "reason"),
    [
        ("mounted", {}, "sda is mounted at /run/data"),
        ("read-only", {}, "/run/data is on a file system that is mounted read-only"),
        ("elevator", {}, "choose smartio first"),
        ("device", KNOWN, "n6"),
        ("damaged", KNOWN, "half.json"),
    ],
)
def test_what_is_wrong_is_said_and_changes_nothing(
    said: dict[str, Any], command: str, knobs: dict[str, int], reason: str
) -> None:
    """One line with the reason, no traceback, and the knobs are what they were."""
    status, text, found = said[command]
    assert status > 0
    assert reason in text
    assert text.startswith("fasttrack: ")
    assert text.count("\n") == 1
    assert found == knobs
