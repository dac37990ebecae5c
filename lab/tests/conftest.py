# SPDX-License-Identifier: GPL-2.0-only
"""What tests that boot guests share."""

from __future__ import annotations

import pytest
from fasttrack_lab.runner import Tools


@pytest.fixture(scope="session")
def tools() -> Tools:
    """The kernel and the guest program of this checkout, built if they are not in the cache."""
    return Tools.of_checkout()
