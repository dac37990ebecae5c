# SPDX-License-Identifier: GPL-2.0-only
"""What every room needs of the machine: paths, processes, cores, packages, progress, errors, units, TOML by line.

Knows nothing of kernels or apps.
"""
