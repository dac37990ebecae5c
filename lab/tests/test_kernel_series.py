# SPDX-License-Identifier: GPL-2.0-only
"""The patches one after another: what is built with each, and who is named when it does not build."""

from __future__ import annotations

from pathlib import Path

import pytest

from fasttrack_lab.build.kernel import config, kbuild, series
from fasttrack_lab.build.kernel.tree import Changes, WorkTree
from fasttrack_lab.host.errors import LabError, UsageProblem

LAST = Path("0107-core.patch")


def test_parts_end_with_all_patches() -> None:
    changes = Changes.of_checkout()
    parts = list(series.parts(changes))
    assert [len(part.patches) for part in parts] == list(range(1, len(changes.patches) + 1))
    assert parts[-1] == changes


def test_a_patch_to_begin_with_is_there() -> None:
    with pytest.raises(UsageProblem, match=r"the last patch is 0300-.*, which comes before 0301"):
        series.check("0301")


def test_what_the_variants_ask_for() -> None:
    assert series.ON.asked()[series.OPTION] == "y" and series.OFF.asked()[series.OPTION] == "n"
    modules = series.MODULES.asked()
    assert modules[series.OPTION] == "y" and modules["CONFIG_IOSCHED_FASTTRACK"] == modules["CONFIG_EXT4_FS"] == "m"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What make was asked for; the tree has no option of FastTrack's yet, and one object does not compile."""
    calls: list[list[str]] = []

    def configure(_target: kbuild.Target, asked: dict[str, str], _source: Path, output: Path, _log: Path) -> None:
        left = {name: value for name, value in asked.items() if "FASTTRACK" not in name}
        (output / ".config").write_text(config.as_text(left))

    def run_make(argv: list[str], _log: Path) -> None:
        calls.append(argv)
        raise LabError("the kernel did not build: mm/a.c: error")

    monkeypatch.setattr(kbuild, "configure", configure)
    monkeypatch.setattr(kbuild, "run_make", run_make)
    return calls


def test_without_the_option_only_off_is_built_and_an_error_names_the_patch(
    made: list[list[str]], tmp_path: Path
) -> None:
    tree = WorkTree(tmp_path / "tree")
    assert series.ON.builds(tree, tmp_path, LAST, whole=False) is False
    assert made == []
    with pytest.raises(LabError, match=r"0107-core.patch, off: .*mm/a.c: error"):
        series.OFF.builds(tree, tmp_path, LAST, whole=False)
    assert made[0][-1] == "linux"


def test_with_all_patches_an_option_that_is_lost_is_an_error(made: list[list[str]], tmp_path: Path) -> None:
    tree = WorkTree(tmp_path / "tree")
    with pytest.raises(LabError, match=r"0107-core.patch, on: (.|\n)*CONFIG_FASTTRACK=y was asked for"):
        series.ON.builds(tree, tmp_path, LAST, whole=True)
    assert made == []
