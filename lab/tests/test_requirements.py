# SPDX-License-Identifier: GPL-2.0-only
"""What is installed: pinned with hashes; who has more has the others' packages in the same versions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fasttrack_lab.host.paths import LAB

USERS, TRACE, DEVELOPERS = (LAB / f"requirements{more}.txt" for more in ("", "-trace", "-dev"))


def pins(name: str) -> dict[str, str]:
    """Each pin of a file, with its hashes."""
    text = "".join(line for line in (LAB / name).read_text().splitlines(keepends=True) if not line.startswith("#"))
    return dict(line.split(" ", 1) for line in text.replace("\\\n", "").splitlines())


def asked(name: str) -> set[str]:
    """What a file asks for by name, without extras and bounds."""
    lines = [line for line in (LAB / name).read_text().splitlines() if not line.startswith("-")]
    return {re.split(r"[\[<=>]", line)[0] for line in lines}


@pytest.mark.parametrize("path", [USERS, TRACE, DEVELOPERS], ids=lambda path: path.name)
def test_everything_is_pinned_and_has_a_hash(path: Path) -> None:
    found = pins(path.name)
    assert found
    assert [pin for pin in found if not re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", pin)] == []
    assert [pin for pin, rest in found.items() if "--hash=sha256:" not in rest] == []


@pytest.mark.parametrize(("fewer", "more"), [(USERS, TRACE), (TRACE, DEVELOPERS)], ids=lambda path: path.stem)
def test_who_has_more_has_what_the_others_have(fewer: Path, more: Path) -> None:
    """A developer's environment does for all: scripts/setup.sh relies on it."""
    some, all_of_them = pins(fewer.name), pins(more.name)
    assert {pin: all_of_them.get(pin) for pin in some} == some


def test_users_have_no_tool_of_developers() -> None:
    tools = asked("requirements-dev.in")
    assert {"mypy", "pytest", "ruff"} <= tools
    assert {pin.split("==")[0] for pin in pins(TRACE.name)} & tools == set()


def test_only_traces_need_databases() -> None:
    databases = asked("requirements-trace.in")
    assert {"deltalake", "ibis-framework"} <= databases
    assert {pin.split("==")[0] for pin in pins(USERS.name)} & databases == set()


@pytest.mark.parametrize("name", ["requirements", "requirements-trace", "requirements-dev"])
def test_what_is_asked_for_is_pinned(name: str) -> None:
    assert asked(f"{name}.in") <= {pin.split("==")[0] for pin in pins(f"{name}.txt")}
