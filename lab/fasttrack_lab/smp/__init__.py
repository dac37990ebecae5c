# SPDX-License-Identifier: GPL-2.0-only
"""Stress with two processors: what the host does (boots.py), and the guest's init (workload.py)."""
