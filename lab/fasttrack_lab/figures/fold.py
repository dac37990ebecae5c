# SPDX-License-Identifier: GPL-2.0-only
"""Markdown lines folded to a width; tables and headings stay as they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from textwrap import wrap

COLUMNS = 120


def folded(lines: Iterable[str], columns: int = COLUMNS) -> Iterator[str]:
    """Prose broken at blanks, items of a list with their indent, commands in a code block with a backslash."""
    code = False
    for line in lines:
        if line.startswith("```"):
            code = not code
            yield line
        elif len(line) <= columns or line.startswith(("|", "#")):
            yield line
        elif code:
            *first, last = _wrapped(line, columns - 2, "  ")
            yield from (f"{part} \\" for part in first)
            yield last
        else:
            yield from _wrapped(line, columns, "  " if line.startswith("- ") else "")


def _wrapped(line: str, columns: int, indent: str) -> list[str]:
    return wrap(line, columns, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
