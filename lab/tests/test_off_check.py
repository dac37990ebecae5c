# SPDX-License-Identifier: GPL-2.0-only
"""What `./fasttrack off-check` counts as too far from a kernel without FastTrack."""

from __future__ import annotations

from pathlib import Path

import pytest

from fasttrack_lab.build.kernel.kbuild import Kernel
from fasttrack_lab.commands import off_check
from fasttrack_lab.commands.off_check import BASE, LIMIT_PERCENT, PATCHED, Row, cells, too_far
from fasttrack_lab.inputs import phone
from fasttrack_lab.run.boot.uml import Uml
from fasttrack_lab.run.result import Result, Verdict
from fasttrack_lab.run.runner import RunSpec, Tools

CELL = cells("s6", "", "classic", 1)[0]
MIB = 1024


@pytest.mark.parametrize(
    ("factor", "far"), [(1.0, False), (1.0009, False), (0.9991, False), (1.0011, True), (0.9989, True)]
)
def test_too_far_is_beyond_the_limit_either_way(factor: float, far: bool) -> None:
    row = Row(CELL, MIB, {BASE: (2.0,), PATCHED: (2.0 * factor,)})
    assert row.percent(PATCHED) == pytest.approx((factor - 1) * 100)
    assert LIMIT_PERCENT == 0.1
    assert too_far([row]) == ([row] if far else [])


def test_over_several_sizes_of_memory_means_may_differ_by_three_standard_errors() -> None:
    base = (1.9, 2.0, 2.1)
    # Each mean has a standard error of 0.1 / sqrt(3), the difference one of 0.0816.
    near = Row(CELL, MIB, {BASE: base, PATCHED: tuple(value + 0.24 for value in base)})
    far = Row(CELL, MIB, {BASE: base, PATCHED: tuple(value - 0.25 for value in base)})
    assert near.limit_percent(PATCHED) == pytest.approx(3 * 0.0816 / 2.0 * 100, rel=0.01)
    assert too_far([near, far]) == [far]


def test_beside_a_background_memory_is_ample_once_and_the_phones_in_several_sizes() -> None:
    mib = phone.load("s6").guest_mib
    for cell in cells("s6", "", "classic", 1):
        ample, *own = off_check._groups(cell, off_check.SINGLE_PAGES)
        assert len(ample) == 1 and "mem" not in ample[0].params
        if not cell.backgrounds:
            assert own == [] and ample[0].phone.guest_mib == mib
            continue
        assert ample[0].phone.guest_mib == off_check.AMPLE * mib > mib
        assert ample[0].params["sysctl.vm.dirty_bytes"] == str((mib << 20) // 5)
        (sizes,) = own
        assert {spec.phone.guest_mib for spec in sizes} == {mib}
        given = [spec.params.get("mem") for spec in sizes]
        assert len(set(given)) == 16 and given[:2] == [f"{mib * 1024}K", f"{mib * 1024 - 64}K"]
        assert {spec.params["slab_max_order"] for spec in sizes} == {"0"}


def test_the_runs_are_those_of_the_stock_policy_alone_and_beside_both() -> None:
    planned = cells("n6", "f2fs", "mglru", 3)
    assert {cell.policy for cell in planned} == {"stock"}
    assert {cell.background for cell in planned} == {"none", "update", "backup"}
    assert {(cell.phone, cell.fs, cell.lru, cell.seed) for cell in planned} == {("n6", "f2fs", "mglru", 3)}
    assert len(set(planned)) == 9


def test_one_kernel_prepares_the_phones_of_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where a kernel lays a file changes how long its reads take: 3 per cent of a launch beside backup."""

    def of_checkout(target: str) -> Tools:
        return Tools(Kernel(tmp_path / target, target, target), tmp_path / "guest", "1", Uml())

    asked: list[tuple[str, str | None]] = []

    def run_many(specs: list[RunSpec], tools: Tools, title: str) -> list[Result]:
        asked.append((tools.kernel.target, tools.preparer and tools.preparer.target))
        outcome = Verdict(True, None, (), {"touch_ns": 0, "end_ns": 2 * 10**9, "apps": []})
        return [Result(spec.cell, outcome, "6.12", 0.1) for spec in specs]

    monkeypatch.setattr(off_check.Tools, "of_checkout", of_checkout)
    monkeypatch.setattr(off_check, "run_many", run_many)
    rows = off_check.measure(cells("s6", "", "classic", 1), [BASE, PATCHED])
    assert asked == [(BASE, BASE), (PATCHED, BASE)]
    assert [len(row.response_s[PATCHED]) for row in rows[:3]] == [1, 1, 16] and len(rows) == 15
