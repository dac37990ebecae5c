# SPDX-License-Identifier: GPL-2.0-only
"""The kernel's Debian packages: their options and their names. They are built by make deb-kernel."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from fasttrack_lab.build.kernel import package
from fasttrack_lab.build.kernel.tree import Changes
from fasttrack_lab.host.errors import LabError
from fasttrack_lab.host.paths import version


def test_both_configurations_have_fasttrack_and_the_small_one_has_modules() -> None:
    for small in (False, True):
        asked = package.asked_for(small=small)
        assert (asked["CONFIG_FASTTRACK"], asked["CONFIG_IOSCHED_FASTTRACK"]) == ("y", "y")
        assert "CONFIG_SCSI_MFLASH" not in asked
    # The fragment decides after the one for QEMU, and Debian's own options are not repeated.
    assert package.asked_for(small=True)["CONFIG_MODULES"] == "y"
    assert "CONFIG_MODULES" not in package.asked_for(small=False)


def test_no_patch_of_the_lab_is_in_a_person_s_kernel() -> None:
    taken = {path.name for path in Changes.of_checkout().only(package.PATCHES, ("",)).patches}
    left = {path.name for path in Changes.of_checkout().patches} - taken
    assert taken
    assert all("um-" in name or "mflash" in name for name in left), left


def test_packages_are_named_after_both_versions() -> None:
    words = package.make_words(Path("/source"), Path("/output"), "6.12.1")
    assert f"LOCALVERSION=-{version()}-fasttrack" in words
    assert f"KDEB_PKGVERSION=6.12.1-{version()}" in words
    assert len([word for word in words if word.startswith("LOCALVERSION=")]) == 1


def test_debian_s_configuration_is_read_or_said_to_be_missing(tmp_path: Path) -> None:
    path = tmp_path / "config.xz"
    with pytest.raises(LabError, match="linux-config-6.12"):
        package.debian_config(path)
    path.write_bytes(lzma.compress(b"CONFIG_X86=y\n"))
    assert package.debian_config(path) == "CONFIG_X86=y\n"
