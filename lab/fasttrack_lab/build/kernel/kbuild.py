# SPDX-License-Identifier: GPL-2.0-only
"""Build a kernel for a target, or take it from the store when it was built before."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fasttrack_lab.build.kernel import config
from fasttrack_lab.build.kernel.source import BASE_FILE, BaseFile, find_archive, likely_archive, unpack
from fasttrack_lab.build.kernel.tree import Changes, WorkTree
from fasttrack_lab.host import cores, process, setup, ui
from fasttrack_lab.host.errors import LabError
from fasttrack_lab.host.known import remembered
from fasttrack_lab.host.paths import (
    KERNEL,
    cache_dir,
    cache_root,
    digest,
    lock,
    mark_used,
    newest_first,
    write_if_changed,
)

STORED_KERNELS = 12
"""Finished kernels kept, of about 10 MB each; the least recently used goes first."""

LOG_TAIL = 40

FIXED = (
    "KBUILD_BUILD_TIMESTAMP=Sat Nov 21 00:00:00 UTC 2026",
    "KBUILD_BUILD_USER=fasttrack",
    "KBUILD_BUILD_HOST=lab",
    "KBUILD_BUILD_VERSION=1",
    "LOCALVERSION=-fasttrack",
)
"""What would otherwise make two builds of the same files differ."""

NOT_BUILT = "Documentation/"
"""Files of the tree that no kernel is made from."""

OBJECT = re.compile(r"^ {2}(?:CC|AS|LD|AR|HOSTCC|GEN|SYNC)\s")


@dataclass(frozen=True)
class Target:
    """One way to build the tree."""

    name: str
    arch: str
    default: str
    fragments: tuple[str, ...]
    image: str
    objects: int
    """Lines of output of a whole build, for the progress bar's first time."""
    packages: str = ""
    """Its list of packages in scripts/, beside what every target needs."""
    patches: tuple[str, ...] = ("",)
    """Beginnings of the names of the patches that it takes; all by default."""
    overlay: tuple[str, ...] = ("",)
    """Beginnings of the paths of the overlay's files that it takes; all by default."""
    checks_mib: int = 0
    """Memory that its checks take: a guest gets so much more, and has as much left as without them."""
    tree: str = ""
    """Its own tree, for a target that does not take all: switching one tree between the two would rebuild it whole."""

    def changes(self) -> Changes:
        """What of this checkout is laid over the base."""
        return Changes.of_checkout().only(self.patches, self.overlay)

    @property
    def lock_name(self) -> str:
        """The lock of its tree."""
        return "kernel" + self.tree

    def fragment_paths(self) -> list[Path]:
        """The fragments' files."""
        return [KERNEL / "configs" / f"{name}.config" for name in self.fragments]


X86_IMAGE = "arch/x86/boot/bzImage"

TARGETS = {
    target.name: target
    for target in (
        Target("um", "um", "defconfig", ("fasttrack", "um"), "linux", 1290),
        Target("um-debug", "um", "defconfig", ("fasttrack", "um", "debug"), "linux", 1320, checks_mib=64),
        Target("um-stacks", "um", "defconfig", ("fasttrack", "um", "stacks"), "linux", 1600),
        # What FastTrack, switched off, is measured against: the base with what the lab itself needs, and no hook.
        Target(
            "um-base",
            "um",
            "defconfig",
            ("base", "um"),
            "linux",
            1290,
            patches=("00", "03"),
            overlay=("drivers/scsi/mflash/", "include/trace/events/mflash.h", "include/linux/fasttrack_class.h"),
            tree="-base",
        ),
        # The patched source, with FastTrack left out by its option.
        Target("um-off", "um", "defconfig", ("base", "um"), "linux", 1290),
        Target("x86", "x86_64", "tinyconfig", ("fasttrack", "x86", "x86-phone", "x86-races"), X86_IMAGE, 1490, "x86"),
        # To count instructions: FastTrack as it is used, and the base without any change.
        Target("x86-cost", "x86_64", "tinyconfig", ("alone", "x86", "x86-cost"), X86_IMAGE, 1400, "x86"),
        # The same with the emulated storage, to count what takes its time.
        Target(
            "x86-cost-phone", "x86_64", "tinyconfig", ("alone", "x86", "x86-phone", "x86-cost"), X86_IMAGE, 1430, "x86"
        ),
        Target(
            "x86-cost-base",
            "x86_64",
            "tinyconfig",
            ("x86", "x86-cost"),
            X86_IMAGE,
            1400,
            "x86",
            patches=(),
            overlay=(),
            tree="-base",
        ),
        # Sums of events by histograms, which ARCH=um cannot have.
        Target("x86-trace", "x86_64", "tinyconfig", ("alone", "x86", "x86-trace"), X86_IMAGE, 1480, "x86"),
    )
}


@dataclass(frozen=True)
class Kernel:
    """A finished kernel in the store."""

    image: Path
    key: str
    target: str

    @property
    def config(self) -> dict[str, str]:
        """The options that it was built with."""
        return config.parse((self.image.parent / "config").read_text())


def _compiler() -> str:
    return process.output(["gcc", "--version"]).splitlines()[0] + process.output(["ld", "--version"]).splitlines()[0]


def _key(target: Target, base: str, tree: Mapping[str, bytes]) -> str:
    """Hash of what is built: the base, the files of TREE that are not the base's, the options, the compiler."""
    parts: list[bytes | str] = [base, target.name, target.arch, target.default, _compiler(), *FIXED]
    for name, data in sorted(tree.items()):
        if not name.startswith(NOT_BUILT):
            parts += [name, data]
    for path in target.fragment_paths():
        parts += [path.name, path.read_bytes()]
    return digest(parts)[:16]


def _find_key(target: Target, changes: Changes) -> str:
    """The key of this checkout's kernel. While no source and no compiler is another, it is known without a look inside.

    Takes the target's lock if it has to apply the patches.
    """

    def work_out() -> str:
        with lock(target.lock_name):
            tree, _ = work_tree(target)
            return _key(target, find_archive(BaseFile.load()).sha256, tree.wanted(changes))

    tools = (Path(shutil.which(name) or name).resolve() for name in ("gcc", "ld"))
    files = [*tools, likely_archive(BaseFile.load()), BASE_FILE, *target.fragment_paths()]
    files += [*changes.patches, *changes.overlay_paths().values()]
    return remembered("kernel-keys", files, [repr(target), *FIXED], work_out)


def make_environment() -> dict[str, str]:
    """The environment of make: nothing of the caller's that changes what is built."""
    keep = ("PATH", "HOME", "TMPDIR", "CCACHE_DIR")
    env = {name: os.environ[name] for name in keep if name in os.environ}
    env.update(LC_ALL="C")
    return env


def make_argv(target: Target, source: Path, output: Path, *goals: str) -> list[str]:
    """The make command of a target."""
    compiler = ["CC=ccache gcc"] if shutil.which("ccache") else []
    return ["make", "-C", str(source), f"ARCH={target.arch}", f"O={output}", *FIXED, *compiler, *goals]


def run_make(argv: list[str], log: Path) -> None:
    """Run make, its output to the end of LOG; an error has what the compiler said."""
    with log.open("ab") as handle:
        child = process.start(argv, env=make_environment(), stdout=handle)
        ended = process.finish(child, None)
    if ended.status:
        raise LabError(_failure(log))


def _failure(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()
    errors = [line for line in lines if re.search(r"error:|Error \d|undefined reference|\*\*\*", line)]
    tail = "\n".join(errors[:LOG_TAIL] or lines[-LOG_TAIL:])
    return f"the kernel did not build (whole log: {log}):\n{tail}"


def configure(target: Target, asked: dict[str, str], source: Path, output: Path, log: Path) -> None:
    """Make OUTPUT's .config: the target's default with the options ASKED. LOG begins anew."""
    log.write_bytes(b"")
    fragment = config.as_text(asked)
    if write_if_changed(output / "fasttrack.fragment", fragment.encode()) or not (output / ".config").is_file():
        run_make(make_argv(target, source, output, target.default), log)
        with (output / ".config").open("a") as handle:
            handle.write(fragment)
    run_make(make_argv(target, source, output, "olddefconfig"), log)


def _compile(target: Target, source: Path, output: Path, log: Path) -> None:
    counted = output / "fasttrack.objects"
    known = json.loads(counted.read_text()) if counted.is_file() else None
    jobs = f"-j{cores.count()}"
    goal = "linux" if target.arch == "um" else "bzImage"
    argv = make_argv(target, source, output, jobs, goal)
    with log.open("ab") as handle, ui.bar(f"kernel {target.name}", known or target.objects) as progress:
        child = process.start(argv, env=make_environment(), stdout=subprocess.PIPE)
        assert child.stdout is not None
        for line in child.stdout:
            handle.write(line)
            if OBJECT.match(line.decode(errors="replace")):
                progress.advance()
        ended = process.finish(child, None)
        done = progress.done
    if ended.status:
        raise LabError(_failure(log))
    if known is None:
        counted.write_text(json.dumps(done))


def check_config(asked: dict[str, str], built_config: Path) -> None:
    """An error if an option that was asked for is not so in BUILT_CONFIG."""
    missing = config.lost(asked, config.parse(built_config.read_text()))
    if missing:
        raise LabError("the kernel's configuration lost what was asked for:\n" + "\n".join(missing))


def _store(target: Target, output: Path, key: str, info: dict[str, str]) -> Kernel:
    store = cache_dir("kernels")
    final = store / key
    partial = store / f"{key}.part"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    name = Path(target.image).name
    shutil.copy2(output / target.image, partial / name)
    shutil.copy2(output / ".config", partial / "config")
    shutil.copy2(output / "System.map", partial / "System.map")
    (partial / "info.json").write_text(json.dumps(info, indent=1) + "\n")
    shutil.rmtree(final, ignore_errors=True)
    partial.rename(final)
    for old in newest_first(p for p in store.iterdir() if p.is_dir())[STORED_KERNELS:]:
        shutil.rmtree(old, ignore_errors=True)
    return Kernel(final / name, key, target.name)


def work_tree(target: Target) -> tuple[WorkTree, Path]:
    """The unpacked tree of a target, and its output directory. Hold the target's lock."""
    base = BaseFile.load()
    archive = find_archive(base)
    source = cache_dir("kernel") / f"tree-{archive.sha256[:12]}{target.tree}"
    unpack(archive, base, source)
    return WorkTree(source), cache_dir("kernel", f"build-{target.name}-{archive.sha256[:12]}")


def prepared_tree(target: Target, changes: Changes) -> tuple[WorkTree, Path, dict[str, str]]:
    """The synced tree, its configured output directory, and the options asked for. Hold the target's lock."""
    tree, output = work_tree(target)
    tree.sync(changes)
    asked = config.merge(target.fragment_paths())
    configure(target, asked, tree.root, output, output / "fasttrack.log")
    check_config(asked, output / ".config")
    return tree, output, asked


def build(name: str = "um") -> Kernel:
    """The kernel of this checkout for a target, from the store or built now."""
    target = TARGETS[name]
    if target.packages:
        setup.install(target.packages)
    changes = target.changes()
    key = _find_key(target, changes)
    stored = cache_root() / "kernels" / key / Path(target.image).name
    if stored.is_file():
        mark_used(stored.parent)
        return Kernel(stored, key, name)
    with lock(target.lock_name):
        if stored.is_file():
            return Kernel(stored, key, name)
        tree, output, asked = prepared_tree(target, changes)
        _compile(target, tree.root, output, output / "fasttrack.log")
        check_config(asked, output / ".config")
        info = {"base": find_archive(BaseFile.load()).sha256, "compiler": _compiler(), "target": name}
        return _store(target, output, key, info)
