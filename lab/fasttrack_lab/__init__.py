# SPDX-License-Identifier: GPL-2.0-only
"""The lab: builds the kernel, boots it as a process, plays scenarios and compares policies."""
