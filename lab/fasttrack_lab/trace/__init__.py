# SPDX-License-Identifier: GPL-2.0-only
"""Traces of I/O origin: tables, metrics, reports, archive. `tables.py` says what the tables hold."""
