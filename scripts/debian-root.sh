# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh disable=SC2034,SC2154 # those who read this use what it sets, and set what it uses
# For the scripts that install packages: a Debian under an overlay, in which everything that is left at the end is found.
# Who reads this first of all, and has said what is tested ($tested), is begun again in a namespace of mounts of its own.
if [ "$(id -u)" != 0 ]; then
	echo "test of $tested: SKIPPED (this is not root: $needs are needed)"
	exit 0
fi
# Mounts end with this namespace.
[ "${FASTTRACK_UNSHARED:-}" = yes ] || FASTTRACK_UNSHARED=yes exec unshare --mount --propagation private "$0" "$@"

work=$(mktemp -d)
mount -t tmpfs tmpfs "$work"
root=$work/root
log=$work/log

# Ends with the script that has begun it.
end_root() {
	umount -R "$root" 2>/dev/null || true
	umount -l "$work" 2>/dev/null || true
	rmdir "$work" 2>/dev/null || true
}
trap end_root EXIT
trap 'exit 130' INT TERM

fail() {
	echo "test of $tested: FAILED: $*" >&2
	exit 1
}
has() { [ -e "$root$1" ] || [ -L "$root$1" ] || fail "$1 is not there"; }
has_not() { if [ -e "$root$1" ] || [ -L "$root$1" ]; then fail "$1 is there"; fi; }
# Does not come back: for a process whose PID is wanted.
become() {
	exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@" </dev/null
}
inside() { (become "$@"); }
# Runs a command inside, and shows what it said if it fails.
quietly() { inside "$@" >"$log" 2>&1 || { cat "$log" >&2; fail "$*"; }; }

# fresh_debian FOLDER PACKAGES: a new Debian, with these packages.
fresh_debian() {
	mmdebstrap --quiet --variant=minbase --include="$2" --skip=cleanup/tmp "${SUITE:-bookworm}" "$1"
}

# begin_root BASE: the root is that one, under an overlay.
begin_root() {
	base=$1
	mkdir -p "$work/upper" "$work/under" "$root"
	if ! mount -t overlay -o "lowerdir=$base,upperdir=$work/upper,workdir=$work/under" overlay "$root"; then
		echo "test of $tested: SKIPPED (no overlay can be mounted here)"
		exit 0
	fi
	for place in /sys /run /tmp; do mount -t tmpfs tmpfs "$root$place"; done
	mount -t proc proc "$root/proc"
	mkdir -p "$root/tmp/deb"
	[ -e "$root/dev/null" ] || mount --bind /dev "$root/dev"
}

# older DEB FILE PATH: FILE is the same package, of version 0.0.1, with a file PATH that the newer one has no more.
older() {
	rm -rf "$work/older"
	dpkg-deb -R "$1" "$work/older"
	sed -i 's/^Version: .*/Version: 0.0.1/' "$work/older/DEBIAN/control"
	mkdir -p "$work/older${3%/*}"
	echo old >"$work/older$3"
	dpkg-deb --root-owner-group -Znone -b "$work/older" "$2" >/dev/null
}

# After the purge of PACKAGES: no file is left, none was changed.
nothing_left() {
	# What the package managers, and the triggers of other packages, keep of any package.
	keeps='^(var/lib/dpkg/|var/log/(dpkg|alternatives)\.log$|var/cache/(man|ldconfig|debconf)/|etc/ld\.so\.cache$)'
	left=$(find "$work/upper" ! -type d -printf '%P\n' | grep -Ev "$keeps" || true)
	[ -z "$left" ] || fail "files are left or were changed: $left"
	left=$(find "$work/upper" -mindepth 1 -type d -printf '%P\n' | grep -Ev '^var/' | while read -r folder; do
		[ -d "$base/$folder" ] || echo "$folder"
	done)
	[ -z "$left" ] || fail "folders are left: $left"
	for package; do
		grep -rqs "$package" "$root/var/lib/dpkg/status" && fail "dpkg still knows $package"
	done
	echo "test of $tested: no file left"
}
