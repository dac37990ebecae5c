# SPDX-License-Identifier: GPL-2.0-only
"""The kernel and the guest program, built from the checkout and kept in the cache."""
