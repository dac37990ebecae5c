# SPDX-License-Identifier: GPL-2.0-only
"""Errors that end a command with one clear message instead of a traceback."""


class LabError(Exception):
    """Something that the user can act on; the text says what, where and what to do."""

    exit_code = 1


class UsageProblem(LabError):
    """The command line or an input file is wrong."""

    exit_code = 2


class Interrupted(LabError):
    """The user ended the command."""

    exit_code = 130
