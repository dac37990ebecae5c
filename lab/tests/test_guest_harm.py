# SPDX-License-Identifier: GPL-2.0-only
"""What stock makes nobody wait for, FastTrack does not either: the same with it off and on, in virtual time."""

from __future__ import annotations

from typing import Any

import pytest
from guest_script import (
    ANDROID,
    EXT4,
    FASTTRACK,
    FRONT,
    FT,
    QUEUE,
    STOCK,
    WITH_DEVICE,
    Data,
    Settings,
    ask,
    both,
    setting,
    under,
)

from fasttrack_lab.host.side_by_side import each
from fasttrack_lab.run.runner import Tools

pytestmark = pytest.mark.guest

NEUTRAL_EXPIRE_MS = 20
BACKGROUND_PAUSE_MS = 1000


def test_a_foreground_without_io_takes_nothing_from_others(tools: Tools) -> None:
    stock, fasttrack = both(tools, "harm.cached")
    assert fasttrack["mib"] >= 0.99 * stock["mib"]


@pytest.mark.parametrize("every_ms", [20, 5])
def test_a_foreground_that_uses_little_of_the_device_takes_little(tools: Tools, every_ms: int) -> None:
    """64 KiB each 20 or 5 ms are 2 and 7 % of the device; the reads are quicker than under stock."""
    stock, fasttrack = both(tools, "harm.seldom", every_ms=every_ms)
    assert fasttrack["mib"] >= 0.9 * stock["mib"]
    assert fasttrack["mean_us"] < 0.6 * stock["mean_us"]


def test_a_long_write_behind_lets_others_have_the_file_position(tools: Tools) -> None:
    _stock, fasttrack = both(tools, "harm.position")
    assert fasttrack["ms"] < 1


def test_a_splice_behind_lets_others_have_the_pipe(tools: Tools) -> None:
    """It reads from the storage with the pipe's lock: its read is promoted for who wants that."""
    stock, fasttrack = both(tools, "harm.pipe")
    assert fasttrack["longest_ms"] < 1.25 * stock["longest_ms"]


def test_a_keyboard_answers_beside_a_deep_queue(tools: Tools) -> None:
    stock, fasttrack = both(tools, "harm.keyboard")
    assert fasttrack["ms"] < max(1.25 * stock["ms"], 1.25 * NEUTRAL_EXPIRE_MS)


def test_music_behind_does_not_stop(tools: Tools) -> None:
    """Its reads are neutral: beside a deep queue in front they have their turn."""
    stock, fasttrack = both(tools, "harm.music")
    assert fasttrack["ms"] < max(1.25 * stock["ms"], 1.25 * NEUTRAL_EXPIRE_MS)


@pytest.mark.parametrize("phone_name", ["s6", "n6"])
def test_a_service_waits_for_its_turn_beside_a_deep_queue(tools: Tools, phone_name: str) -> None:
    """32 reads in front at a time: one of a service's requests goes in 20 ms. An fsync is three: data, log, record."""
    stock, fasttrack = both(tools, "harm.deep", phone_name=phone_name)
    assert fasttrack["read_ms"] < 1.25 * stock["read_ms"] + NEUTRAL_EXPIRE_MS
    assert fasttrack["sync_ms"] < 1.25 * stock["sync_ms"] + 3 * NEUTRAL_EXPIRE_MS


def test_a_service_that_floods_the_device_is_bounded(tools: Tools) -> None:
    """Direct writes of 512 KiB, 16 at a time, beside cold reads in front."""
    stock, fasttrack = both(tools, "harm.machine")
    assert fasttrack["mean_us"] < 0.6 * stock["mean_us"]


def test_a_timer_is_no_way_out_of_a_pause(tools: Tools) -> None:
    """An app behind with a signal each millisecond, and without: calls of 1 MiB beside a busy foreground."""
    _stock, fasttrack = both(tools, "harm.timer")
    assert fasttrack["with"] <= fasttrack["without"] + 5


def test_direct_writes_from_a_file_of_the_foregrounds_are_not_its_own(tools: Tools) -> None:
    """Its app waits for write-back of the pages that an app behind writes elsewhere."""
    shown = ask(tools, "harm.borrowed", data=EXT4, settings=WITH_DEVICE)
    print(shown)
    assert shown["own promoted"] <= shown["other promoted"]
    assert shown["own"] <= 1.1 * shown["other"] + 4


def test_a_wait_that_nobody_has_named_lifts_holds(tools: Tools) -> None:
    """A service waits for an inode's lock that an app behind has: its requests are held, but for those promoted."""

    def one(stuck_ms: int) -> Any:
        return ask(tools, "harm.lock_behind", data=EXT4, settings=WITH_DEVICE, stuck_ms=stuck_ms, deep=1)

    never, caught = each((0, 10), one, "stuck_ms")
    assert never["stuck"] == 0
    assert caught["stuck"] > 0
    assert caught["ms"] < 0.75 * never["ms"]


def test_a_foreground_that_floods_the_device_does_not_outrun_a_lift(tools: Tools) -> None:
    """The same, while the foreground always has requests queued: on stock the lock comes as late as half of that."""

    def one(settings: Settings) -> Any:
        return ask(tools, "harm.lock_behind", data=EXT4, settings=settings, stuck_ms=10, deep=64)

    ours, stock = each((WITH_DEVICE, STOCK), one, "settings")
    assert ours["stuck"] > 0
    assert ours["ms"] < 2.5 * stock["ms"]


@pytest.mark.parametrize("kind", ["ext4", "f2fs"])
def test_an_ordinary_fsync_of_a_service_lifts_nothing(tools: Tools, kind: str) -> None:
    """It takes a hundred times stuck_ms on a slow phone, and all that it waits for is under way."""
    shown = ask(tools, "harm.ordinary", data=Data(kind), phone_name="n5", settings=WITH_DEVICE)
    assert shown["ms"] > 50
    assert shown["stuck"] == 0


def test_a_service_that_is_throttled_lifts_nothing(tools: Tools) -> None:
    """It has more dirty pages than it may; nobody who is held back has anything that it waits for."""
    stock, fasttrack = both(tools, "harm.throttled")
    assert fasttrack["stuck"] == 0
    assert fasttrack["ms"] < stock["ms"]


def test_a_service_that_needs_room_in_the_log(tools: Tools) -> None:
    """Apps behind have filled the journal, and who wants a block of it waits for theirs to be written."""
    stock, fasttrack = both(tools, "harm.log_space")
    assert fasttrack["ms"] < 1.25 * stock["ms"]


@pytest.mark.parametrize("fs", ["ext4", "f2fs"])
def test_names_stay_in_memory_when_others_read_large_files(tools: Tools, fs: str) -> None:
    """3000 files at which the app in front has looked: their names and inodes are no more the first to go than else."""
    stock, fasttrack = both(tools, "harm.names", Data(fs))
    assert fasttrack["again_ms"] < 0.1 * fasttrack["first_ms"]
    assert fasttrack["again_ms"] < stock["again_ms"] + 1


@pytest.mark.parametrize("fs", ["ext4", "f2fs"])
def test_a_name_that_is_looked_up_behind_too_is_there_as_soon_as_on_stock(tools: Tools, fs: str) -> None:
    """Who waits for another one's lookup, or for an inode that another one reads, waits for somebody."""
    stock, fasttrack = both(tools, "harm.looks_up", Data(fs))
    assert fasttrack["mean_ms"] < 1.25 * stock["mean_ms"]
    assert fasttrack["longest_ms"] < 1.25 * stock["longest_ms"]


@pytest.mark.parametrize("why", ["pause", "request", "SysRq"])
def test_fasttrack_switches_itself_off(tools: Tools, why: str) -> None:
    """A pause and a held request that outlast eject_ms, and the key; each says who, where and behind whom."""
    shown = ask(tools, "harm.ejects", data=EXT4, settings=WITH_DEVICE, why=why)
    said = shown["said"]
    what, _who, pid, ms, _, *rest = said.split()
    where = {"pause": "page-cache", "request": "sda", "SysRq": "-"}[why]
    assert (what, rest) == (f"{why}:", ["at", where, "behind", "uid", str(FRONT)])
    # One of many threads waits for a request.
    assert int(pid) >= shown["behind"] if why == "request" else int(pid) == (shown["behind"] if why == "pause" else 0)
    assert int(ms) >= (0 if why == "SysRq" else 2000)
    assert [line for line in shown["log"] if said in line] == shown["log"] and len(shown["log"]) == 1
    assert shown["again"] == ["1", ""]


@pytest.mark.parametrize("stuck_ms", [10, 0])
def test_whom_no_lift_helps_lifts_nothing(tools: Tools, stuck_ms: int) -> None:
    """After a second; and at once when the catch-all is switched off."""
    shown = ask(tools, "harm.vain", data=EXT4, settings=WITH_DEVICE, stuck_ms=stuck_ms, tasks=1)
    assert shown["stuck"] == 1
    assert shown["stuck_vain"] == (1 if stuck_ms else 0)
    assert shown["later"] < 1.5 * shown["held"]
    if stuck_ms:
        assert shown["lifted"] > 2 * shown["held"]
    else:
        assert shown["lifted"] < 1.5 * shown["held"]


def test_hundreds_whom_no_lift_helps_do_not_lift_for_ever(tools: Tools) -> None:
    """More than are remembered: a dead server's clients. The table of them is full after a few seconds."""
    shown = ask(tools, "harm.vain", data=EXT4, settings=WITH_DEVICE, stuck_ms=10, tasks=320)
    assert shown["stuck_vain"] > 256
    assert shown["lifted"] > 2 * shown["held"]
    assert shown["later"] < 1.5 * shown["held"]


@pytest.mark.parametrize("lru_gen", [0, 7], ids=["classic", "mglru"])
def test_an_idle_foreground_pins_nothing(tools: Tools, lru_gen: int) -> None:
    """It has used 60 % of memory; an app behind goes round 70 %."""
    lru = setting("/sys/kernel/mm/lru_gen/enabled", lru_gen)
    stock, fasttrack = under(tools, "harm.idle_front", ((lru, *STOCK), (lru, *WITH_DEVICE)))
    assert fasttrack["mib"] >= 0.9 * stock["mib"]


@pytest.mark.parametrize("state", ["off", "nobody in front", "somebody in front"])
def test_services_have_their_io_priorities(tools: Tools, state: str) -> None:
    """As under mq-deadline: idle reads have what the others leave, and cost them nothing."""
    kinds = {
        "off": (*FASTTRACK, setting(FT + "enabled", 0)),
        "nobody in front": (setting(QUEUE + "scheduler", "fasttrack"), ANDROID, setting(FT + "enabled", 1)),
        "somebody in front": FASTTRACK,
    }
    stock, fasttrack = under(tools, "harm.priorities", (STOCK, kinds[state]))
    assert stock["idle"] < 0.05 * stock["normal"]
    assert fasttrack["idle"] < 0.05 * fasttrack["normal"]
    assert fasttrack["normal"] >= 0.95 * stock["normal"]
