# SPDX-License-Identifier: GPL-2.0-only
"""Many runs: their records, reports and plots."""
