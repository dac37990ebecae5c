# SPDX-License-Identifier: GPL-2.0-only
"""An app behind gains nothing by what it may do without a right: fadvise, I/O priorities, groups, others' files."""

from __future__ import annotations

import pytest
from guest_script import EXT4, WITH_DEVICE, ask, both

from fasttrack_lab.run.runner import Tools

pytestmark = pytest.mark.guest


@pytest.mark.parametrize(("kind", "more_mib"), [("reads", 1), ("writes", 1), ("syncs", 4)])
def test_nothing_without_a_right_is_a_way_out(tools: Tools, kind: str, more_mib: int) -> None:
    """MiB in 4 s; with nobody in front it has a hundred in one. Who syncs what is synced in front is waited for."""
    shown = ask(tools, "ways_out.gains", data=EXT4, settings=WITH_DEVICE, kind=kind)
    plain = shown["ways"].pop("plain")
    assert 0 < plain["mib"] < shown["free"] / 10
    for name, way in shown["ways"].items():
        assert way["mib"] <= plain["mib"] + more_mib, name
        assert way["front_us"] < 1.1 * plain["front_us"], name
    assert shown["refused"]
    assert kind != "reads" or shown["moves"] > 1000


def test_who_drops_pages_of_the_fronts_file_makes_it_no_slower_than_on_stock(tools: Tools) -> None:
    stock, fasttrack = both(tools, "ways_out.drops")
    assert fasttrack["mean_ms"] < 1.25 * stock["mean_ms"]
