# SPDX-License-Identifier: GPL-2.0-only
"""Ordinary programs in front of ordinary programs: what they do, runs of them, and what comes of it."""
