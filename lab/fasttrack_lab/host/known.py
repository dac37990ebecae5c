# SPDX-License-Identifier: GPL-2.0-only
"""What is worked out from files and kept in the cache until one of the files changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from fasttrack_lab.host.paths import cache_dir, digest, newest_first, write_if_changed

KEPT = 64
"""Answers kept; the least recently made go first."""


def stamp(path: Path) -> str:
    """What changes when a file is written or replaced: size, inode and times in ns; empty if there is no such file."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return ""
    return f"{found.st_size} {found.st_ino} {found.st_mtime_ns} {found.st_ctime_ns}"


def remembered(what: str, files: Iterable[Path], also: Iterable[str], work_out: Callable[[], str]) -> str:
    """WORK_OUT's answer, or the one from before while the FILES and the texts ALSO are the same."""
    parts = [part for path in files for part in (str(path), stamp(path))]
    kept = cache_dir("known", what) / digest([*parts, "", *also])[:32]
    try:
        return kept.read_text()
    except FileNotFoundError:
        answer = work_out()
    write_if_changed(kept, answer.encode())
    for old in newest_first(kept.parent.iterdir())[KEPT:]:
        old.unlink(missing_ok=True)
    return answer
