#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# deb.sh [--quick] [FOLDER]
# Builds the Debian package fasttrack from this checkout as it is, and prints its path. FOLDER is where it goes (default:
# deb in the cache, or deb-quick). With --quick its programs are those that the tests are built with, not optimised.
set -eu
. "$(dirname -- "$0")/common.sh"
profile=release
group=deb-release
out=$cache/deb
if [ "${1:-}" = --quick ]; then
	profile=dev
	group=deb
	out=$cache/deb-quick
	shift
fi
out=${1:-$out}
"$here/scripts/setup.sh" --dev "$group" >/dev/null
version=$(cat "$here/VERSION")
name=fasttrack-$version
work=$out/build
mkdir -p "$out"
log=$out/build.log

rm -rf "$work"
mkdir -p "$work/$name"
trap 'rm -rf "$work"' EXIT
cd "$here"
# What the package is made of, and no more; a file that was deleted and not committed is left out. An archive of this
# checkout has no git.
parts="debian device docs/man docs/GLOSSARY.md docs/LIMITS.md docs/TRACE.md lab/guest/Cargo.toml VERSION"
# shellcheck disable=SC2086 # a list of names
if git rev-parse --git-dir >/dev/null 2>&1; then
	git ls-files -z --cached --others --exclude-standard -- $parts
else
	find $parts -name target -prune -o ! -type d -print0
fi | tar --null --files-from=- --ignore-failed-read -cf - 2>/dev/null | tar -xf - -C "$work/$name"

use_cargo
compress=xz
if [ $profile = dev ]; then
	compress=none
fi
# debhelper gives the build a home of its own, where rustup finds nothing.
export CARGO_HOME="${CARGO_HOME:-$HOME/.cargo}" RUSTUP_HOME="${RUSTUP_HOME:-$HOME/.rustup}"
export CARGO="$cargo" PROFILE="$profile" COMPRESS="$compress"
# The modules' paths in the binary and in the cache are those of the checkout: what is built there is not built again.
export DEVICE="$here/device"
export DEB_BUILD_OPTIONS="${DEB_BUILD_OPTIONS:-parallel=$(nproc)}"
cd "$work/$name"
# -d: cargo may be rustup's, which dpkg does not know.
if ! dpkg-buildpackage -b -d -us -uc >"$log" 2>&1; then
	tail -n 30 "$log" >&2
	echo "deb.sh: the package was not built; the whole log: $log" >&2
	exit 1
fi
rm -f "$out"/*.deb "$out"/*.changes "$out"/*.buildinfo
mv "$work"/*.deb "$work"/*.changes "$work"/*.buildinfo "$out/"
ls "$out"/fasttrack_*.deb
