# SPDX-License-Identifier: GPL-2.0-only
"""What is installed: pinned with hashes; developers have the users' packages in the same versions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fasttrack_lab.host.paths import LAB

USERS, DEVELOPERS = LAB / "requirements.txt", LAB / "requirements-dev.txt"


def pins(name: str) -> dict[str, str]:
    """Each pin of a file, with its hashes."""
    text = "".join(line for line in (LAB / name).read_text().splitlines(keepends=True) if not line.startswith("#"))
    return dict(line.split(" ", 1) for line in text.replace("\\\n", "").splitlines())


def asked(name: str) -> set[str]:
    """What a file asks for by name, without extras and bounds."""
    lines = [line for line in (LAB / name).read_text().splitlines() if not line.startswith("-")]
    return {re.split(r"[\[<=>]", line)[0] for line in lines}


@pytest.mark.parametrize("path", [USERS, DEVELOPERS], ids=lambda path: path.name)
def test_everything_is_pinned_and_has_a_hash(path: Path) -> None:
    found = pins(path.name)
    assert found
    assert [pin for pin in found if not re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", pin)] == []
    assert [pin for pin, rest in found.items() if "--hash=sha256:" not in rest] == []


def test_developers_have_what_users_have() -> None:
    """A developer's environment does for both: scripts/setup.sh relies on it."""
    users, developers = pins(USERS.name), pins(DEVELOPERS.name)
    assert {pin: developers.get(pin) for pin in users} == users


def test_users_have_no_tool_of_developers() -> None:
    tools = asked("requirements-dev.in")
    assert {"mypy", "pytest", "ruff"} <= tools
    assert {pin.split("==")[0] for pin in pins(USERS.name)} & tools == set()


@pytest.mark.parametrize("name", ["requirements", "requirements-dev"])
def test_what_is_asked_for_is_pinned(name: str) -> None:
    assert asked(f"{name}.in") <= {pin.split("==")[0] for pin in pins(f"{name}.txt")}
