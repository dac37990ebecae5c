# SPDX-License-Identifier: GPL-2.0-only
"""Boot a kernel as a process and wait until it is off. UML now, QEMU for what needs two processors."""
