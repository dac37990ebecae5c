# SPDX-License-Identifier: GPL-2.0-only
"""The power is cut at random commands while two writers fsync; every record that was acknowledged must be there.

The first boot writes records and prints each one's number after its fsync returned. The console goes to the host at
once, so what it shows was acknowledged before the cut. The second boot mounts (which replays the journal), reads every
acknowledged record back, unmounts and runs e2fsck.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

import pytest

from fasttrack_lab import phone
from fasttrack_lab.boot.base import BootSpec
from fasttrack_lab.image import ROOM_MIB, Contents, prepared, storage_params
from fasttrack_lab.result import judge_boot, judge_power_cut, tail
from fasttrack_lab.rundir import copy_sparse, run_dir
from fasttrack_lab.runner import Tools
from fasttrack_lab.script import init_script
from fasttrack_lab.side_by_side import each

pytestmark = pytest.mark.guest

CUTS = 50
LAST_COMMAND = 700
MEMORY_MIB = 256
SEED = 20180711

START = """#!/bin/sh
mount -t proc none /proc; mount -t sysfs none /sys; mount -t tmpfs none /tmp
"""

WRITE = (
    START
    + """mount /dev/sda /mnt || exit 1
exec /usr/bin/python3 -I -S -c '
import os, threading, time
def write(writer):
    log = os.open(f"/mnt/log{writer}", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
    directory = os.open("/mnt", os.O_RDONLY)
    for number in range(100000):
        record = f"{writer} {number};".encode() * 300
        os.write(log, record)
        os.fsync(log)
        if number % 8 == 0:
            new = os.open("/mnt/new", os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644) if writer == 0 else -1
            if new >= 0:
                os.write(new, record)
                os.fsync(new)
                os.close(new)
                os.rename("/mnt/new", f"/mnt/file{number}")
                os.fsync(directory)
        os.write(1, f"acked {writer} {number}\\n".encode())
        time.sleep(0.0005)
threads = [threading.Thread(target=write, args=(writer,)) for writer in range(2)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
'
"""
)

CHECK = (
    START
    + """mount /dev/sda /mnt || { echo "check: cannot mount"; echo o > /proc/sysrq-trigger; sleep 10; }
/usr/bin/python3 -I -S -c '
import os
for writer in range(2):
    last = int(os.environ[f"acked{writer}"])
    wanted = b"".join(f"{writer} {number};".encode() * 300 for number in range(last + 1))
    found = open(f"/mnt/log{writer}", "rb").read() if last >= 0 else b""
    if found[: len(wanted)] != wanted:
        print(f"check: log{writer} has {len(found)} bytes, {len(wanted)} were acknowledged")
    for number in range(0, last + 1, 8) if writer == 0 else ():
        if open(f"/mnt/file{number}", "rb").read() != f"{writer} {number};".encode() * 300:
            print(f"check: file{number} differs")
print("check: read")
'
umount /mnt
e2fsck -fn /dev/sda > /tmp/log 2>&1 && echo "check: e2fsck clean" || cat /tmp/log
echo o > /proc/sysrq-trigger
sleep 10
"""
)


@dataclass(frozen=True)
class Cut:
    """Where and how the power goes."""

    command: int
    seed: int
    persist: int


def cuts() -> list[Cut]:
    draw = random.Random(SEED)
    return [Cut(draw.randrange(1, LAST_COMMAND), index, draw.choice([0, 0, 30, 70])) for index in range(CUTS)]


def acknowledged(console: str, writer: int) -> int:
    """The number of the last record that was acknowledged to a writer, or -1."""
    return max((int(number) for number in re.findall(rf"^acked {writer} (\d+)\r?$", console, re.MULTILINE)), default=-1)


def cut_and_check(tools: Tools, cut: Cut) -> tuple[str | None, int]:
    """The first thing that went wrong, or None; and the number of records that were acknowledged."""
    s6 = phone.load("s6")
    image = prepared(Contents(s6, (), ()), tools.kernel, tools.guest, tools.guest_key, tools.backend)
    params = storage_params(tools.backend, s6) | {"mflash.seed": str(cut.seed)}
    power = {"mflash.power_cut_after": str(cut.command), "mflash.power_cut_persist": str(cut.persist)}
    with run_dir(MEMORY_MIB + ROOM_MIB) as where:
        copy_sparse(image, where / "phone.img")
        writing = BootSpec(tools.kernel.image, init_script(WRITE), MEMORY_MIB, where, 120.0, cut.seed, params | power)
        outcome = tools.backend.boot(writing)
        if error := judge_power_cut(outcome):
            return f"{cut}: {error}\n{tail(outcome.console)}", 0
        last = [acknowledged(outcome.console, writer) for writer in range(2)]
        acked = {f"acked{writer}": str(number) for writer, number in enumerate(last)}
        checking = BootSpec(tools.kernel.image, init_script(CHECK), MEMORY_MIB, where, 120.0, cut.seed, params | acked)
        outcome = tools.backend.boot(checking)
    said = [line for line in outcome.console.splitlines() if line.startswith("check: ")]
    if judge_boot(outcome) or said != ["check: read", "check: e2fsck clean"]:
        return f"{cut}: {judge_boot(outcome)}, {said}\n{tail(outcome.console)}", sum(last) + 2
    return None, sum(last) + 2


def test_nothing_that_was_synced_is_lost(tools: Tools) -> None:
    planned = cuts()
    answers = each(planned, lambda cut: cut_and_check(tools, cut), "power cuts")
    failures = [error for error, _ in answers if error]
    assert not failures, "\n".join(failures)
    assert sum(count for _, count in answers) > CUTS
    assert len({cut.command for cut in planned}) > CUTS // 2
