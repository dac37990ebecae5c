# SPDX-License-Identifier: GPL-2.0-only
"""The Debian package of the device's programs, not optimised, kept in the cache by what it is made from."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from fasttrack_lab.host import process, ui
from fasttrack_lab.host.paths import CHECKOUT, DEVICE, cache_root, digest, lock, newest_first, tree_parts

SCRIPT = CHECKOUT / "scripts" / "deb.sh"
PARTS = (DEVICE, CHECKOUT / "debian", CHECKOUT / "docs" / "man")
STORED = 2


def sources_key() -> str:
    """Hash of what the package is made from."""
    trees = [part for tree in PARTS for part in tree_parts(tree)]
    return digest([*trees, SCRIPT.read_bytes(), (CHECKOUT / "VERSION").read_bytes()])[:16]


def build() -> Path:
    """The package of this checkout."""
    stored = cache_root() / "device-package" / sources_key()
    with lock("device-package"):
        if not stored.is_dir():
            ui.say("building the Debian package")
            partial = stored.with_suffix(".part")
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            process.output([str(SCRIPT), "--quick", str(partial)])
            partial.rename(stored)
            for old in newest_first(stored.parent.iterdir())[STORED:]:
                shutil.rmtree(old, ignore_errors=True)
    os.utime(stored)
    (package,) = stored.glob("fasttrack_*.deb")
    return package
