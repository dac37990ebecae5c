# SPDX-License-Identifier: GPL-2.0-only
# Each target sets up by itself what it needs. Build products go to the cache (see ./fasttrack clean --help).

.PHONY: help demo test test-debug test-desktop test-smp test-off test-stacks test-xfs test-stock test-trace test-series test-deb test-deb-kernel mutants bench-device lint kernel deb deb-kernel clean

.DEFAULT_GOAL := help

# Show this.
help:
	@awk '/^# /{text = text substr($$0, 2); next} /^[a-z-]+:/{sub(":.*", ""); print "make " $$0 ":" text} {text = ""}' Makefile | fold -sw 120

# Build the kernel, and show two apps that other apps slow down, without and with FastTrack.
demo:
	@./fasttrack demo

# All that must pass: KUnit, the programs in Rust, the Debian package, the lab; half an hour and more.
test:
	@scripts/test.sh

# The same with lockdep and KASAN in the guests' kernel, where any report is a failure: not part of test.
test-debug:
	@KERNEL=um-debug scripts/test.sh

# The agent against real compositors, which it installs; SUITE=trixie: that Debian's, in a root of its own. Not part of
# test.
test-desktop:
	@scripts/test-desktop.sh

# Two processors, in QEMU and in real time: not part of test.
test-smp:
	@./fasttrack smoke
	@./fasttrack stress --minutes $(or $(MINUTES),10)
	@./fasttrack stress --minutes $(or $(MINUTES),10) --short-of-memory

# Switched off, against a kernel without FastTrack, which is built for it: not part of test.
test-off:
	@./fasttrack off-check

# What real machines put between a file and its storage, with a kernel that has it: not part of test.
test-stacks:
	@scripts/test-stacks.sh

# xfstests' quick tests of ext4 and f2fs while their processes change their class; XFSTESTS=DIR: where it is, built. A
# kernel of test-stacks. Not part of test.
test-xfs:
	@scripts/test-xfs.sh $(XFSTESTS)

# The collector of traces with BPF on Debian's kernel, in QEMU, which it downloads: not part of test.
test-stock:
	@scripts/test-stock.sh

# The collector of traces on the patched kernel for x86-64, in QEMU, and the sums of its top: not part of test.
test-trace:
	@scripts/test-trace.sh

# Every patch more, FastTrack configured on and off, and at the end with modules: not part of test.
test-series:
	@./fasttrack series-check

# The Debian package in a fresh Debian, which it installs: not part of test, which does the same in this machine's root.
test-deb:
	@scripts/test-deb.sh

# The kernel's Debian packages, small ones, in a fresh Debian, which it installs: not part of test.
test-deb-kernel:
	@scripts/test-deb-kernel.sh

# Changes to the lab's pure modules that no test sees; NAMES='fasttrack_lab.host.units*' tries only those: not part of test.
mutants:
	@scripts/mutants.sh $(NAMES)

# What the daemon and the agent cost, in real time: prints the numbers of device/README.md.
bench-device:
	@scripts/bench-device.sh

# Formatting, types and rules of all languages.
lint:
	@scripts/lint.sh

# The kernel of the guests alone.
kernel:
	@./fasttrack build --target um --kernel-only

# The Debian package of the daemon, the agent and the command.
deb:
	@scripts/deb.sh

# Debian packages of a kernel, with Debian's configuration and in hours; SMALL=yes: one for QEMU, in minutes.
deb-kernel:
	@scripts/deb-kernel.sh $(if $(SMALL),--small)

# Remove what is built; ./fasttrack clean --help says what else there is.
clean:
	@./fasttrack clean
