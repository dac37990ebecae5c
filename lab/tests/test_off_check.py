# SPDX-License-Identifier: GPL-2.0-only
"""What `./fasttrack off-check` counts as too far from a kernel without FastTrack."""

from __future__ import annotations

import pytest

from fasttrack_lab import phone
from fasttrack_lab.commands import off_check
from fasttrack_lab.commands.off_check import BASE, LIMIT_PERCENT, PATCHED, Row, cells, too_far

CELL = cells("s6", 1)[0]


@pytest.mark.parametrize(
    ("factor", "far"), [(1.0, False), (1.0009, False), (0.9991, False), (1.0011, True), (0.9989, True)]
)
def test_too_far_is_beyond_the_limit_either_way(factor: float, far: bool) -> None:
    row = Row(CELL, {BASE: (2.0,), PATCHED: (2.0 * factor,)})
    assert row.percent(PATCHED) == pytest.approx((factor - 1) * 100)
    assert LIMIT_PERCENT == 0.1
    assert too_far([row]) == ([row] if far else [])


def test_over_several_sizes_of_memory_means_may_differ_by_two_standard_errors() -> None:
    base = (1.9, 2.0, 2.1)
    # Each mean has a standard error of 0.1 / sqrt(3), the difference one of 0.0816.
    near = Row(CELL, {BASE: base, PATCHED: tuple(value + 0.16 for value in base)})
    far = Row(CELL, {BASE: base, PATCHED: tuple(value - 0.17 for value in base)})
    assert near.limit_percent(PATCHED) == pytest.approx(2 * 0.0816 / 2.0 * 100, rel=0.01)
    assert too_far([near, far]) == [far]


def test_beside_a_background_several_sizes_are_run() -> None:
    sizes = {
        cell.background: [spec.params.get("mem") for spec in off_check._specs(cell)]
        for cell in cells("s6", 1)
        if cell.scenario == "gallery-launch"
    }
    assert sizes["none"] == [None] and sizes["update"] == sizes["backup"]
    assert len(set(sizes["update"])) == 16 and sizes["update"][0] is None
    mib = phone.load("s6").guest_mib
    assert sizes["update"][1] == f"{mib * 1024 - 64}K"


def test_the_runs_are_those_of_the_stock_policy_alone_and_beside_both() -> None:
    planned = cells("n6", 3)
    assert {cell.policy for cell in planned} == {"stock"}
    assert {cell.background for cell in planned} == {"none", "update", "backup"}
    assert {(cell.phone, cell.seed) for cell in planned} == {("n6", 3)} and len(set(planned)) == 9
