# SPDX-License-Identifier: GPL-2.0-only
"""The guest program: built by cargo, kept in the cache by what it is made from."""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from fasttrack_lab.host import process, ui
from fasttrack_lab.host.errors import LabError
from fasttrack_lab.host.known import remembered
from fasttrack_lab.host.paths import GUEST, cache_dir, cache_root, digest, file_sha256, lock, tree_parts

PROGRAM = "fasttrack-guest"
TARGET, RUSTFLAGS = "x86_64-unknown-linux-gnu", "-C target-feature=+crt-static"
"""Linked statically: the guest's root has no libraries, and the host's differ from machine to machine."""
STORED = 8


def sources_key() -> str:
    """Hash of what the guest program is made from."""
    return digest([*tree_parts(GUEST), TARGET, RUSTFLAGS])[:16]


def key(program: Path) -> str:
    """Hash of the program itself: another compiler makes another program of the same sources."""
    return remembered("guest-keys", [program], [], lambda: file_sha256(program)[:16])


def _version(text: str) -> tuple[int, ...]:
    found = re.search(r"\d+(?:\.\d+)+", text)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def _needed(manifest: Path) -> str:
    raw = tomllib.loads(manifest.read_text())
    package = raw.get("package") or raw["workspace"]["package"]
    return str(package.get("rust-version", "1.75"))


def cargo(manifest: Path = GUEST / "Cargo.toml") -> str:
    """A cargo that is new enough for what MANIFEST describes, by default the guest program."""
    needed = _needed(manifest)
    home = Path.home() / ".cargo" / "bin" / "cargo"
    for candidate in (shutil.which("cargo"), str(home) if home.is_file() else None):
        if candidate and _version(process.output([candidate, "--version"])) >= _version(needed):
            return candidate
    raise LabError(f"cargo {needed} or newer is missing; run scripts/setup.sh, or install Rust from https://rustup.rs")


def cargo_environment() -> dict[str, str]:
    """Environment for cargo: the build directory is in the cache, not in the checkout."""
    return dict(os.environ) | {"CARGO_TARGET_DIR": str(cache_dir("cargo"))}


def build() -> Path:
    """The guest program of this checkout."""
    stored = cache_root() / "guests" / sources_key() / PROGRAM
    if stored.is_file():
        os.utime(stored.parent)
        return stored
    with lock("guest"):
        if not stored.is_file():
            _compile(stored)
    return stored


def compile_by(argv: Sequence[str], more: Mapping[str, str], what: str) -> None:
    """Run cargo with MORE environment; LabError with the end of its log if WHAT does not build."""
    ui.say(f"building {what}")
    log = cache_dir("cargo") / "fasttrack.log"
    with log.open("wb") as handle:
        ended = process.finish(process.start(argv, env={**cargo_environment(), **more}, stdout=handle), None)
    if ended.status:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-40:])
        raise LabError(f"{what} did not build (log: {log}):\n{tail}")


def _compile(stored: Path) -> None:
    argv = [cargo(), "build", "--release", "--locked", "--quiet", "--target", TARGET]
    argv += ["--manifest-path", str(GUEST / "Cargo.toml")]
    compile_by(argv, {"RUSTFLAGS": RUSTFLAGS}, "the guest program")
    stored.parent.mkdir(parents=True, exist_ok=True)
    partial = stored.with_suffix(".part")
    shutil.copy2(cache_dir("cargo") / TARGET / "release" / PROGRAM, partial)
    partial.replace(stored)
    kept = sorted(stored.parent.parent.iterdir(), key=lambda p: p.stat().st_mtime, reverse=True)
    for old in kept[STORED:]:
        shutil.rmtree(old, ignore_errors=True)
