# SPDX-License-Identifier: GPL-2.0-only
"""A desktop's session in a guest: systemd, logind, sway, and the daemon that finds out who is in front."""
