#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The agent against real compositors, headless: installs what it needs, and runs the tests that `make test` leaves out,
# or skips where packages are missing.
# Arguments are names of tests.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
"$here/scripts/setup.sh" --dev desktop >/dev/null
"$here/scripts/setup.sh" --dev session >/dev/null
. "$(dirname -- "$0")/common.sh"

cargo=$(cargo_program)
export CARGO_TARGET_DIR="$cache/cargo"
part "desktops"
# One at a time: a compositor has the machine to itself, and the times that are printed mean something.
"$cargo" test --locked --quiet --manifest-path "$here/device/Cargo.toml" --package fasttrack-agent --test desktop -- \
	--ignored --nocapture --test-threads 1 "$@"

[ $# -eq 0 ] || exit 0
part "a session in a guest"
cd "$here/lab"
exec "$python" -m pytest tests/test_session.py
