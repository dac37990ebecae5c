# SPDX-License-Identifier: GPL-2.0-only
"""Programs that run in the guest: built by cargo, kept in the cache by what they are made from."""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fasttrack_lab.build import stored
from fasttrack_lab.host import process, ui
from fasttrack_lab.host.errors import LabError
from fasttrack_lab.host.known import remembered
from fasttrack_lab.host.paths import CHECKOUT, DEVICE, GUEST, LAB, digest, file_sha256, tree_parts

TARGET, RUSTFLAGS = "x86_64-unknown-linux-gnu", "-C target-feature=+crt-static"
"""Linked statically: the guest's root has no libraries, and the host's differ from machine to machine."""
STORED = 8
TARGETS_STORED = 3


@dataclass(frozen=True)
class Program:
    """A program of the guest."""

    name: str
    title: str
    room: Path
    """Where its Cargo.toml is."""
    store: str
    """Directory of the cache."""
    parts: tuple[str, ...] = ()
    """Files and directories of the room that it is made from; none: all."""

    def sources_key(self) -> str:
        """Hash of what it is made from."""
        return digest([*self._sources(), TARGET, RUSTFLAGS])[:16]

    def _sources(self) -> Iterator[bytes | str]:
        if not self.parts:
            yield from tree_parts(self.room)
        for part in self.parts:
            path = self.room / part
            yield part
            if path.is_dir():
                yield from tree_parts(path)
            else:
                yield path.read_bytes()


PROGRAM = Program("fasttrack-guest", "guest program", GUEST, "guests")
"""Init and player."""

COLLECTOR = Program(
    "fasttrack-trace",
    "collector of traces",
    DEVICE,
    "collectors",
    ("Cargo.toml", "Cargo.lock", "trace", "trace-log"),
)
"""Records I/O origin, as on any machine."""

COUNTER = Program("fasttrack-counter", "counter of instructions", LAB / "counter", "counters")
"""Counts the instructions of I/O paths, as a guest's init."""


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


def cargo_target() -> Path:
    """Cargo's build directory, in the cache. Each checkout has its own.

    Cargo tells checkouts apart by their files' times alone, and took what another one had built for its own.
    """
    return stored.folder("cargo", digest([str(CHECKOUT)])[:16], TARGETS_STORED, lambda _to: None)


def cargo_environment() -> dict[str, str]:
    """Environment for cargo: the build directory is not in the checkout."""
    return dict(os.environ) | {"CARGO_TARGET_DIR": str(cargo_target())}


def build(program: Program = PROGRAM) -> Path:
    """A program of this checkout."""
    folder = stored.folder(program.store, program.sources_key(), STORED, lambda to: _compile(program, to))
    return folder / program.name


def compile_by(argv: Sequence[str], more: Mapping[str, str], what: str) -> None:
    """Run cargo with MORE environment; LabError with the end of its log if WHAT does not build."""
    ui.say(f"building {what}")
    log = cargo_target() / "fasttrack.log"
    with log.open("wb") as handle:
        ended = process.finish(process.start(argv, env={**cargo_environment(), **more}, stdout=handle), None)
    if ended.status:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-40:])
        raise LabError(f"{what} did not build (log: {log}):\n{tail}")


def _compile(program: Program, to: Path) -> None:
    manifest = program.room / "Cargo.toml"
    argv = [cargo(manifest), "build", "--release", "--locked", "--quiet", "--target", TARGET]
    argv += ["--package", program.name, "--manifest-path", str(manifest)]
    compile_by(argv, {"RUSTFLAGS": RUSTFLAGS}, f"the {program.title}")
    shutil.copy2(cargo_target() / TARGET / "release" / program.name, to)
