# SPDX-License-Identifier: GPL-2.0-only
"""Shell scripts as a guest's init, for boots that play no job. The guest's root is the host's then."""

from __future__ import annotations

from pathlib import Path

from fasttrack_lab.host.errors import LabError
from fasttrack_lab.host.paths import cache_dir, digest, write_if_changed

COVERED = "/dev"
"""Where the kernel mounts before init: what the host has there cannot be started."""


def init_script(text: str) -> Path:
    """A script that a guest can start. It lies in the cache."""
    if not text.startswith("#!"):
        raise LabError("an init script starts with #! and its interpreter")
    directory = cache_dir("scripts")
    if directory.is_relative_to(COVERED):
        raise LabError(f"a guest cannot read the cache below {COVERED}: set FASTTRACK_CACHE to another place")
    path = directory / f"{digest([text])[:16]}.sh"
    write_if_changed(path, text.encode(), executable=True)
    return path
