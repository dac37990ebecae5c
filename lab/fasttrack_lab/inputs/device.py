# SPDX-License-Identifier: GPL-2.0-only
"""What a storage device is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Device:
    """What a storage device is. All but the queue depth, which can be set, tells it from others."""

    vendor: str
    model: str
    size_bytes: int
    queue_depth: int
    """Requests that it takes at once; 0: the kernel does not say."""
    serial: str = ""
    """Of the specimen: empty: the kernel does not say."""

    @property
    def text(self) -> str:
        """For people."""
        name = " ".join(part for part in (self.vendor, self.model) if part) or "unnamed"
        return f"{name}, {self.size_bytes / 1e9:.1f} GB, queue depth {self.queue_depth or 'unknown'}"
