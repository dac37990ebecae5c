# SPDX-License-Identifier: GPL-2.0-only
"""./fasttrack off-check: FastTrack, switched off, against a kernel without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import click
from rich import box
from rich.console import Console
from rich.table import Table

from fasttrack_lab import compare
from fasttrack_lab.commands import common
from fasttrack_lab.errors import LabError
from fasttrack_lab.records import BASELINE_POLICY, Cell
from fasttrack_lab.runner import Tools, run_many

PATCHED, BASE, UNSET = "um", "um-base", "um-off"
FRONTS = ("gallery-launch", "camera-switch", "game-load")
BACKGROUNDS = ((), ("update",), ("backup",))
LIMIT_PERCENT = 0.1


@dataclass(frozen=True)
class Row:
    """The response times of one run, in virtual s, by kernel."""

    cell: Cell
    response_s: dict[str, float]

    def percent(self, kernel: str) -> float:
        """By how much KERNEL differs from the base, in per cent of it."""
        base = self.response_s[BASE]
        return (self.response_s[kernel] - base) / base * 100


def cells(phone: str, seed: int) -> list[Cell]:
    """The runs: every foreground alone and beside each background, under the stock policy."""
    return [Cell(front, phone, BASELINE_POLICY, behind, seed) for front, behind in product(FRONTS, BACKGROUNDS)]


def measure(planned: Sequence[Cell], kernels: Sequence[str]) -> list[Row]:
    """Run all cells on each kernel; a run that fails is an error."""
    found: dict[str, list[float]] = {}
    for kernel in kernels:
        found[kernel] = []
        specs = [compare.spec_of(cell) for cell in planned]
        for cell, result in zip(planned, run_many(specs, Tools.of_checkout(kernel), kernel), strict=True):
            if result.response_s is None:
                raise LabError(f"{kernel}: {cell.text()}: {result.verdict.error}")
            found[kernel].append(result.response_s)
    return [Row(cell, {name: times[index] for name, times in found.items()}) for index, cell in enumerate(planned)]


def table(rows: Sequence[Row], kernels: Sequence[str]) -> Table:
    """All rows, with what each kernel's response time differs by from the base's."""
    shown = Table(title="Response time in s under the stock policy", title_justify="left", box=box.SIMPLE_HEAD)
    for name in ("foreground", "background"):
        shown.add_column(name)
    for name in (BASE, *(text for kernel in kernels for text in (kernel, "difference"))):
        shown.add_column(name, justify="right")
    for row in rows:
        others = [text for one in kernels for text in (f"{row.response_s[one]:.6f}", f"{row.percent(one):+.4f} %")]
        shown.add_row(row.cell.scenario, row.cell.background, f"{row.response_s[BASE]:.6f}", *others)
    return shown


def too_far(rows: Sequence[Row]) -> list[Row]:
    """Runs in which the patched kernel is not within the limit."""
    return [row for row in rows if abs(row.percent(PATCHED)) > LIMIT_PERCENT]


@click.command("off-check")
@common.phone_option
@common.seed_option
@click.option("--unset", is_flag=True, help=f"Also {UNSET}: the patched source without CONFIG_FASTTRACK.")
def command(phone_name: str, seed: int, unset: bool) -> None:
    """Compare the patched kernel, with FastTrack off, with one that has none of FastTrack.

    Every foreground scenario runs alone, beside update and beside backup, under the stock policy. Ends with status 1 if
    a response time differs by more than 0.1 per cent. Where memory is short, beside update, a page of memory more or
    less changes a response time by more than that on one and the same kernel. Builds a second kernel the first time, of
    5 minutes or more.
    """
    common.check_host()
    kernels = [PATCHED, *([UNSET] if unset else [])]
    rows = measure(cells(phone_name, seed), [BASE, *kernels])
    Console().print(table(rows, kernels))
    if found := too_far(rows):
        raise LabError(f"{len(found)} of {len(rows)} runs differ by more than {LIMIT_PERCENT} % with FastTrack off")
