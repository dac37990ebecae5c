#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The guest of ./fasttrack smoke: fio with verification on both file systems, under each I/O scheduler of the project.
finish() { echo "$1"; sync; echo b > /proc/sysrq-trigger; sleep 20; }
run() { "$@" > /run/log 2>&1 || { cat /run/log; finish "smoke: failed: $*"; }; }
work() {
	uid=$1
	shift
	mkdir -p "/run/data/$uid"
	chown "$uid" "/run/data/$uid"
	cd "/run/data/$uid" || return
	setpriv --reuid="$uid" --regid="$uid" --clear-groups fio --name=check --bs=16k --size=8m --numjobs=2 --rw=randrw \
		--ioengine=libaio --iodepth=8 --verify=crc32c --verify_fatal=1 --minimal "$@" > "/run/fio.$uid" 2>&1 && return
	cat "/run/fio.$uid"
	false
}
make_ext4() { mkfs.ext4 -q -F "$1"; }
make_f2fs() { mkfs.f2fs -q -f "$1"; }
check_ext4() { e2fsck -fn "$1"; }
check_f2fs() { fsck.f2fs --dry-run "$1"; }
PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc none /proc; mount -t sysfs none /sys; mount -t tmpfs none /run; mount -t debugfs none /sys/kernel/debug
mkdir /run/data
echo "smoke: $(uname -r), $(nproc) processors"
echo 10000-19999 > /sys/kernel/fasttrack/app_uids
echo 1 > /sys/kernel/fasttrack/enabled
echo 10001 > /sys/kernel/fasttrack/foreground_uids
for fs in ext4 f2fs; do
	run make_$fs /dev/sda
	for scheduler in mq-deadline smartio fasttrack; do
		echo $scheduler > /sys/block/sda/queue/scheduler
		run mount -t $fs /dev/sda /run/data
		work 10001 --direct=1 & front=$!
		work 10002 --direct=1 & behind=$!
		work 10003 --fsync=32 & cached=$!
		for child in $front $behind $cached; do run wait "$child"; done
		rm -rf /run/data/100*
		run umount /run/data
		echo "smoke: $fs, $scheduler: fio is content"
	done
	run check_$fs /dev/sda
done
for name in bios_foreground bios_background; do
	[ "$(cat /sys/kernel/fasttrack/stats/$name)" -gt 0 ] || finish "smoke: failed: $name is 0"
done
finish "smoke: done"
