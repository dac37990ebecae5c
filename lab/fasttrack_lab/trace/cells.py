# SPDX-License-Identifier: GPL-2.0-only
"""A metric's values as people read them: by the unit that the metric gives for the column."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase
from typing import Any

from fasttrack_lab.host.units import format_size
from fasttrack_lab.trace.metric import Metric

_EPOCH = date(1970, 1, 1).toordinal()
_NOBODY = {"uid": "unknown", "kib": "larger", "hour": "unknown", "day": "unknown"}
"""What -1 stands for in columns of a key."""

_BOOT_MS = 100_000_000_000
"""Three years: no boot clock goes so far, and no device has a real time from before 1973."""

_RANKED, _RANK = ("life",), re.compile(r"^\d ")
"""Texts that a digit in front puts in order."""


def unit_of(metric: Metric, column: str) -> str:
    """The unit of a column, as `bytes` or `us of device time`; empty for text."""
    for part in metric.unit.split(";"):
        names, _, unit = part.partition(":")
        if any(fnmatchcase(column, name.strip()) for name in names.split(",")):
            return unit.strip()
    return ""


def cell(metric: Metric, column: str, value: Any) -> str:
    """A value as text: shares in %, bytes and times with the unit that suits them, days by the calendar."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value * 100:.1f} %" if column.endswith(("share", "coefficient")) else f"{value:.2f}"
    if not isinstance(value, int):
        return _RANK.sub("", value) if column in _RANKED else str(value)
    if value < 0 and column in _NOBODY:
        return _NOBODY[column]
    if column == "day":
        return str(date.fromordinal(_EPOCH + value))
    suited = _SUITED.get(unit_of(metric, column).split(" ")[0])
    return suited(value) if suited else str(value)


def format_us(value: int) -> str:
    """A time with the unit that leaves it readable: `0 us`, `4.33 ms`, `12.3 s`."""
    for limit, scale, unit in ((1_000, 1, "us"), (1_000_000, 1_000, "ms")):
        if value < limit:
            return f"{_digits(value / scale)} {unit}"
    return f"{_digits(value / 1e6)} s"


def format_moment(ms: int) -> str:
    """A time in ms since 1970, in UTC; smaller ones are of the boot clock: `2026-11-27 15:04:05.678`, `12.345 s`."""
    if ms < _BOOT_MS:
        return f"{ms / 1e3:.3f} s"
    return datetime.fromtimestamp(ms / 1e3, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


_SUITED: dict[str, Callable[[int], str]] = {"bytes": format_size, "us": format_us, "ms": format_moment}
"""The first word of a unit -> how its values are written; of `ms` those since 1970."""
