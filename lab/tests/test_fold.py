# SPDX-License-Identifier: GPL-2.0-only
"""Markdown lines of a width."""

from __future__ import annotations

from fasttrack_lab.figures.fold import folded


def test_prose_items_and_commands_are_folded_and_tables_are_not() -> None:
    lines = [
        "# a heading that is long",
        "some prose that is long",
        "- an item that is long",
        "| a row that is long |",
        "```",
        "./command --with options --and more",
        "```",
        "short",
    ]
    assert list(folded(lines, 14)) == [
        "# a heading that is long",
        "some prose",
        "that is long",
        "- an item that",
        "  is long",
        "| a row that is long |",
        "```",
        "./command \\",
        "  --with options \\",
        "  --and more",
        "```",
        "short",
    ]
