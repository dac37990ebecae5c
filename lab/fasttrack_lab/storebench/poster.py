# SPDX-License-Identifier: GPL-2.0-only
"""What SmartIO's poster says of a read beside a write, and how a measured device compares."""

from __future__ import annotations

from fasttrack_lab.figures.smartio_poster import SOURCE
from fasttrack_lab.inputs.patterns import BY_NAME
from fasttrack_lab.inputs.profile import Profile, Slowdown

WORST_READ_PERCENT = 626
"""A read that a concurrent write blocks slows down by up to so much: SOURCE."""

NOTE = (
    f"The largest slowdown of a read beside a write, next to {SOURCE}: there, a read that a concurrent write blocks "
    f"slows down by up to {WORST_READ_PERCENT} %. The poster does not say whether it means slower by "
    f"{WORST_READ_PERCENT} %, which is {WORST_READ_PERCENT / 100 + 1:g} times the latency alone, or "
    f"{WORST_READ_PERCENT / 100:g} times: what lies between the two is reached as times only."
)


def worst_read(one: Profile) -> Slowdown | None:
    """The largest slowdown of a read beside a write; None if none was measured."""
    found = [entry for entry in one.slowdowns if BY_NAME[entry.subject].reads and not BY_NAME[entry.beside].reads]
    return max(found, key=lambda entry: entry.percent, default=None)


def verdict(slowdown: Slowdown) -> str:
    """Whether a slowdown is as large as the poster's, in either meaning."""
    if slowdown.percent >= WORST_READ_PERCENT:
        return "reached"
    return "as times only" if slowdown.percent + 100 >= WORST_READ_PERCENT else "not reached"
