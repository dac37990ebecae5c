#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# What the daemon and the agent cost: memory and wake-ups in a minute without events, the time from a report to its last
# write, processor time under a flood of messages and of processes, how long apps stay frozen when the daemon is killed,
# and how long a frozen one takes to answer. In real time, on optimised programs, for device/README.md. It takes some 4
# minutes after the build; the last parts need root.
set -eu
. "$(dirname -- "$0")/common.sh"

use_cargo
manifest=$here/device/Cargo.toml
part "build"
"$cargo" build --release --locked --quiet --manifest-path "$manifest" --package fasttrackd --package fasttrack-agent
log=$(mktemp)
trap 'rm -f "$log"' EXIT
trap 'exit 130' INT TERM HUP
# What a test has measured. One that fails shows all that it said.
run() {
	if ! "$cargo" test --release --locked --quiet --manifest-path "$manifest" --package fasttrackd --test "$@" \
		--nocapture --test-threads 1 >"$log" 2>&1; then
		cat "$log" >&2
		exit 1
	fi
	grep -E "wake-ups|troubles|last write|reports without|kills|forks|calls to|SKIPPED" "$log"
}
# The kernel's files are on no disk, and neither are those that stand in for them.
[ ! -d /dev/shm ] || export TMPDIR=/dev/shm
part "device: $(nproc) cores, load $(cut -d' ' -f1 /proc/loadavg), Linux $(uname -r)"
run bench -- --ignored
run freezer -- two_hundred_kills_leave_nothing_frozen
run freezer -- --ignored how_long_a_frozen_app_takes_to_answer
