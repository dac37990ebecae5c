#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# All tests: KUnit in UML, the Rust programs, their Debian package, the lab. The closing line is pytest's.
# KERNEL=um-debug boots guests with lockdep and KASAN.
set -eu
. "$(dirname -- "$0")/common.sh"

kernel=${KERNEL:-um}

part "kernel and guest program"
built=$("$here/fasttrack" build --target "$kernel")
echo "$built"

part "KUnit"
"$here/fasttrack" kunit --target "$kernel"

use_cargo
part "cargo test"
FASTTRACK_TEST_BOOT=$("$here/fasttrack" build --target "$kernel" --boot)
FASTTRACK_TEST_GUEST=$(echo "$built" | sed -n 's/^guest program: //p')
export FASTTRACK_TEST_BOOT FASTTRACK_TEST_GUEST
"$cargo" test --locked --quiet --manifest-path "$here/lab/guest/Cargo.toml" -- --include-ignored

part "cargo test counter"
"$cargo" test --locked --quiet --manifest-path "$here/lab/counter/Cargo.toml"

part "cargo test device"
"$cargo" test --locked --quiet --manifest-path "$here/device/Cargo.toml" --workspace

"$here/scripts/test-deb.sh" --quick

"$here/scripts/setup.sh" --dev session >/dev/null ||
	echo "a desktop's session: SKIPPED (its packages cannot be installed; see above)"

part "pytest"
cd "$here/lab"
# Two at a time: a test that boots guests boots one for each core. In the order of tests/conftest.py.
exec "$python" -m pytest -n 2 --dist loadscope --no-loadscope-reorder --kernel "$kernel" "$@"
