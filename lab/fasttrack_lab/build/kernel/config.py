# SPDX-License-Identifier: GPL-2.0-only
"""Kernel configuration: fragments over a default, and the check that nothing asked for was lost."""

from __future__ import annotations

import re
from pathlib import Path

from fasttrack_lab.host.errors import LabError

SET = re.compile(r"^(CONFIG_\w+)=(.*)$")
UNSET = re.compile(r"^# (CONFIG_\w+) is not set$")


def parse(text: str) -> dict[str, str]:
    """Options of a .config or a fragment; an option that is not set has the value n."""
    options: dict[str, str] = {}
    for line in text.splitlines():
        if found := SET.match(line.strip()):
            options[found[1]] = found[2]
        elif found := UNSET.match(line.strip()):
            options[found[1]] = "n"
    return options


def merge(fragments: list[Path]) -> dict[str, str]:
    """All fragments' options; one that two fragments set differently is an error."""
    merged: dict[str, str] = {}
    for path in fragments:
        for name, value in parse(path.read_text()).items():
            if merged.get(name, value) != value:
                raise LabError(f"{path}: {name}={value}, but another fragment says {merged[name]}")
            merged[name] = value
    return merged


def as_text(options: dict[str, str]) -> str:
    """A fragment with these options."""
    lines = (f"# {name} is not set" if value == "n" else f"{name}={value}" for name, value in options.items())
    return "\n".join(lines) + "\n"


def lost(asked: dict[str, str], built: dict[str, str]) -> list[str]:
    """What was asked for and is not so in the built configuration, one line each."""
    return [
        f"{name}={value} was asked for, the built .config has {built.get(name, 'n')}"
        for name, value in asked.items()
        if built.get(name, "n") != value
    ]
