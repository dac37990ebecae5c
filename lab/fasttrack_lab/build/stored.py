# SPDX-License-Identifier: GPL-2.0-only
"""What was built, kept in the cache by what it is made from."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from fasttrack_lab.host.paths import cache_root, lock, mark_used, newest_first


def folder(what: str, key: str, kept: int, make: Callable[[Path], None]) -> Path:
    """The folder KEY of WHAT, which MAKE fills if it is not there; of all of WHAT the KEPT last used ones stay."""
    stored = cache_root() / what / key
    if not stored.is_dir():
        with lock(what):
            if not stored.is_dir():
                _fill(stored, kept, make)
    mark_used(stored)
    return stored


def _fill(stored: Path, kept: int, make: Callable[[Path], None]) -> None:
    """Others see the folder when it is whole."""
    partial = stored.with_suffix(".part")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    make(partial)
    partial.rename(stored)
    for old in newest_first(stored.parent.iterdir())[kept:]:
        shutil.rmtree(old, ignore_errors=True)
