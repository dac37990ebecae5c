# SPDX-License-Identifier: GPL-2.0-only
"""A report's memory does not grow with the trace as its rows would."""

from __future__ import annotations

from pathlib import Path

import pytest
import trace_scale
from trace_generator import write as generate

FEW, MANY = 2_000, 200_000
BYTES_A_RECORD = 1000
"""What a report of MANY records may take more than one of FEW, for each. Buffers of the database are the most of it: of
20 million records it is below 50 for each, else they would not be in LIMIT."""
LIMIT = 1_000_000_000
"""Bytes that a report of 20 million records may take."""


@pytest.mark.slow
def test_memory(tmp_path: Path) -> None:
    took = {}
    for records in (FEW, MANY):
        generate(tmp_path / str(records), records)
        took[records] = trace_scale.report(tmp_path / str(records), tmp_path, page=False)
    more = took[MANY].max_bytes - took[FEW].max_bytes
    assert more < (MANY - FEW) * BYTES_A_RECORD
    assert took[MANY].max_bytes < LIMIT
