#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# A foreground that reads and syncs on what real machines put between a file and its storage: XFS, btrfs, dm-crypt,
# dm-verity, loop, overlayfs, EROFS, squashfs, io_uring. Builds a kernel that has them, and installs what makes them.
# Arguments are pytest's.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
"$here/scripts/setup.sh" --dev stacks >/dev/null
. "$(dirname -- "$0")/common.sh"

part "stacks"
cd "$here/lab"
exec "$python" -m pytest -n 2 -rP --kernel um-stacks tests/test_guest_stacks.py "$@"
