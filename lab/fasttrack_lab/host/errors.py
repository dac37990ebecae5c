# SPDX-License-Identifier: GPL-2.0-only
"""Errors that end a command with one clear message instead of a traceback."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path


class LabError(Exception):
    """Something that the user can act on; the text says what, where and what to do."""

    exit_code = 1


class UsageProblem(LabError):
    """The command line or an input file is wrong."""

    exit_code = 2


class InputError(UsageProblem):
    """Input that the user can put right."""

    def __init__(self, problem: str, path: Path | str | None = None, line: int | None = None) -> None:
        """`line` counts from 1. `path` and `line` are put before the message as `FILE:LINE: `."""
        self.problem = problem
        self.path = None if path is None else Path(path)
        self.line = line
        where = "" if path is None else f"{path}: " if line is None else f"{path}:{line}: "
        super().__init__(where + problem)


class Interrupted(LabError):
    """The user ended the command."""

    exit_code = 130


def unknown(what: str, name: str, valid: Iterable[str], listed: Iterable[str] | None = None) -> str:
    """The text for a name that is not among the valid ones, with the nearest valid one if there is any.

    LISTED is what to show in place of the valid names, where they are many.
    """
    names = list(valid)
    near = get_close_matches(name, names, n=1)
    hint = f" (did you mean '{near[0]}'?)" if near else ""
    return f"unknown {what} '{name}'{hint}; valid: {', '.join(names if listed is None else listed)}"
