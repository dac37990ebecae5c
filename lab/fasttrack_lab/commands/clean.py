# SPDX-License-Identifier: GPL-2.0-only
"""./fasttrack clean: empty the cache."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from pathlib import Path

import click

from fasttrack_lab.build.kernel import kbuild, series
from fasttrack_lab.host import ui
from fasttrack_lab.host.paths import cache_root, lock

BUILT = (
    "kernel",
    "kernels",
    "known",
    "guests",
    "collectors",
    "device",
    "cargo",
    "images",
    "scripts",
    "failed",
    "ccache",
)
DOWNLOADED = ("downloads",)


def _held_bytes(path: Path) -> int:
    return sum(p.lstat().st_blocks * 512 for p in path.rglob("*") if not p.is_dir())


@click.command("clean")
@click.option("--all", "everything", is_flag=True, help="Remove the downloads, too.")
def command(everything: bool) -> None:
    """Remove build products, prepared phones and kept logs from the cache, and say how much space that frees."""
    root = cache_root()
    trees = {target.lock_name for target in kbuild.TARGETS.values()} | {series.LOCK}
    with ExitStack() as held:
        for name in (*sorted(trees), "guest", "device"):
            held.enter_context(lock(name))
        freed = 0
        for name in BUILT + (DOWNLOADED if everything else ()):
            path = root / name
            if path.is_dir():
                freed += _held_bytes(path)
                shutil.rmtree(path)
    ui.say(f"removed {freed / 1e9:.2f} GB from {root}")
