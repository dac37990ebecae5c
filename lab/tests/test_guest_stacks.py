# SPDX-License-Identifier: GPL-2.0-only
"""File systems and devices that `make test` has no kernel for: `make test-stacks` does. Times are virtual."""

from __future__ import annotations

import pytest
from guest_script import STOCK, WITH_DEVICE, ask

from fasttrack_lab.run.runner import Tools

pytestmark = pytest.mark.guest

WRITABLE = ("ext4", "xfs", "btrfs", "dm_crypt", "overlay")
READ_ONLY = ("erofs", "squashfs", "dm_verity")

AT_MOST = 1.25
OF_SYNCS = {"xfs": 2.25, "btrfs": 2.0}
"""A commit's FLUSH also writes what others have in the device's cache: 1 ms more than the 2.5 ms alone. On these a few
of fifty calls wait for a background app's commit of the log, with its FLUSH, 20 to 33 ms."""
OF_SMALL_READS = {"erofs": 1.5, "dm_verity": 1.35}
"""One call is several small reads, and each stops a program in the device: 0.1 ms."""


def at_most(stack: str, front: str) -> float:
    if front == "syncs":
        return OF_SYNCS.get(stack, 1.5)
    return OF_SMALL_READS.get(stack, AT_MOST)


@pytest.mark.parametrize(
    ("stack", "front"),
    [
        *((stack, "reads") for stack in (*WRITABLE, *READ_ONLY)),
        *((stack, "syncs") for stack in WRITABLE),
        ("ext4", "ring_reads"),
        ("ext4", "ring_syncs"),
    ],
)
def test_beside_two_writers(tools: Tools, stack: str, front: str) -> None:
    if tools.kernel.target != "um-stacks":
        pytest.skip("this kernel has not got all of them: make test-stacks")
    slower = {}
    for name, settings in ("stock", STOCK), ("fasttrack", WITH_DEVICE):
        shown = ask(tools, "stacks.beside", settings=settings, stack=stack, front=front)
        slower[name] = sum(shown["beside"]) / sum(shown["alone"])
        longest = max(shown["beside"]) / max(shown["alone"])
        print(f"{stack} {front}, {name}: {slower[name]:.2f} of alone, the longest call {longest:.2f}")
    assert slower["fasttrack"] <= at_most(stack, front)
    assert slower["fasttrack"] < slower["stock"]


@pytest.mark.parametrize("name", ["stock", "fasttrack"])
def test_a_commit_that_takes_all_data_along_does_so_for_who_is_in_front(tools: Tools, name: str) -> None:
    """btrfs with flushoncommit."""
    if tools.kernel.target != "um-stacks":
        pytest.skip("this kernel has not got all of them: make test-stacks")
    before, after = ask(tools, "stacks.dirty_after_commit", settings={"stock": STOCK, "fasttrack": WITH_DEVICE}[name])[
        "dirty"
    ]
    assert before >= 64 << 10
    print(f"{before} KiB not written -> {after}")
    assert after < 64
