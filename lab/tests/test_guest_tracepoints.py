# SPDX-License-Identifier: GPL-2.0-only
"""Each of FastTrack's events fires, says what has happened, and is there as often as its counter says.

One guest plays everything that makes an event: apps come to the front and leave it; what the front has read is spared
by reclaim; and a background app's writes, reads and write-back wait for an app in front that scrolls, which then waits
for a page of that write-back.
"""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from guest_script import ANDROID, BEHIND, EXT4, FRONT, FT, QUEUE, ask, setting

from fasttrack_lab.host.paths import CHECKOUT
from fasttrack_lab.run.runner import Tools

pytestmark = pytest.mark.guest

EVENTS: dict[str, Any] = tomllib.loads((CHECKOUT / "contract" / "tracepoints.toml").read_text())["fasttrack"]

PAUSE_MS, EXPIRE_MS = 300, 200
READ_MIB = 16
"""What the front has read when the background reads more than fits."""

SETTINGS = (
    setting(QUEUE + "scheduler", "fasttrack"),
    ANDROID,
    setting(FT + "enabled", 1),
    setting(FT + "background_pause_ms", PAUSE_MS),
    # Background requests go when they have waited for so long, and not before.
    setting(QUEUE + "iosched/background_depth", 0),
    setting(QUEUE + "iosched/background_expire_ms", EXPIRE_MS),
)


@dataclass(frozen=True)
class Event:
    """A line of the trace."""

    name: str
    time_s: float
    fields: dict[str, str]

    @classmethod
    def of_line(cls, line: str) -> Event:
        """LINE is 'TASK-PID [CPU] FLAGS TIME: NAME: KEY=VALUE ...'."""
        head, name, said = line.split(": ")
        return cls(name, float(head.split()[-1]), dict(pair.split("=") for pair in said.split()))

    def __getitem__(self, field: str) -> int:
        return int(self.fields[field])


@dataclass(frozen=True)
class Watched:
    """All events, and what the guest has shown besides."""

    events: list[Event]
    shown: dict[str, Any]

    def of(self, name: str) -> list[Event]:
        return [event for event in self.events if event.name == "fasttrack_" + name]

    def gained(self, counter: str) -> int:
        return int(self.shown["after"][counter] - self.shown["before"][counter])


@pytest.fixture(scope="module")
def watched(tools: Tools) -> Watched:
    """What happened in the guest."""
    shown = ask(tools, "every_event.watched", data=EXT4, settings=SETTINGS, read_mib=READ_MIB)
    return Watched([Event.of_line(line) for line in shown.pop("lines")], shown)


def overtaking(events: list[Event]) -> int:
    """Foreground requests that go to the device while an older one of another class waits."""
    oldest, count = math.inf, 0
    for event in reversed(events):
        if event.name not in ("fasttrack_dispatch", "fasttrack_promote"):
            continue
        arrival = event.time_s - event["waited_ns"] / 1e9
        if event.fields["class"] != "foreground":
            oldest = min(oldest, arrival)
        elif oldest < arrival:
            count += 1
    return count


def test_all_fire(watched: Watched) -> None:
    """With the fields of the contract, and none is lost."""
    assert watched.shown["buffer"]["overrun"] == watched.shown["buffer"]["dropped events"] == "0"
    assert {event.name for event in watched.events} == set(EVENTS)
    for event in watched.events:
        assert set(event.fields) == set(EVENTS[event.name]["fields"]), event
        # The guest's programs, which the foreground runs, are on a device of their own.
        assert event.fields.get("dev", "8:0") == "8:0" or event.name == "fasttrack_protect", event


def test_as_many_as_counted(watched: Watched) -> None:
    bios = Counter(event.fields["class"] for event in watched.of("bio"))
    counted = {
        "bios_neutral": bios["neutral"],
        "bios_background": bios["background"],
        "bios_foreground": bios["foreground"],
        "stuck": len(watched.of("stuck")),
        "dispatch_boosted": sum(event["boosted"] for event in watched.of("dispatch")),
        "dispatch_expired": sum(event["expired"] for event in watched.of("dispatch")),
        "dispatch_held": len(watched.of("hold")),
        "promoted": len(watched.of("promote")),
        "pauses": len(watched.of("pause")),
        "reclaim_protected": len(watched.of("protect")),
    }
    assert {name: watched.gained(name) for name in counted} == counted
    assert min(counted.values()) > 0


def test_foreground(watched: Watched) -> None:
    sizes = [(event["uids"], event["groups"], event["cgroups"]) for event in watched.of("foreground")]
    assert sizes == [(2, 0, 0), (2, 1, 0), (2, 1, 1), (2, 0, 1), (2, 0, 0), (1, 0, 0)]


def test_bio(watched: Watched) -> None:
    whose = {(event["uid"], event.fields["class"]) for event in watched.of("bio")}
    # Of a kernel thread's own nobody is the app. At the end root syncs what is left of those behind.
    assert whose == {
        (-1, "neutral"),
        (0, "neutral"),
        (BEHIND, "neutral"),
        (BEHIND, "background"),
        (FRONT, "foreground"),
    }
    causes = {(event["pid"], event.fields["cause"]) for event in watched.of("bio")}
    assert (watched.shown["front"], "read") in causes
    assert any(event["uid"] == BEHIND and event.fields["cause"] == "writeback" for event in watched.of("bio"))


def test_dispatch(watched: Watched) -> None:
    """The front's requests go at once, but for the promoted; the others' when they have waited long enough."""
    expired = [event for event in watched.of("dispatch") if event["expired"]]
    for event in expired:
        assert event.fields["class"] == "background" and event["waited_ns"] >= EXPIRE_MS * 1e6, event
    assert max(event["waited_ns"] for event in expired) // 1000 == watched.shown["after"]["dispatch_wait_max_us"]
    assert sum(event["boosted"] for event in watched.of("dispatch")) == overtaking(watched.events)
    waited = [event for event in watched.of("dispatch") if event.fields["class"] == "foreground"]
    assert sum(event["waited_ns"] > 1e6 for event in waited) == len(watched.of("promote")) - 1


def test_hold(watched: Watched) -> None:
    """Background has requests, none in the device, and goes on when they have waited long enough, if not before.

    What is held beside it is nobody's, as the flusher's metadata.
    """
    held = watched.of("hold")
    for event in held:
        assert (event["queued"] > 0 or event["uid"] == -1) and event["in_flight"] == 0 and event["pid"] > 0, event
        assert 0 < event["wake_ns"] / 1e9 - event.time_s < EXPIRE_MS / 1e3 + 1e-6, event
    # Of what the flusher writes back the task is the flusher, and the app is still whose it is.
    assert BEHIND in {event["uid"] for event in held}
    assert {event["pid"] for event in held} & set(watched.shown["behind"])


def test_promote(watched: Watched) -> None:
    """Both requests of the write-back; they go at once, and as the front's. A read for which init waits is neutral."""
    *promoted, neutral = watched.of("promote")
    assert neutral["bytes"] == 4096
    assert [event["bytes"] for event in promoted] == [1 << 20, 1 << 20]
    for event in promoted:
        (sent,) = [other for other in watched.of("dispatch") if other["sector"] == event["sector"]]
        assert (event.fields["class"], sent.fields["class"]) == ("background", "foreground")
        assert 9e6 < event["waited_ns"] <= sent["waited_ns"] < event["waited_ns"] + 1e5


def test_pause(watched: Watched) -> None:
    for event in watched.of("pause"):
        assert event["uid"] == BEHIND and event["pid"] in watched.shown["behind"], event
        assert 0 < event["paused_ns"] < (PAUSE_MS + 1) * 1e6, event
    longest = max(event["paused_ns"] for event in watched.of("pause"))
    assert longest // 1000 == watched.shown["after"]["pause_max_us"]


def test_protect(watched: Watched) -> None:
    """Pages of the file in their order, before reclaim looks at all that there is."""
    spared = [event for event in watched.of("protect") if event.fields["dev"] == "8:0"]
    assert {event["ino"] for event in spared} == {watched.shown["inode"]}
    indexes = {event["index"] for event in spared}
    assert len(indexes) > READ_MIB * 64 and indexes == set(range(len(indexes)))
    for event in spared:
        assert event["pages"] == 1 and 2 < event["priority"] <= 12, event
