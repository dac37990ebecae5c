# SPDX-License-Identifier: GPL-2.0-only
"""Sets of many background apps, and the names of those that have one."""

from __future__ import annotations

MANY_ORDER = ("update", "backup", "download", "photo-upload", "scan", "sync")
"""In which order background apps come in: first those of the FastTrack paper's figures, then a writer and a reader by
turns."""
MANY = {count: "+".join(sorted(MANY_ORDER[:count])) for count in range(2, len(MANY_ORDER) + 1)}
"""Number of background apps -> the set."""
SIX, TWELVE = MANY[len(MANY_ORDER)], "+".join(sorted(MANY_ORDER * 2))
NAMED = {"six": SIX, "twelve": TWELVE}
"""Sets that can be given by a name."""
CALLED = {names: f"{name} apps" for name, names in NAMED.items()}
"""What they are called."""


def given(background: str) -> str:
    """A set as a command takes it, by its name if it has one."""
    return next((name for name, names in NAMED.items() if names == background), background)


def called(background: str) -> str:
    """A set by its short name, if it has one."""
    return CALLED.get(background, background)
