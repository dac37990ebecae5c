#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# All static checks. A tool that is missing is SKIPPED with the reason; anything else that is not clean fails.
set -u
. "$(dirname -- "$0")/common.sh"
status=0

check() {
	name=$1
	shift
	if "$@"; then
		echo "$name: clean"
	else
		echo "$name: FAILED"
		status=1
	fi
}
skip() { echo "$1: SKIPPED ($2)"; }

part "Python"
cd "$here/lab" || exit 1
check ruff "$python" -m ruff check --no-cache fasttrack_lab tests
check "ruff format" "$python" -m ruff format --no-cache --check --quiet fasttrack_lab tests
check mypy "$python" -m mypy --cache-dir "$cache/mypy"

part "Rust"
if use_cargo; then
	for room in lab/guest lab/counter device; do
		manifest=$here/$room/Cargo.toml
		for tool in fmt clippy; do
			if ! "$cargo" $tool --version >/dev/null 2>&1; then
				skip "cargo $tool $room" "cargo $tool is not installed"
			elif [ $tool = fmt ]; then
				check "cargo fmt $room" "$cargo" fmt --all --check --manifest-path "$manifest"
			else
				check "cargo clippy $room" "$cargo" clippy --locked --quiet --workspace --all-targets \
					--manifest-path "$manifest" -- -D warnings
			fi
		done
	done
else
	skip "cargo fmt, clippy" "there is no cargo that is new enough"
fi

part "Kernel"
check "kernel sources" "$here/fasttrack" lint-kernel

part "Shell"
if command -v shellcheck >/dev/null 2>&1; then
	check shellcheck shellcheck -x -P "$here/scripts" "$here"/scripts/*.sh \
		"$here"/lab/fasttrack_lab/session/guest/*.sh "$here"/lab/fasttrack_lab/smp/*.sh "$here/fasttrack" "$here/.ci/run" \
		"$here"/debian/*.postinst "$here"/debian/*.prerm "$here"/debian/*.postrm
else
	skip shellcheck "shellcheck is not installed"
fi
exit $status
