# SPDX-License-Identifier: GPL-2.0-only
"""Ibis, loaded where it is first used: that takes half a second and more, and kept queries do without."""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    """What Ibis calls NAME."""
    return getattr(importlib.import_module("ibis"), name)
