# SPDX-License-Identifier: GPL-2.0-only
"""Sizes, times and rates as people write them: "24 MiB", "1.5 GB", "200 ms", "5 ms ± 20 %", "20 Mbit/s".

Every parser raises `ValueError` with the valid units when the text is not understood.
"""

from __future__ import annotations

import math
import random
import re
from dataclasses import dataclass

SIZE_UNITS: dict[str, int] = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
}
TIME_UNITS: dict[str, float] = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}
RATE_UNITS: dict[str, float] = {
    "kbit/s": 125.0,
    "Mbit/s": 125e3,
    "Gbit/s": 125e6,
    **{f"{unit}/s": float(factor) for unit, factor in SIZE_UNITS.items()},
}

_QUANTITY = re.compile(r"\s*(?P<number>[-+]?\d+(?:\.\d+)?)\s*(?P<unit>[^\d\s.]\S*)?\s*")
_PLUS_MINUS = re.compile(r"\s*(?:±|\+/?-)\s*")


def _quantity(text: object, units: dict[str, float] | dict[str, int], what: str) -> float:
    """One number with its unit, in the base unit."""
    example = {"size": "24 MiB", "time": "200 ms", "rate": "20 Mbit/s"}[what]
    valid = ", ".join(units)
    if not isinstance(text, str):
        raise ValueError(f'a {what} is text with a unit such as "{example}", not {text!r}')
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f'"{text}" is not a {what}; write a number and a unit such as "{example}"')
    unit = match["unit"]
    if unit is None:
        raise ValueError(f'"{text}" has no unit; units of a {what}: {valid}')
    if unit not in units:
        raise ValueError(f'"{text}": "{unit}" is not a unit of a {what}; valid: {valid}')
    value = float(match["number"])
    if value < 0:
        raise ValueError(f'"{text}": a {what} cannot be negative')
    if value * units[unit] == math.inf:
        raise ValueError(f'"{text[:20]}...": a {what} is not as large as that')
    return value * units[unit]


@dataclass(frozen=True)
class Spread:
    """A value drawn evenly from [low, high], in bytes or seconds. A fixed value has low == high."""

    low: float
    high: float

    @property
    def mean(self) -> float:
        """The middle of the range."""
        return (self.low + self.high) / 2

    def draw(self, rng: random.Random) -> float:
        """One value. A fixed value draws nothing, so adding one moves no other draw."""
        return self.low if self.low == self.high else rng.uniform(self.low, self.high)


def _spread(text: object, units: dict[str, float] | dict[str, int], what: str) -> Spread:
    """`X`, `X ± Y`, `X ± P %`, `X .. Y`, or a table {mean, spread}."""
    if isinstance(text, dict):
        odd = sorted(set(text) - {"mean", "spread"})
        if odd or "mean" not in text:
            raise ValueError(f"a {what} as a table has the keys mean and spread, not {', '.join(sorted(text))}")
        text = f"{text['mean']} ± {text['spread']}" if "spread" in text else text["mean"]
    if not isinstance(text, str):
        return Spread(*[_quantity(text, units, what)] * 2)
    if ".." in text:
        low_text, _, high_text = text.partition("..")
        low, high = _quantity(low_text, units, what), _quantity(high_text, units, what)
        if low > high:
            raise ValueError(f'"{text}": the range ends before it begins')
        return Spread(low, high)
    middle_text, *rest = _PLUS_MINUS.split(text, maxsplit=1)
    middle = _quantity(middle_text, units, what)
    if not rest:
        return Spread(middle, middle)
    percent = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", rest[0].strip())
    half = middle * float(percent[1]) / 100 if percent else _quantity(rest[0], units, what)
    if half > middle:
        raise ValueError(f'"{text}": the spread reaches below zero')
    return Spread(middle - half, middle + half)


def parse_size(text: object) -> int:
    """Bytes of "24 MiB" (binary units KiB MiB GiB, decimal units kB MB GB)."""
    value = _quantity(text, SIZE_UNITS, "size")
    if value != int(value):
        raise ValueError(f'"{text}" is not a whole number of bytes')
    return int(value)


def parse_time(text: object) -> float:
    """Seconds of "200 ms"."""
    return _quantity(text, TIME_UNITS, "time")


def parse_rate(text: object) -> float:
    """Bytes a second of "20 Mbit/s" or "12 MB/s"; never zero."""
    value = _quantity(text, RATE_UNITS, "rate")
    if value == 0:
        raise ValueError(f'"{text}": a rate of zero never ends')
    return value


def parse_size_spread(text: object) -> Spread:
    """A size that may vary: "2.4 MiB ± 40 %", "1 MiB .. 5 MiB"."""
    return _spread(text, SIZE_UNITS, "size")


def parse_time_spread(text: object) -> Spread:
    """A time that may vary: "5 ms ± 20 %", "5 ms ± 1 ms", "1 s .. 3 s", {mean, spread}."""
    return _spread(text, TIME_UNITS, "time")


def format_size(value: float) -> str:
    """Bytes for people: 1 decimal, binary units."""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if value >= factor:
            return f"{value / factor:.1f} {unit}"
    return f"{value:.0f} B"
