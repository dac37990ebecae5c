# SPDX-License-Identifier: GPL-2.0-only
"""The ratchet: what counts as moved, and what as a failure."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from fasttrack_lab.compare import ratchet
from fasttrack_lab.compare.ratchet import CELLS, Moved, Pin
from fasttrack_lab.host.errors import InputError, LabError
from fasttrack_lab.run.runner import Tools

KEPT = Pin(CELLS[1], "kernel-1", "inputs-1", 1_000_000_000, 5_000)


def test_the_same_inputs_must_give_the_same_nanosecond() -> None:
    assert Moved(KEPT, KEPT).error is None
    by_one = Moved(KEPT, replace(KEPT, response_ns=KEPT.response_ns + 1))
    assert by_one.moved
    assert by_one.error is not None
    assert "not exact" in by_one.error


@pytest.mark.parametrize(
    ("changed", "right"),
    [
        ({"response_ns": 1_020_000_000}, True),
        ({"response_ns": 1_020_000_001}, False),
        ({"response_ns": 979_999_999}, False),
        ({"background_bytes": 4_900}, True),
        ({"background_bytes": 4_899}, False),
    ],
)
def test_another_kernel_may_differ_by_the_bound(changed: dict[str, int], right: bool) -> None:
    pair = Moved(KEPT, replace(KEPT, kernel="kernel-2", **changed))  # type: ignore[arg-type]
    assert pair.moved
    assert (pair.error is None) is right
    said = ratchet.failures([pair])
    assert bool(said) is not right
    if said:
        assert ratchet.RENEW in said[-1]


def test_the_table_has_what_moved_and_nothing_else() -> None:
    other = replace(KEPT, cell=CELLS[0])
    pairs = [Moved(KEPT, replace(KEPT, kernel="kernel-2", response_ns=1_010_000_000)), Moved(other, other)]
    out = io.StringIO()
    Console(file=out, width=200).print(ratchet.table(pairs))
    assert "1,000,000,000" in out.getvalue()
    assert "+1.000%" in out.getvalue()
    assert CELLS[0].text() not in out.getvalue()
    assert ratchet.said(pairs) == "ratchet: 1 of 2 runs moved, on another kernel or other inputs"


def test_records_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "pins"
    ratchet.write([KEPT, replace(KEPT, cell=CELLS[6])], path)
    assert ratchet.read(path) == [KEPT, replace(KEPT, cell=CELLS[6])]
    with pytest.raises(LabError, match="no record of"):
        ratchet.compare(ratchet.read(path), [replace(KEPT, cell=CELLS[3])])
    for damaged in ("{", '{"cell": {}}', '{"cell": {"backgrounds": []}, "kernel": ""}', "[]"):
        path.write_text(damaged + "\n")
        with pytest.raises(InputError, match=r"pins:1: not a record"):
            ratchet.read(path)
    with pytest.raises(InputError, match="missing; ./fasttrack ratchet --renew"):
        ratchet.read(tmp_path / "none")


def test_the_cells_are_spread() -> None:
    assert len(CELLS) == len(set(CELLS)) == 12
    assert {cell.scenario for cell in CELLS} >= {"gallery-launch", "camera-switch", "game-load"}
    for field, least in (("phone", 4), ("policy", 7), ("fs", 2), ("lru", 2)):
        assert len({getattr(cell, field) for cell in CELLS}) >= least, field


@pytest.mark.guest
def test_nothing_moved(tools: Tools) -> None:
    if tools.kernel.target != "um":
        pytest.skip("the records are of the kernel 'um': a checked kernel has other memory")
    pairs = ratchet.compare(ratchet.read(), ratchet.measure(CELLS, tools))
    Console(width=140).print(ratchet.table(pairs))
    assert ratchet.failures(pairs) == []
