# SPDX-License-Identifier: GPL-2.0-only
"""Recorded inputs: they are data of others, read where they lie and never copied into the project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fasttrack_lab.paths import CHECKOUT

DATA = Path(os.environ.get("FASTTRACK_DATA", CHECKOUT.parent / "shared" / "data"))


def recorded(name: str) -> Path:
    """The recording NAME; where it is absent, the test is skipped with the reason."""
    path = DATA / name
    if not path.is_file():
        pytest.skip(f"the recording {path} is not here; set FASTTRACK_DATA to its directory")
    return path
