# SPDX-License-Identifier: GPL-2.0-only
"""fio on the bare emulated device, by the work loads that the published figures stand for."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from fasttrack_lab.host.errors import LabError
from fasttrack_lab.host.paths import write_if_changed
from fasttrack_lab.host.side_by_side import each
from fasttrack_lab.inputs.phone import Calibration, Phone
from fasttrack_lab.run import bare, fio
from fasttrack_lab.run.runner import Tools

TOLERANCE = 0.10
"""A measured figure may differ from the published one by this share."""

COMMAND = "./fasttrack calibrate"


@dataclass(frozen=True)
class Figure:
    """One measured figure beside the published one."""

    phone: str
    name: str
    measured: float
    published: float
    unit: str
    source: str

    @property
    def difference(self) -> float:
        """Share by which measured is above published."""
        return self.measured / self.published - 1

    @property
    def ok(self) -> bool:
        """Whether it is within the tolerance."""
        return abs(self.difference) <= TOLERANCE


def fio_argv(work: Calibration) -> list[str]:
    """The fio command line of a work load."""
    return fio.argv(
        fio.Job(work.name, bare.DEVICE, work.rw, work.block, work.depth, work.size, work.runtime_s, work.sync)
    )


def figure_of(report: str, phone: str, work: Calibration) -> Figure:
    """The figure in fio's JSON report."""
    try:
        found = fio.side(fio.jobs(report)[0], work.rw)
        measured = found["iops"] if work.unit == "IOPS" else found["bw_bytes"] / 1e6
    except (LabError, KeyError) as error:
        raise LabError(f"{phone}, {work.name}: {error}") from error
    return Figure(phone, work.name, float(measured), work.published, work.unit, work.source)


def _lines(phone: Phone) -> list[str]:
    """Shell commands that measure all figures of a phone."""
    lines = []
    for work in phone.calibration:
        if "read" in work.rw:
            # Pages that were never written are not read from flash: fill what will be read.
            fill = Calibration("fill", "write", "512k", work.depth, False, work.size, 0, 1, "MB/s", "")
            lines.append(f"{shlex.join(fio_argv(fill))} > /dev/null")
        lines.append(
            f"{shlex.join(fio_argv(work))} > {bare.OUT}/{work.name}.json || echo fasttrack-guest: error: {work.name}"
        )
    return lines


def measure_phone(phone: Phone, tools: Tools) -> list[Figure]:
    """All figures of one phone, on a fresh device."""
    if not phone.calibration:
        raise LabError(f"phones.toml has no [[{phone.name}.calibration]]")

    def figures(where: Path, _console: str) -> list[Figure]:
        return [figure_of((where / f"{w.name}.json").read_text(), phone.name, w) for w in phone.calibration]

    return bare.boot(phone, tools, _lines(phone), f"calibrating {phone.name}", figures)


def measure(phones: Sequence[Phone], tools: Tools) -> list[Figure]:
    """All figures of the phones, one guest a core."""
    found = each(phones, lambda one: measure_phone(one, tools), "calibrating")
    return [figure for figures in found for figure in figures]


def table(figures: Sequence[Figure]) -> str:
    """The figures as a table for a person."""
    shown = Table(title="fio in the guest against published figures")
    for column in ("phone", "figure", "measured", "published", "unit", "difference"):
        shown.add_column(column, justify="left" if column in ("phone", "figure", "unit") else "right")
    for one in figures:
        shown.add_row(
            one.phone, one.name, f"{one.measured:,.1f}", f"{one.published:,.0f}", one.unit, f"{one.difference:+.1%}"
        )
    console = Console(width=100)
    with console.capture() as captured:
        console.print(shown)
    return captured.get().rstrip()


def save(figures: Sequence[Figure], path: Path) -> None:
    """Write the figures as data."""
    rows = [asdict(one) | {"difference": round(one.difference, 4)} for one in figures]
    data = {"command": COMMAND, "tolerance": TOLERANCE, "figures": rows}
    write_if_changed(path, (json.dumps(data, indent=1) + "\n").encode())


def check(figures: Sequence[Figure]) -> None:
    """Fail when a figure is outside of the tolerance."""
    bad = [f"{one.phone} {one.name} {one.difference:+.1%}" for one in figures if not one.ok]
    if bad:
        raise LabError(f"outside of {TOLERANCE:.0%}: {', '.join(bad)}")
