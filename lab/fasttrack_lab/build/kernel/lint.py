# SPDX-License-Identifier: GPL-2.0-only
"""Static checks of the kernel part: checkpatch, W=1 and sparse on the files that are ours."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from fasttrack_lab.build.kernel import kbuild
from fasttrack_lab.build.kernel.tree import Changes
from fasttrack_lab.host.errors import LabError
from fasttrack_lab.host.paths import lock

CHECKPATCH = (
    "--strict",
    "--no-summary",
    "--terse",
    "--show-types",
    "--ignore",
    "FILE_PATH_CHANGES,GIT_COMMIT_ID,MACRO_ARG_REUSE",
)
"""FILE_PATH_CHANGES asks for MAINTAINERS, which the overlay does not carry."""

UML_PATCHES_IGNORE = "PARENTHESIS_ALIGNMENT,PREFER_DEFINED_ATTRIBUTE_MACRO,COMPARISON_TO_NULL"
"""arch/um: __uml_setup()'s help texts are not aligned, and its host side has not the kernel's macros."""

EVENTS = "include/trace/events/"
EVENTS_IGNORE = "PARENTHESIS_ALIGNMENT,OPEN_ENDED_LINE"
"""TRACE_EVENT() is laid out in its own way in the whole kernel."""


@dataclass(frozen=True)
class Finding:
    """What one check said."""

    check: str
    lines: tuple[str, ...]


def _checkpatch(source: Path, changes: Changes) -> Finding:
    script = [str(source / "scripts" / "checkpatch.pl"), f"--root={source}", *CHECKPATCH]
    found: list[str] = []
    for patch in changes.patches:
        extra = ["--ignore", UML_PATCHES_IGNORE] if "-um-" in patch.name else []
        found += _lines([*script, *extra, str(patch)], source)
    names = [name for name in changes.overlay_files() if name.endswith((".c", ".h"))]
    for events in (False, True):
        chosen = [str(changes.overlay / name) for name in names if name.startswith(EVENTS) == events]
        extra = ["--ignore", EVENTS_IGNORE] if events else []
        if chosen:
            found += _lines([*script, *extra, "-f", *chosen], source)
    return Finding("checkpatch --strict", tuple(found))


def _lines(argv: list[str], source: Path) -> list[str]:
    # checkpatch learns the kernel's own names in camel case from the tree where it runs.
    done = subprocess.run(argv, cwd=source, capture_output=True, text=True, check=False)
    return [line for line in done.stdout.splitlines() if re.search(r"(ERROR|WARNING|CHECK):", line)]


def objects(changes: Changes, output: Path) -> list[str]:
    """Object files of ours that the configuration builds: those that make made once, and kept the command of."""
    names = [Path(name).with_suffix(".o") for name in changes.overlay_files() if name.endswith(".c")]
    return [str(name) for name in names if (output / name.parent / f".{name.name}.cmd").is_file()]


def _compiled(
    name: str, target: kbuild.Target, source: Path, output: Path, ours: list[str], flags: list[str]
) -> Finding:
    for one in ours:
        (output / one).unlink(missing_ok=True)
    argv = kbuild.make_argv(target, source, output, *flags, *ours)
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=kbuild.make_environment())
    lines = [line for line in (done.stdout + done.stderr).splitlines() if re.search(r"(warning|error):", line)]
    if done.returncode and not lines:
        raise LabError(f"{name}: make failed:\n{done.stderr[-2000:]}")
    return Finding(name, tuple(lines))


def run(target_name: str = "um") -> tuple[list[Finding], list[str]]:
    """All checks; the findings, and the checks that were skipped with their reason."""
    target = kbuild.TARGETS[target_name]
    changes = target.changes()
    kbuild.build(target_name)
    findings, skipped = [], []
    with lock(target.lock_name):
        tree, output, _ = kbuild.prepared_tree(target, changes)
        findings.append(_checkpatch(tree.root, changes))
        ours = objects(changes, output)
        if not ours:
            skipped.append(
                "W=1 and sparse: the kernel's build directory is empty; run ./fasttrack clean, then this again"
            )
            return findings, skipped
        findings.append(_compiled("W=1", target, tree.root, output, ours, ["W=1"]))
        if shutil.which("sparse"):
            findings.append(_compiled("sparse", target, tree.root, output, ours, ["C=2"]))
        else:
            skipped.append("sparse: not installed (apt-get install sparse)")
    return findings, skipped
