#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# test-xfs.sh DIR [ARGUMENT of pytest's...]
# xfstests' quick tests of ext4 and f2fs, on partitions of the emulated storage, while their processes change between
# front, behind and neither. DIR has a built xfstests; Debian has no package of it.
set -eu
if ! [ -x "${1:-}/ltp/fsstress" ]; then
	echo "fasttrack: ${1:-no directory} has no xfstests that is built." \
		"Build it as its README says, then: make test-xfs XFSTESTS=DIR" >&2
	exit 1
fi
xfstests=$(CDPATH='' cd -- "$1" && pwd)
shift
here=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
"$here/scripts/setup.sh" --dev xfs >/dev/null
. "$(dirname -- "$0")/common.sh"

part "xfstests"
cd "$here/lab"
exec "$python" -m pytest -n 2 -v -rP --kernel um-stacks --xfstests "$xfstests" tests/test_guest_xfs.py "$@"
