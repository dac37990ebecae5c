# SPDX-License-Identifier: GPL-2.0-only
"""The boot of a job. The guest begins in a root of its own, which has the guest program and nothing of the host's.

A path of the host would be in the guest's memory, and a byte there changes a run under contention as another seed
does. A job that starts programs of the host's has its directories shown afterwards.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fasttrack_lab.run.boot.backend import Backend

INIT = Path("/init")
"""The guest program in the guest's first root."""

ROOT = "root"
MOUNT_POINTS = ("dev", "proc", "tmp")
"""What the kernel and the guest program mount before they have another root."""


def fill(where: Path, guest: Path, job: Mapping[str, Any]) -> None:
    """Put job.json and the guest's first root, with the program GUEST, into the run's directory."""
    (where / "job.json").write_text(json.dumps(job))
    for name in MOUNT_POINTS:
        (where / ROOT / name).mkdir(parents=True)
    program = where / ROOT / INIT.name
    try:
        os.link(guest, program)
    except OSError:  # another file system, or one without hard links
        shutil.copy2(guest, program)


def root(backend: Backend) -> str:
    """The guest's first root, for BootSpec."""
    return backend.run_path(ROOT)


def params(backend: Backend, job: Mapping[str, Any]) -> dict[str, str]:
    """Kernel parameters for the guest program."""
    found = {"fasttrack_run": backend.run_path(".")}
    if starts_programs(job):
        found["fasttrack_host"] = "/"
    return found


def starts_programs(job: Mapping[str, Any]) -> bool:
    """Whether the job starts programs of the host's: mkfs, a shell, a command."""
    return job["mode"] != "play" or any("argv" in app for app in job["apps"])
