# SPDX-License-Identifier: GPL-2.0-only
"""Shell scripts as a guest's init, for boots that play no job."""

from __future__ import annotations

from pathlib import Path

from fasttrack_lab.errors import LabError
from fasttrack_lab.paths import cache_dir, digest, write_if_changed


def init_script(text: str) -> Path:
    """A script that a guest can start. It lies in the cache: what is below /dev on the host cannot be reached."""
    if not text.startswith("#!"):
        raise LabError("an init script starts with #! and its interpreter")
    path = cache_dir("scripts") / f"{digest([text])[:16]}.sh"
    write_if_changed(path, text.encode())
    path.chmod(0o755)
    return path
