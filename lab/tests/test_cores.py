# SPDX-License-Identifier: GPL-2.0-only
"""Each guest has a core, and waits for one."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from fasttrack_lab.host import cores, process
from fasttrack_lab.host.errors import Interrupted


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of a cache of their own, so that guests of other tests take none."""
    monkeypatch.setenv("FASTTRACK_CACHE", str(tmp_path))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {3, 5})


def test_no_two_have_the_same_core() -> None:
    with cores.hold() as one:
        with cores.hold() as other:
            assert {one, other} == {3, 5}
        with cores.hold() as again:
            assert again == other
    assert cores.count() == 2


def test_one_too_many_waits() -> None:
    got = threading.Event()

    def third() -> None:
        with cores.hold():
            got.set()

    with cores.hold():
        with cores.hold():
            waiting = threading.Thread(target=third)
            waiting.start()
            assert not got.wait(5 * cores.POLL_S)
        assert got.wait(10)
    waiting.join()


def test_waiting_ends_when_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    with cores.hold(), cores.hold():
        monkeypatch.setattr(process, "stopping", lambda: True)
        with pytest.raises(Interrupted), cores.hold():
            pass
