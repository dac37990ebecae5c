# SPDX-License-Identifier: GPL-2.0-only
"""What FastTrack costs in processor instructions, counted in QEMU: boots, what their guests count, tables."""
