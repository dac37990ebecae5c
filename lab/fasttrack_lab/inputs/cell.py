# SPDX-License-Identifier: GPL-2.0-only
"""Which run: scenario, phone, policy, backgrounds, seed. What a run is called everywhere."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fasttrack_lab.inputs.lru import KERNEL_LRU

NONE = "none"
IDLE = "idle"


def platform_text(phone: str, fs: str, lru: str) -> str:
    """A phone, with its file system and LRU as far as they are not left to it and the kernel."""
    return ", ".join([phone, *(name for name in (fs, lru) if name not in ("", KERNEL_LRU))])


def scenario_name(given: str) -> str:
    """What a scenario is called: its name, or that of its file or recording without folders and endings."""
    return Path(given).name.split(".", 1)[0]


def recording_part(given: str) -> tuple[str, float | None]:
    """Of FILE:SECONDS, the first so many seconds of a recording, both; of anything else, itself and None."""
    part = re.fullmatch(r"(.+):([1-9]\d*)", given)
    return (part[1], float(part[2])) if part else (given, None)


@dataclass(frozen=True)
class Cell:
    """One run of a comparison."""

    scenario: str
    """As it was given: a name, or the path of a scenario file or a recording."""
    phone: str
    policy: str
    backgrounds: tuple[str, ...]
    seed: int
    fs: str = ""
    """The file system; empty is the phone's own."""
    lru: str = KERNEL_LRU
    idle: bool = False
    """The app that is in front until the touch does nothing."""
    start_s: float = 0.0
    """When a program in front of a matrix starts, in virtual s; elsewhere the scenario says it."""

    @classmethod
    def of_json(cls, raw: dict[str, Any]) -> Cell:
        """A cell as asdict() and JSON have made it. TypeError or KeyError if it is none."""
        return cls(**raw | {"backgrounds": tuple(raw["backgrounds"])})

    @property
    def background(self) -> str:
        """What is behind as one name: `update+backup`, `none`; `idle` where the app before the touch does nothing."""
        return "+".join(self.backgrounds) or (IDLE if self.idle else NONE)

    def text(self) -> str:
        """For messages and pages: of a file its name, not where it is on this machine."""
        platform = platform_text(self.phone, self.fs, self.lru)
        front = Path(self.scenario).name
        start = f", start {self.start_s:g} s" if self.start_s else ""
        return f"{front} on {platform}, {self.policy}, background {self.background}, seed {self.seed}{start}"
