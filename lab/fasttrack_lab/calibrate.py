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

from fasttrack_lab import policy
from fasttrack_lab.boot.base import BootSpec
from fasttrack_lab.errors import LabError
from fasttrack_lab.image import ROOM_MIB, storage_params
from fasttrack_lab.paths import write_if_changed
from fasttrack_lab.phone import Calibration, Phone
from fasttrack_lab.result import judge_boot, tail
from fasttrack_lab.rundir import run_dir
from fasttrack_lab.runner import Tools
from fasttrack_lab.script import init_script
from fasttrack_lab.side_by_side import each

TOLERANCE = 0.10
"""A measured figure may differ from the published one by this share."""

LIMIT_S = 600.0
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
    argv = [
        "fio",
        f"--name={work.name}",
        "--filename=/dev/sda",
        "--ioengine=libaio",
        "--direct=1",
        "--clocksource=clock_gettime",
        "--thread",
        f"--rw={work.rw}",
        f"--bs={work.block}",
        f"--iodepth={work.depth}",
        f"--size={work.size}",
        "--randrepeat=1",
        "--output-format=json",
    ]
    if work.runtime_s:
        argv.append(f"--runtime={work.runtime_s:g}")
    if work.sync:
        argv.append("--sync=1")
    return argv


def figure_of(report: str, phone: str, work: Calibration) -> Figure:
    """The figure in fio's JSON report."""
    try:
        direction = json.loads(report)["jobs"][0]["read" if "read" in work.rw else "write"]
        measured = direction["iops"] if work.unit == "IOPS" else direction["bw_bytes"] / 1e6
    except (json.JSONDecodeError, KeyError, IndexError) as error:
        raise LabError(f"{phone}, {work.name}: fio's report cannot be read: {error}") from error
    return Figure(phone, work.name, float(measured), work.published, work.unit, work.source)


def _script(phone: Phone) -> str:
    lines = [
        "#!/bin/sh",
        "mount -t proc none /proc && mount -t sysfs none /sys && mount -t tmpfs none /tmp && mount -t tmpfs none /run",
        "mkdir /run/out && mount -t hostfs -o /proc/self/cwd/. none /run/out",
        "[ -b /dev/sda ] || { echo fasttrack-guest: error: no /dev/sda; echo o > /proc/sysrq-trigger; sleep 10; }",
        "echo none > /sys/block/sda/queue/scheduler",
        "cd /tmp",
    ]
    for work in phone.calibration:
        if "read" in work.rw:
            # Pages that were never written are not read from flash: fill what will be read.
            fill = Calibration("fill", "write", "512k", work.depth, False, work.size, 0, 1, "MB/s", "")
            lines.append(f"{shlex.join(fio_argv(fill))} > /dev/null")
        lines.append(
            f"{shlex.join(fio_argv(work))} > /run/out/{work.name}.json || echo fasttrack-guest: error: {work.name}"
        )
    lines += ["sync", "echo o > /proc/sysrq-trigger", "sleep 10"]
    return "\n".join(lines) + "\n"


def measure_phone(phone: Phone, tools: Tools) -> list[Figure]:
    """All figures of one phone, on a fresh device."""
    if not phone.calibration:
        raise LabError(f"phones.toml has no [[{phone.name}.calibration]]")
    stock = policy.load("stock")
    with run_dir(phone.guest_mib + ROOM_MIB) as where:
        script = init_script(_script(phone))
        params = storage_params(tools.backend, phone) | {"mflash.scheduler": stock.device_scheduler}
        spec = BootSpec(tools.kernel.image, script, phone.guest_mib, where, LIMIT_S, 1, params)
        outcome = tools.backend.boot(spec)
        error = judge_boot(outcome)
        if error:
            raise LabError(f"calibrating {phone.name} failed: {error}\n{tail(outcome.console)}")
        return [figure_of((where / f"{w.name}.json").read_text(), phone.name, w) for w in phone.calibration]


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
