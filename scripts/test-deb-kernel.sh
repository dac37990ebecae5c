#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# test-deb-kernel.sh [--whole]
# The kernel's Debian packages: lintian has no error to name, and they are installed in a fresh Debian, used, upgraded
# from an older version, removed and purged; no file may be left. They are those of the small kernel, which is built in
# minutes; with --whole of the one with Debian's configuration.
set -eu
small=--small
[ "${1:-}" != --whole ] || small=

tested="the kernel's packages" needs="mounts of its own"
. "$(dirname -- "$0")/debian-root.sh"
. "$(dirname -- "$0")/common.sh"

part "the packages"
"$here/scripts/setup.sh" --dev deb-test >/dev/null
# shellcheck disable=SC2086 # one word or none
debs=$("$here/scripts/deb-kernel.sh" $small)
echo "$debs"
image=$(echo "$debs" | grep /linux-image-)
headers=$(echo "$debs" | grep /linux-headers-)
release=$(dpkg-deb -f "$image" Package | sed 's/^linux-image-//')
# What it warns of is of the kernel's own packager, which does not strip the programs that modules are built with either.
lintian --fail-on error --allow-root --suppress-tags unstripped-binary-or-object "$image" "$headers" || fail "lintian"

fresh_debian "$work/base" kmod
begin_root "$work/base"
packages='' old='' new=''
for deb in "$image" "$headers"; do
	package=$(dpkg-deb -f "$deb" Package)
	packages="$packages $package"
	old="$old /tmp/deb/$package.old.deb" new="$new /tmp/deb/$package.new.deb"
	cp "$deb" "$root/tmp/deb/$package.new.deb"
	older "$deb" "$root/tmp/deb/$package.old.deb" "/usr/share/doc/$package/old"
done
# of_old has: the file that the older packages have alone.
of_old() { for package in $packages; do "$1" "/usr/share/doc/$package/old"; done; }

part "install"
# shellcheck disable=SC2086 # several words, as below
quietly dpkg --force-depends -i $old
of_old has

part "upgrade"
# shellcheck disable=SC2086
quietly dpkg --force-depends -i $new
of_old has_not
for file in "/boot/vmlinuz-$release" "/boot/System.map-$release" "/boot/config-$release" \
	"/lib/modules/$release/modules.builtin" "/usr/src/linux-headers-$release/Module.symvers"; do
	has "$file"
done

part "use"
for option in CONFIG_FASTTRACK CONFIG_IOSCHED_FASTTRACK; do
	grep -q "^$option=y" "$root/boot/config-$release" || fail "the kernel has no $option"
done
quietly depmod "$release"
mkdir "$work/module"
printf 'obj-m := hello.o\n' >"$work/module/Makefile"
cat >"$work/module/hello.c" <<-EOF
	#include <linux/fasttrack.h>
	#include <linux/module.h>
	static int __init hello(void) { return fasttrack_enabled(); }
	module_init(hello);
	MODULE_LICENSE("GPL");
	MODULE_DESCRIPTION("A module that is built outside of the tree");
EOF
make -C "$root/usr/src/linux-headers-$release" M="$work/module" modules >"$log" 2>&1 ||
	{ cat "$log" >&2; fail "the headers do not build a module"; }

part "remove and purge"
# shellcheck disable=SC2086
quietly dpkg -r $packages
has_not "/boot/vmlinuz-$release"
# shellcheck disable=SC2086
quietly dpkg -P $packages
# shellcheck disable=SC2086
nothing_left $packages
