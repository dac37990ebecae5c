# SPDX-License-Identifier: GPL-2.0-only
"""Which of the kernel's two ways to choose victims reclaims memory: the classic LRU lists, or MGLRU."""

from __future__ import annotations

from collections.abc import Sequence

from fasttrack_lab.host.errors import UsageProblem

KNOB = "/sys/kernel/mm/lru_gen/enabled"
_VALUES = {"classic": "0", "mglru": "y"}
CHOICES = tuple(_VALUES)
KERNEL_LRU = "classic"
"""What the kernel boots with: kernel/configs/um.config builds MGLRU in, and CONFIG_LRU_GEN_ENABLED is off. Android's
kernel has it on."""


def settings(name: str) -> list[dict[str, str]]:
    """What job.json writes before any app starts; nothing for the kernel's own."""
    return [] if name == KERNEL_LRU else [{"path": KNOB, "value": _VALUES[name]}]


def check(names: Sequence[str]) -> None:
    """Refuses a name that is none of them."""
    for name in names:
        if name not in _VALUES:
            raise UsageProblem(f"there is no LRU {name!r}; LRUs: {', '.join(CHOICES)}")
