# SPDX-License-Identifier: GPL-2.0-only
"""Both sources on Debian's kernel as it is, in QEMU, against what the device was given: `make test-stock`.

The apps are those of test_guest_origin.py. What no tracepoint tells is unknown, and never wrong: pages that an app maps
and writes to while they are dirty from another one.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest
import stock_kernel
from collector_judge import BPF, DAC_READ_SEARCH, FOWNER, PERFMON, covers_its_bios, has_given_up, leaves_itself_out
from guest_script import FRONT
from layout_judge import judge_layout, of_disk
from origin_judge import Trace, judge
from traced_machine import SDA, Booted, Machine, has_the_sums_of_the_records, judged_below, rows

COLLECTOR = "FASTTRACK_TEST_COLLECTOR"
GAPS = {"shared_map": 32}
"""Way -> blocks that may be unknown: the half that the second app writes to by its map."""

LAYOUT_GAPS = {"inode table, read": 8}
"""What blocks of the file system's own hold -> how many may be unknown: what ext4 reads ahead is not marked as its own.
"""

WRITTEN, HOTPLUG, STALLED = 4000, 300, 20_000

DIRECT_AT_MOST = 4000
"""Instructions that a direct write may take more: for its bio, and for the events of its request."""


@pytest.fixture(scope="module")
def program(request: pytest.FixtureRequest) -> str:
    if request.config.getoption("--kernel") != "stock":
        pytest.skip("make test-stock has the kernel and the collector for it")
    return os.environ[COLLECTOR]


def boot(program: str, fs: str | None, work: str, *, counts: bool = False, **parameters: object) -> Booted:
    """Of Debian's kernel."""
    machine = Machine(stock_kernel.image(), "suite", stock_kernel.initrd())
    return Booted(machine, program, fs, work, counts=counts, **parameters)


@pytest.fixture(scope="module", params=["ext4", "f2fs"])
def traced(request: pytest.FixtureRequest, program: str) -> Booted:
    return boot(program, request.param, "suite", source="bpf")


def test_every_block_is_its_owner_s_or_in_a_gap(traced: Booted) -> None:
    trace = Trace.of(traced.records, SDA)
    verdicts = judge(traced.shown, trace, traced.written)
    print(sum(verdicts.values(), Counter()), {way: dict(counts) for way, counts in verdicts.items()})
    assert not trace.losses
    for way, counts in verdicts.items():
        assert set(counts) <= {"right", "unknown"}, (way, counts)
        assert counts["unknown"] <= GAPS.get(way, 0), (way, counts)
        assert counts["right"] >= 8, way


def test_every_block_of_the_file_system_is_what_the_disk_says(traced: Booted) -> None:
    """No tracepoint says who has changed a node of f2fs."""
    layout = judge_layout(of_disk(traced.shown, Trace.of(traced.records, SDA)))
    print({what: dict(counts) for what, counts in layout.items()})
    for what, counts in layout.items():
        assert set(counts) <= {"right", "unknown", "free"}, (what, counts)
        assert what == "node" or counts["unknown"] <= LAYOUT_GAPS.get(what, 0), (what, counts)
    metadata = ("node", "cp") if "node" in layout else ("journal", "inode table", "directory", "extents")
    assert all(layout[what]["right"] for what in metadata), layout


def test_segments_cover_their_bios(traced: Booted) -> None:
    covers_its_bios(traced.records)


def test_who_pays_and_syncs_is_known(traced: Booted) -> None:
    """All of them have ended when the collector looks."""
    tasks = {one["task"]: one for one in traced.records if one["record"] == "task"}
    known = {"call": 0, "share": 0}
    for one in traced.records:
        if one["record"] in known and "task" in one:
            assert "uid" in tasks[one["task"]], one
            known[one["record"]] += 1
    assert known["call"] > 50
    (session,) = (one for one in traced.records if one["record"] == "session")
    assert session["sources"] == "bpf ftrace"


STACKED_RIGHT = {"bpf": 1500, "tracefs": 150}
"""Source -> blocks that are right at least: for tracefs alone, which asks /proc, most apps have ended."""


@pytest.mark.parametrize("source", STACKED_RIGHT)
@pytest.mark.parametrize("target", ["linear", "crypt"])
def test_blocks_below_device_mapper_have_their_owner(program: str, target: str, source: str) -> None:
    """On the disk itself, where dm-crypt's workers send other pages: file and app are those of the device above."""
    booted = boot(program, None, "stacked", source=source, target=target)
    verdicts = judged_below(booted, target)
    total = sum(verdicts.values(), Counter())
    assert set(total) <= {"right", "unknown", "wrong"}, verdicts
    assert total["right"] >= STACKED_RIGHT[source], verdicts
    for way, counts in verdicts.items():
        gap = GAPS.get(way, 0)
        # Without BPF a page that an app writes to by its map stays who dirtied it: it is not seen.
        assert counts["wrong"] <= (gap if source == "tracefs" else 0), (way, counts)
        if source == "bpf":
            assert counts["unknown"] <= gap and counts["right"] >= 8, (way, counts)


def test_what_is_lost_is_counted(program: str) -> None:
    """By the programs' ring, beside what the rings of tracefs lose."""
    booted = boot(program, "ext4", "losses", count=WRITTEN)
    lost = [one for one in booted.records if one["record"] == "loss"]
    assert all(one["since"] <= one["time"] and "cpu" in one for one in lost)
    of_programs = sum(one["count"] for one in lost) - booted.shown["overrun"]
    bios = sum(one["record"] == "bio" and one["dev"] == booted.shown["dev"] for one in booted.records)
    print(booted.shown, of_programs, bios)
    # A few records are of what else goes on.
    assert WRITTEN <= of_programs + bios <= WRITTEN + 50
    assert of_programs > WRITTEN // 4
    # Of the kernel's types it has those that its programs need.
    assert booted.shown["resident_kib"]["VmHWM"] <= 16 << 10


def test_a_second_s_stall(program: str) -> None:
    """Of 20,000 I/Os nothing is lost with the default buffer; nor does it record itself, or keep its privileges."""
    booted = boot(program, "ext4", "stalled", count=STALLED)
    assert not booted.of("loss")
    assert sum(one["dev"] == booted.shown["dev"] for one in booted.of("bio")) == STALLED
    leaves_itself_out(booted.records)
    has_given_up(booted.shown["status"], DAC_READ_SEARCH | FOWNER | PERFMON | BPF)


@pytest.mark.parametrize("source", ["bpf", "tracefs"])
def test_a_processor_that_goes_and_comes(program: str, source: str) -> None:
    booted = boot(program, "ext4", "hotplug", source=source, count=HOTPLUG)
    bios = sum(one["record"] == "bio" and one["dev"] == booted.shown["dev"] for one in booted.records)
    assert bios == 3 * HOTPLUG
    assert not [one for one in booted.records if one["record"] == "loss"]


@pytest.mark.parametrize("fs", ["ext4", "f2fs"])
def test_top_has_the_sums_of_the_records(program: str, fs: str) -> None:
    """It gets them from the kernel, and no record with them."""
    booted = boot(program, fs, "tops", source="bpf")
    print(*booted.shown["top"])
    has_the_sums_of_the_records(booted, one_clock=False)


def test_top_has_the_sums_of_histograms(program: str) -> None:
    """Of events as the patched kernel has them: what a recording of the same events has, and nothing stays behind."""
    booted = boot(program, "ext4", "histograms", written=HOTPLUG)
    shown = booted.shown
    files = {one["file"]: one for one in booted.records if one["record"] == "file"}
    recorded: Counter[tuple[str, bool]] = Counter()
    reads = False
    for one in booted.records:
        # Numbers of bios are addresses, which come again: a bio's segments follow it.
        if one["record"] == "bio":
            reads = one["operation"] == "read"
        elif one["record"] == "segment":
            path = files.get(one["file"], {}).get("path", "unknown")
            recorded[path, reads] += one["bytes"] >> 10
    for how in ("sums", "events"):
        status, text, errors = shown[how]
        print(text, errors)
        assert status == 0 and "LOST" not in text
        # Where the kernel makes none, it is said, and each event is read.
        assert ("each event is read" in errors) == (how == "events")
        by_file = rows(text, "by file")
        for path, blocks in (("/small", 3), ("/large", 5)):
            assert by_file[path] == (recorded[path, True], recorded[path, False])
            assert by_file[path] == (blocks * 4, HOTPLUG * blocks * 4)
        assert rows(text, "by app")[f"mail (uid {FRONT})"][1] >= HOTPLUG * 8 * 4
        count, total_ms = rows(text, "calls")[f"fsync: mail (uid {FRONT})"]
        assert count >= 7 and total_ms == 3 * count
    # A collector that was killed has left its histograms to the next one; nobody leaves any.
    assert (shown["orphan"], shown["synthetic"], shown["rings"]) == ("", "", [])
    assert "ok       sums of the kernel for top, by histograms" in shown["doctor"][1]
    assert "have no names in it" in shown["doctor"][1] and "records already" in shown["sums"][2]


def test_faults(program: str) -> None:
    """Each says what is missing, and what to do."""
    shown = boot(program, "ext4", "faults").shown

    def ended(name: str, status: int, *texts: str) -> None:
        assert shown[name][0] == status, shown[name]
        for text in texts:
            assert text in shown[name][1], (text, shown[name][1])

    ended("doctor", 0, "source: BPF programs, with events of tracefs", "BPF source: who triggers a transaction")
    ended("kernel", 1, "the kernel is not patched")
    ended("no types", 1, "CONFIG_DEBUG_INFO_BTF")
    ended("doctor without types", 0, "BPF source: ", "CONFIG_DEBUG_INFO_BTF", "record uses tracefs alone")
    ended("auto without types", 0, "recording to")
    ended("doctor of a user", 1, "permission denied; run it as root", "CAP_BPF and CAP_PERFMON are needed")
    ended("doctor of a user", 1, "whether another fasttrack-trace records is not known: Permission denied")
    ended("record of a user", 1, "/run/state: Permission denied", "run it as root, or see --state")
    ended("ring of a user", 1, "/instances/fasttrack-trace-", "run it as root, or see fasttrack-trace doctor")
    ended("locked down", 1, "--source: tracepoint", "see fasttrack-trace doctor")
    assert shown["locked down"][1].count("\n") == 1, shown["locked down"]
    ended("doctor locked down", 1, "locked down for confidentiality", "lockdown=integrity")


def test_costs(program: str) -> None:
    """Instructions of the kernel for a direct write of 4 KiB, and for a page that is dirtied, by who records."""
    shown = boot(program, "ext4", "costs", counts=True).shown
    added = {name: {path: round(one[path] - shown["untraced"][path]) for path in one} for name, one in shown.items()}
    print(shown["untraced"], added)
    assert 0 < added["two events"]["direct"] < added["blktrace"]["direct"]
    assert 0 < added["bpf"]["direct"] <= DIRECT_AT_MOST
    # One program in place of an event with a name in it.
    assert 0 < added["bpf"]["page"] < added["tracefs"]["page"]
