#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The first program of a guest with a desktop's session: makes a root of its own in memory, where the host's programs and
# libraries are visible and the rest is the guest's, and becomes systemd. The run's directory is /lab.
set -eu
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH

mount -t proc proc /proc
mount -t tmpfs -o mode=755 root /tmp
cd /tmp
mkdir -p usr etc/dbus-1/system.d etc/systemd/system etc/systemd/user/graphical-session.target.wants etc/pam.d \
	etc/fasttrack var/lib var/log var/tmp run proc sys dev data tmp root home host lab
mount --bind / host
mount -t hostfs -o /proc/self/cwd/. none lab

# The guest's own folder, with links to all that the host has in its one and that is not there. Units are copied: systemd
# asks where a link to one leads.
farm() {
	[ -d "/$1" ] || return 0
	mkdir -p "$1"
	there=$(echo "$1" | sed 's,[^/]*,..,g')/host/$1
	case $1 in
	*/systemd/system | */systemd/user) (cd "$1" && cp -P "$there"/* .) 2>/dev/null || true ;;
	esac
	(cd "$1" && ln -s "$there"/* .) 2>/dev/null || true
}

# Programs: the host's, and ours among them where they are installed. With a package all folders that it has files in are
# the guest's own, too. Everything else below /usr is the host's.
own='usr/bin usr/libexec'
if [ -e lab/fasttrack.deb ]; then
	own="$own usr/sbin $(dpkg-deb --fsys-tarfile lab/fasttrack.deb | tar -t | sed -n 's,^\./\(lib/.*\)/$,usr/\1,p; s,^\./\(usr/.*\)/$,\1,p')"
fi
# Each before the one that it is in.
for folder in $(printf '%s\n' "$own" | tr ' ' '\n' | sort -ur); do
	farm "$folder"
done
for path in /usr/*; do
	name=usr/${path##*/}
	if [ ! -d "$path" ] || [ -L "$path" ] || [ -d "$name" ]; then continue; fi
	mkdir "$name"
	mount --bind "$path" "$name"
done
for name in bin sbin lib lib32 lib64 libx32; do
	[ ! -L "/$name" ] || cp -P "/$name" .
done
rm -f usr/bin/fasttrack-agent usr/bin/fasttrackctl usr/libexec/fasttrackd
if [ -e lab/fasttrack.deb ]; then
	# A container's may forbid to start services.
	rm -f usr/sbin/policy-rc.d
	mkdir -p var/lib/dpkg/info var/lib/dpkg/updates var/lib/dpkg/triggers
	touch var/lib/dpkg/status var/lib/dpkg/available
else
	cp lab/fasttrack-agent lab/fasttrackctl usr/bin/
	cp lab/fasttrackd usr/libexec/
fi

# Of the host's /etc only what programs need to find libraries and fonts.
for name in ld.so.cache ld.so.conf ld.so.conf.d fonts alternatives; do
	[ ! -e "/etc/$name" ] || cp -a "/etc/$name" etc/
done
cp -a lab/etc/. etc/
mkdir home/user
chown 1000:1000 home/user
chmod 1777 tmp var/tmp
ln -s /run var/run
cat >etc/passwd <<END
root:x:0:0::/root:/bin/sh
messagebus:x:100:100::/nonexistent:/usr/sbin/nologin
user:x:1000:1000::/home/user:/bin/sh
nobody:x:65534:65534::/nonexistent:/usr/sbin/nologin
END
cat >etc/group <<END
root:x:0:
tty:x:5:
utmp:x:43:
messagebus:x:100:
systemd-journal:x:101:
user:x:1000:
nogroup:x:65534:
END
echo 0123456789abcdef0123456789abcdef >etc/machine-id
echo phone >etc/hostname
printf 'passwd: files\ngroup: files\nshadow: files\n' >etc/nsswitch.conf
for name in login systemd-user other; do
	printf '%s\n' 'auth required pam_permit.so' 'account required pam_permit.so' 'session required pam_permit.so' \
		'session optional pam_systemd.so' >etc/pam.d/$name
done
# There are no devices to manage, no time to keep and nothing to be remembered from one boot to the next.
for name in systemd-udevd.service systemd-udev-trigger.service systemd-udev-settle.service systemd-hwdb-update.service \
	systemd-udevd-control.socket systemd-udevd-kernel.socket systemd-firstboot.service systemd-sysusers.service \
	systemd-random-seed.service systemd-pstore.service systemd-machine-id-commit.service systemd-timesyncd.service \
	systemd-modules-load.service systemd-binfmt.service systemd-tmpfiles-setup.service systemd-networkd.service \
	systemd-tmpfiles-setup-dev.service systemd-sysctl.service systemd-update-utmp.service systemd-journal-flush.service \
	systemd-network-generator.service systemd-remount-fs.service dev-hugepages.mount dev-mqueue.mount \
	sys-kernel-config.mount sys-fs-fuse-connections.mount sys-kernel-debug.mount sys-kernel-tracing.mount \
	proc-sys-fs-binfmt_misc.automount kmod-static-nodes.service getty.target modprobe@.service; do
	ln -sf /dev/null etc/systemd/system/$name
done
ln -s /etc/systemd/system/lab.target etc/systemd/system/default.target
[ -e lab/fasttrack.deb ] || ln -s ../fasttrack-agent.service etc/systemd/user/graphical-session.target.wants/

mkdir -p old
umount /proc
mount -t devtmpfs dev dev
pivot_root . old
exec chroot . /lib/systemd/systemd --log-target=console --log-level=info --show-status=no </dev/null >/dev/console 2>&1
