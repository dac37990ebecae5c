#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The agent against real compositors, headless: installs what it needs, and runs the tests that `make test` leaves out,
# or skips where packages are missing.
# Arguments are names of tests; SWITCHES=1000 in the environment has each switch so often. With SUITE=trixie they run in a
# root of that Debian, with its compositors; it is made once, in the cache. The tests are built here. Needs root.
set -eu
if [ -n "${SUITE:-}" ]; then
	tested="the agent on $SUITE" needs=mounts
	. "$(dirname -- "$0")/debian-root.sh"
	group=debian-root
else
	group=desktop
fi
. "$(dirname -- "$0")/common.sh"
"$here/scripts/setup.sh" --dev $group >/dev/null

use_cargo
part "desktops${SUITE:+ of $SUITE}"
if [ -n "${SUITE:-}" ]; then
	packages=$(sed '/^#/d; s/ .*//' "$here/scripts/packages-desktop.txt" "$here/scripts/packages-desktop-newer.txt")
	base=$cache/debian/$SUITE-$(echo "$packages" | sha256sum | cut -c1-16)
	if [ ! -d "$base" ]; then
		mkdir -p "$cache/debian"
		rm -rf "$base.new"
		fresh_debian "$base.new" "$(echo "$packages" | paste -sd,)"
		mv "$base.new" "$base"
	fi
	begin_root "$base"
	mount --rbind /dev "$root/dev"
	mkdir -p "$root/sys/fs/cgroup" "$root$CARGO_TARGET_DIR"
	mount -t cgroup2 none "$root/sys/fs/cgroup"
	mount --bind "$CARGO_TARGET_DIR" "$root$CARGO_TARGET_DIR"
	# shellcheck disable=SC2086 # a list of names
	inside dpkg-query --show $packages
	# Cargo begins the tests by this. No process is left of them.
	CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="unshare --pid --fork --kill-child --mount-proc=$root/proc chroot $root
		env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin ${SWITCHES:+SWITCHES=$SWITCHES}"
	export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER
fi
# One at a time: a compositor has the machine to itself, and the times that are printed mean something.
"$cargo" test --locked --quiet --manifest-path "$here/device/Cargo.toml" --package fasttrack-agent --test desktop -- \
	--ignored --nocapture --test-threads 1 "$@"
