# SPDX-License-Identifier: GPL-2.0-only
"""The lab's rooms: imports go one way, no two modules lean on each other, a name means one thing."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import fasttrack_lab
from fasttrack_lab.host.paths import CHECKOUT

PACKAGE = fasttrack_lab.__name__
ROOT = Path(fasttrack_lab.__file__).parent
ABOVE = {
    "host": "",
    "inputs": "host",
    "build": "host",
    "run": "host inputs build",
    "smp": "host inputs build run",
    "cost": "host inputs build run",
    "compare": "host inputs build run",
    "figures": "host inputs build run compare",
    "storebench": "host inputs build run compare figures",
    "workloads": "host inputs build run compare",
    "session": "host inputs build run workloads",
    "trace": "host inputs build run cost compare",
    "commands": "host inputs build run smp cost compare figures storebench workloads session trace",
}
"""Room -> the rooms that it may import."""


def name_of(path: Path) -> str:
    """A module's name below the package: run.boot.uml; of a package's __init__ the package's."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {name_of(path): path for path in ROOT.rglob("*.py") if path.parent != ROOT}


def imported(path: Path) -> Iterator[str]:
    """Modules below the package that a file imports, inside functions too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            assert not any(alias.name.startswith(PACKAGE) for alias in node.names), f"{path}: import by 'from'"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == PACKAGE:
            base = (node.module or "").removeprefix(PACKAGE).lstrip(".")
            for alias in node.names:
                full = f"{base}.{alias.name}".lstrip(".")
                yield full if full in MODULES else base


def test_every_module_is_in_a_room() -> None:
    assert {name.split(".")[0] for name in MODULES} == set(ABOVE)
    assert {path.name for path in ROOT.glob("*.py")} == {"__init__.py", "__main__.py"}


@pytest.mark.parametrize("document", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_documents_name_every_room(document: str) -> None:
    told = (CHECKOUT / document).read_text().split("import in one direction", 1)[1].split("./fasttrack", 1)[0]
    assert [room for room in ABOVE if not re.search(rf"\b{room}\b", told)] == []


@pytest.mark.parametrize("room", ABOVE)
def test_imports_go_one_way(room: str) -> None:
    allowed = {room, *ABOVE[room].split()}
    up = [
        f"{name} imports {other}"
        for name, path in MODULES.items()
        if name.split(".")[0] == room
        for other in imported(path)
        if other.split(".")[0] not in allowed
    ]
    assert not up


def test_no_two_modules_lean_on_each_other() -> None:
    try:
        TopologicalSorter({name: set(imported(path)) - {name} for name, path in MODULES.items()}).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_a_module_s_name_is_there_once() -> None:
    """Save in commands/, where a module is called as its command is."""
    names = [name.rpartition(".")[2] for name in MODULES if not name.startswith("commands.")]
    assert [name for name, count in Counter(names).items() if count > 1] == []
