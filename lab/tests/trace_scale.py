#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What a whole report takes: `trace_scale.py [RECORDS] [ARCHIVE]` prints time and memory, page and JSON included.

The archive is of a made trace of so many records (20,000 by default), unless ARCHIVE is there.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from trace_generator import write as generate

from fasttrack_lab.host.paths import CHECKOUT

RECORDS = 20_000


@dataclass(frozen=True)
class Took:
    """Of one report, Python's start included."""

    seconds: float
    processor_s: float
    max_bytes: int
    """The most that was resident."""


PEAK = "peak"
"""The file with what a report took of memory."""

RUN = f"""
import re, runpy, sys
from pathlib import Path
where = Path(sys.argv.pop(1))
try:
    runpy.run_module("fasttrack_lab", run_name="__main__", alter_sys=True)
finally:
    status = Path("/proc/self/status").read_text()
    (where / "{PEAK}").write_text(re.search(r"VmHWM:\\s+([0-9]+)", status)[1])
"""
"""Says the peak itself: what wait4() says counts the process that it was forked from, too."""


def report(archive: Path, out: Path, page: bool = True) -> Took:
    """Asks for the report of an ARCHIVE, in a process of its own; its files go to the directory OUT."""
    asked = ["trace", "report", str(archive), "--json", str(out / "numbers.json")]
    began = time.monotonic()
    child = subprocess.Popen(
        [sys.executable, "-c", RUN, str(out), *asked, *(["--out", str(out)] if page else [])],
        env=os.environ | {"PYTHONPATH": str(CHECKOUT / "lab")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, child.args)
    peak_kib = int((out / PEAK).read_text())
    return Took(time.monotonic() - began, used.ru_utime + used.ru_stime, peak_kib * 1024)


def main(records: int, archive: Path | None) -> None:
    with tempfile.TemporaryDirectory(prefix="fasttrack-scale-") as where:
        folder = archive or Path(where) / "archive"
        if not folder.exists():
            generate(folder, records)
        took = report(folder, Path(where))
    print(
        f"{records} records: {took.seconds:.1f} s, {took.processor_s:.1f} s of processor time, "
        f"{took.max_bytes / 1e6:.0f} MB"
    )


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS,
        Path(sys.argv[2]) if len(sys.argv) > 2 else None,
    )
