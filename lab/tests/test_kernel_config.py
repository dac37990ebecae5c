# SPDX-License-Identifier: GPL-2.0-only
"""Configuration fragments and the check that nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from fasttrack_lab.build.kernel import config, kbuild
from fasttrack_lab.build.kernel.tree import touched_by
from fasttrack_lab.host.errors import LabError


def test_lost_option_is_said() -> None:
    asked = config.parse("CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=18\n# a comment\n")
    assert asked == {"CONFIG_A": "y", "CONFIG_B": "n", "CONFIG_C": "18"}
    assert config.lost(asked, config.parse("CONFIG_A=y\nCONFIG_C=18\n")) == []
    assert config.lost(asked, config.parse("CONFIG_B=y\nCONFIG_C=17\n")) == [
        "CONFIG_A=y was asked for, the built .config has n",
        "CONFIG_B=n was asked for, the built .config has y",
        "CONFIG_C=18 was asked for, the built .config has 17",
    ]


def test_fragments_that_disagree(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("CONFIG_A=y\n")
    two.write_text("# CONFIG_A is not set\n")
    assert config.merge([one, one]) == {"CONFIG_A": "y"}
    with pytest.raises(LabError, match="two: CONFIG_A=n, but another fragment says y"):
        config.merge([one, two])


@pytest.mark.parametrize("name", sorted(kbuild.TARGETS))
def test_every_target_has_consistent_fragments(name: str) -> None:
    options = config.merge(kbuild.TARGETS[name].fragment_paths())
    assert options["CONFIG_FASTTRACK"] == ("n" if name in ("um-base", "um-off") else "y")
    assert options["CONFIG_SCSI_MFLASH"] == "y"
    assert config.parse(config.as_text(options)) == options


def test_the_base_has_no_hook_of_fasttrack() -> None:
    changes = kbuild.TARGETS["um-base"].changes()
    touched = {name for patch in changes.patches for name in touched_by(patch.read_text())}
    assert {name for name in touched if "/um/" not in name} == {
        "drivers/scsi/Kconfig",
        "drivers/scsi/Makefile",
    }
    assert all("mflash" in name or name == "include/linux/fasttrack_class.h" for name in changes.overlay_files())
