# SPDX-License-Identifier: GPL-2.0-only
"""Where the foreground waits for the background on stock, and does not under FastTrack. Times are virtual.

FastTrack is held to the foreground's time alone, or to milliseconds: a quarter more than the worst of eight runs that
differ by a byte of the guest's memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Any

import pytest
from guest_script import EXT4, FRONT, FT, Data, Settings, ask, setting

from fasttrack_lab.host.side_by_side import each
from fasttrack_lab.inputs import policy
from fasttrack_lab.run import fio
from fasttrack_lab.run.runner import Tools

pytestmark = pytest.mark.guest


@dataclass(frozen=True)
class Times:
    """What the foreground's calls took under one policy, in milliseconds, and what else the script has shown."""

    alone: list[float]
    beside: list[float]
    shown: dict[str, Any]

    def __str__(self) -> str:
        worst = f"worst {max(self.alone):.2f} -> {max(self.beside):.2f} ms"
        return f"{worst}, sum {sum(self.alone):.2f} -> {sum(self.beside):.2f} ms"


def settings(name: str) -> Settings:
    """What the policy NAME sets on s6."""
    one = policy.load(name)
    values = one.values("s6")
    device = setting("/sys/module/mflash/parameters/scheduler", one.device_scheduler)
    return [*one.settings_json(values), device, *one.foreground_json(values, FRONT)]


STOCK, ON, NOBODY = settings("stock"), settings("fasttrack"), settings("fasttrack-nobody")


def play(tools: Tools, what: str, data: Data, *kinds: Settings, **parameters: object) -> list[Times]:
    """The script under each of the settings."""

    def one(chosen: Settings) -> Times:
        shown = ask(tools, what, data=data, settings=chosen, **parameters)
        return Times(shown.pop("alone"), shown.pop("beside"), shown)

    found = each(kinds, one, "policies")
    print(*found, sep="\n")
    return found


def on_both(tools: Tools, what: str, data: Data = EXT4, **parameters: object) -> list[Times]:
    """The script under stock and under FastTrack."""
    return play(tools, what, data, STOCK, ON, **parameters)


def requests(rw: str, size: int, depth: int) -> list[str]:
    """fio, which keeps so many requests at random places of the file target queued until it is killed."""
    options = ("--time_based", "--norandommap", "--buffer_pattern=7", "--allow_file_create=0")
    job = fio.Job("behind", "/run/data/target", rw, str(size), depth, "64m", runtime_s=1000, options=options)
    return fio.argv(job)


def test_direct_reclaim(tools: Tools) -> None:
    """Inversion 1: the background's pages fill the memory, and the foreground reclaims before it gets some.

    Counted, not timed: reclaim itself takes no virtual time. The reserve has its test in test_guest_page_cache.py.
    """
    stock, fasttrack = on_both(tools, "inversion_memory.direct_reclaim")
    print(stock.shown, fasttrack.shown)
    assert stock.shown["stalls"][0] == fasttrack.shown["stalls"][0] == 0
    assert fasttrack.shown["stalls"][1] * 4 < stock.shown["stalls"][1]
    assert max(fasttrack.beside) < 1


def test_dirty_limit(tools: Tools) -> None:
    """Inversion 2: the background has made so many pages dirty that whoever writes sleeps in balance_dirty_pages()."""
    stock, fasttrack = on_both(tools, "inversion_memory.dirty_limit")
    assert max(stock.beside) > 20 > 20 * max(fasttrack.beside)
    assert stock.shown["exempt"] == 0 < fasttrack.shown["exempt"]


def test_request_tags(tools: Tools) -> None:
    """Inversion 3: the background's requests have all of the I/O scheduler's tags."""
    stock, fasttrack = on_both(tools, "inversion_queue.request_tags", fio=requests("randwrite", 131072, 256))
    (taken, depth), (behind, _) = stock.shown["tags"], fasttrack.shown["tags"]
    assert taken == depth >= 2 * behind > 0
    assert sum(stock.beside) > 10 * sum(stock.alone)
    assert sum(fasttrack.beside) < 1.3 * sum(fasttrack.alone)


@pytest.mark.parametrize("what", ["reads", "writes"])
def test_requests_sent_just_before(tools: Tools, what: str) -> None:
    """Inversion 4: the device is full of the background's requests when the foreground reads."""
    stock, fasttrack = on_both(tools, "inversion_queue.sent_before", reads=what == "reads")
    assert sum(stock.beside) > 5 * sum(stock.alone)
    assert sum(stock.beside) > 2 * sum(fasttrack.beside)
    # One transfer on the link, or a program to suspend.
    assert max(fasttrack.beside) < 0.8


def test_journal(tools: Tools) -> None:
    """Inversion 5: others' handles, and the journal's blocks, in front of the foreground's fsync."""
    stock, fasttrack = on_both(tools, "inversion_commit.fsync")
    assert max(stock.beside) > 20 * max(stock.alone)
    assert sum(stock.beside) > 3 * sum(fasttrack.beside)
    # One in two or three finds a commit of others under way.
    assert median(fasttrack.beside) < 1.35 * median(fasttrack.alone)
    # The first one finds the device's cache full of others' data.
    assert max(fasttrack.beside) < 27


def test_fast_commit(tools: Tools) -> None:
    """Inversion 5: others' fast commits in front of the foreground's, and handles, open or reserved.

    Now and then one waits for write-back that is under way and has handles reserved, the first ones most of all.
    """
    stock, fasttrack = on_both(tools, "inversion_commit.fsync", Data("ext4", "fast_commit"))
    # How many of stock's calls meet that, memory decides.
    assert sum(stock.beside) > 20 * sum(stock.alone)
    assert median(stock.beside) > 3 * median(fasttrack.beside)
    assert sum(stock.beside) > 4 * sum(fasttrack.beside)
    assert median(fasttrack.beside) < 14
    assert max(fasttrack.beside) < 155


def test_handles_beside_fast_commits(tools: Tools) -> None:
    """Inversion 5: a fast commit stops all handles. Others' do that after the write-back under way."""
    stock, fasttrack = on_both(tools, "inversion_commit.makes", Data("ext4", "fast_commit"))
    assert sum(stock.beside) > 400
    assert sum(fasttrack.beside) < 10


def test_fast_commits_with_nobody_in_front(tools: Tools) -> None:
    """One of background's waits for no handles in front of others' then."""
    stock, nobody = play(tools, "inversion_commit.fsync", Data("ext4", "fast_commit"), STOCK, NOBODY)
    assert sum(nobody.beside) < 1.25 * sum(stock.beside)
    assert max(nobody.beside) < 1.25 * max(stock.beside)


def test_ordered_data(tools: Tools) -> None:
    """Inversion 5: others' data in front of the foreground's fsync, where a commit waits for that of all new blocks.

    The first one waits for what the background wrote into the transaction that was open.
    """
    stock, fasttrack = on_both(tools, "inversion_commit.fsync", Data("ext4", "", "dioread_lock"))
    assert median(stock.beside) > 50 * median(stock.alone)
    assert median(fasttrack.beside) < 1.5 * median(fasttrack.alone)
    assert sum(stock.beside) > 4 * sum(fasttrack.beside)


def test_checkpoint(tools: Tools) -> None:
    """Inversion 6: others' dirty data in front of the foreground's checkpoint, which waits for what is under way."""
    stock, fasttrack = on_both(tools, "inversion_commit.checkpoint", Data("f2fs"))
    assert median(stock.beside) > 20 * median(stock.alone)
    assert sum(stock.beside) > 5 * sum(fasttrack.beside)
    assert median(fasttrack.beside) < 11.5
    # The first one finds one of others under way, which is as long as stock's. How long, a page of memory decides.
    assert max(fasttrack.beside) < min(250, 0.75 * max(stock.beside))
    assert max(fasttrack.beside[1:]) < 63


def test_checkpoint_of_others(tools: Tools) -> None:
    """Inversion 6: a checkpoint that the background has begun has a lock that whoever opens a file needs."""
    stock, fasttrack = on_both(tools, "inversion_commit.checkpoint_of_others", Data("f2fs"))
    assert sum(stock.beside) > 15 * sum(fasttrack.beside)
    assert max(stock.beside) > 5 * max(fasttrack.beside)
    # Of 40 files.
    assert max(fasttrack.beside) < 42 and sum(fasttrack.beside) < 255


@pytest.mark.parametrize("kind", ["ext4", "f2fs"])
def test_the_first_sync(tools: Tools, kind: str) -> None:
    """Inversions 5 and 6: metadata that others have changed before the foreground's first sync."""
    stock, fasttrack = each(
        (STOCK, ON), lambda chosen: ask(tools, "inversion_commit.first", data=Data(kind), settings=chosen), "policies"
    )
    print(stock, fasttrack)
    # Who reads an inode after some were written ahead waits for nobody who writes one.
    assert stock["cold"] and fasttrack["cold"]
    assert fasttrack["sync_ms"] < 0.5 * stock["sync_ms"]


def test_fsync_on_f2fs(tools: Tools) -> None:
    """Inversion 6: others' writes, checkpoints and cache flushes in front of the foreground's fsync of a file.

    It waits for the node pages of all fsyncs before it, the background's too, which may be at the device already. For
    how many differs from call to call, and with a page of memory: of 64 calls the sum and the median do not.
    """
    stock, fasttrack = on_both(tools, "inversion_commit.fsync_without_checkpoint", Data("f2fs"))
    assert median(stock.beside) > 20 * median(stock.alone)
    assert sum(stock.beside) > 25 * sum(fasttrack.beside)
    assert median(fasttrack.beside) < 2 * median(fasttrack.alone)
    assert max(fasttrack.beside) < 52


def test_cache_flush(tools: Tools) -> None:
    """Inversion 8: the device writes out what everybody has in its cache before a flush ends."""
    stock, fasttrack = on_both(tools, "inversion_queue.cache_flush")
    assert median(stock.beside) > 10 * median(stock.alone)
    # The first one finds the cache full: the background may fill it while nobody is in front.
    assert fasttrack.beside[0] < 19
    # One each 5 ms: in between the device is the background's.
    assert sum(fasttrack.beside[1:]) < 1.4 * sum(fasttrack.alone[1:])


@pytest.mark.parametrize("mapped", [False, True], ids=["read", "mapped"])
def test_shared_files(tools: Tools, mapped: bool) -> None:
    """Inversion 9: pages that the background has read first go when it reads more, though the foreground uses them.

    What is mapped is in the cache already: its faults find it there.
    """
    stock, fasttrack = on_both(tools, "inversion_memory.shared_files", by_mapping=mapped)
    assert stock.shown["kept"] < 0.25 and fasttrack.shown["kept"] > 0.95
    assert sum(stock.beside) > 10 > 10 * sum(fasttrack.beside)
    assert sum(fasttrack.beside) < 1.25 * sum(fasttrack.alone)


@pytest.mark.parametrize(("parts", "request_kib"), [(8, 1024), (2, 256), (8, 256)], ids=["queued", "split", "no tag"])
def test_folio_that_is_read(tools: Tools, parts: int, request_kib: int) -> None:
    """Inversion 7: the page is locked until a request ends with which the background reads ahead.

    Its bio is one request (queued) or four (split), or has not got its requests (no tag).
    """
    stock, fasttrack = on_both(
        tools, "inversion_lock.read_ahead", parts=parts, request_kib=request_kib, fio=requests("randread", 131072, 24)
    )
    assert min(stock.beside) > 12
    # The 1 MiB of the page's bio, and what is in the device.
    assert max(fasttrack.beside) < 4.5


def test_file_that_the_flusher_is_at(tools: Tools) -> None:
    """Inversion 7: who removes a file waits until the flusher has left it, at the pace of whoever wrote the file."""
    stock, fasttrack = on_both(tools, "inversion_lock.removes")
    assert min(stock.beside) > 90
    assert max(fasttrack.beside) < 75


@pytest.mark.parametrize("parts", [2, 8], ids=["queued", "no tag"])
def test_folio_under_write_back(tools: Tools, parts: int) -> None:
    """Inversion 7: the page must not change until the bio of PARTS MiB ends with which the background writes it.

    All of its requests are in the queue (queued), or not yet (no tag).
    """
    stock, fasttrack = on_both(
        tools, "inversion_lock.write_back", parts=parts, request_kib=1024, fio=requests("randwrite", 524288, 16)
    )
    assert min(stock.beside) > 20 * parts
    # The bio is PARTS times 7 ms of the device's time.
    assert max(fasttrack.beside) < 9 * parts


def test_holder_of_a_lock(tools: Tools) -> None:
    """Inversion 7: who holds the lock of a shared file waits for a request tag."""
    stock, held, promoted = play(
        tools,
        "inversion_lock.lock_holder",
        EXT4,
        STOCK,
        [*ON, setting(FT + "promotion", 0), setting(FT + "stuck_ms", 0)],
        ON,
        fio=requests("randwrite", 131072, 64),
    )
    assert promoted.shown["depended"] > 0
    assert sum(stock.beside) > 1.5 * sum(promoted.beside)
    assert max(held.beside) > 1.4 * max(promoted.beside)
    # The holder's own request is one of those in the queue.
    assert max(promoted.beside) < 12.5


def test_own_write_back(tools: Tools) -> None:
    """An app that writes a large file, and besides reads (even) and syncs small files (odd).

    The fsyncs wait for what the app itself has in the device's cache.
    """
    stock, fasttrack = on_both(tools, "inversion_queue.own_write_back")
    assert max(fasttrack.beside[0::2]) < 6
    assert max(stock.beside[1::2]) > 2 * max(fasttrack.beside[1::2])
    assert sum(stock.beside[1::2]) > 2 * sum(fasttrack.beside[1::2])
    # One of them may wait for a commit with much of the file's: 39 to 234 ms (stock 490 to 560).
    assert max(fasttrack.beside[1::2]) < 292


def test_page_whose_reader_waits_for_metadata(tools: Tools) -> None:
    """Inversion 7: the page is locked by a background app that waits for the block that says where the page is."""
    stock, fasttrack = on_both(
        tools, "inversion_lock.read_with_its_map", Data("f2fs"), fio=requests("randread", 131072, 24)
    )
    # What is in the device when the foreground begins to wait stays there.
    assert sum(stock.beside[1:]) > 4 * sum(fasttrack.beside[1:])
    assert sum(fasttrack.beside[1:]) < 28
