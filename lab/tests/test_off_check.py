# SPDX-License-Identifier: GPL-2.0-only
"""What `./fasttrack off-check` counts as too far from a kernel without FastTrack."""

from __future__ import annotations

import pytest

from fasttrack_lab.commands.off_check import BASE, LIMIT_PERCENT, PATCHED, Row, cells, too_far

CELL = cells("s6", 1)[0]


@pytest.mark.parametrize(
    ("factor", "far"), [(1.0, False), (1.0009, False), (0.9991, False), (1.0011, True), (0.9989, True)]
)
def test_too_far_is_beyond_the_limit_either_way(factor: float, far: bool) -> None:
    row = Row(CELL, {BASE: 2.0, PATCHED: 2.0 * factor})
    assert row.percent(PATCHED) == pytest.approx((factor - 1) * 100)
    assert LIMIT_PERCENT == 0.1
    assert too_far([row]) == ([row] if far else [])


def test_the_runs_are_those_of_the_stock_policy_alone_and_beside_both() -> None:
    planned = cells("n6", 3)
    assert {cell.policy for cell in planned} == {"stock"}
    assert {cell.background for cell in planned} == {"none", "update", "backup"}
    assert {(cell.phone, cell.seed) for cell in planned} == {("n6", 3)} and len(set(planned)) == 9
