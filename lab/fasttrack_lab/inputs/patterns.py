# SPDX-License-Identifier: GPL-2.0-only
"""The four ways to use a storage device that a profile has numbers of."""

from __future__ import annotations

from dataclasses import dataclass

MAX_DEPTH = 32
"""The deepest queue that is tried: UFS and SATA devices take no more, and a longer one helps a flash device little."""


@dataclass(frozen=True)
class Pattern:
    """One of the four ways to use a device."""

    name: str
    rw: str
    block: int
    """Bytes of a request."""

    @property
    def reads(self) -> bool:
        """Whether it reads."""
        return "read" in self.rw

    @property
    def random(self) -> bool:
        """Whether it jumps."""
        return self.rw.startswith("rand")

    @property
    def title(self) -> str:
        """For people."""
        return self.name.replace("_", " ")


PATTERNS = (
    Pattern("sequential_read", "read", 512 << 10),
    Pattern("random_read", "randread", 4 << 10),
    Pattern("sequential_write", "write", 512 << 10),
    Pattern("random_write", "randwrite", 4 << 10),
)
"""In the order of all tables. Requests of 512 KiB are the largest that every phone takes whole; 4 KiB is a page."""
BY_NAME = {pattern.name: pattern for pattern in PATTERNS}
