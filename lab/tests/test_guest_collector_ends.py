# SPDX-License-Identifier: GPL-2.0-only
"""The collector is killed while it records, or the disk that it writes to loses power: what it finished is read.

None is read twice, what earlier sessions left does not change, and the next collector continues. `--ends 200` does each
200 times.
"""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from guest_script import EXT4, KEPT, ask, script, write_asked

from fasttrack_lab.build import guest_program
from fasttrack_lab.host.rundir import run_dir
from fasttrack_lab.host.side_by_side import each
from fasttrack_lab.inputs import phone
from fasttrack_lab.run.boot.backend import BootSpec
from fasttrack_lab.run.image import storage_params
from fasttrack_lab.run.result import judge_boot, judge_power_cut, tail
from fasttrack_lab.run.runner import Tools

pytestmark = pytest.mark.guest

RATE = 2000
"""Writes a second, as collector_ends.py has it."""

A_BOOT = 25
"""Kills in one guest."""

MEMORY_MIB = 256
STORAGE_MIB = 512
SEED = 31

FINISHED_S = 0.6
"""What is older is in a block that is durable: the collector looks each 0.2 s, ends a block each 0.05, and syncs it."""


@pytest.fixture(scope="module")
def times(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("--ends"))


@pytest.fixture(scope="module")
def program() -> str:
    return str(guest_program.build(guest_program.COLLECTOR))


def test_kills(tools: Tools, program: str, times: int) -> None:
    boots = [(seed, min(A_BOOT, times - first)) for seed, first in enumerate(range(0, times, A_BOOT))]

    def kill(boot: tuple[int, int]) -> dict[str, list[list[float | list[int]]]]:
        seed, count = boot
        ends = ask(
            tools, "collector_ends.killed", data=EXT4, phone_name="ufs40", collector=program, times=count, seed=seed
        )
        assert not ends["wrong"], ends["wrong"]
        assert ends["files"] > count // 2
        return ends

    kills = [one for shown in each(boots, kill, "kills of the collector") for one in shown["kills"]]
    assert len(kills) == times
    for after_s, *sessions in kills:
        bios = [number for session in sessions for number in session]
        # The kernel numbers them. The collector leaves out its own, which read what files are called, and no block.
        assert bios == sorted(set(bios))
        assert not bios or len(bios) >= 0.98 * (bios[-1] + 1 - bios[0])
        assert len(bios) >= (after_s - FINISHED_S) * RATE
    assert sum(len(one) > 1 for one in kills) > times // 3


@dataclass(frozen=True)
class Cut:
    """Where and how the power goes."""

    fs: str
    command: int
    seed: int
    persist: int


def cuts(count: int) -> list[Cut]:
    draw = random.Random(SEED)
    return [
        Cut(("ext4", "f2fs")[seed % 2], draw.randrange(100, 6000), seed, draw.choice([0, 0, 30, 70]))
        for seed in range(count)
    ]


def sent_before(console: str) -> int:
    """Writes that had ended so long before the cut that their records are finished."""
    said = [(int(count), int(at)) for count, at in re.findall(r"^sent (\d+) at (\d+)\r?$", console, re.MULTILINE)]
    return max((count for count, at in said if at <= said[-1][1] - FINISHED_S * 1e9), default=0)


def cut_and_read(tools: Tools, collector: str, cut: Cut) -> int:
    """Two boots: the recording one ends in the cut, the other reads what it left. How many bios are read."""
    s6 = phone.load("s6").with_fs(cut.fs)
    mounted = {"collector": collector, "fs": s6.fs, "options": s6.mount_options}
    params = storage_params(tools.backend, s6)
    params |= {"mflash.size_mb": str(STORAGE_MIB), "mflash.seed": str(cut.seed)}
    if KEPT:
        params["FASTTRACK_KEPT"] = ":".join(KEPT)
    power = {"mflash.power_cut_persist": str(cut.persist)}
    with run_dir(MEMORY_MIB + STORAGE_MIB) as where:
        boot = partial(BootSpec, tools.kernel.image, script("collector_ends"), MEMORY_MIB, Path(where), 240.0, cut.seed)
        write_asked(where, "records", **mounted, argv=list(s6.format), command=cut.command)
        outcome = tools.backend.boot(boot(params | power))
        finished = sent_before(outcome.console)
        error = judge_power_cut(outcome)
        assert error is None, f"{cut}: {error}\n{tail(outcome.console)}"
        write_asked(where, "reads", **mounted)
        outcome = tools.backend.boot(boot(params))
        error = judge_boot(outcome)
        assert error is None, f"{cut}: {error}\n{tail(outcome.console)}"
        shown = json.loads((where / "shown.json").read_text())
    bios = [number for session in shown["bios"] for number in session]
    assert bios == sorted(set(bios)), f"{cut}: twice, or not in order"
    assert len(bios) >= finished, f"{cut}: {finished} were finished, {len(bios)} are read; {shown['damage']}"
    assert shown["kept"], f"{cut}: the next collector has changed what was there"
    return len(bios)


def test_power_cuts(tools: Tools, program: str, times: int) -> None:
    planned = cuts(times)
    read = each(planned, lambda cut: cut_and_read(tools, program, cut), "power cuts while it records")
    assert sum(count > RATE for count in read) >= times // 4
