# SPDX-License-Identifier: GPL-2.0-only
"""Numbers of texts: times in ns without rounding, devices, whole numbers."""

from __future__ import annotations

import re
from decimal import Decimal

from fasttrack_lab.trace.importers.intake import MOST

_NS_DIGITS = 9
_NS = 1_000_000_000
_MINOR_BITS = 20
_TIME = re.compile(r"\d{1,12}(?:\.\d{1,30})?")
_EXPONENT = re.compile(r"\d{1,30}(?:\.\d{1,30})?[eE][+-]?\d{1,2}")
_DIGITS = 20
"""Of a number of 64 bits."""


def nanoseconds(text: str) -> int | None:
    """Seconds with a fraction, in ns; None where it is no time."""
    if not _TIME.fullmatch(text):
        return None
    seconds, _, fraction = text.partition(".")
    return int(seconds) * _NS + int((fraction + "0" * _NS_DIGITS)[:_NS_DIGITS])


def scientific(text: str) -> int | None:
    """Seconds in ns, as programs write them that round: with an exponent, too; None where it is no time."""
    if not _EXPONENT.fullmatch(text):
        return nanoseconds(text)
    number = Decimal(text) * _NS
    return int(number) if number < MOST else None


def whole(text: str | None) -> int | None:
    """A whole number from 0 on; None where there is none, or one that nothing has."""
    if text is None or not text.isascii() or not text.isdigit() or len(text) > _DIGITS:
        return None
    number = int(text)
    return number if number < MOST else None


def device(major: str, minor: str) -> int | None:
    """A device, as the records have it."""
    first, second = whole(major), whole(minor)
    if first is None or second is None or first >= 1 << 12 or second >= 1 << _MINOR_BITS:
        return None
    return first << _MINOR_BITS | second
