# SPDX-License-Identifier: GPL-2.0-only
"""Traces of other tools as records of ours: a module for each format, `importing.py` for what they share.

A reader gives block events (`intake.py`), `event_join.py` makes records of them, `record_files.py` writes these as
`fasttrack-trace export` does. What a source does not say is not in the records.
"""
