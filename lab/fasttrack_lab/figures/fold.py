# SPDX-License-Identifier: GPL-2.0-only
"""Markdown lines folded to a width; tables and headings stay as they are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from textwrap import wrap

COLUMNS = 120


def folded(lines: Iterable[str], columns: int = COLUMNS) -> Iterator[str]:
    """Prose broken at blanks, items of a list with their indent, commands in a code block before an option."""
    code = False
    for line in lines:
        if line.startswith("```"):
            code = not code
            yield line
        elif len(line) <= columns or line.startswith(("|", "#")):
            yield line
        elif code:
            yield from _options(line, columns)
        else:
            yield from _wrapped(line, columns, "  " if line.startswith("- ") else "")


def _wrapped(line: str, columns: int, indent: str) -> list[str]:
    return wrap(line, columns, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _options(line: str, columns: int) -> Iterator[str]:
    """A command in lines that end in a backslash; an option and its value stay together."""
    shown, *options = re.split(r" (?=--)", line)
    for option in options:
        if len(f"{shown} {option} \\") > columns:
            yield f"{shown} \\"
            shown = f"  {option}"
        else:
            shown += f" {option}"
    yield shown
