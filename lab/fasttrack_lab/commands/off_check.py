# SPDX-License-Identifier: GPL-2.0-only
"""./fasttrack off-check: FastTrack, switched off, against a kernel without it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import sqrt
from statistics import mean, variance

import click
from rich import box
from rich.console import Console
from rich.table import Table

from fasttrack_lab import compare
from fasttrack_lab.commands import common
from fasttrack_lab.errors import LabError
from fasttrack_lab.records import BASELINE_POLICY, Cell
from fasttrack_lab.runner import RunSpec, Tools, run_many

PATCHED, BASE, UNSET = "um", "um-base", "um-off"
BACKGROUNDS = ((), ("update",), ("backup",))
LIMIT_PERCENT = 0.1
MEMORY_SIZES, STEP_KIB = 16, 64
"""Beside a background, a page of memory more or less changes a response by per cents on one and the same kernel: as
many sizes of memory are looked at, each so much smaller than the last, and means over them are compared."""


@dataclass(frozen=True)
class Row:
    """The response times of one run, in virtual s, by kernel: one for each size of memory."""

    cell: Cell
    response_s: dict[str, tuple[float, ...]]

    def mean_s(self, kernel: str) -> float:
        """The mean over the sizes."""
        return mean(self.response_s[kernel])

    def percent(self, kernel: str) -> float:
        """By how much KERNEL's mean differs from the base's, in per cent of that."""
        return (self.mean_s(kernel) / self.mean_s(BASE) - 1) * 100

    def limit_percent(self, kernel: str) -> float:
        """By how much it may: the limit, or two standard errors of the difference, which chance exceeds once in 20."""
        samples = (self.response_s[BASE], self.response_s[kernel])
        error_s = sqrt(sum(variance(one) / len(one) for one in samples if len(one) > 1))
        return max(LIMIT_PERCENT, 2 * error_s / self.mean_s(BASE) * 100)


def cells(phone: str, seed: int) -> list[Cell]:
    """The runs: every foreground alone and beside each background, under the stock policy."""
    return [
        Cell(front, phone, BASELINE_POLICY, behind, seed) for front, behind in product(compare.SCENARIOS, BACKGROUNDS)
    ]


def _specs(cell: Cell) -> Iterator[RunSpec]:
    """A run on every size of memory that it is looked at on."""
    spec = compare.spec_of(cell)
    sizes = MEMORY_SIZES if cell.backgrounds else 1
    for step in range(sizes):
        kib = spec.phone.guest_mib * 1024 - step * STEP_KIB
        # The kernel takes the last one that it is given.
        yield replace(spec, params={**spec.params, "mem": f"{kib}K"}) if step else spec


def measure(planned: Sequence[Cell], kernels: Sequence[str]) -> list[Row]:
    """Run all cells on each kernel; a run that fails is an error."""
    runs = [(cell, spec) for cell in planned for spec in _specs(cell)]
    found: dict[Cell, dict[str, list[float]]] = {cell: {kernel: [] for kernel in kernels} for cell in planned}
    for kernel in kernels:
        results = run_many([spec for _, spec in runs], Tools.of_checkout(kernel), kernel)
        for (cell, _), result in zip(runs, results, strict=True):
            if result.response_s is None:
                raise LabError(f"{kernel}: {cell.text()}: {result.verdict.error}")
            found[cell][kernel].append(result.response_s)
    return [Row(cell, {name: tuple(times) for name, times in by_kernel.items()}) for cell, by_kernel in found.items()]


def table(rows: Sequence[Row], kernels: Sequence[str]) -> Table:
    """All rows, with what each kernel's response time differs by from the base's, and may."""
    shown = Table(title="Response time in s under the stock policy", title_justify="left", box=box.SIMPLE_HEAD)
    for name in ("foreground", "background", "sizes"):
        shown.add_column(name)
    for name in (BASE, *(text for kernel in kernels for text in (kernel, "difference", "at most"))):
        shown.add_column(name, justify="right")
    for row in rows:
        others = [
            text
            for one in kernels
            for text in (f"{row.mean_s(one):.6f}", f"{row.percent(one):+.4f} %", f"{row.limit_percent(one):.1f} %")
        ]
        sizes = str(len(row.response_s[BASE]))
        shown.add_row(row.cell.scenario, row.cell.background, sizes, f"{row.mean_s(BASE):.6f}", *others)
    return shown


def too_far(rows: Sequence[Row]) -> list[Row]:
    """Runs in which the patched kernel is not within the limit."""
    return [row for row in rows if abs(row.percent(PATCHED)) > row.limit_percent(PATCHED)]


@click.command("off-check")
@common.phone_option
@common.seed_option
@click.option("--unset", is_flag=True, help=f"Also {UNSET}: the patched source without CONFIG_FASTTRACK.")
def command(phone_name: str, seed: int, unset: bool) -> None:
    """Compare the patched kernel, with FastTrack off, with one that has none of FastTrack.

    Every foreground scenario runs alone, beside update and beside backup, under the stock policy. Ends with status 1 if
    a response time differs by more than 0.1 per cent. Beside a background, a page of memory more or less changes it by
    more than that on one and the same kernel: there means over 16 sizes of memory may differ by two standard errors.
    Builds a second kernel the first time, of 5 minutes or more.
    """
    common.check_host()
    kernels = [PATCHED, *([UNSET] if unset else [])]
    rows = measure(cells(phone_name, seed), [BASE, *kernels])
    Console().print(table(rows, kernels))
    if found := too_far(rows):
        raise LabError(f"{len(found)} of {len(rows)} response times differ by more than they may with FastTrack off")
