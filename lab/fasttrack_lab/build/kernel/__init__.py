# SPDX-License-Identifier: GPL-2.0-only
"""From the pinned base to a kernel that can be booted: base, tree, config, build."""
