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
    without = ("um-base", "um-off", "x86-cost-base")
    assert options.get("CONFIG_FASTTRACK", "n") == ("n" if name in without else "y")
    assert ("CONFIG_SCSI_MFLASH" in options) == (name not in ("x86-cost", "x86-cost-base", "x86-trace"))
    assert config.parse(config.as_text(options)) == options


def test_what_costs_are_compared_with_is_the_base_alone() -> None:
    changes = kbuild.TARGETS["x86-cost-base"].changes()
    assert changes.patches == () and changes.overlay_files() == {}
    ours, base = (config.merge(kbuild.TARGETS[name].fragment_paths()) for name in ("x86-cost", "x86-cost-base"))
    assert ours == base | {"CONFIG_FASTTRACK": "y", "CONFIG_IOSCHED_FASTTRACK": "y"}
    assert (ours["CONFIG_SMP"], ours["CONFIG_NR_CPUS"], ours["CONFIG_JUMP_LABEL"]) == ("y", "2", "y")
    assert "CONFIG_PROVE_LOCKING" not in ours
    phone = config.merge(kbuild.TARGETS["x86-cost-phone"].fragment_paths())
    assert set(phone) > set(ours) and not any("KUNIT" in name for name in phone)


def test_the_base_has_no_hook_of_fasttrack() -> None:
    changes = kbuild.TARGETS["um-base"].changes()
    touched = {name for patch in changes.patches for name in touched_by(patch.read_text())}
    assert {name for name in touched if "/um/" not in name} == {
        "drivers/scsi/Kconfig",
        "drivers/scsi/Makefile",
        "kernel/sched/core.c",  # the time of UML
    }
    assert all("mflash" in name or name == "include/linux/fasttrack_class.h" for name in changes.overlay_files())
