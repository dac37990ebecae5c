# SPDX-License-Identifier: GPL-2.0-only
"""The device's programs: fasttrackd and who speaks to it, built by cargo, kept in the cache by what they are made from.

As tests build them, so that a machine that has run the tests need not build them again: in a guest the processor is
infinitely fast.
"""

from __future__ import annotations

from pathlib import Path

from fasttrack_lab.build import stored
from fasttrack_lab.build.guest_program import cargo, cargo_target, compile_by
from fasttrack_lab.host import process
from fasttrack_lab.host.paths import DEVICE, digest, tree_parts

PROGRAMS = ("fasttrackd", "fasttrack-agent", "fasttrackctl", "fasttrack-standin")
STORED = 4


def sources_key() -> str:
    """Hash of what the programs are made from."""
    return digest(tree_parts(DEVICE))[:16]


def build() -> Path:
    """The folder with the programs of this checkout."""
    return stored.folder("device", sources_key(), STORED, _compile)


def _compile(to: Path) -> None:
    manifest = DEVICE / "Cargo.toml"
    packages = [f"--package={name}" for name in PROGRAMS]
    argv = [cargo(manifest), "build", "--locked", "--quiet", "--manifest-path", str(manifest), *packages]
    compile_by(argv, {}, "fasttrackd, fasttrack-agent and fasttrackctl")
    for name in PROGRAMS:
        # A guest's directory is in memory, and has a copy of each.
        process.output(["strip", "-o", str(to / name), str(cargo_target() / "debug" / name)])
