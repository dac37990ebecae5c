# SPDX-License-Identifier: GPL-2.0-only
"""The page allocator, the page reclaimer and promotion on wait in a running kernel. Times are virtual."""

from __future__ import annotations

from typing import Any

import pytest
from guest_script import BEHIND, EXT4, FASTTRACK, FT, Data, Settings, ask, setting

from fasttrack_lab.host.side_by_side import each
from fasttrack_lab.run.runner import Tools

pytestmark = pytest.mark.guest


def play(tools: Tools, what: str, *settings: dict[str, str], data: Data = EXT4, **parameters: object) -> dict[str, Any]:
    """What a script shows on a fresh file system under FastTrack and more settings."""
    return ask(tools, what, data=data, settings=[*FASTTRACK, *settings], **parameters)


def play_each(tools: Tools, what: str, *kinds: Settings, **parameters: object) -> list[dict[str, Any]]:
    """The same under each of these settings."""
    return each(kinds, lambda settings: play(tools, what, *settings, **parameters), "settings")


def generations(name: str) -> dict[str, str]:
    return setting("/sys/kernel/mm/lru_gen/enabled", "7" if name == "mglru" else "0")


LRUS = pytest.mark.parametrize("lru", ["classic", "mglru"])


def test_background_pauses_and_is_bounded(tools: Tools) -> None:
    """A background writer stands still while the foreground works, for no longer than the bound at a time."""
    shown = play(tools, "pauses.bounded")
    assert shown["pauses"] >= 9
    # The bound, and what a timer and the first slice may add.
    assert 300_000 <= shown["pause_max_us"] <= 310_000
    assert 1 <= shown["written"] < shown["written_alone"] / 10


def test_background_pauses_while_the_foreground_has_been_idle_for_less_than_the_window(tools: Tools) -> None:
    """Reads for 30 ms, and 10 ms of nothing: with the default window background stands still, with none it does not."""
    shown = play(tools, "pauses.window")
    assert shown["0"] > 3 * shown["20000"]


def test_a_long_copy_owes_a_pause_for_each_segment(tools: Tools) -> None:
    """It pays for the first when it returns, and for the others at its next calls; never inside one."""
    shown = play(tools, "pauses.copies")
    for name, (pauses, within) in shown.items():
        # A page that is written counts twice, copied and made dirty. A read's segment ends with a batch of 31 pages.
        segments = (128 if "writes" in name else 64) * 1024 // int(name.split()[1])
        assert 0.8 * segments <= pauses <= segments + 4, (name, pauses)
        assert within == 0, (name, within)


def test_an_fsync_is_paid_for_once(tools: Tools) -> None:
    """It has paused after each segment: its next calls owe nothing."""
    shown = play(tools, "pauses.synced")
    assert 14 <= shown["pauses"] <= 20


def test_a_paused_task_sleeps_while_others_fork(tools: Tools) -> None:
    """It wakes for the end of a pause alone, of which there is one a second."""
    shown = play(tools, "pauses.forks")
    assert shown["wakes"] <= 20 + 20 * shown["seconds"], shown


def test_a_task_that_reclaims_pauses(tools: Tools) -> None:
    """Anonymous memory, without a page of a file: background uses up its segments by reclaim."""
    app, service = each([BEHIND, 1000], lambda uid: play(tools, "pauses.reclaims", uid=uid), "owners")
    assert app["filled"] == service["filled"] == 299
    assert app["stalls"] > 20
    # Four batches of reclaim are a segment.
    assert app["pauses"] >= app["stalls"] // 8 > app["spent"]
    assert service["pauses"] == 0


@pytest.mark.parametrize("fs", ["ext4", "f2fs"])
def test_write_back_goes_on_a_segment_at_a_time(tools: Tools, fs: str) -> None:
    """The flusher, and background syncs of a file, send a segment when the last is written; sync(2) takes no longer."""
    shown = play(tools, "pauses.write_back", data=Data(fs))
    segment = 512 // 4
    for who in "flusher", "fsync", "range":
        assert shown[f"free {who}"] > 4 * segment
        assert 0 < shown[f"held {who}"] <= 2 * segment
    assert shown["held sync(2)"] < 1.1 * shown["free sync(2)"]


@pytest.mark.parametrize(
    ("fs", "work", "where"),
    [
        ("ext4", "writes", ""),
        ("ext4", "reads", ""),
        ("ext4", "faults", ""),
        ("f2fs", "writes", ""),
        ("f2fs", "reads", ""),
        ("f2fs", "faults", ""),
        ("ext4", "syncs", "__fasttrack_fsync"),
        ("f2fs", "syncs", "__fasttrack_fsync"),
    ],
)
def test_paused_tasks_die_stop_and_freeze_at_once(tools: Tools, fs: str, work: str, where: str) -> None:
    """Whatever a background task pauses in. An fsync leaves its pause at once, and waits for what it has sent."""
    shown = play(tools, "pauses.ends", data=Data(fs), work=work, where=where)
    assert set(shown) == {"kill", "stop", "freeze", "off", "to the front"}
    for what, ms in shown.items():
        assert ms < 20, (what, ms)


def test_neutral_tasks_do_not_pause(tools: Tools) -> None:
    """A service that writes, reads, faults and syncs beside a foreground that works; an app in its place pauses."""
    shown = play(tools, "pauses.neutral")
    assert shown["service"] == 0
    assert shown["app"] > 4


@pytest.mark.parametrize("work", ["clean", "dirty"])
@LRUS
def test_reclaim_takes_background_pages_first(tools: Tools, lru: str, work: str) -> None:
    """What the foreground has read stays while a background app reads, or writes, three times what fits."""
    off = [generations(lru), setting(FT + "page_reclaimer", 0)]
    stock, protects = play_each(tools, "page_cache.background_first", off, off[:1], dirty=work == "dirty")
    assert stock["read"] == protects["read"] == 1
    assert stock["kept"] < 0.1 and stock["protected"] == 0
    assert protects["kept"] > 0.95 and protects["protected"] > 0
    # Another app is in front: the old one's pages are like any other. MGLRU has made them young meanwhile.
    assert protects["protected later"] == 0
    if lru == "classic":
        assert protects["left behind"] < 0.1


@pytest.mark.parametrize("fs", ["ext4", "f2fs"])
@LRUS
def test_what_the_foreground_has_listed_stays(tools: Tools, lru: str, fs: str) -> None:
    """Names, inodes and folders of 3,000 files, while a background app reads twice what fits: none is read again."""
    off = [generations(lru), setting(FT + "page_reclaimer", 0)]
    stock, protects = play_each(tools, "page_cache.listed", off, off[:1], data=Data(fs), files=3000)
    for shown in stock, protects:
        assert shown["seen"] == 9000
        # A folder of f2fs has pages of its own. Names and inodes, and so all of ext4's, outlive the page cache.
        assert shown["warm_ms"] < 0.001
        assert (shown["cold_ms"] > 0.1) == (fs == "f2fs")
    assert protects["after_ms"] < 0.001
    # Reclaim of others' pages takes no name or inode.
    assert (stock["after_ms"] > 0.1) == (fs == "f2fs")


@LRUS
def test_reclaim_takes_dirty_background_pages_before_the_foregrounds(tools: Tools, lru: str) -> None:
    """The app in front fills the memory: background's clean pages go, then its dirty ones, then the foreground's."""
    off = [generations(lru), setting(FT + "page_reclaimer", 0)]
    stock, ordered = play_each(tools, "page_cache.dirty_before_the_fronts", off, off[:1])

    def first(shown: dict[str, Any], *names: str) -> dict[str, float]:
        """What was there when a tenth of one of NAMES was first seen gone."""
        return next(kept for kept in shown["kept"] if any(kept[name] < 0.9 for name in names))

    for shown in stock, ordered:
        assert shown["dirty_kb"] > 110_000
        assert set(shown["kept"][0].values()) == {1.0}
    assert stock["waited"] == 0 < ordered["waited"]
    assert first(stock, "front_clean")["behind_clean"] > 0.9
    assert first(ordered, "behind_dirty")["behind_clean"] < 0.1
    assert first(ordered, "front_clean", "front_dirty")["behind_dirty"] < 0.1


@LRUS
def test_a_foreground_that_streams_leaves_cache_to_others(tools: Tools, lru: str) -> None:
    """A foreground that has read more than fits is protected up to its bound: the rest of the cache is for others."""
    kinds = [[generations(lru), setting(FT + "foreground_cache_percent", percent)] for percent in (30, 100)]
    bounded, not_bounded = play_each(tools, "page_cache.streams", *kinds)
    assert not_bounded["kept"] < 0.75
    assert bounded["kept"] > 0.9


@pytest.mark.parametrize("percent", [40, 60])
def test_the_bound_is_the_same_for_both_lrus(tools: Tools, percent: int) -> None:
    """The front has seven tenths of memory: it keeps its share of the cache, whatever others stream."""
    kinds = [[generations(lru), setting(FT + "foreground_cache_percent", percent)] for lru in ("classic", "mglru")]
    for shown in play_each(tools, "page_cache.more_than_its_bound", *kinds):
        for part in shown["parts"][1:]:
            assert 0.7 * percent < part * 100 < 1.02 * percent


def test_free_pages_are_kept_for_the_foreground(tools: Tools) -> None:
    kinds = [[setting(FT + "reserve_kb", kb)] for kb in (0, 24576)]
    none, kept = play_each(tools, "page_cache.free_pages", *kinds)
    assert none["low_kb"] < 20_000
    assert kept["low_kb"] > 24_000


def test_what_the_foreground_waits_for_is_promoted(tools: Tools) -> None:
    """The foreground asks for pages of a shared file while a background app's write-back of it is held."""
    held, promoted = play_each(tools, "page_cache.waited_for", [setting(FT + "promotion", 0)], [])
    assert held["promoted"] == 0 and promoted["promoted"] > 0
    assert promoted["ms"] * 5 < held["ms"]


@LRUS
def test_memory_that_is_all_the_foregrounds(tools: Tools, lru: str) -> None:
    """Nine tenths of the memory are the foreground's own, and both read: nothing is killed, all get on."""
    shown = play(tools, "page_cache.all_the_fronts", generations(lru))
    assert shown["status"] == [0, 0]
    assert shown["done"] == [2, 2]


@pytest.mark.parametrize("use", ["mapped", "dirty"])
@LRUS
def test_protected_pages_are_no_reason_to_kill(tools: Tools, lru: str, use: str) -> None:
    """Nine tenths of the memory are pages of the foreground's files, all protected: others' allocations get them."""
    shown = play(tools, "page_cache.all_protected", generations(lru), dirty=use == "dirty")
    assert (shown["status"], shown["done"], shown["killed"]) == (0, 1, 0)
    assert shown["protected"] > 0
