# SPDX-License-Identifier: GPL-2.0-only
"""KUnit in a booted kernel: run the suites, read their KTAP, say which failed or never ran."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from fasttrack_lab.build.kernel.tree import Changes

PLAN = re.compile(r"^(\d+)\.\.(\d+)$")
LINE = re.compile(r"^(ok|not ok) (\d+)(?: -)? ?([^#]*)(?:#\s*(SKIP|TODO)?\s*(.*))?$")
SUBTEST = re.compile(r"^# Subtest: (\S+)")
SAID = re.compile(r"^# \S+: (?:EXPECTATION|ASSERTION) FAILED at ")
SUITE = re.compile(r'struct kunit_suite[^;]*?\.name\s*=\s*"([^"]+)"', re.DOTALL)


@dataclass
class Suite:
    """One suite's outcome; crashed until its own line says otherwise."""

    name: str
    passed: int = 0
    skipped: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    """What tests expected, where, and what there was instead."""
    planned: int | None = None
    ended: bool = False
    ok: bool = False

    @property
    def problem(self) -> str | None:
        """Why the suite does not count, or None."""
        if not self.ended:
            return f"{self.name}: crashed or was cut short"
        if self.failed:
            return "\n    ".join([f"{self.name}: failed {', '.join(self.failed)}", *self.said])
        seen = self.passed + len(self.skipped)
        if self.planned is not None and seen != self.planned:
            return f"{self.name}: {seen} of {self.planned} tests reported"
        if not self.ok:
            return f"{self.name}: not ok"
        return None


def parse(console: str) -> list[Suite]:
    """Suites in a console log. Lines of the kernel between KTAP lines are passed over."""
    suites: list[Suite] = []
    current: Suite | None = None
    saying = False
    for raw in console.splitlines():
        line = re.sub(r"^(?:<\d+>)?\[ *\d+\.\d+\] ?", "", raw)
        depth = len(line) - len(line.lstrip(" "))
        text = line.strip()
        goes_on = saying and depth >= len("    ") and not text.startswith("#") and not LINE.match(text)
        saying = goes_on or bool(SAID.match(text))
        if current and saying:
            current.said.append(text)
        elif (found := SUBTEST.match(text)) and depth == len("    "):
            current = Suite(found[1])
            suites.append(current)
        elif current and depth == len("    ") and (found := PLAN.match(text)):
            current.planned = int(found[2])
        elif current and depth == len("    ") and (found := LINE.match(text)):
            _count(current, found)
        elif current and depth == 0 and (found := LINE.match(text)) and found[3].strip() == current.name:
            current.ended = True
            current.ok = found[1] == "ok"
            current = None
    return suites


def _count(suite: Suite, found: re.Match[str]) -> None:
    name = found[3].strip()
    if found[4] == "SKIP":
        suite.skipped.append(name)
    elif found[1] == "ok":
        suite.passed += 1
    else:
        suite.failed.append(name)


def expected(changes: Changes) -> list[str]:
    """The suites that the overlay defines."""
    names = set()
    for name, data in changes.overlay_files().items():
        if name.endswith((".c", ".h")):
            names.update(SUITE.findall(data.decode(errors="replace")))
    return sorted(names)


def problems(suites: Sequence[Suite], wanted: Sequence[str]) -> list[str]:
    """What is wrong with a KUnit run, one line each; a suite that never ran is wrong."""
    seen = {suite.name for suite in suites}
    missing = [f"{name}: did not run" for name in wanted if name not in seen]
    return missing + [suite.problem for suite in suites if suite.problem]
