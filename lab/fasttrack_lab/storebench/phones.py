# SPDX-License-Identifier: GPL-2.0-only
"""Measure emulated phones: fio in the guest on the bare device, in virtual time."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from pathlib import Path

from fasttrack_lab.host import side_by_side
from fasttrack_lab.inputs import phone_digest
from fasttrack_lab.inputs.device import Device
from fasttrack_lab.inputs.phone import Phone
from fasttrack_lab.inputs.profile import Profile
from fasttrack_lab.run import bare, fio
from fasttrack_lab.run.boot.uml import kernel_release
from fasttrack_lab.run.runner import Tools
from fasttrack_lab.storebench import disk, measure, plan
from fasttrack_lab.storebench.plan import Plan, Step

DISK = bare.DEVICE.removeprefix("/dev/")
IDENTITY = ("size", "device/vendor", "device/model", "device/queue_depth")
"""Of /sys/block/DISK: copied out as they are, and read as a real disk's."""
REPORT = "fio.json"


@dataclass(frozen=True)
class Part:
    """What one boot found."""

    report: str
    device: Device
    kernel: str


def command_line(name: str) -> str:
    """The command that measures a phone."""
    return f"./fasttrack storebench --phone {name}"


def files(wanted: Plan) -> plan.Files:
    """The bare device, for reads and writes."""
    return plan.Files(bare.DEVICE, bare.DEVICE, wanted.range_bytes, wanted.range_bytes)


def lines(steps: Sequence[Step]) -> list[str]:
    """The shell commands of steps, which run one after the other."""
    here = f"{bare.OUT}/sys/block/{DISK}"
    found = [f"mkdir -p {here}/device"]
    found += [f"cat /sys/block/{DISK}/{name} > {here}/{name}" for name in IDENTITY]
    # One fio for all: loading its libraries takes the host longer than any step.
    call = shlex.join(fio.argv(*chain(*steps)))
    return [*found, f"{call} > {bare.OUT}/{REPORT} || echo fasttrack-guest: error: fio"]


def _part(phone: Phone, steps: Sequence[Step], tools: Tools) -> Part:
    def collect(where: Path, console: str) -> Part:
        return Part((where / REPORT).read_text(), disk.device(disk.Files(where), DISK), kernel_release(console))

    return bare.boot(phone, tools, lines(steps), f"measuring {phone.name}", collect)


def _profile(phone: Phone, wanted: Plan, found: Sequence[Part]) -> Profile:
    jobs = measure.by_name(part.report for part in found)
    made = measure.profile(wanted, jobs, found[0].device, "none", command_line(phone.name), found[0].kernel)
    return replace(made, parameters=phone_digest.digest(phone.name))


def measure_all(phones: Sequence[Phone], tools: Tools, wanted: Plan | None = None) -> dict[str, Profile]:
    """The profiles of phones by name; one guest a core, one for each part. WANTED replaces the phones' own plan."""
    plans = {phone.name: wanted or plan.for_phone(phone.queue_depth) for phone in phones}
    steps = {name: measure.parts(one, files(one)) for name, one in plans.items()}
    jobs = [job for phone in phones for job in product([phone], steps[phone.name])]
    found = side_by_side.each(jobs, lambda job: _part(*job, tools), "measuring")
    answers = {}
    for phone in phones:
        mine = [part for (one, _), part in zip(jobs, found, strict=True) if one is phone]
        answers[phone.name] = _profile(phone, plans[phone.name], mine)
    return answers
