# SPDX-License-Identifier: GPL-2.0-only
"""The pinned kernel source: find its archive, verify it, unpack it once."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

from fasttrack_lab.host import ui
from fasttrack_lab.host.errors import LabError
from fasttrack_lab.host.paths import KERNEL, cache_dir, file_sha256

OWN_ARCHIVE = "FASTTRACK_KERNEL_ARCHIVE"
"""Environment variable: an archive of the user's own to build from."""

BASE_FILE = KERNEL / "base.toml"

NOT_UNPACKED = (
    "linux-*/arch/*/boot/dts",
    "linux-*/Documentation/devicetree",
    "linux-*/Documentation/translations",
    "linux-*/drivers/gpu/drm/amd/include",
    "linux-*/tools/perf",
    "linux-*/tools/testing/selftests",
)
"""A third of the files; no build of the lab reads them."""


@dataclass(frozen=True)
class BaseFile:
    """kernel/base.toml: which source, and how it is known to be the right one."""

    series: str
    debian_package: str
    debian_archive: Path
    debian_sha256: dict[str, str]
    version: str
    url: str
    sums_url: str

    @classmethod
    def load(cls, path: Path = BASE_FILE) -> BaseFile:
        """Read base.toml."""
        raw = tomllib.loads(path.read_text())
        debian, org = raw["debian"], raw["kernel_org"]
        return cls(
            series=raw["series"],
            debian_package=debian["package"],
            debian_archive=Path(debian["archive"]),
            debian_sha256=debian["sha256"],
            version=org["version"],
            url=org["url"],
            sums_url=org["sums_url"],
        )


@dataclass(frozen=True)
class Archive:
    """A verified archive of kernel source."""

    path: Path
    sha256: str


def _debian_version(package: str) -> str | None:
    if not shutil.which("dpkg-query"):
        return None
    query = ["dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}", package]
    done = subprocess.run(query, capture_output=True, text=True, check=False)
    status, _, version = done.stdout.partition(" ")
    return version if done.returncode == 0 and status == "installed" else None


def _from_debian(base: BaseFile) -> Archive | None:
    version = _debian_version(base.debian_package)
    if version is None or not base.debian_archive.is_file():
        return None
    found = file_sha256(base.debian_archive)
    wanted = base.debian_sha256.get(version)
    if wanted is None:
        # Not a version this project was tried with: the package's own checksums decide.
        done = subprocess.run(["dpkg", "-V", base.debian_package], capture_output=True, text=True, check=False)
        if done.stdout.strip() or done.returncode:
            raise LabError(
                f"{base.debian_archive} is not as its package {base.debian_package} installed it: reinstall it"
            )
    elif wanted != found:
        raise LabError(
            f"{base.debian_archive}: SHA-256 is {found}, base.toml says {wanted} for {version}: "
            f"reinstall {base.debian_package}"
        )
    return Archive(base.debian_archive, found)


def _fetch(url: str) -> bytes:
    # Slow to import, and wanted once at the most.
    import urllib.error  # noqa: PLC0415
    import urllib.request  # noqa: PLC0415

    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            data: bytes = answer.read()
            return data
    except (urllib.error.URLError, TimeoutError) as error:
        raise LabError(
            f"cannot download {url}: {error}. Install Debian's linux-source-6.12, "
            f"or set {OWN_ARCHIVE} to an archive of Linux 6.12"
        ) from error


def _listed_sum(sums: str, name: str) -> str:
    for line in sums.splitlines():
        match = re.fullmatch(r"([0-9a-f]{64})  (\S+)", line.strip())
        if match and match[2] == name:
            return match[1]
    raise LabError(f"the list of checksums names no {name}")


def _archive_name(base: BaseFile) -> str:
    return base.url.rsplit("/", 1)[-1]


def _from_kernel_org(base: BaseFile) -> Archive:
    name = _archive_name(base)
    target = cache_dir("downloads") / name
    wanted = cache_dir("downloads") / f"{name}.sha256"
    if not wanted.is_file():
        wanted.write_text(_listed_sum(_fetch(base.sums_url).decode(errors="replace"), name))
    if not target.is_file():
        ui.say(f"downloading {base.url} (about 145 MB)")
        partial = target.with_suffix(".part")
        partial.write_bytes(_fetch(base.url))
        partial.replace(target)
    found = file_sha256(target)
    if found != wanted.read_text():
        target.unlink()
        wanted_sum = wanted.read_text()
        wanted.unlink()
        raise LabError(f"{base.url}: SHA-256 is {found}, not {wanted_sum}; the file was removed, run the command again")
    return Archive(target, found)


def likely_archive(base: BaseFile) -> Path:
    """The file that find_archive() takes, unverified; it may not be there yet."""
    own = os.environ.get(OWN_ARCHIVE)
    if own:
        return Path(own)
    return base.debian_archive if base.debian_archive.is_file() else cache_dir("downloads") / _archive_name(base)


def find_archive(base: BaseFile) -> Archive:
    """The source's archive: the user's own, else Debian's package, else kernel.org."""
    own = os.environ.get(OWN_ARCHIVE)
    if own:
        path = Path(own)
        if not path.is_file():
            raise LabError(f"{OWN_ARCHIVE}={own}: there is no such file")
        return Archive(path, file_sha256(path))
    return _from_debian(base) or _from_kernel_org(base)


def version_of(source: Path) -> str:
    """The version of an unpacked source, by its Makefile."""
    fields = dict(
        re.findall(r"^(VERSION|PATCHLEVEL|SUBLEVEL) = (\d+)$", (source / "Makefile").read_text(), re.MULTILINE)
    )
    return f"{fields.get('VERSION')}.{fields.get('PATCHLEVEL')}.{fields.get('SUBLEVEL')}"


def unpack(archive: Archive, base: BaseFile, target: Path, left_out: tuple[str, ...] = NOT_UNPACKED) -> None:
    """Unpack the archive to TARGET unless it is there, without what the patterns LEFT_OUT name."""
    if (target / "Makefile").is_file():
        return
    ui.say(f"unpacking {archive.path.name}")
    partial = target.with_name(target.name + ".part")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    excludes = [f"--exclude={pattern}" for pattern in left_out]
    argv = ["tar", "-xf", str(archive.path), "-C", str(partial), "--strip-components=1", "--wildcards", *excludes]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        shutil.rmtree(partial, ignore_errors=True)
        raise LabError(f"cannot unpack {archive.path}: {done.stderr.strip()}")
    version = version_of(partial)
    if not version.startswith(base.series + "."):
        shutil.rmtree(partial, ignore_errors=True)
        raise LabError(f"{archive.path} is Linux {version}; the patches are for {base.series}")
    partial.rename(target)
