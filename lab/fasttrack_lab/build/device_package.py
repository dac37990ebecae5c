# SPDX-License-Identifier: GPL-2.0-only
"""The Debian package of the device's programs, not optimised, kept in the cache by what it is made from."""

from __future__ import annotations

from pathlib import Path

from fasttrack_lab.build import stored
from fasttrack_lab.host import process, ui
from fasttrack_lab.host.paths import CHECKOUT, DEVICE, digest, tree_parts

SCRIPT = CHECKOUT / "scripts" / "deb.sh"
PARTS = (DEVICE, CHECKOUT / "debian", CHECKOUT / "docs" / "man")
FILES = tuple(CHECKOUT / name for name in ("VERSION", "docs/GLOSSARY.md", "docs/LIMITS.md", "docs/TRACE.md"))
STORED = 2


def sources_key() -> str:
    """Hash of what the package is made from."""
    trees = [part for tree in PARTS for part in tree_parts(tree)]
    return digest([*trees, SCRIPT.read_bytes(), *(path.read_bytes() for path in FILES)])[:16]


def build() -> Path:
    """The package of this checkout."""
    (package,) = stored.folder("device-package", sources_key(), STORED, _make).glob("fasttrack_*.deb")
    return package


def _make(to: Path) -> None:
    ui.say("building the Debian package")
    process.output([str(SCRIPT), "--quick", str(to)])
