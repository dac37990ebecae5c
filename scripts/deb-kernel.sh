#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# deb-kernel.sh [--small]
# Builds the Debian packages of a kernel with FastTrack, its image and its headers, and prints their paths. With --small
# it is a kernel for QEMU, built in minutes: it shows that the packaging works.
set -eu
. "$(dirname -- "$0")/common.sh"
"$here/scripts/setup.sh" --dev deb-kernel >/dev/null
small=False
[ "${1:-}" != --small ] || small=True
cd "$here/lab"
exec "$python" -c "
import sys
from fasttrack_lab.build.kernel import package
from fasttrack_lab.host.errors import LabError
try:
    print(*package.build(small=$small), sep='\n')
except LabError as error:
    sys.exit(f'deb-kernel.sh: {error}')
"
