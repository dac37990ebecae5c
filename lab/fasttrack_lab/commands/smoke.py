# SPDX-License-Identifier: GPL-2.0-only
"""./fasttrack smoke: the x86-64 kernel in QEMU, so that nothing works in UML only."""

from __future__ import annotations

import click

from fasttrack_lab.build.kernel import kbuild, kunit
from fasttrack_lab.build.kernel.tree import Changes
from fasttrack_lab.commands import common
from fasttrack_lab.host.errors import LabError
from fasttrack_lab.host.rundir import run_dir
from fasttrack_lab.run.boot.backend import BootSpec
from fasttrack_lab.run.boot.qemu import PROCESSORS, Qemu
from fasttrack_lab.run.result import judge_boot, tail
from fasttrack_lab.run.script import init_script

MEMORY_MIB = 1024
LIMIT_S = 900.0
DONE = "smoke: done"

SCRIPT = """#!/bin/sh
finish() { echo "$1"; sync; echo b > /proc/sysrq-trigger; sleep 20; }
run() { "$@" > /run/log 2>&1 || { cat /run/log; finish "smoke: failed: $*"; }; }
work() {
	uid=$1; shift
	mkdir -p /run/data/$uid && chown $uid /run/data/$uid && cd /run/data/$uid &&
	setpriv --reuid=$uid --regid=$uid --clear-groups fio --name=check --bs=16k --size=8m --numjobs=2 --rw=randrw \\
		--ioengine=libaio --iodepth=8 --verify=crc32c --verify_fatal=1 --minimal "$@" > /run/fio.$uid 2>&1 ||
		{ cat /run/fio.$uid; false; }
}
PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc none /proc; mount -t sysfs none /sys; mount -t tmpfs none /run; mount -t debugfs none /sys/kernel/debug
mkdir /run/data
echo "smoke: $(uname -r), $(nproc) processors"
echo 10000-19999 > /sys/kernel/fasttrack/app_uids
echo 1 > /sys/kernel/fasttrack/enabled
echo 10001 > /sys/kernel/fasttrack/foreground_uids
for fs in ext4 f2fs; do
	run mkfs.$fs -q $([ $fs = ext4 ] && echo -F || echo -f) /dev/sda
	for elevator in mq-deadline smartio fasttrack; do
		echo $elevator > /sys/block/sda/queue/scheduler
		run mount -t $fs /dev/sda /run/data
		work 10001 --direct=1 & front=$!
		work 10002 --direct=1 & behind=$!
		work 10003 --fsync=32 & cached=$!
		for child in $front $behind $cached; do run wait $child; done
		rm -rf /run/data/100*
		run umount /run/data
		echo "smoke: $fs, $elevator: fio is content"
	done
	run $([ $fs = ext4 ] && echo "e2fsck -fn" || echo "fsck.f2fs --dry-run") /dev/sda
done
for name in bios_foreground bios_background; do
	[ "$(cat /sys/kernel/fasttrack/stats/$name)" -gt 0 ] || finish "smoke: failed: $name is 0"
done
finish "smoke: done"
"""


@click.command("smoke")
def command() -> None:
    """Boot the x86-64 kernel in QEMU: two processors, lockdep, KUnit, fio with verification on ext4 and f2fs."""
    common.check_host()
    kernel = kbuild.build("x86")
    with run_dir(MEMORY_MIB) as where:
        params = {"kunit.enable": "1", "mflash.phone": "ufs31", "mflash.size_mb": "256"}
        outcome = Qemu().boot(BootSpec(kernel.image, init_script(SCRIPT), MEMORY_MIB, where, LIMIT_S, params=params))
    suites = kunit.parse(outcome.console)
    found = kunit.problems(suites, kunit.expected(Changes.of_checkout()))
    found += [error] if (error := judge_boot(outcome)) else []
    if DONE not in outcome.console:
        found.append("the guest's script did not finish")
    if f"{PROCESSORS} processors" not in outcome.console:
        found.append(f"the guest does not have {PROCESSORS} processors")
    if found:
        raise LabError(f"{tail(outcome.console)}\nthe x86-64 kernel failed in QEMU: {'; '.join(found)}")
    passed = sum(suite.passed for suite in suites)
    click.echo(f"x86-64 kernel: clean in QEMU, {passed} KUnit tests in {len(suites)} suites, {outcome.wall_s:.0f} s")
