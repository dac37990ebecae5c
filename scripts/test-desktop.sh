#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The agent against real compositors, headless: installs what it needs, and runs the tests that `make test` leaves out,
# or skips where packages are missing.
# Arguments are names of tests; SWITCHES=1000 in the environment has each switch so often.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
"$here/scripts/setup.sh" --dev desktop >/dev/null
. "$(dirname -- "$0")/common.sh"

use_cargo
part "desktops"
# One at a time: a compositor has the machine to itself, and the times that are printed mean something.
exec "$cargo" test --locked --quiet --manifest-path "$here/device/Cargo.toml" --package fasttrack-agent --test desktop -- \
	--ignored --nocapture --test-threads 1 "$@"
