# SPDX-License-Identifier: GPL-2.0-only
"""Debian packages of a kernel with FastTrack, for people: Debian's source and configuration, the kernel's own packager.

The emulated storage and the lab's changes to UML are left out. The tree is one of its own, and whole: Debian's
configuration builds drivers that the lab's tree has no files of.
"""

from __future__ import annotations

import lzma
from pathlib import Path

from fasttrack_lab.build.kernel import config, kbuild
from fasttrack_lab.build.kernel.source import BaseFile, find_archive, unpack, version_of
from fasttrack_lab.build.kernel.tree import Changes, WorkTree
from fasttrack_lab.host import cores
from fasttrack_lab.host.errors import LabError
from fasttrack_lab.host.paths import KERNEL, cache_dir, lock, version

PATCHES = ("01", "02")
"""Beginnings of the names of the patches that are taken: hooks and I/O schedulers."""

FRAGMENT = KERNEL / "configs" / "deb.config"

DEBIAN_CONFIG = Path("/usr/src/linux-config-6.12/config.amd64_none_amd64.xz")
"""From Debian's package linux-config-6.12."""

SMALL = {"CONFIG_MODULES": "y"}
"""The small configuration: the one for QEMU with modules, so that there are headers."""

PROFILES = "pkg.linux-fasttrack.nokerneldbg"


def asked_for(*, small: bool) -> dict[str, str]:
    """The options that the built configuration has to have."""
    fragment = config.parse(FRAGMENT.read_text())
    return config.merge([KERNEL / "configs" / "x86.config"]) | SMALL | fragment if small else fragment


def debian_config(path: Path = DEBIAN_CONFIG) -> str:
    """Debian's configuration for amd64."""
    try:
        return lzma.decompress(path.read_bytes()).decode()
    except (OSError, lzma.LZMAError) as error:
        raise LabError(f"{path}: {error}. It comes with Debian's package linux-config-6.12: install it") from error


def make_words(source: Path, output: Path, base: str) -> list[str]:
    """The make command: its packages' versions are those of the kernel, BASE, and of FastTrack."""
    fixed = [word for word in kbuild.FIXED if not word.startswith("LOCALVERSION=")]
    names = {
        "LOCALVERSION": f"-{version()}-fasttrack",
        "KDEB_PKGVERSION": f"{base}-{version()}",
        "KDEB_SOURCENAME": "linux-fasttrack",
        "KDEB_CHANGELOG_DIST": "unstable",
        "DEBFULLNAME": "The FastTrack developers",
        "DEBEMAIL": "maintainers@users.noreply.example",
        "DPKG_FLAGS": f"--build-profiles={PROFILES}",
    }
    words = [f"{name}={value}" for name, value in names.items()]
    return ["make", "-C", str(source), "ARCH=x86_64", f"O={output}", *fixed, *words]


LOCK = "deb-kernel"


def build(*, small: bool) -> list[Path]:
    """Build the packages; their paths. It takes hours with Debian's configuration, and minutes with the small one."""
    base = BaseFile.load()
    archive = find_archive(base)
    place = cache_dir("deb-kernel", "small" if small else "debian")
    with lock(LOCK):
        source = cache_dir("deb-kernel") / f"tree-{archive.sha256[:12]}"
        unpack(archive, base, source, left_out=())
        WorkTree(source).sync(Changes.of_checkout().only(PATCHES, ("",)))
        output = cache_dir("deb-kernel", place.name, "build")
        asked, log = asked_for(small=small), place / "build.log"
        log.write_bytes(b"")
        make = make_words(source, output, version_of(source))
        if small:
            kbuild.run_make([*make, "tinyconfig"], log)
        else:
            (output / ".config").write_text(debian_config())
        with (output / ".config").open("a") as handle:
            handle.write(config.as_text(asked))
        kbuild.run_make([*make, "olddefconfig"], log)
        kbuild.check_config(asked, output / ".config")
        for old in place.glob("*.deb"):
            old.unlink()
        kbuild.run_make([*make, f"-j{cores.count()}", "bindeb-pkg"], log)
    # Headers of the kernel for libc: those of the distribution are the right ones.
    for libc in place.glob("linux-libc-dev_*.deb"):
        libc.unlink()
    return sorted(place.glob("*.deb"))
