# SPDX-License-Identifier: GPL-2.0-only
"""Packages that only some commands need."""

from __future__ import annotations

import subprocess

from fasttrack_lab.host.errors import LabError
from fasttrack_lab.host.paths import CHECKOUT


def install(group: str) -> None:
    """Install the packages of scripts/packages-GROUP.txt that are missing; instant where none is."""
    done = subprocess.run([str(CHECKOUT / "scripts" / "setup.sh"), group], stdout=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise LabError(f"what scripts/packages-{group}.txt lists could not be installed (see above)")
