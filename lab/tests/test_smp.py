# SPDX-License-Identifier: GPL-2.0-only
"""The stress in QEMU: what judges it, and how the machine keeps its storage."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from fasttrack_lab.run.boot.backend import BootSpec
from fasttrack_lab.run.boot.qemu import FIRMWARE_MIB, Qemu
from fasttrack_lab.run.script import init_script
from fasttrack_lab.smp import boots, workload


def test_the_guest_starts_with_the_workload() -> None:
    """The file that a boot takes as init is there, and plays both phases."""
    init = init_script(boots.GUEST.read_text())
    assert init.read_text() == boots.GUEST.read_text()
    assert {workload.play.__name__, workload.check.__name__} <= set(re.findall(r"^def (\w+)", init.read_text(), re.M))


def actor(beats: int = 5, gap_s: float = 1.0) -> dict[str, float]:
    return {"beats": beats, "starts": 1, "longest_gap_s": gap_s}


WORKED = dict.fromkeys((*boots.MECHANISMS, *boots.DISPATCHERS, *boots.RECLAIMERS), 1)


def test_an_actor_that_does_nothing_or_stands_still_is_a_problem() -> None:
    report = boots.Report({"a": actor(), "b": actor(beats=0), "c": actor(gap_s=workload.GAP_LIMIT_S + 1)}, WORKED, 1.0)
    assert report.problems() == ["b did nothing", f"c stood still for {workload.GAP_LIMIT_S + 1} s"]


def test_a_mechanism_that_does_nothing_is_a_problem() -> None:
    stats = WORKED | {"pauses": 0, "promoted": 0, "reclaim_protected": 0}
    lacks = [f"FastTrack counts no {name}" for name in ("pauses", "promoted", "reclaim_protected")]
    assert boots.Report({"a": actor()}, stats, 1.0).problems() == lacks[:2]
    # It keeps another elevator, and only it has to take pages from somebody.
    assert boots.Report({"a": actor()}, stats, 1.0, short=True).problems() == [lacks[0], lacks[2]]


def written(place: Path, last: int, acknowledged: int) -> None:
    content = bytearray(workload.RECORDS * workload.PAGE)
    for number in range(1, last + 1):
        start = number % workload.RECORDS * workload.PAGE
        content[start : start + workload.PAGE] = workload.record(number)
    (place / "records-a").write_bytes(content)
    (place / "a").write_bytes(acknowledged.to_bytes(8, "little"))


@pytest.mark.parametrize(("last", "acknowledged"), [(0, 0), (5, 5), (100, 100), (101, 100)])
def test_what_was_acknowledged_may_have_one_more_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: int, acknowledged: int
) -> None:
    monkeypatch.setattr(workload, "OUT", tmp_path)
    written(tmp_path, last, acknowledged)
    workload.verify(tmp_path, "a")


@pytest.mark.parametrize(("last", "acknowledged"), [(4, 5), (99, 100)])
def test_a_lost_record_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: int, acknowledged: int) -> None:
    monkeypatch.setattr(workload, "OUT", tmp_path)
    written(tmp_path, last, acknowledged)
    with pytest.raises(ValueError, match=f"record {acknowledged} of {acknowledged} of a is lost"):
        workload.verify(tmp_path, "a")


def test_the_storage_is_reserved_above_the_memory_and_below_the_firmwares_tables(tmp_path: Path) -> None:
    spec = BootSpec(tmp_path / "bzImage", tmp_path / "init", 512, tmp_path, None)
    machine = Qemu(storage_mib=768)
    assert {"memmap=768M$512M", "mflash.mem=768M@512M"} <= set(machine.command_line(spec))
    assert machine.memory_arguments(spec)[:2] == ["-m", str(512 + 768 + FIRMWARE_MIB)]
    assert not [word for word in Qemu().command_line(spec) if word.startswith(("memmap=", "mflash.mem="))]


def test_nobody_is_seen_to_have_the_pid_0() -> None:
    """A signal to it would go to all who play."""
    stage = workload.Stage("1")
    stage.actors = [workload.Actor("a", 10001, workload.storm)]
    stage.leaders[0] = os.getpid()
    child = os.fork()
    if not child:
        while True:
            stage.leaders[0] = os.getppid()
    seen = {pid for _ in range(100_000) for pid in stage.pids()}
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert seen == {os.getpid()}


def test_what_an_actor_does_is_shown() -> None:
    assert workload.state(os.getpid()).startswith("R in ")
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    assert workload.state(child) == "gone"
