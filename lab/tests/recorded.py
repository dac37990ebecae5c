# SPDX-License-Identifier: GPL-2.0-only
"""Recorded inputs of tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from fasttrack_lab.host.paths import RECORDINGS, recording


def recorded(name: str) -> Path:
    """The recording NAME; where it is absent, the test is skipped with the reason."""
    path = recording(name)
    if path is None:
        pytest.skip(f"the recording {name} is not here; set {RECORDINGS} to its directory")
    return path
