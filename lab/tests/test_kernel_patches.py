# SPDX-License-Identifier: GPL-2.0-only
"""The patches are as git writes them: `git am -3` finds what they were made for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fasttrack_lab.host.paths import CHECKOUT

PATCHES = sorted((CHECKOUT / "kernel" / "patches").glob("*.patch"))
HUNK = re.compile(r"^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")


def lengths(diff: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Lines before and after of each hunk: what its head says, and what there are."""
    said: list[tuple[int, int]] = []
    there: list[tuple[int, int]] = []
    for line in diff.splitlines():
        if found := HUNK.match(line):
            said.append((int(found[1] or 1), int(found[2] or 1)))
            there.append((0, 0))
        elif there and line[:1] in ("+", "-", " "):
            before, after = there[-1]
            there[-1] = before + (line[0] != "+"), after + (line[0] != "-")
    return said, there


@pytest.mark.parametrize("path", PATCHES, ids=lambda path: path.name[:4])
def test_a_patch_says_what_it_is_for_and_how_long_it_is(path: Path) -> None:
    text = path.read_text()
    head, *files = re.split(r"^(?=diff --git )", text, flags=re.MULTILINE)
    assert files
    insertions = deletions = 0
    for diff in files:
        assert re.search(r"^index [0-9a-f]{12}\.\.[0-9a-f]{12}", diff, re.MULTILINE)
        said, there = lengths(diff)
        assert said == there
        insertions += len(re.findall(r"^\+(?!\+\+ )", diff, re.MULTILINE))
        deletions += len(re.findall(r"^-(?!-- )", diff, re.MULTILINE))
    plural = "" if len(files) == 1 else "s"
    (summary,) = re.findall(rf"^ {len(files)} file{plural} changed.*$", head, re.MULTILINE)
    counts = dict.fromkeys(("insertion", "deletion"), 0)
    counts |= {what: int(count) for count, what in re.findall(r"(\d+) (insertion|deletion)", summary)}
    assert counts == {"insertion": insertions, "deletion": deletions}
