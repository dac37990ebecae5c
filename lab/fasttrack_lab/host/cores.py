# SPDX-License-Identifier: GPL-2.0-only
"""A core of the machine for each guest.

A guest is a kernel and its traced processes, which take turns thousands of times a second. Where the host's scheduler
puts them on different cores, each turn wakes an idle core, and a run takes up to four times as long.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from fasttrack_lab.host import process
from fasttrack_lab.host.errors import Interrupted
from fasttrack_lab.host.paths import try_lock

POLL_S = 0.01
"""How often a guest without a core looks for one."""


def count() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


@contextmanager
def hold() -> Iterator[int]:
    """The number of a core that no other guest has, also none of another process; waits for it."""
    while not process.stopping():
        for core in sorted(os.sched_getaffinity(0)):
            with try_lock(f"core-{core}") as held:
                if held:
                    yield core
                    return
        time.sleep(POLL_S)
    raise Interrupted("interrupted")
