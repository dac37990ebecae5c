# SPDX-License-Identifier: GPL-2.0-only
"""./fasttrack off-check: FastTrack, switched off, against a kernel without it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import sqrt
from statistics import mean, variance

import click
from rich import box
from rich.console import Console
from rich.table import Table

from fasttrack_lab.commands import common
from fasttrack_lab.compare import comparison
from fasttrack_lab.compare.records import BASELINE_POLICY
from fasttrack_lab.host.errors import LabError
from fasttrack_lab.inputs.cell import Cell, platform_text
from fasttrack_lab.run.result import Result
from fasttrack_lab.run.runner import RunSpec, Tools, run_many

PATCHED, BASE, UNSET = "um", "um-base", "um-off"
BACKGROUNDS = ((), ("update",), ("backup",))
LIMIT_PERCENT = 0.1
AMPLE = 3
"""Times the phone's memory that is ample: little is reclaimed, and two kernels do the same to the nanosecond."""
DIRTY_PERCENT = {"vm.dirty_bytes": 20, "vm.dirty_background_bytes": 10}
"""With ample memory, the limits of dirty pages, in per cent of the phone's own, which are the kernel's defaults. Given
in bytes, because the kernel's are per cents of the pages that are free or clean, and a page fewer moves them."""
MEMORY_SIZES, STEP_KIB = 16, 64
"""Where memory is scarce, a page of it more or less changes a response by per cents on one and the same kernel: as
many sizes are looked at, each so much smaller than the last, and means over them are compared."""
SINGLE_PAGES = {"slab_max_order": "0"}
"""There the slab allocator takes single pages on both kernels. Else it takes 16 KiB for inodes where they do not fill
8 KiB well, as with FastTrack's fields, and kswapd has to find other pages: that moves means by up to 7 per cent."""
STANDARD_ERRORS = 3


@dataclass(frozen=True)
class Row:
    """The response times of a cell, in virtual s, by kernel: one for each size of memory."""

    cell: Cell
    memory_mib: int
    """The largest of the sizes."""
    response_s: dict[str, tuple[float, ...]]

    def mean_s(self, kernel: str) -> float:
        """The mean over the sizes."""
        return mean(self.response_s[kernel])

    def percent(self, kernel: str) -> float:
        """By how much KERNEL's mean differs from the base's, in per cent of that."""
        return (self.mean_s(kernel) / self.mean_s(BASE) - 1) * 100

    def limit_percent(self, kernel: str) -> float:
        """By how much it may: the limit, or three standard errors of the difference: chance exceeds it once in 370."""
        samples = (self.response_s[BASE], self.response_s[kernel])
        error_s = sqrt(sum(variance(one) / len(one) for one in samples if len(one) > 1))
        return max(LIMIT_PERCENT, STANDARD_ERRORS * error_s / self.mean_s(BASE) * 100)


def cells(phone: str, fs: str, lru_name: str, seed: int) -> list[Cell]:
    """The runs: every foreground alone and beside each background, under the stock policy."""
    return [
        Cell(front, phone, BASELINE_POLICY, behind, seed, fs, lru_name)
        for front, behind in product(comparison.SCENARIOS, BACKGROUNDS)
    ]


def _groups(cell: Cell, slabs: Mapping[str, str]) -> Iterator[list[RunSpec]]:
    """The runs whose mean is compared: one with ample memory, and one on each of the sizes about the phone's own.

    SLABS are the slab allocator's parameters of the latter.
    """
    spec = comparison.run_of(cell)
    if not cell.backgrounds:
        yield [spec]
        return
    mib = spec.phone.guest_mib
    dirty = {f"sysctl.{name}": str(percent * (mib << 20) // 100) for name, percent in DIRTY_PERCENT.items()}
    yield [replace(spec, phone=replace(spec.phone, guest_mib=AMPLE * mib), params={**spec.params, **dirty})]
    # Of two sizes the kernel takes the last one that it is given.
    sizes = (f"{mib * 1024 - step * STEP_KIB}K" for step in range(MEMORY_SIZES))
    yield [replace(spec, params={**spec.params, **slabs, "mem": size}) for size in sizes]


def measure(planned: Sequence[Cell], kernels: Sequence[str], slabs: Mapping[str, str] = SINGLE_PAGES) -> list[Row]:
    """Run all cells on each kernel; a run that fails is an error.

    The base has prepared the phones for all: where a kernel lays a file changes how long its reads take.
    """
    groups = [(cell, specs) for cell in planned for specs in _groups(cell, slabs)]
    every = [spec for _, specs in groups for spec in specs]
    tools = {kernel: Tools.of_checkout(kernel) for kernel in kernels}
    rows = [Row(cell, specs[0].phone.guest_mib, {}) for cell, specs in groups]
    for kernel in kernels:
        results = iter(run_many(every, replace(tools[kernel], preparer=tools[BASE].kernel), kernel))
        for row, (_, specs) in zip(rows, groups, strict=True):
            row.response_s[kernel] = tuple(_response_s(kernel, row.cell, next(results)) for _ in specs)
    return rows


def _response_s(kernel: str, cell: Cell, result: Result) -> float:
    if result.response_s is None:
        raise LabError(f"{kernel}: {cell.text()}: {result.verdict.error}")
    return result.response_s


def table(rows: Sequence[Row], kernel: str, title: str) -> Table:
    """All rows, with the per cents by which KERNEL's response time differs from the base's, and may."""
    shown = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in ("foreground", "background"):
        shown.add_column(name, no_wrap=True)
    for name in ("MiB", "sizes", BASE, kernel, "+ %", "limit"):
        shown.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        sizes, limit = len(row.response_s[BASE]), row.limit_percent(kernel)
        times = [f"{row.mean_s(one):.6f}" for one in (BASE, kernel)]
        compared = [*times, f"{row.percent(kernel):+.3f}", f"{limit:.1f}"]
        shown.add_row(row.cell.scenario, row.cell.background, str(row.memory_mib), str(sizes), *compared)
    return shown


def too_far(rows: Sequence[Row]) -> list[Row]:
    """Those in which the patched kernel is not within the limit."""
    return [row for row in rows if abs(row.percent(PATCHED)) > row.limit_percent(PATCHED)]


@click.command("off-check")
@common.phone_option
@common.fs_option
@common.lru_option
@common.seed_option()
@click.option(
    "--large-slabs", is_flag=True, help="Let the slab allocator use blocks of many pages; the two kernels' differ."
)
@click.option("--unset", is_flag=True, help=f"Also {UNSET}: the patched source without CONFIG_FASTTRACK.")
def command(phone_name: str, fs: str | None, lru_name: str, seed: int, large_slabs: bool, unset: bool) -> None:
    """Compare the patched kernel, with FastTrack off, with one that has none of FastTrack.

    Every foreground scenario runs alone, with update and with backup, under the stock policy. Ends with status 1 if a
    response time differs by more than 0.1 per cent. Runs with a background have ample memory for this, three times the
    phone's. They also run with the phone's own memory: there a page more or less changes one kernel's time by more than
    that, so means over 16 sizes of memory are compared, with slabs of single pages, and may differ by three standard
    errors. Builds a second kernel the first time, which takes 5 minutes or more.
    """
    common.check_host()
    kernels = [PATCHED, *([UNSET] if unset else [])]
    file_system = fs or ""
    planned = cells(phone_name, file_system, lru_name, seed)
    rows = measure(planned, [BASE, *kernels], {} if large_slabs else SINGLE_PAGES)
    title = (
        f"Response time in s under the stock policy, {platform_text(phone_name, file_system, lru_name)}, seed {seed}"
    )
    for kernel in kernels:
        Console().print(table(rows, kernel, title))
    if found := too_far(rows):
        raise LabError(f"{len(found)} of {len(rows)} response times differ by more than they may with FastTrack off")
