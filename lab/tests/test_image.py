# SPDX-License-Identifier: GPL-2.0-only
"""The store of prepared images."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fasttrack_lab.run import image

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
