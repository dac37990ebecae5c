# SPDX-License-Identifier: GPL-2.0-only
"""Finding and verifying the kernel's archive."""

from __future__ import annotations

import hashlib
import tarfile
from pathlib import Path

import pytest

from fasttrack_lab.build.kernel import source as base_module
from fasttrack_lab.build.kernel.source import Archive, BaseFile, find_archive, unpack
from fasttrack_lab.host.errors import LabError

DATA = b"an archive"
SUM = hashlib.sha256(DATA).hexdigest()


def base_file(**changes: object) -> BaseFile:
    fields = {
        "series": "6.12",
        "debian_package": "no-such-package",
        "debian_archive": Path("/nonexistent"),
        "debian_sha256": {},
        "version": "6.12.1",
        "url": "https://example.org/linux-6.12.1.tar.xz",
        "sums_url": "https://example.org/sha256sums.asc",
    }
    return BaseFile(**(fields | changes))  # type: ignore[arg-type]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, bytes]:
    monkeypatch.setenv("FASTTRACK_CACHE", str(tmp_path))
    monkeypatch.delenv(base_module.OWN_ARCHIVE, raising=False)
    pages = {
        "https://example.org/linux-6.12.1.tar.xz": DATA,
        "https://example.org/sha256sums.asc": f"-----BEGIN\n{SUM}  linux-6.12.1.tar.xz\n{'0' * 64}  other\n".encode(),
    }
    monkeypatch.setattr(base_module, "_fetch", lambda url: pages[url])
    return pages


def test_the_checked_in_file_is_whole() -> None:
    found = BaseFile.load()
    assert found.version.startswith(found.series + ".")
    assert found.url.endswith(f"linux-{found.version}.tar.xz")


def test_download_is_verified(server: dict[str, bytes], tmp_path: Path) -> None:
    found = find_archive(base_file())
    assert found == Archive(tmp_path / "downloads" / "linux-6.12.1.tar.xz", SUM)
    server.clear()
    assert find_archive(base_file()) == found


def test_wrong_download_is_refused_and_removed(server: dict[str, bytes], tmp_path: Path) -> None:
    server["https://example.org/linux-6.12.1.tar.xz"] = b"something else"
    with pytest.raises(LabError, match="SHA-256 is"):
        find_archive(base_file())
    assert not (tmp_path / "downloads" / "linux-6.12.1.tar.xz").exists()


def test_version_that_the_list_does_not_name(server: dict[str, bytes]) -> None:
    server["https://example.org/sha256sums.asc"] = b"nothing here\n"
    with pytest.raises(LabError, match="names no linux-6.12.1.tar.xz"):
        find_archive(base_file())


def test_own_archive_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(base_module.OWN_ARCHIVE, "/nonexistent/linux.tar")
    with pytest.raises(LabError, match="there is no such file"):
        find_archive(base_file())


def make_archive(path: Path, sublevel: int, patchlevel: int) -> Archive:
    makefile = path.parent / "Makefile"
    makefile.write_text(f"VERSION = 6\nPATCHLEVEL = {patchlevel}\nSUBLEVEL = {sublevel}\n")
    with tarfile.open(path, "w:xz") as tar:
        tar.add(makefile, "linux-6/Makefile")
    return Archive(path, "")


def test_only_the_series_is_unpacked(tmp_path: Path) -> None:
    unpack(make_archive(tmp_path / "good.tar.xz", 99, 12), base_file(), tmp_path / "good")
    assert "SUBLEVEL = 99" in (tmp_path / "good" / "Makefile").read_text()
    with pytest.raises(LabError, match=r"is Linux 6\.13\.1; the patches are for 6\.12"):
        unpack(make_archive(tmp_path / "bad.tar.xz", 1, 13), base_file(), tmp_path / "bad")
    assert not (tmp_path / "bad").exists()
