# SPDX-License-Identifier: GPL-2.0-only
"""./fasttrack smoke: the x86-64 kernel in QEMU, so that nothing works in UML only."""

from __future__ import annotations

import click

from fasttrack_lab.boot.base import BootSpec
from fasttrack_lab.boot.qemu import Qemu, available
from fasttrack_lab.commands import common
from fasttrack_lab.errors import LabError
from fasttrack_lab.kernel import build
from fasttrack_lab.result import judge_boot, tail
from fasttrack_lab.rundir import run_dir
from fasttrack_lab.script import init_script

MEMORY_MIB = 1024
LIMIT_S = 600.0
DONE = "smoke: done"

SCRIPT = """#!/bin/sh
mount -t proc none /proc; mount -t sysfs none /sys; mount -t tmpfs none /run; mount -t debugfs none /sys/kernel/debug
mkdir /run/data
set -e
echo "smoke: $(uname -r), $(nproc) processors"
mkfs.ext4 -q -F /dev/sda
for elevator in mq-deadline fasttrack; do
	echo $elevator > /sys/block/sda/queue/scheduler
	mount /dev/sda /run/data
	fio --directory=/run/data --name=check --rw=randrw --bs=16k --size=16m --numjobs=4 --ioengine=libaio --iodepth=8 \
		--direct=1 --verify=crc32c --verify_fatal=1 --minimal > /run/fio.log || { cat /run/fio.log; exit 1; }
	umount /run/data
done
e2fsck -fn /dev/sda
echo ""
echo o > /proc/sysrq-trigger
sleep 20
"""


@click.command("smoke")
def command() -> None:
    """Boot the x86-64 kernel in QEMU: two processors, lockdep, the emulated storage; run fio with verification."""
    if not available():
        click.echo("SKIPPED: qemu-system-x86_64 is not installed (apt-get install qemu-system-x86)")
        return
    common.check_host()
    kernel = build.build("x86")
    with run_dir(MEMORY_MIB) as where:
        params = {"mflash.phone": "ufs31", "mflash.size_mb": "256"}
        outcome = Qemu().boot(BootSpec(kernel.image, init_script(SCRIPT), MEMORY_MIB, where, LIMIT_S, params=params))
    error = judge_boot(outcome)
    if not error and DONE not in outcome.console:
        error = "the guest's script did not come to its end"
    if error:
        raise LabError(f"{tail(outcome.console)}\nthe x86-64 kernel failed in QEMU: {error}")
    click.echo(f"x86-64 kernel: clean in QEMU, {outcome.wall_s:.0f} s")
