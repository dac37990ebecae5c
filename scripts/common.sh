# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh disable=SC2034 # those who read this use what it sets
# For the other scripts: the checkout, the cache, the developers' Python environment.
here=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cache=${FASTTRACK_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/fasttrack}
PATH=$PATH:/usr/sbin:/sbin
python=$("$here/scripts/setup.sh" --dev) || exit 1
PYTHONPATH=$here/lab
PYTHONPYCACHEPREFIX=${python%/bin/python}/pycache
export PYTHONPATH PYTHONPYCACHEPREFIX PATH

part() { printf '\n== %s\n' "$*"; }

# A cargo that is new enough, and the build directory of this checkout.
use_cargo() {
	found=$(cd "$here/lab" && "$python" -c '
from fasttrack_lab.build import guest_program
print(guest_program.cargo(), guest_program.cargo_target(), sep="\n")') || return
	{ read -r cargo && read -r CARGO_TARGET_DIR; } <<-EOF
		$found
	EOF
	export CARGO_TARGET_DIR
}
