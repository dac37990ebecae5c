# SPDX-License-Identifier: GPL-2.0-only
"""What every way to boot has in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class BootSpec:
    """One boot."""

    kernel: Path
    init: Path
    """The first program, in the guest's first root."""
    memory_mib: int
    run_dir: Path
    """The guest's directory on the host; the process's working directory."""
    limit_s: float | None
    """Real time; None for a guest that a person uses."""
    seed: int = 0
    params: Mapping[str, str] = field(default_factory=dict)
    _: KW_ONLY
    interactive: bool = False
    root: str = "/"
    """The guest's first root: a directory of the host."""
    computing_takes_time: bool = False
    """Of a virtual clock: whether it goes on while the processor works. Loops that never wait have an end then."""


@dataclass(frozen=True)
class Outcome:
    """How a boot ended."""

    status: int
    console: str
    wall_s: float
    timed_out: bool


class Backend(Protocol):
    """A way to boot."""

    name: str

    def boot(self, spec: BootSpec) -> Outcome:
        """Boot and wait."""
        ...

    def run_path(self, name: str) -> str:
        """The path of a file of the run directory, as kernel parameters name it."""
        ...
