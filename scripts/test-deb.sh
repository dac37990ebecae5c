#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# test-deb.sh [--quick]
# The Debian package: installed, used, upgraded from an older version, removed and purged, in a root of its own, where
# at the end no file, no frozen group and no attribute may be left. The root is a fresh Debian, by mmdebstrap, and
# lintian has nothing to say; with --quick it is this machine's own, under an overlay, and the programs are not optimised.
set -eu
quick=
[ "${1:-}" != --quick ] || quick=yes

tested="the package" needs="mounts and control groups of its own"
. "$(dirname -- "$0")/debian-root.sh"
. "$(dirname -- "$0")/common.sh"
version=$(cat "$here/VERSION")
groups=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts)
group=
[ -z "$groups" ] || group=$groups/fasttrack-test-deb-$$
bus_pid='' daemon_pid=''

end() {
	for pid in $daemon_pid $bus_pid; do kill -KILL "$pid" 2>/dev/null || true; done
	if [ -n "$group" ] && [ -d "$group" ]; then
		find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true
	fi
	end_root
}
trap end EXIT

part "the package"
if [ -n "$quick" ]; then
	base=/ force=--force-depends
	# The one that a desktop's session in a guest installs, too.
	deb=$(cd "$here/lab" && "$python" -c 'from fasttrack_lab.build import device_package; print(device_package.build())')
else
	"$here/scripts/setup.sh" --dev deb-test >/dev/null
	deb=$("$here/scripts/deb.sh")
	lintian --fail-on warning,error --allow-root "${deb%.deb}.changes" || fail "lintian"
	base=$work/base force=--force-not-root
	fresh_debian "$base" systemd,dbus,man-db,bash-completion
fi
echo "$deb"

begin_root "$base"
mkdir -p "$root/sys/fs/cgroup"
if [ -n "$group" ]; then
	mkdir "$group"
	mount --bind "$group" "$root/sys/fs/cgroup"
fi
cp "$deb" "$root/tmp/deb/new.deb"
older "$deb" "$root/tmp/deb/old.deb" /usr/share/doc/fasttrack/old

part "install"
quietly dpkg $force -i /tmp/deb/old.deb
own=/etc/fasttrack/fasttrackd.toml.d/local.toml
wanted="/etc/systemd/system/multi-user.target.wants/fasttrackd.service
	/etc/systemd/user/graphical-session.target.wants/fasttrack-agent.service"
recorder=fasttrack-trace.service
for link in $wanted /usr/share/doc/fasttrack/old $own; do has "$link"; done
sed -i 's/^#freezer = true/freezer = true/' "$root$own"
printf '[reports]\nburst = 100\n' >"$root/etc/fasttrack/fasttrackd.toml.d/mine.toml"

part "upgrade"
quietly dpkg $force -i /tmp/deb/new.deb
has_not /usr/share/doc/fasttrack/old
grep -q '^freezer = true' "$root$own" || fail "the upgrade has taken the administrator's change away"
for file in $wanted /usr/libexec/fasttrackd /usr/bin/fasttrack-agent /usr/bin/fasttrackctl /usr/bin/fasttrack-trace \
	/lib/systemd/system/fasttrackd.service /lib/systemd/system/$recorder /usr/lib/systemd/user/fasttrack-agent.service \
	/etc/xdg/autostart/fasttrack-agent.desktop /usr/lib/udev/rules.d/60-fasttrack.rules \
	/usr/lib/fasttrack/fasttrackd.toml /usr/share/dbus-1/system.d/org.fasttrack1.conf \
	/usr/share/polkit-1/actions/org.fasttrack1.policy \
	/usr/share/bash-completion/completions/fasttrackctl /usr/share/zsh/vendor-completions/_fasttrackctl \
	/usr/share/fish/vendor_completions.d/fasttrackctl.fish \
	/usr/share/bash-completion/completions/fasttrack-trace /usr/share/zsh/vendor-completions/_fasttrack-trace \
	/usr/share/fish/vendor_completions.d/fasttrack-trace.fish \
	/usr/share/bash-completion/completions/fasttrack-agent /usr/share/zsh/vendor-completions/_fasttrack-agent \
	/usr/share/fish/vendor_completions.d/fasttrack-agent.fish; do
	has "$file"
done
has_not /etc/systemd/system/multi-user.target.wants/$recorder
if [ -z "$quick" ]; then
	# This machine's dpkg may be told to leave documentation out.
	for page in man8/fasttrackd.8 man1/fasttrack-agent.1 man1/fasttrackctl.1 man5/fasttrackd.toml.5 \
		man1/fasttrack-trace.1 man1/fasttrack-trace-record.1; do
		has "/usr/share/man/$page.gz"
	done
fi

part "use"
for program in /usr/libexec/fasttrackd /usr/bin/fasttrack-agent /usr/bin/fasttrackctl /usr/bin/fasttrack-trace; do
	said=$(inside $program --version)
	[ "$said" = "${program##*/} $version" ] || fail "$program --version says $said, VERSION $version"
	inside $program --help | grep -q -e --version || fail "$program --help"
done
quietly fasttrackctl config check
for command in fasttrackctl fasttrack-trace fasttrack-agent; do
	quietly bash -n /usr/share/bash-completion/completions/$command
done
for unit in fasttrackd.service $recorder; do
	quietly systemd-analyze verify --man=no --recursive-errors=no "/lib/systemd/system/$unit"
	[ ! -s "$log" ] || { cat "$log" >&2; fail "systemd-analyze verify $unit"; }
done
quietly env HOME=/tmp XDG_RUNTIME_DIR=/tmp systemd-analyze --user verify --man=no --recursive-errors=no \
	/usr/lib/systemd/user/fasttrack-agent.service
[ ! -s "$log" ] || { cat "$log" >&2; fail "systemd-analyze --user verify fasttrack-agent.service"; }

# The recorder, with no capability but those of its unit, where this kernel has tracefs.
mkdir -p "$root/sys/kernel/tracing" "$root/sys/kernel/btf"
if mount -t tracefs tracefs "$root/sys/kernel/tracing" 2>/dev/null; then
	[ ! -d /sys/kernel/btf ] || mount --bind /sys/kernel/btf "$root/sys/kernel/btf"
	may=$(sed -n 's/^CapabilityBoundingSet=//p' "$root/lib/systemd/system/$recorder" | tr 'A-Z ' 'a-z,' | sed 's/cap_/+/g')
	quietly setpriv --bounding-set "-all,$may" fasttrack-trace record --duration 1
	grep -q '^recording to /var/log/fasttrack-trace' "$log" || { cat "$log" >&2; fail "fasttrack-trace record"; }
	umount "$root/sys/kernel/tracing"
else
	echo "fasttrack-trace: SKIPPED (this kernel has no tracefs)"
	mkdir -m 700 "$root/var/log/fasttrack-trace" "$root/var/lib/fasttrack-trace"
fi
# In a second without I/O there is no log file.
(umask 077 && touch -a "$root/var/log/fasttrack-trace/00000001.ftlog" "$root/var/lib/fasttrack-trace/identity")
open_to_all=$(find "$root/var/log/fasttrack-trace" "$root/var/lib/fasttrack-trace" -type f -perm /077)
[ -z "$open_to_all" ] || fail "others can read $open_to_all"

# The daemon on a bus with the policies that are installed: root may have the name, everybody may ask.
cat >"$root/tmp/bus.conf" <<'EOF'
<busconfig>
  <type>system</type><listen>unix:path=/tmp/bus</listen><auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/><deny own="*"/><deny send_type="method_call"/><allow send_type="signal"/>
    <allow send_requested_reply="true" send_type="method_return"/>
    <allow send_requested_reply="true" send_type="error"/>
    <allow receive_type="method_call"/><allow receive_type="method_return"/>
    <allow receive_type="error"/><allow receive_type="signal"/>
    <allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus"/>
  </policy>
  <include>/usr/share/dbus-1/system.d/org.fasttrack1.conf</include>
</busconfig>
EOF
become dbus-daemon --nofork --config-file=/tmp/bus.conf >"$work/bus.log" 2>&1 &
bus_pid=$!
become /usr/libexec/fasttrackd --bus unix:path=/tmp/bus >"$work/daemon.log" 2>&1 &
daemon_pid=$!
tries=0
until inside fasttrackctl --bus unix:path=/tmp/bus status >"$log" 2>&1; do
	tries=$((tries + 1))
	[ $tries -lt 200 ] || { cat "$log" "$work/bus.log" "$work/daemon.log" >&2; fail "fasttrackctl status"; }
	sleep 0.1
done
grep -q "^fasttrackd $version, rung: " "$log" || { cat "$log" >&2; fail "what fasttrackctl status says"; }
nobody="setpriv --reuid 65534 --regid 65534 --clear-groups"
# shellcheck disable=SC2086 # a command of words
quietly $nobody fasttrackctl --bus unix:path=/tmp/bus status
# shellcheck disable=SC2086
if inside $nobody fasttrackctl --bus unix:path=/tmp/bus foreground set 1 >"$log" 2>&1; then
	fail "anybody may say who is in front"
fi
kill -TERM "$daemon_pid"
wait "$daemon_pid" || fail "fasttrackd ends with an error: $(cat "$work/daemon.log")"
daemon_pid=

part "remove"
app=/user.slice/user-1000.slice/user@1000.service/app.slice/app-x.scope
if [ -n "$group" ]; then
	# As a daemon that was killed with its guard leaves it.
	mkdir -p "$group$app"
	echo 1 >"$group$app/cgroup.freeze"
	"$python" -c "import os, sys; os.setxattr(sys.argv[1], 'trusted.fasttrack.frozen', b'1')" "$group$app"
else
	echo "frozen groups: SKIPPED (version 2 of control groups is not mounted)"
fi
quietly dpkg -r fasttrack
if [ -n "$group" ]; then
	[ "$(cat "$group$app/cgroup.freeze")" = 0 ] || fail "a group is still frozen"
	left=$("$python" -c "import os, sys; print(*os.listxattr(sys.argv[1]))" "$group$app")
	[ -z "$left" ] || fail "a group still has the attributes $left"
fi
for file in /usr/libexec/fasttrackd /usr/bin/fasttrackctl /usr/bin/fasttrack-trace /run/fasttrack; do has_not "$file"; done
for file in "$own" /var/log/fasttrack-trace/00000001.ftlog /var/lib/fasttrack-trace/identity; do has "$file"; done

part "purge"
quietly dpkg -P fasttrack
kill -TERM "$bus_pid"
wait "$bus_pid" || true
bus_pid=
left=$(find "$root/var/lib/systemd" -name '*fasttrack*' 2>/dev/null || true)
[ -z "$left" ] || fail "systemd's records are left: $left"
nothing_left fasttrack
