# SPDX-License-Identifier: GPL-2.0-only
"""./fasttrack clean: empty the cache."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from pathlib import Path

import click

from fasttrack_lab.build.kernel import kbuild, package, series
from fasttrack_lab.host import ui
from fasttrack_lab.host.errors import LabError
from fasttrack_lab.host.paths import IN_USE, cache_root, lock, try_lock

BUILT = (
    "kernel",
    "kernels",
    "deb-kernel",
    "known",
    "guests",
    "collectors",
    "counters",
    "device",
    "device-package",
    "deb",
    "deb-quick",
    "cargo",
    "images",
    "programs",
    "scripts",
    "failed",
    "mutants",
    "mypy",
    "ccache",
)
DOWNLOADED = ("downloads", "debian")
KEPT = ("locks", "setup")
"""What is left, beside the Python environments (venv-…)."""


def _held_bytes(path: Path) -> int:
    return sum(p.lstat().st_blocks * 512 for p in path.rglob("*") if not p.is_dir())


@click.command("clean")
@click.option("--all", "everything", is_flag=True, help="Remove the downloads, too.")
def command(everything: bool) -> None:
    """Remove build products, prepared phones and kept logs from the cache, and say how much space that frees.

    Not while another command builds or runs guests.
    """
    root = cache_root()
    if not root.is_dir():
        ui.say(f"there is nothing in {root}")
        return
    trees = {target.lock_name for target in kbuild.TARGETS.values()} | {series.LOCK}
    with ExitStack() as held:
        if not held.enter_context(try_lock(IN_USE)):
            raise LabError("another ./fasttrack command is under way: clean when it has ended")
        for name in (*sorted(trees), package.LOCK, "guests", "device"):
            held.enter_context(lock(name))
        freed = 0
        for name in BUILT + (DOWNLOADED if everything else ()):
            path = root / name
            if path.is_dir():
                freed += _held_bytes(path)
                shutil.rmtree(path)
    ui.say(f"removed {freed / 1e9:.2f} GB from {root}")
