#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# setup.sh [--trace | --dev] [GROUP]
# Sets up what the lab needs, and prints the path of its Python. Silent and instant when nothing is to do.
#   packages   by apt, with sudo where this is not root; with an argument GROUP those of packages-GROUP.txt too
#   host       lab/fasttrack_lab/host/preflight.py
#   Python     an environment in the cache, by lab/requirements.txt; with --trace, for ./fasttrack trace, by
#              lab/requirements-trace.txt; with --dev, for all, tests and static checks, by lab/requirements-dev.txt
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cache=${FASTTRACK_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/fasttrack}
PATH=$PATH:/usr/sbin:/sbin
developers=$here/lab/requirements-dev.txt
requirements=$here/lab/requirements.txt
programs=$here/lab/guest/Cargo.toml
case ${1:-} in
--trace)
	requirements=$here/lab/requirements-trace.txt
	shift
	;;
--dev)
	requirements=$developers
	# Tests and static checks are for the device's programs too, which need a newer Rust.
	programs=$here/device/Cargo.toml
	shift
	;;
esac
rust_needed=$(sed -n 's/^rust-version *= *"\(.*\)"/\1/p' "$programs" 2>/dev/null || true)
rust_needed=${rust_needed:-1.75}

say() { printf '%s\n' "$*" >&2; }
die() { say "fasttrack: $*"; exit 1; }

[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] ||
	die "this is $(uname -s) on $(uname -m): the lab needs Linux on x86-64, because its guests run as x86-64 processes"

set -- "$here/scripts/packages.txt" ${1:+"$here/scripts/packages-$1.txt"}
stamp=$cache/setup/$(cat "$here/scripts/setup.sh" "$@" "$requirements" "$programs" | sha256sum | cut -c1-16)
if [ -r "$stamp" ]; then
	python=$(cat "$stamp")
	if [ -x "$python" ]; then
		printf '%s\n' "$python"
		exit 0
	fi
fi

have() {
	case $1 in
	/*) for file in $1; do [ -e "$file" ] && return 0; done; return 1 ;;
	*) command -v "$1" >/dev/null 2>&1 ;;
	esac
}

# The number of a version of two parts, for comparison: 1.75 -> 1075.
number() { printf '%s\n' "$1" | awk -F. '{ print $1 * 1000 + $2 }'; }

rust_is_there() {
	for cargo in cargo "${HOME:-/root}/.cargo/bin/cargo" $(ls /usr/bin/cargo-1.* 2>/dev/null); do
		version=$("$cargo" --version 2>/dev/null | awk '{ print $2 }') || continue
		[ -n "$version" ] && [ "$(number "$version")" -ge "$(number "$rust_needed")" ] && return 0
	done
	return 1
}

candidate() { apt-cache policy "$1" 2>/dev/null | awk '/Candidate:/ && $2 != "(none)" { print $2 }'; }

# Debian 12's cargo is too old, its cargo-web is not; Ubuntu 24.04 has versions with a number in the name.
rust_packages() {
	version=$(candidate cargo)
	if [ -n "$version" ] && [ "$(number "$version")" -ge "$(number "$rust_needed")" ]; then
		echo cargo rustc
	elif [ -n "$(candidate cargo-web)" ]; then
		echo cargo-web rustc-web
	else
		name=$(apt-cache search --names-only '^cargo-1\.[0-9]+$' 2>/dev/null | awk '{ print $1 }' | sort -V | tail -n 1)
		[ -z "$name" ] || [ "$(number "${name#cargo-}")" -lt "$(number "$rust_needed")" ] || echo "$name" "rustc-${name#cargo-}"
	fi
}

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	else
		sudo "$@"
	fi
}

install() {
	command -v apt-get >/dev/null 2>&1 || die "missing: $*. This is not Debian or Ubuntu: install them yourself"
	[ "$(id -u)" = 0 ] || command -v sudo >/dev/null 2>&1 ||
		die "missing: $*. This is not root and there is no sudo: ask an administrator to run: apt-get install $*"
	say "installing: $*"
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" >&2 ||
		die "apt-get could not install: $*. Install them yourself, then run this again"
}

missing=$(cat "$@" | while read -r package shown; do
	case $package in '' | '#'*) continue ;; esac
	have "$shown" || echo "$package"
done)

need_rust=; rust_is_there || need_rust=yes
need_source=
[ -n "${FASTTRACK_KERNEL_ARCHIVE:-}" ] || [ -e /usr/src/linux-source-6.12.tar.xz ] ||
	ls "$cache"/downloads/linux-6.12.*.tar.xz >/dev/null 2>&1 || need_source=yes

if [ -n "$missing$need_rust$need_source" ] && command -v apt-get >/dev/null 2>&1; then
	if [ "$(id -u)" = 0 ] || command -v sudo >/dev/null 2>&1; then
		as_root apt-get update >&2 || say "apt-get update failed; continuing with the package lists that are there"
	fi
	[ -z "$need_rust" ] || missing="$missing $(rust_packages)"
	# Where the distribution has no such package, the lab takes the archive from kernel.org.
	[ -z "$need_source" ] || [ -z "$(candidate linux-source-6.12)" ] || missing="$missing linux-source-6.12"
fi
# shellcheck disable=SC2086,SC2116 # one blank between two
missing=$(echo $missing)
# shellcheck disable=SC2086 # a list of names
[ -z "$missing" ] || install $missing
rust_is_there || die "cargo $rust_needed or newer is missing, and apt has none: install Rust from https://rustup.rs"

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
	die "python3 is $(python3 -V 2>&1 | cut -d' ' -f2): 3.11 or newer is needed"
python3 "$here/lab/fasttrack_lab/host/preflight.py" "$cache" || exit 1

mkdir -p "$cache/setup"
venv_of() { echo "$cache/venv-$( (python3 -VV; cat "$1") | sha256sum | cut -c1-16)"; }
is_whole() { [ -x "$1/bin/python" ] && [ -e "$1/complete" ]; }

exec 9>"$cache/setup/lock"
flock 9
venv=$(venv_of "$requirements")
# A developer's has all of the others', in the same versions.
is_whole "$venv" || ! is_whole "$(venv_of "$developers")" || venv=$(venv_of "$developers")
if ! is_whole "$venv"; then
	say "making the Python environment"
	rm -rf "$venv"
	python3 -m venv "$venv" >&2
	"$venv/bin/pip" install --quiet --no-compile --disable-pip-version-check --require-hashes \
		--requirement "$requirements" >&2 ||
		die "pip could not install lab/${requirements##*/} (see above); is there a network?"
	touch "$venv/complete"
fi
printf '%s\n' "$venv/bin/python" >"$stamp.new"
mv "$stamp.new" "$stamp"
printf '%s\n' "$venv/bin/python"
