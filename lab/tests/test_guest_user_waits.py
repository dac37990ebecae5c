# SPDX-License-Identifier: GPL-2.0-only
"""Waits in user space for an app behind that owes pauses: with FastTrack off and on, in virtual time."""

from __future__ import annotations

import pytest
from guest_script import EXT4, FASTTRACK, QUEUE, Settings, ask, setting

from fasttrack_lab.host.side_by_side import each
from fasttrack_lab.run.runner import Tools

pytestmark = pytest.mark.guest

STOCK: Settings = (setting(QUEUE + "scheduler", "mq-deadline"),)

PAUSE_MS = 1000
TRY_AGAIN_MS = 100
"""As the guest's script."""


LOOK_MS = 30
"""Between two looks at who waits: stuck_ms, in ticks of 10 ms."""


def under_both(tools: Tools, what: str, **parameters: object) -> tuple[float, float]:
    """Milliseconds under stock, and under FastTrack."""

    def one(settings: Settings) -> float:
        return float(ask(tools, f"user_waits.{what}", data=EXT4, settings=settings, **parameters)["ms"])

    stock, fasttrack = each((STOCK, FASTTRACK), one, "settings")
    print(f"{what} {parameters}: {stock:.1f} -> {fasttrack:.1f} ms")
    return stock, fasttrack


def both(tools: Tools, peer: str, who: str, busy: bool) -> tuple[float, float]:
    return under_both(tools, "waits", peer=peer, who=who, busy=busy)


@pytest.mark.parametrize("who", ["front", "service"])
@pytest.mark.parametrize("peer", ["flock", "fcntl"])
def test_who_has_a_lock_of_a_file_that_others_want_does_not_pause(tools: Tools, peer: str, who: str) -> None:
    stock, fasttrack = both(tools, peer, who, busy=True)
    assert fasttrack < stock + 10


@pytest.mark.parametrize("who", ["front", "service"])
@pytest.mark.parametrize("peer", ["flock tried", "fcntl tried"])
def test_who_has_a_lock_that_others_try_to_get_does_not_pause(tools: Tools, peer: str, who: str) -> None:
    """SQLite does, for some seconds, and then its database is locked."""
    stock, fasttrack = both(tools, peer, who, busy=True)
    assert fasttrack < stock + TRY_AGAIN_MS + 10


@pytest.mark.parametrize("peer", ["flock", "fcntl"])
def test_whoever_gets_the_lock_meanwhile_does_not_pause(tools: Tools, peer: str) -> None:
    """Another app behind has asked for it first: it is the next that has it."""
    stock, fasttrack = under_both(tools, "waits_long", peer=peer, before=True, comes=False)
    assert fasttrack < stock + LOOK_MS


@pytest.mark.parametrize("peer", ["flock", "fcntl"])
def test_who_comes_to_the_front_while_it_waits_has_its_holder_go_on(tools: Tools, peer: str) -> None:
    stock, fasttrack = under_both(tools, "waits_long", peer=peer, before=False, comes=True)
    assert fasttrack < stock + 10


@pytest.mark.parametrize("peer", ["pipe", "futex"])
def test_the_kernel_does_not_know_whom_others_wait_for(tools: Tools, peer: str) -> None:
    """Beside a foreground that never rests: as long as the one pause after a call, however much that has written."""
    stock, fasttrack = both(tools, peer, "front", busy=True)
    assert stock + PAUSE_MS / 2 < fasttrack < stock + PAUSE_MS + 10


@pytest.mark.parametrize("peer", ["pipe", "futex"])
def test_a_foreground_that_only_waits_keeps_nobody_paused(tools: Tools, peer: str) -> None:
    """Who sleeps interruptibly does not work: pauses end with the idle window."""
    stock, fasttrack = both(tools, peer, "front", busy=False)
    assert fasttrack < stock + 20
