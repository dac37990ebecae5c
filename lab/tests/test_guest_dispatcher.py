# SPDX-License-Identifier: GPL-2.0-only
"""The I/O dispatcher at work: tags, order, bounds, and what the device is told. Times are virtual."""

from __future__ import annotations

from typing import Any

import pytest
from guest_script import ANDROID, FASTTRACK, FRONT, FT, QUEUE, SERVICE, STOCK, Settings, ask, look, setting

from fasttrack_lab.host.side_by_side import each
from fasttrack_lab.run import fio
from fasttrack_lab.run.runner import Tools

pytestmark = pytest.mark.guest


def full(size: str, rw: str) -> list[str]:
    """A background app that keeps 256 requests of this size queued."""
    options = ("--offset=64m", "--time_based", "--buffer_pattern=7", "--allow_file_create=0")
    return fio.argv(fio.Job("behind", "/dev/sda", rw, size, 256, "192m", runtime_s=1.5, options=options))


def under(
    tools: Tools,
    what: str,
    *kinds: Settings,
    phone_name: str = "s6",
    size: str = "128k",
    rw: str = "randrw",
    **parameters: object,
) -> list[Any]:
    """The same while the background app works, under each of these settings."""

    def one(settings: Settings) -> Any:
        behind = full(size, rw)
        return ask(tools, f"dispatcher.{what}", settings=settings, phone_name=phone_name, behind=behind, **parameters)

    return each(kinds, one, "settings")


def iosched(name: str, value: int) -> Settings:
    """FastTrack with a knob of its own."""
    return [*FASTTRACK, setting(f"{QUEUE}iosched/{name}", value)]


@pytest.mark.parametrize("phone_name", ["s6", "n6"])
def test_foreground_reads_pass_a_full_queue(tools: Tools, phone_name: str) -> None:
    stock, fasttrack = under(tools, "reads", STOCK, FASTTRACK, phone_name=phone_name, count=30, think_s=0.005)
    assert fasttrack["mean_ms"] * 5 < stock["mean_ms"]
    # The background queues more than there are tags. The foreground finds free ones.
    busy, depth = fasttrack["busy"]
    assert busy <= 0.75 * depth < stock["busy"][0]
    # The class arrives at the device.
    assert int(fasttrack["device"]["read_foreground"]) >= 30
    assert int(fasttrack["device"]["read_background"]) > 0
    assert int(stock["device"]["read_foreground"]) == int(stock["device"]["read_background"]) == 0


def test_with_nobody_in_front_a_services_read_passes_an_apps_writes(tools: Tools) -> None:
    """As under mq-deadline: reads go first, whose ever the writes are."""
    asked: dict[str, Any] = {"size": "128k", "rw": "randwrite", "count": 20, "think_s": 0.01, "uid": SERVICE}
    nobody = [setting(QUEUE + "scheduler", "fasttrack"), ANDROID, setting(FT + "enabled", 1)]
    stock, fasttrack = under(tools, "reads", STOCK, nobody, **asked)
    assert int(fasttrack["device"]["write_background"]) > 0
    assert fasttrack["mean_ms"] < 1.1 * stock["mean_ms"]


WHO = f"""
def front():
    return read("/sys/kernel/debug/block/sda/sched/state").splitlines()[-1].split()[:2]

write("{QUEUE}scheduler", "fasttrack")
SHOWN["off"] = front()
write("{FT}enabled", "1")
SHOWN["nobody"] = front()
write("{FT}foreground_uids", "{FRONT}")
SHOWN["somebody"] = front()
write("{FT}foreground_uids", "\\n")
SHOWN["left"] = front()
write("{FT}foreground_uids", "{FRONT}")
write("{QUEUE}scheduler", "mq-deadline")
write("{QUEUE}scheduler", "fasttrack")
SHOWN["chosen again"] = front()
write("{FT}enabled", "0")
SHOWN["off again"] = front()
"""


def test_the_dispatcher_is_told_whether_somebody_is_in_front(tools: Tools) -> None:
    shown = look(tools, WHO)
    front = {name for name, state in shown.items() if state == ["front", "1"]}
    assert front == {"somebody", "chosen again"}
    assert all(state == ["front", "0"] for name, state in shown.items() if name not in front)


def test_background_is_not_starved(tools: Tools) -> None:
    """The foreground reads without a pause for longer than the bound; background goes on, one request at a time."""
    shares, expires = under(tools, "reads", FASTTRACK, iosched("background_depth", 0), count=8000, think_s=0)
    assert shares["behind_ios"] > 100
    assert expires["expired"] > 0


def test_the_window_is_how_long_the_foreground_still_works(tools: Tools) -> None:
    """Gaps of 0.1 ms: with the default window background is held in between, with none it is not."""
    held, let = under(tools, "reads", FASTTRACK, iosched("idle_window_us", 0), count=2000, think_s=0.0001)
    assert let["behind_ios"] > 1.3 * held["behind_ios"]


def test_the_share_is_what_background_has_of_a_busy_device(tools: Tools) -> None:
    little, half = under(tools, "share", *(iosched("background_share", share) for share in (5, 50)))
    print(little["per_s"], half["per_s"], little["mean_ms"], half["mean_ms"])
    assert half["per_s"] > 3 * little["per_s"]
    assert half["mean_ms"] > 1.1 * little["mean_ms"]


def test_the_reserve_is_what_background_leaves_of_the_devices_queue(tools: Tools) -> None:
    """Once a foreground app has been seen, and while it is idle. Of small requests: of large ones fewer are enough."""
    reserves = [iosched("foreground_reserve", entries) for entries in (0, 4, 12)]
    least, default, more = under(tools, "reserve", *reserves, size="16k")
    assert [least["free"], default["free"], more["free"]] == [0, 4, 12]
    (large,) = under(tools, "reserve", FASTTRACK)
    assert large["free"] == 16


def test_device_is_told_by_ioprio(tools: Tools) -> None:
    shown = ask(tools, "dispatcher.issued", settings=FASTTRACK)
    assert shown["front"] and all(" rt,0,0 " in line for line in shown["front"])
    assert shown["behind"] and not any(" rt," in line for line in shown["behind"])
    # `ionice -c3` of an app in front means what it says.
    assert shown["idle front"] and all(" idle," in line for line in shown["idle front"])
    # And so does what somebody has set for its cgroup.
    assert shown["idle"] and all(" idle," in line for line in shown["idle"])
    assert shown["restrict-to-be"] and not any(" rt," in line for line in shown["restrict-to-be"])


def test_requests_merged_on_insertion_are_counted_once(tools: Tools) -> None:
    """A batch in which a block follows another, but not at once, merges when the batch is inserted."""
    settings = [setting(QUEUE + "scheduler", "fasttrack"), ANDROID, setting(FT + "enabled", 1)]
    shown = ask(tools, "dispatcher.merged", settings=settings)
    assert shown["merged"] >= 3
    assert [line.split()[2] for line in shown["state"][:3]] == ["0", "0", "0"]
