#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The collector on the patched kernel built for x86-64, in QEMU: records against the disk's own log, and sums of top by
# histograms, which ARCH=um cannot have. Builds that kernel, and installs QEMU. Arguments are pytest's.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
"$here/scripts/setup.sh" --dev x86 >/dev/null
. "$(dirname -- "$0")/common.sh"

part "traces on x86-64"
cd "$here/lab"
exec "$python" -m pytest -rP --kernel x86-trace tests/test_trace_x86.py "$@"
