# SPDX-License-Identifier: GPL-2.0-only
"""The store of prepared images."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from fasttrack_lab.build.kernel.kbuild import Kernel
from fasttrack_lab.host.paths import GUEST, lock
from fasttrack_lab.inputs import phone
from fasttrack_lab.run import image
from fasttrack_lab.run.boot.uml import Uml

MIB = 1 << 20


def store(where: Path, count: int) -> list[Path]:
    """COUNT images of 1 MiB, the oldest first."""
    made = [where / f"{index:04}.img" for index in range(count)]
    for age, path in enumerate(made):
        path.write_bytes(bytes(MIB - 4096))
        os.utime(path, (age, age))
    return made


def test_the_least_recently_used_images_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "STORE_MIB", 3)
    made = store(tmp_path, 5)
    image.limit_store(made[-1])
    assert sorted(tmp_path.iterdir()) == made[2:]


def test_the_newest_image_stays_where_there_is_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "STORE_MIB", 0)
    made = store(tmp_path, 2)
    image.limit_store(made[0])
    assert list(tmp_path.iterdir()) == made[:1]


def test_runs_that_limit_the_store_at_once_do_not_meet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "STORE_MIB", 0)
    made = store(tmp_path, 64)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(image.limit_store, [made[-1]] * 8))
    assert list(tmp_path.iterdir()) == made[-1:]


def test_an_image_in_use_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTTRACK_CACHE", str(tmp_path))
    monkeypatch.setattr(image, "STORE_MIB", 0)
    monkeypatch.setattr(image, "_make", lambda *given: given[-1].write_bytes(bytes(MIB)))
    kernel = Kernel(tmp_path / "linux", "kernel", "um")
    with image.prepared(BASE, kernel, tmp_path, "guest", Uml()) as used:
        made = [used, *store(used.parent, 2)]
        image.limit_store(made[1])
        assert sorted(used.parent.iterdir()) == sorted(made[:2])
    image.limit_store(made[1])
    assert list(used.parent.iterdir()) == [made[1]]


def test_what_a_killed_process_has_left_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTTRACK_CACHE", str(tmp_path / "cache"))
    images = tmp_path / "images"
    images.mkdir()
    (newest,) = store(images, 1)
    left, under_way = images / "left.part", images / "made.part"
    for path in (left, under_way):
        path.write_bytes(b"half")
    with lock("image-made"):
        image.limit_store(newest)
    assert sorted(images.iterdir()) == [newest, under_way]


BASE = image.Contents(phone.load("s6"), (("gallery", 10101), ("update", 10201)), ({"path": "/data/a", "bytes": 4096},))


@pytest.mark.parametrize(
    "other",
    [
        replace(BASE, phone=replace(BASE.phone, name="n6")),
        replace(BASE, phone=replace(BASE.phone, fs="f2fs")),
        replace(BASE, apps=(("gallery", 10101), ("update", 10202))),
        replace(BASE, apps=BASE.apps[:1]),
        replace(BASE, files=()),
        replace(BASE, files=({"path": "/data/a", "bytes": 8192},)),
    ],
    ids=("phone", "file system", "an app's UID", "an app", "no file", "a file's length"),
)
def test_other_contents_are_another_image(other: image.Contents) -> None:
    """A run on an image of other contents would not be what it says."""
    assert other.key("kernel", "guest") != BASE.key("kernel", "guest")


@pytest.mark.parametrize(
    ("how", "ext4"), [(phone.FORMATS, ["mkfs.ext4", "/dev/sda"]), (phone.MOUNT_OPTIONS, "noatime,data=writeback")]
)
def test_who_formats_or_mounts_otherwise_has_another_image(
    monkeypatch: pytest.MonkeyPatch, how: dict[str, object], ext4: object
) -> None:
    before = BASE.key("kernel", "guest")
    monkeypatch.setitem(how, "ext4", ext4)
    assert BASE.key("kernel", "guest") != before


def test_another_mkfs_makes_another_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = set()
    monkeypatch.setattr(image, "GUEST_PATH", str(tmp_path))
    monkeypatch.setattr(image, "MKE2FS_CONF", tmp_path / "mke2fs.conf")
    for name, text in (("mkfs.ext4", "one"), ("mkfs.ext4", "another"), ("mke2fs.conf", "[defaults]")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
        keys.add(BASE.key("kernel", "guest"))
    assert len(keys) == 3


def test_mkfs_is_looked_for_where_the_guest_does() -> None:
    assert f'PATH: &str = "{image.GUEST_PATH}";' in (GUEST / "src/exec.rs").read_text()


def test_other_programs_make_another_image() -> None:
    keys = {BASE.key(kernel, guest) for kernel in ("one", "two") for guest in ("one", "two")}
    assert len(keys) == 4
    assert BASE.key("one", "one") == replace(BASE).key("one", "one")
