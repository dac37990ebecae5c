# SPDX-License-Identifier: GPL-2.0-only
"""The tree that is built: the base with patches/ and overlay/ on top.

A file is written only when its content differs, so that make rebuilds what changed and nothing else.
What the base had before is kept beside the tree, and comes back when a patch or an overlay file goes.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from fasttrack_lab.host.errors import LabError
from fasttrack_lab.host.paths import KERNEL, write_if_changed

TOUCHED = re.compile(r"^(?:---|\+\+\+) (?:[ab]/)?(\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Changes:
    """What is laid over the base: patches in order of name, and whole files."""

    patches: tuple[Path, ...]
    overlay: Path
    within: tuple[str, ...] = ("",)
    """Beginnings of the paths in the overlay that count."""

    @classmethod
    def of_checkout(cls, kernel: Path = KERNEL) -> Changes:
        """The changes of this checkout."""
        return cls(tuple(sorted((kernel / "patches").glob("*.patch"))), kernel / "overlay")

    def only(self, patches: tuple[str, ...], within: tuple[str, ...]) -> Changes:
        """The patches and the overlay's files whose names begin so; each beginning must be that of one."""
        chosen = Changes(tuple(p for p in self.patches if p.name.startswith(patches)), self.overlay, within)
        names = [p.name for p in chosen.patches], list(chosen.overlay_files())
        for begins, found in zip((patches, within), names, strict=True):
            for begin in begins:
                if begin and not any(name.startswith(begin) for name in found):
                    raise LabError(f"{self.overlay.parent}: no patch and no file of the overlay begins with {begin}")
        return chosen

    def overlay_paths(self) -> dict[str, Path]:
        """Path in the tree -> the overlay's file."""
        files = sorted(p for p in self.overlay.rglob("*") if p.is_file())
        found = {str(p.relative_to(self.overlay)): p for p in files}
        return {name: path for name, path in found.items() if name.startswith(self.within)}

    def overlay_files(self) -> dict[str, bytes]:
        """Path in the tree -> content."""
        return {name: path.read_bytes() for name, path in self.overlay_paths().items()}


def touched_by(patch: str) -> list[str]:
    """The files that a patch names."""
    return sorted({name for name in TOUCHED.findall(patch) if name != "/dev/null"})


@dataclass(frozen=True)
class WorkTree:
    """An unpacked base whose changed files are known."""

    root: Path

    @property
    def _originals(self) -> Path:
        return self.root.with_name(self.root.name + ".orig")

    @property
    def _record(self) -> Path:
        return self.root.with_name(self.root.name + ".json")

    def _changed(self) -> set[str]:
        return set(json.loads(self._record.read_text())) if self._record.is_file() else set()

    def _original(self, name: str, changed: set[str]) -> Path | None:
        kept = self._originals / name
        if kept.is_file():
            return kept
        there = self.root / name
        return there if name not in changed and there.is_file() else None

    def wanted(self, changes: Changes) -> dict[str, bytes]:
        """The content of every file that CHANGES makes or alters."""
        changed = self._changed()
        with tempfile.TemporaryDirectory(prefix="fasttrack-patch-") as name:
            scratch = Path(name)
            names = sorted({n for patch in changes.patches for n in touched_by(patch.read_text())})
            for path in names:
                original = self._original(path, changed)
                if original:
                    (scratch / path).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(original, scratch / path)
            for patch in changes.patches:
                _apply(patch, scratch)
            result = {n: (scratch / n).read_bytes() for n in names if (scratch / n).is_file()}
        return result | changes.overlay_files()

    def sync(self, changes: Changes) -> int:
        """Make the tree what CHANGES says; the number of files written or removed."""
        wanted = self.wanted(changes)
        before = self._changed()
        # Written first: after an interruption the next sync still knows which files are not the base's.
        for name in wanted:
            self._keep_original(name, before)
        write_if_changed(self._record, json.dumps(sorted(before | set(wanted))).encode())
        count = sum(write_if_changed(self.root / name, data) for name, data in wanted.items())
        for name in sorted(before - set(wanted)):
            self._restore(name)
            count += 1
        write_if_changed(self._record, json.dumps(sorted(wanted)).encode())
        return count

    def _keep_original(self, name: str, changed: set[str]) -> None:
        kept = self._originals / name
        if name in changed or kept.is_file() or not (self.root / name).is_file():
            return
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(self.root / name, kept)

    def _restore(self, name: str) -> None:
        kept = self._originals / name
        if kept.is_file():
            write_if_changed(self.root / name, kept.read_bytes())
            kept.unlink()
        else:
            (self.root / name).unlink(missing_ok=True)


def _apply(patch: Path, root: Path) -> None:
    options = ["-p1", "--batch", "--forward", "--silent", "--fuzz=1", "--no-backup-if-mismatch"]
    argv = ["patch", *options, "-d", str(root), "-i", str(patch)]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise LabError("the program patch is missing; run scripts/setup.sh") from error
    if done.returncode:
        raise LabError(f"{patch.name} does not apply to the base:\n{(done.stdout + done.stderr).strip()}")
