# SPDX-License-Identifier: GPL-2.0-only
"""One boot of a guest and its verdict: the run directory, the boot, the judge, where time went."""
