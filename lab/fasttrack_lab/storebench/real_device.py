# SPDX-License-Identifier: GPL-2.0-only
"""Measure a real device: fio on this machine, in real time, in the file of a `target`."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from itertools import chain
from pathlib import Path

from fasttrack_lab.host import process, ui
from fasttrack_lab.host.errors import LabError
from fasttrack_lab.inputs.profile import Profile
from fasttrack_lab.run import fio
from fasttrack_lab.storebench import measure, plan, target
from fasttrack_lab.storebench.plan import Plan, Step

GRACE_S = 60.0
"""Real time that a step may take beyond its own, before it counts as hung: opening, flushing, ending."""

SLOWEST_BYTES_S = 1e6
"""No device takes sequential writes more slowly: what filling the file may take follows from it."""

ERROR_CHARACTERS = 300


def limit_s(step: Step, wanted: Plan) -> float:
    """Real time after which a step counts as hung."""
    return GRACE_S + (wanted.range_bytes / SLOWEST_BYTES_S if step[0].name == plan.FILL else wanted.limit_s)


def _run(step: Step, limit: float) -> str:
    """fio's report of one step, which may take LIMIT real seconds."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        ended = process.finish(process.start(fio.argv(*step), stdout=out, stderr=errors), limit)
        for handle in (out, errors):
            handle.seek(0)
        report, said = out.read().decode(errors="replace"), errors.read().decode(errors="replace").strip()
    name = step[0].name
    if ended.timed_out:
        raise LabError(f"{name}: fio did not end within {limit:.0f} s; is the device hung?")
    if ended.status:
        raise LabError(f"{name}: fio ended with status {ended.status}: {(said or report)[-ERROR_CHARACTERS:]}")
    return report


def _reports(steps: list[Step], wanted: Plan, descriptor: int, name: str) -> list[str]:
    found = []
    with ui.bar(f"measuring {name}", len(steps)) as progress:
        for step in steps:
            # What is left in the device's cache is not the next step's to write.
            os.fsync(descriptor)
            found.append(_run(step, limit_s(step, wanted)))
            progress.advance()
    return found


def measure_at(path: Path, size: int, seconds: float, command: str, wanted: Plan | None = None) -> tuple[str, Profile]:
    """The disk below PATH and its profile, measured in a file of SIZE bytes for SECONDS a point. See target.opened."""
    if not shutil.which(fio.PROGRAM):
        raise LabError(f"{fio.PROGRAM} is missing; run scripts/setup.sh")
    with target.opened(path, size) as on:
        wanted = wanted or plan.for_file(size, seconds, on.device.queue_depth)
        ui.say(f"{on.name}: {on.device.text}, elevator {on.elevator}; a file of {size >> 20} MiB is made and removed")
        steps = list(chain(*measure.parts(wanted, on.files)))
        reports = _reports(steps, wanted, on.descriptor, on.name)
        found = measure.profile(wanted, measure.by_name(reports), on.device, on.elevator, command, platform.release())
        return on.name, found
