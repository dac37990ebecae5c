# SPDX-License-Identifier: GPL-2.0-only
"""A foreground that hardly waits for storage takes little from others, and is itself no slower: in virtual time."""

from __future__ import annotations

import pytest
from guest_script import both

from fasttrack_lab.run.runner import Tools

pytestmark = pytest.mark.guest


def test_cached_reads_and_faults_take_no_read_from_others(tools: Tools) -> None:
    stock, fasttrack = both(tools, "light_front.draws")
    assert fasttrack["mib"] >= 0.99 * stock["mib"]


@pytest.mark.parametrize("every_ms", [1, 100])
def test_an_app_behind_grows_as_fast_as_on_stock(tools: Tools, every_ms: int) -> None:
    """It takes the pages of others' files, beside one in front who reads a page now and then; nobody is killed."""
    stock, fasttrack = both(tools, "light_front.grows", every_ms=every_ms)
    for shown in stock, fasttrack:
        assert (shown["mib"], shown["killed"]) == (shown["most"], 0) and shown["scanned"] > 0
    assert fasttrack["ms"] < 1.25 * stock["ms"]
