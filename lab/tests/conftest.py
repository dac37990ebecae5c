# SPDX-License-Identifier: GPL-2.0-only
"""What tests that boot guests share."""

from __future__ import annotations

import pytest

from fasttrack_lab.host import process
from fasttrack_lab.run.runner import Tools


def pytest_runtest_setup() -> None:
    """A test whose guest failed has ended all guests of its process; the next test's are to start."""
    process.go_on()


def pytest_addoption(parser: pytest.Parser) -> None:
    """--kernel: which of the checkout's kernels boots the guests; --ends: how often some are ended."""
    parser.addoption(
        "--kernel",
        choices=("um", "um-debug", "um-stacks", "stock", "x86-trace"),
        default="um",
        help="um-debug: with lockdep and KASAN; um-stacks: with more file systems and device mapper targets; "
        "stock: Debian's, in QEMU; x86-trace: the patched one for x86-64, in QEMU",
    )
    parser.addoption("--xfstests", metavar="DIR", help="where a built xfstests is: see test_guest_xfs.py")
    parser.addoption(
        "--ends",
        type=int,
        default=16,
        help="how often the collector of traces is killed, its disk loses power, and one of a session's daemon, guard "
        "and agent is killed",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that boot guests first: they take longest, and no core is idle at the end."""
    guests = {item.path for item in items if item.get_closest_marker("guest")}
    items.sort(key=lambda item: item.path not in guests)


@pytest.fixture(scope="session")
def tools(request: pytest.FixtureRequest) -> Tools:
    """The kernel and the guest program of this checkout, built if they are not in the cache."""
    return Tools.of_checkout(request.config.getoption("--kernel"))
