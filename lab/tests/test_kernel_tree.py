# SPDX-License-Identifier: GPL-2.0-only
"""The work tree: patches and overlay over a base, and back."""

from __future__ import annotations

from pathlib import Path

import pytest

from fasttrack_lab.build.kernel import kbuild
from fasttrack_lab.build.kernel.tree import Changes, WorkTree, touched_by
from fasttrack_lab.host.errors import LabError

PATCH = """Subject: [PATCH] one line

---
diff --git a/mm/Makefile b/mm/Makefile
--- a/mm/Makefile
+++ b/mm/Makefile
@@ -1,2 +1,3 @@
 obj-y += a.o
+obj-y += b.o
 obj-y += c.o
"""
NEW_FILE = "--- /dev/null\n+++ b/mm/new.c\n@@ -0,0 +1 @@\n+int x;\n"


@pytest.fixture
def base(tmp_path: Path) -> WorkTree:
    root = tmp_path / "tree"
    (root / "mm").mkdir(parents=True)
    (root / "mm" / "Makefile").write_text("obj-y += a.o\nobj-y += c.o\n")
    (root / "mm" / "a.c").write_text("base\n")
    return WorkTree(root)


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    (tmp_path / "kernel" / "patches").mkdir(parents=True)
    (tmp_path / "kernel" / "overlay" / "mm").mkdir(parents=True)
    return tmp_path / "kernel"


def contents(tree: WorkTree) -> dict[str, str]:
    return {str(p.relative_to(tree.root)): p.read_text() for p in tree.root.rglob("*") if p.is_file()}


def test_patch_and_overlay_are_laid_over_and_taken_back(base: WorkTree, kernel: Path) -> None:
    before = contents(base)
    patch = kernel / "patches" / "1.patch"
    patch.write_text(PATCH)
    (kernel / "patches" / "2.patch").write_text(NEW_FILE)
    overlay = kernel / "overlay" / "mm" / "b.c"
    overlay.write_text("b\n")
    replaced = kernel / "overlay" / "mm" / "a.c"
    replaced.write_text("ours\n")
    assert base.sync(Changes.of_checkout(kernel)) == 4
    assert contents(base) == {
        "mm/Makefile": "obj-y += a.o\nobj-y += b.o\nobj-y += c.o\n",
        "mm/a.c": "ours\n",
        "mm/b.c": "b\n",
        "mm/new.c": "int x;\n",
    }
    for path in (*kernel.rglob("*.patch"), overlay, replaced):
        path.unlink()
    assert base.sync(Changes.of_checkout(kernel)) == 4
    assert contents(base) == before


def test_only_changed_files_are_written(base: WorkTree, kernel: Path) -> None:
    (kernel / "patches" / "1.patch").write_text(PATCH)
    overlay = kernel / "overlay" / "mm" / "b.c"
    overlay.write_text("b\n")
    base.sync(Changes.of_checkout(kernel))
    kept = (base.root / "mm" / "Makefile").stat().st_mtime_ns
    assert base.sync(Changes.of_checkout(kernel)) == 0
    overlay.write_text("changed\n")
    assert base.sync(Changes.of_checkout(kernel)) == 1
    assert (base.root / "mm" / "Makefile").stat().st_mtime_ns == kept


def test_patch_that_does_not_apply_is_named(base: WorkTree, kernel: Path) -> None:
    (kernel / "patches" / "0007-wrong.patch").write_text(
        PATCH.replace("+obj-y += b.o", "-obj-y += b.o").replace("+1,3", "+1,1").replace("-1,2", "-1,3")
    )
    with pytest.raises(LabError, match="0007-wrong.patch does not apply"):
        base.sync(Changes.of_checkout(kernel))
    assert (base.root / "mm" / "Makefile").read_text() == "obj-y += a.o\nobj-y += c.o\n"


def test_a_part_of_the_changes(kernel: Path) -> None:
    for name in ("0001-lab.patch", "0101-hook.patch"):
        (kernel / "patches" / name).write_text(PATCH)
    for name in ("a.c", "b.c"):
        (kernel / "overlay" / "mm" / name).write_text(name)
    changes = Changes.of_checkout(kernel)
    assert changes.only(("",), ("",)) == changes
    part = changes.only(("00",), ("mm/a",))
    assert [path.name for path in part.patches] == ["0001-lab.patch"]
    assert part.overlay_files() == {"mm/a.c": b"a.c"}
    with pytest.raises(LabError, match="begins with fs/"):
        changes.only(("00",), ("mm/a", "fs/"))


def test_files_that_a_patch_touches() -> None:
    assert touched_by(PATCH) == ["mm/Makefile"]
    assert touched_by(NEW_FILE) == ["mm/new.c"]


def test_the_key_is_of_the_tree_and_not_of_patches_names(base: WorkTree, kernel: Path) -> None:
    patch = kernel / "patches" / "0001-a.patch"
    patch.write_text(PATCH)
    (kernel / "overlay" / "Documentation").mkdir()
    (kernel / "overlay" / "Documentation" / "knob").write_text("a")

    def key() -> str:
        return kbuild._key(kbuild.TARGETS["um"], "base", base.wanted(Changes.of_checkout(kernel)))

    first = key()
    patch = patch.rename(patch.with_name("0002-b.patch"))
    patch.write_text("another message\n" + PATCH)
    (kernel / "overlay" / "Documentation" / "knob").write_text("b")
    assert key() == first
    (kernel / "overlay" / "mm" / "b.c").write_text("b")
    second = key()
    patch.write_text(PATCH.replace("b.o", "d.o"))
    assert len({first, second, key()}) == 3
