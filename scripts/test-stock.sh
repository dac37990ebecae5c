#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The collector's BPF source on Debian's kernel as it is, in QEMU: apps on ext4 and f2fs, and faults. Downloads the kernel
# into the cache, and installs QEMU and clang. Arguments are pytest's.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
"$here/scripts/setup.sh" --dev stock >/dev/null
. "$(dirname -- "$0")/common.sh"

use_cargo
part "collector with BPF"
FASTTRACK_BPF=yes "$cargo" build --release --locked --quiet --package fasttrack-trace --manifest-path "$here/device/Cargo.toml"
FASTTRACK_TEST_COLLECTOR=$CARGO_TARGET_DIR/release/fasttrack-trace
export FASTTRACK_TEST_COLLECTOR

part "stock kernel"
cd "$here/lab"
exec "$python" -m pytest -rP --kernel stock tests/test_stock.py "$@"
