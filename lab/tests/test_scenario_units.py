# SPDX-License-Identifier: GPL-2.0-only
"""Sizes, times and rates with units."""

from __future__ import annotations

import random

import pytest

from fasttrack_lab.host import units


@pytest.mark.parametrize(
    ("text", "value"),
    [("24 MiB", 24 << 20), ("1.5 GB", 1_500_000_000), ("4KiB", 4096), ("0 B", 0), ("30 MB", 30_000_000)],
)
def test_sizes(text: str, value: int) -> None:
    assert units.parse_size(text) == value


@pytest.mark.parametrize(("text", "seconds"), [("200 ms", 0.2), ("5us", 5e-6), ("2 min", 120.0), ("1.5 s", 1.5)])
def test_times(text: str, seconds: float) -> None:
    assert units.parse_time(text) == pytest.approx(seconds)


def test_rates_are_bytes_a_second() -> None:
    assert units.parse_rate("20 Mbit/s") == 2_500_000
    assert units.parse_rate("12 MB/s") == 12_000_000


@pytest.mark.parametrize(
    ("parse", "text", "says"),
    [
        (units.parse_size, "24", "has no unit"),
        (units.parse_size, "24 mib", '"mib" is not a unit of a size; valid: B, kB'),
        (units.parse_size, "-1 MiB", "cannot be negative"),
        (units.parse_size, "0.3 B", "whole number"),
        (units.parse_size, 4096, "text with a unit"),
        (units.parse_size, "9" * 400 + " B", "not as large as that"),
        (units.parse_time, "9" * 308 + " min", "not as large as that"),
        (units.parse_time, "5 MiB", "not a unit of a time"),
        (units.parse_time, "soon", "is not a time"),
        (units.parse_rate, "0 MB/s", "never ends"),
        (units.parse_time_spread, "5 ms ± 120 %", "below zero"),
        (units.parse_time_spread, "3 s .. 1 s", "ends before it begins"),
        (units.parse_time_spread, {"mean": "5 ms", "width": "1 ms"}, "keys mean and spread"),
    ],
)
def test_errors_say_what_is_wrong(parse, text, says) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=says):
        parse(text)


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("5 ms ± 20 %", 0.004, 0.006),
        ("5 ms +- 1 ms", 0.004, 0.006),
        ("1 s .. 3 s", 1.0, 3.0),
        ({"mean": "5 ms", "spread": "20 %"}, 0.004, 0.006),
        ({"mean": "5 ms"}, 0.005, 0.005),
        ("5 ms ± 100 %", 0.0, 0.010),
        ("5 ms ± 5 ms", 0.0, 0.010),
        ("0 ms ± 0 ms", 0.0, 0.0),
        ("2 s .. 2 s", 2.0, 2.0),
    ],
)
def test_spreads(text: object, low: float, high: float) -> None:
    spread = units.parse_time_spread(text)
    assert (spread.low, spread.high) == pytest.approx((low, high))
    drawn = [spread.draw(random.Random(seed)) for seed in range(50)]
    assert min(drawn) >= spread.low
    assert max(drawn) <= spread.high


def test_a_fixed_value_draws_nothing() -> None:
    rng = random.Random(1)
    before = rng.getstate()
    assert units.Spread(2.0, 2.0).draw(rng) == 2.0
    assert rng.getstate() == before


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1 << 10, "1.0 KiB"),
        ((1 << 20) - (1 << 10), "1023.0 KiB"),
        (1 << 20, "1.0 MiB"),
        (3 << 20, "3.0 MiB"),
        ((1 << 30) - (1 << 20), "1023.0 MiB"),
        (1 << 30, "1.0 GiB"),
        (5 << 29, "2.5 GiB"),
    ],
)
def test_texts_for_people(size: int, text: str) -> None:
    assert units.format_size(size) == text
