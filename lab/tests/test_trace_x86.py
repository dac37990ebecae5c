# SPDX-License-Identifier: GPL-2.0-only
"""The patched kernel built for x86-64, in QEMU, whose `top` sums up in the kernel, by histograms: `make test-trace`.

Two processors, preemption, and the events of the patched kernel themselves; the disk keeps a log of all that it is
given.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import stock_kernel
from collector_judge import covers_its_bios
from guest_script import BEHIND, FASTTRACK, FRONT
from layout_judge import judge_layout, of_disk
from origin_judge import Trace, judge
from traced_machine import (
    IN_FLIGHT_KIB,
    SDA,
    Booted,
    Machine,
    cells,
    has_the_sums_of_the_records,
    judged_below,
    lost,
    pictures,
    rows,
)

from fasttrack_lab.build import guest_program
from fasttrack_lab.build.kernel import kbuild
from fasttrack_lab.host.paths import CHECKOUT

TARGET = "x86-trace"

WRITTEN = 300
"""Writes while a processor is there, is not, and is there again."""

BEFORE = 16
"""Runs of blocks that are sent between the begin of `top` and that of the collector."""

CLOCK = {"tsc_early_khz": "1000000"}
"""On a busy host the kernel may not find out how fast its time stamps are. No test here asks how long anything took."""

ROOM = 8192
"""Rows of a histogram."""

BLOCK_KIB, FILES, MORE_FILES = 4, 7000, 9000
"""As tests/stock/patched.py has them."""


@dataclass(frozen=True)
class Lab:
    """The kernel and the collector."""

    machine: Machine
    program: str


@pytest.fixture(scope="module")
def lab(request: pytest.FixtureRequest) -> Lab:
    if request.config.getoption("--kernel") != TARGET:
        pytest.skip("make test-trace has the kernel for it")
    program = guest_program.build(guest_program.COLLECTOR)
    return Lab(Machine(kbuild.build(TARGET).image, "patched", params=CLOCK), str(program))


@pytest.fixture(scope="module", params=["ext4", "f2fs"])
def traced(request: pytest.FixtureRequest, lab: Lab) -> Booted:
    return Booted(lab.machine, lab.program, request.param, "suite", settings=FASTTRACK, source="kernel")


def test_every_block_is_its_owner_s(traced: Booted) -> None:
    trace = Trace.of(traced.records, SDA)
    verdicts = judge(traced.shown, trace, traced.written)
    print(sum(verdicts.values(), Counter()), {way: dict(counts) for way, counts in verdicts.items()})
    assert not trace.losses
    for way, counts in verdicts.items():
        assert set(counts) == {"right"} and counts["right"] >= 8, (way, counts)


def test_every_block_of_the_file_system_is_what_the_disk_says(traced: Booted) -> None:
    layout = judge_layout(of_disk(traced.shown, Trace.of(traced.records, SDA)))
    print({what: dict(counts) for what, counts in layout.items()})
    for what, counts in layout.items():
        assert set(counts) <= {"right", "free"}, (what, counts)


def test_records_are_those_of_the_patched_kernel(traced: Booted) -> None:
    covers_its_bios(traced.records)
    (session,) = traced.of("session")
    assert session["sources"] == "ftrace kernel"
    counts = Counter(one["record"] for one in traced.records)
    print(counts)
    for kind in ("bio", "segment", "request", "transaction", "share", "call", "wait"):
        assert counts[kind] > 10, counts


@pytest.mark.parametrize("target", ["linear", "crypt"])
def test_blocks_below_device_mapper_have_their_owner(lab: Lab, target: str) -> None:
    """On the disk itself, where dm-crypt's workers send other pages: file and app are those of the device above."""
    booted = Booted(lab.machine, lab.program, None, "stacked", settings=FASTTRACK, source="kernel", target=target)
    for way, counts in judged_below(booted, target).items():
        assert set(counts) == {"right"} and counts["right"] >= 8, (way, counts)


@pytest.mark.parametrize("fs", ["ext4", "f2fs"])
def test_top_has_the_sums_of_the_records(lab: Lab, fs: str) -> None:
    booted = Booted(lab.machine, lab.program, fs, "tops")
    print(*booted.shown["top"], *booted.shown["doctor"])
    has_the_sums_of_the_records(booted, one_clock=True)
    assert (booted.shown["synthetic"], booted.shown["rings"]) == ("", [])
    status, doctor = booted.shown["doctor"]
    assert status == 0
    for text in ("source: the patched kernel", "ok       sums of the kernel for top, by histograms"):
        assert text in doctor


def with_boot_config(to: Path, text: str) -> Path:
    """An initrd with nothing in it but that, as bootconfig(8) of the kernel's tools makes it."""
    config = text.encode() + b"\0"
    archive = stock_kernel.archive({})
    config += bytes(-(len(archive) + len(config)) % 4)
    said = struct.pack("<II", len(config), sum(config) & 0xFFFFFFFF)
    to.write_bytes(archive + config + said + b"#BOOTCONFIG\n")
    return to


def test_from_boot(lab: Lab, tmp_path: Path) -> None:
    """With what docs/TRACE.md says: all that the disk was given is recorded, from before there was an init."""
    (text,) = re.findall(r"(?ms)^ftrace\.instance\.boot \{.*?^\}\n", (CHECKOUT / "docs" / "TRACE.md").read_text())
    initrd = with_boot_config(tmp_path / "initrd", text)
    machine = replace(lab.machine, initrd=initrd, params=CLOCK | {"bootconfig": "1"})
    booted = Booted(machine, lab.program, "ext4", "from_boot")
    assert booted.shown["rings"] == ["boot"] and "ftrace.instance.boot" in booted.shown["booted"]
    assert not booted.of("loss")
    covers_its_bios(booted.records)
    tasks = {one["task"]: one for one in booted.of("task")}
    bios = [one for one in booted.of("bio") if one["dev"] == SDA]
    written = sum(one["bytes"] for one in bios if one["operation"] in ("write", "write_zeroes"))
    first = bios[0]
    carriers = Counter((tasks[one["carrier"]]["name"], one["operation"]) for one in bios)
    print(carriers, written, booted.given)
    # The kernel has looked for partitions, of other disks meanwhile; then the disk got its file system.
    assert min(one["bio"] for one in booted.of("bio")) == 1
    assert (first["sector"], first["operation"]) == (0, "read")
    assert tasks[first["carrier"]]["kernel_thread"] and carriers["mkfs.ext4", "write"] > 100
    # It is unmounted when nobody records.
    assert 0 <= booted.given - written <= IN_FLIGHT_KIB << 10


def test_a_processor_that_goes_and_comes(lab: Lab) -> None:
    """The kernel's own books of who does what are by processor."""
    booted = Booted(lab.machine, lab.program, "ext4", "hotplug", source="kernel", count=WRITTEN)
    bios = [one for one in booted.of("bio") if one["dev"] == booted.shown["dev"]]
    (task,) = (one["task"] for one in booted.of("task") if one["name"] == "patched.py" and one["pid"] == 1)
    assert Counter(one["carrier"] for one in bios) == {task: 3 * WRITTEN}
    assert [one["sector"] for one in bios] == [index * 8 for index in range(WRITTEN)] * 3
    assert not booted.of("loss")


def test_more_files_than_a_histogram_has_room_for(lab: Lab) -> None:
    """Pictures and what they say is lost are all that was recorded; a histogram that is nearly full is emptied."""
    booted = Booted(lab.machine, lab.program, "ext4", "files")
    shown = booted.shown
    assert (shown["status"], shown["errors"], shown["synthetic"], shown["rings"]) == (0, "", "", [])
    assert not booted.of("loss")
    segments, missing, written = 0, 0, Counter[str]()
    for picture in pictures(shown["pictures"]):
        missing += lost(picture)
        segments += sum(int(count) for *_, count in cells(picture, "by type of block").values())
        written.update({path: kib for path, (_, kib) in rows(picture, "by file").items()})
    print(segments, missing)
    # The file system may do something before both are there.
    assert 0 <= segments + missing - len(booted.of("segment")) <= BEFORE
    # What a reader that has stopped leaves is more than there is room for.
    folders = Counter(path.split("/")[3] for path, kib in written.items() if path != "unknown" and kib == BLOCK_KIB)
    assert missing >= MORE_FILES - ROOM
    assert folders["more"] >= ROOM - missing
    # What finds no room is told; else it is what is written while a histogram is emptied.
    for uid in (FRONT, BEHIND):
        assert folders[str(uid)] >= 0.9 * FILES, folders
    assert set(written.values()) <= {BLOCK_KIB, written["unknown"]}
