# SPDX-License-Identifier: GPL-2.0-only
"""Programs in front of programs, in guests: one small cell of a matrix, one point of a frontier."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from fasttrack_lab.compare import comparison
from fasttrack_lab.compare.records import Again, Record
from fasttrack_lab.run.runner import Tools
from fasttrack_lab.workloads import calls, frontier, matrix, programs

pytestmark = pytest.mark.guest

PLACES = (("s6", "ext4"),)
POLICIES = ("stock", "fasttrack")


def in_front(kind: str) -> programs.Program:
    """A kind that needs no files of its own to begin with."""
    (program,) = programs.fronts((kind,), 1)
    return replace(program, files=())


def saves_beside_writers(*, service: bool = False) -> matrix.Asked:
    """An editor's saves, and a program that fails."""
    return matrix.Asked(
        fronts=(in_front("save"), programs.Program("broken", "ls no-such-file")),
        behinds=tuple(programs.behinds(("write",))),
        places=PLACES,
        policies=POLICIES,
        seed=1,
        warmups_s=(2.0,),
        limits_s=(120.0, 300.0),
        service=service,
    )


def test_an_editor_saves_beside_writers(tools: Tools, tmp_path: Path) -> None:
    """FastTrack makes it bearable; a program that fails is named, and takes no other with it."""
    asked = saves_beside_writers()
    records = comparison.run_specs(tmp_path, asked.runs(), tools, Again.HOST, "matrix")
    saved, broken = matrix.rows(records, POLICIES)
    assert saved.alone is not None and saved.alone.calls == 30
    stock, ours = (saved.over_alone(rule) for rule in POLICIES)
    assert stock is not None and ours is not None and stock > 5 * ours
    assert not saved.worse
    assert broken.alone is None and [broken.over_alone(rule) for rule in POLICIES] == [None, None]
    lines = calls.failures(records)
    assert len(lines) == 3 and all("no-such-file" in line for line in lines)
    again = comparison.run_specs(tmp_path, asked.runs(), tools, Again.HOST, "matrix")
    assert again == records


def test_a_service_saves_beside_writers(tools: Tools, tmp_path: Path) -> None:
    """Somebody in front looks at pictures: the service is not held for that, and those behind are."""
    asked = saves_beside_writers(service=True)
    records = comparison.run_specs(tmp_path, asked.runs(), tools, Again.HOST, "matrix")
    saved, broken = matrix.rows(records, POLICIES)
    stock, ours = (saved.over_alone(rule) for rule in POLICIES)
    assert stock is not None and ours is not None and stock > 5 * ours
    assert not saved.worse
    assert broken.alone is None
    lines = calls.failures(records)
    assert len(lines) == 3 and all("the service ended with status" in line for line in lines)


def test_a_service_syncs_all_as_soon_as_on_stock(tools: Tools, tmp_path: Path) -> None:
    """Beside writers: what they have sent before the sync does not stay in the device until they pause."""
    asked = replace(saves_beside_writers(service=True), fronts=(in_front("sync"),), places=(("s6", "f2fs"),))
    records = comparison.run_specs(tmp_path, asked.runs(), tools, Again.HOST, "matrix")
    assert calls.failures(records) == []
    (cell,) = matrix.rows(records, POLICIES)
    stock, ours = (cell.over_alone(rule) for rule in POLICIES)
    assert stock is not None and ours is not None and ours < 1.1 * stock


def over_alone(
    tools: Tools,
    where: Path,
    program: programs.Program,
    behind: programs.Program,
    place: programs.Place,
    warmup_s: float,
) -> tuple[float, list[Record]]:
    """How many times as long it takes in its calls under FastTrack beside two of a kind, and the runs."""
    asked = matrix.Asked(
        fronts=(program,),
        behinds=(behind,),
        places=(place,),
        policies=("fasttrack",),
        seed=1,
        warmups_s=(warmup_s,),
        limits_s=(120.0, 300.0),
    )
    records = comparison.run_specs(where, asked.runs(), tools, Again.HOST, "matrix")
    assert calls.failures(records) == []
    (cell,) = matrix.rows(records, ("fasttrack",))
    over = cell.over_alone("fasttrack")
    assert over is not None
    return over, records


@pytest.mark.parametrize(
    ("front", "behind", "place", "most"),
    [
        # The first save waits for what was unpacked before there was anybody in front, the others do not.
        ("save", "untar", ("s6", "f2fs"), 2.6),
        # Its own pages do not wait until the flusher has written those of forty others.
        ("bigwrite", "many", ("s6", "f2fs"), 1.3),
        # Nor until an fsync that began before it has sent all of its file, with a mutex of f2fs's held.
        ("mmapwrite", "writesync", ("ufs31", "f2fs"), 2.5),
        # Nor does it wait for who has that mutex and sleeps for a request tag, the flusher or a background fsync.
        ("bigwrite", "writesync", ("ufs31", "f2fs"), 1.25),
        # A sync does not try again and again for the lock that a checkpoint has, and finds the next one there.
        ("type", "sqlite", ("ufs31", "f2fs"), 5.5),
        # Nor for a checkpoint that the flusher asks for when more is unpacked than is written.
        ("type", "untar", ("s6", "f2fs"), 2.0),
        # What background has sent long ago, and comes to the device's cache after a flush, is not part of it.
        ("wal", "direct", ("s6", "f2fs"), 1.15),
        # A node that is not an inode cannot be written ahead: it is no reason to write inodes that are in use.
        ("createslow", "randdirect", ("ufs31", "f2fs"), 2.0),
        # On eMMC the foreground's next request waits for all of the one that is there.
        ("save", "untar", ("n6", "ext4"), 4.5),
        # The device begins no program between reads that follow one another, and resumes none.
        ("coldread", "direct", ("s6", "ext4"), 1.2),
        # A block that is on its way to the journal can be changed.
        ("log", "untar", ("s6", "ext4"), 2.0),
        # Few of the metadata that the flusher sends are in the device at a time: one that is there cannot be changed.
        ("createslow", "untar", ("s6", "ext4"), 12.0),
        # Its pages are sent though others have reserved credits; no turn of the flusher opens thousands of files.
        ("save", "untar", ("s6", "ext4"), 1.9),
        # A sync of all that is dirty does not wait for what others write past the page cache.
        ("sync", "direct", ("n6", "ext4"), 2.5),
        ("sync", "direct", ("s6", "f2fs"), 4.0),
    ],
)
def test_what_others_make_dirty_is_not_waited_for(
    tools: Tools, tmp_path: Path, front: str, behind: str, place: programs.Place, most: float
) -> None:
    """Nor are inodes: of f2fs, whose checkpoints stop everybody."""
    (others,) = programs.behinds((behind,))
    over, _records = over_alone(tools, tmp_path, in_front(front), others, place, 4.0)
    assert over < most


CREATE = """
mkdir made && exec python3 -c '
import time
for number in range(1500):
    with open("made/%d" % number, "wb") as file:
        file.write(bytes(6000))
    time.sleep(0.002)'
"""


def test_small_files_that_nobody_syncs_take_no_longer_beside_unpacking(tools: Tools, tmp_path: Path) -> None:
    """A folder, and a file in it each 2 ms: as a whole, sleeps and all."""
    asked = replace(
        saves_beside_writers(),
        fronts=(programs.Program("create", CREATE),),
        behinds=tuple(programs.behinds(("untar",))),
        warmups_s=(4.0,),
    )
    records = comparison.run_specs(tmp_path, asked.runs(), tools, Again.HOST, "matrix")
    assert calls.failures(records) == []
    (cell,) = matrix.rows(records, POLICIES)
    stock, ours = (cell.over_alone(rule) for rule in POLICIES)
    assert stock is not None and ours is not None
    assert ours < 1.1 and ours < 1.25 * stock


UNPACK = """
mkdir source && (cd source && head -c 4500000 /dev/zero | split -b 3000 -a 4) && tar cf source.tar source
while n=$((n + 1)); do
    mkdir $n && tar xf source.tar -C $n && sleep 0.3
    [ $((n % 4)) != 0 ] || sync $n
    [ $n -le 8 ] || rm -r $((n - 8))
done
"""


def test_a_checkpoint_for_who_unpacks_does_not_stop_the_front(tools: Tools, tmp_path: Path) -> None:
    """An fsync of a folder of f2fs is a checkpoint, here of thousands of inodes."""
    others = programs.Program("unpack", UNPACK)
    over, _records = over_alone(tools, tmp_path, in_front("type"), others, ("s6", "f2fs"), 4.0)
    assert over < 2.0


GIT = "git -c core.fsync=all -c user.name=a -c user.email=a@example.org"
COMMIT = f"export HOME=$PWD; git init -q . && {GIT} add tree && {GIT} commit -q -m all"


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_commit_of_many_files_after_gigabytes_of_writes(tools: Tools, tmp_path: Path) -> None:
    """Git syncs each of 600 files. The apps behind have written 4 GB, and left some of the SLC buffer."""
    tree = tuple(file for file in programs.FRONT_FILES if file[0].startswith("tree/"))
    program = programs.Program("git", COMMIT, tree)
    (writers,) = programs.behinds(("write",))
    over, records = over_alone(tools, tmp_path, program, writers, ("ufs31", "f2fs"), 8.0)
    assert over < 1.5
    written = [record.result["device"]["write_bytes"] for record in records if record.result]
    assert max(written) > 4e9


def test_a_reader_that_thinks_leaves_the_writers_their_throughput(tools: Tools, tmp_path: Path) -> None:
    asked = frontier.Asked(
        kinds=("read",),
        thinks_ms=(30.0,),
        behinds=("write",),
        apps=(2,),
        places=PLACES,
        policies=POLICIES,
        seed=1,
        times_s=(2.0, 8.0, 300.0),
    )
    records = comparison.run_specs(tmp_path, asked.runs(), tools, Again.HOST, "frontier")
    assert calls.failures(records) == []
    stock, ours = frontier.rows(records, asked)
    assert stock.share is not None and stock.share < frontier.LITTLE
    assert stock.behind_to_stock == 1.0 and ours.behind_met
    assert stock.behind_to_idle is not None and 0.5 < stock.behind_to_idle < 1.2
    assert ours.p50 is not None and stock.p50 is not None and 1.0 <= ours.p50 < stock.p50
