# SPDX-License-Identifier: GPL-2.0-only
"""What the paper says of its figures, number by number, and how each statement is checked.

F9 to F18 are from Hahn et al., FastTrack (USENIX ATC 2018), and from the authors' slides (NVRAMOS 2018).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from fasttrack_lab.compare.records import BASELINE_POLICY as STOCK
from fasttrack_lab.compare.records import FOREGROUND_ONLY
from fasttrack_lab.figures.claims import CHANGE, NORMALISED, SECONDS, SLOWDOWN, Claim, Finding, Value, mean, numbers
from fasttrack_lab.figures.measured import RESPONSE_S, TO_ALONE, TO_STOCK, Measured
from fasttrack_lab.inputs import phone as phones_of_lab
from fasttrack_lab.inputs.background_sets import MANY

LAUNCH, SWITCH, LOAD = "gallery-launch", "camera-switch", "game-load"
UPDATE, BACKUP, UPLOAD = "update", "backup", "photo-upload"
COMBINATIONS = tuple(product((LAUNCH, SWITCH, LOAD), (UPDATE, BACKUP)))
PA, PR, ID, MINUS, FASTTRACK = "pa", "pr", "id", "fasttrack-minus", "fasttrack"

MINUS_CHANGE = -0.74
READS_AGAINST_WRITES_S = {FOREGROUND_ONLY: 0.45, STOCK: 3.55}
SLIDES_CHANGE = {LAUNCH: -0.87, SWITCH: -0.61}
CAMERA_UPDATE_S = {MINUS: 2.53, FASTTRACK: 0.75, FOREGROUND_ONLY: 0.6}
MANY_TO_ALONE = {2: 1.1, 6: 1.27}
"""With FastTrack."""
SIX_STOCK_TO_ALONE = 24.2
SIX_CHANGE = -0.94


def _change(measured: Measured, scenario: str, phone: str, policy: str, background: str) -> float:
    """Response time against stock: -0.74 is 74 % less."""
    return measured.stated(scenario, phone, policy, background, TO_STOCK) - 1


def mean_change(
    measured: Measured, phones: Iterable[str], policy: str, combinations: Iterable[tuple[str, str]] = COMBINATIONS
) -> float:
    """The mean change over phones and combinations."""
    pairs = product(combinations, phones)
    ratios = (measured.stated(scenario, phone, policy, behind, TO_STOCK) for (scenario, behind), phone in pairs)
    return mean(ratios) - 1


def _times(measured: Measured, phone: str, background: str, paper: dict[str, float]) -> Finding:
    """Times of the switch by policy."""
    return numbers(
        Value(policy, there, measured.stated(SWITCH, phone, policy, background, RESPONSE_S), SECONDS)
        for policy, there in paper.items()
    )


def _f9(measured: Measured, phones: tuple[str, ...]) -> Finding:
    return _times(measured, phones[0], BACKUP, READS_AGAINST_WRITES_S)


def _f10(measured: Measured, phones: tuple[str, ...]) -> Finding:
    return numbers([Value(MINUS, MINUS_CHANGE, mean_change(measured, phones, MINUS), CHANGE)])


def _f11(measured: Measured, phones: tuple[str, ...]) -> Finding:
    return numbers([Value(ID, -0.11, mean_change(measured, phones, ID), CHANGE)])


def _f12(measured: Measured, phones: tuple[str, ...]) -> Finding:
    texts, right = [], True
    for background, expected in ((UPDATE, PA), (BACKUP, PR)):
        pairs = [pair for pair in COMBINATIONS if pair[1] == background]
        changes = {part: mean_change(measured, phones, part, pairs) for part in (PA, PR, ID)}
        ranked = sorted(changes, key=changes.__getitem__)
        right &= changes[expected] < min(0.0, *(change for part, change in changes.items() if part != expected))
        texts.append(f"{background}: " + ", ".join(f"{part} {CHANGE.show(changes[part])}" for part in ranked))
    here = "; ".join(texts)
    return Finding(
        right,
        here,
        f"here, the most helpful first, {here}; in the paper {PA} leads under {UPDATE}, {PR} under {BACKUP}",
    )


def _f13(measured: Measured, phones: tuple[str, ...]) -> Finding:
    slowdowns: dict[str, list[float]] = {"eMMC": [], "UFS": []}
    for (scenario, background), phone in product(COMBINATIONS, phones):
        value = measured.stated(scenario, phone, MINUS, background, TO_ALONE)
        slowdowns[phones_of_lab.load(phone).storage].append(value)
    every = [value for values in slowdowns.values() for value in values]
    slower = sum(value > 1 for value in every)
    emmc, ufs = mean(slowdowns["eMMC"]), mean(slowdowns["UFS"])
    here = f"slower in {slower} of {len(every)}; eMMC {emmc:.2f}x, UFS {ufs:.2f}x"
    why = (
        f"slower than foreground-only in {slower} of {len(every)} combinations here, in all in the paper; on average "
        f"{emmc:.2f}x on eMMC and {ufs:.2f}x on UFS here, UFS the lower in the paper"
    )
    return Finding(slower == len(every) and ufs < emmc, here, why)


def _f14(measured: Measured, phones: tuple[str, ...]) -> Finding:
    return numbers(
        Value(scenario, SLIDES_CHANGE[scenario], _change(measured, scenario, phones[0], MINUS, background), CHANGE)
        for scenario, background in ((LAUNCH, UPDATE), (SWITCH, UPLOAD))
    )


def _f15(measured: Measured, phones: tuple[str, ...]) -> Finding:
    return _times(measured, phones[0], UPDATE, CAMERA_UPDATE_S)


def _f16(measured: Measured, phones: tuple[str, ...]) -> Finding:
    ratio = measured.stated(SWITCH, phones[0], FASTTRACK, BACKUP, TO_ALONE)
    return numbers([Value(FASTTRACK, 1.0, ratio, NORMALISED)])


def _f17(measured: Measured, phones: tuple[str, ...]) -> Finding:
    return numbers(
        Value(f"{count} apps", there, measured.stated(SWITCH, phones[0], FASTTRACK, MANY[count], TO_ALONE), NORMALISED)
        for count, there in MANY_TO_ALONE.items()
    )


def _f18(measured: Measured, phones: tuple[str, ...]) -> Finding:
    change = _change(measured, SWITCH, phones[0], FASTTRACK, MANY[6])
    stock = measured.stated(SWITCH, phones[0], STOCK, MANY[6], TO_ALONE)
    return numbers([Value(FASTTRACK, SIX_CHANGE, change, CHANGE), Value(STOCK, SIX_STOCK_TO_ALONE, stock, SLOWDOWN)])


F9 = Claim(
    "F9",
    "Figure 6",
    "On the S6 with stock, leaving the camera takes 0.45 s alone and 3.55 s while the background reads.",
    "0.45 s -> 3.55 s",
    _f9,
    "Alone it takes as long. How long stock takes follows from how much the background reads: beside two backups "
    "at once it takes 7 s.",
)
F10 = Claim(
    "F10",
    "Figure 10",
    "FastTrack without the device's scheduler (fasttrack-minus) takes 74 % less time than stock, on average.",
    "-74 %",
    _f10,
    "Stock is not slow enough: without any background the same cells take little less. A heavier background would "
    "move this number and nothing else.",
)
F11 = Claim(
    "F11",
    "Figure 10",
    "The I/O dispatcher alone (id) takes 11 % less time on average.",
    "-11 %",
    _f11,
    "Stock's elevator is mq-deadline, where the foreground waits for tags and behind background's requests; the "
    "paper's kernel was 3.10, and its block layer cost next to nothing. An elevator that keeps background out of "
    "the queue is most of the cure here, with promotion on wait or without.",
)
F12 = Claim(
    "F12",
    "Figure 10",
    "Of the three parts alone, the page allocator (pa) helps most under update, the page reclaimer (pr) under backup.",
    "pa first; pr first",
    _f12,
    "The dispatcher alone already takes away nearly all waiting (see F11), and leaves little to the other two. "
    "The foregrounds of this figure read every page once, from storage: pages that the reclaimer keeps for them "
    "are not read again.",
)
F13 = Claim(
    "F13",
    "Figure 10",
    "fasttrack-minus is still slower than foreground-only everywhere; it is nearer to it on UFS than on eMMC.",
    "slower in all; UFS below eMMC",
    _f13,
    "Beside an update the camera is faster than alone: the update's dirty pages wake write-back early, which then "
    "has written part of the video before the touch.",
)
F14 = Claim(
    "F14",
    "slides 30, 31",
    "fasttrack-minus takes 87 % less time than stock for a launch beside an update, 61 % less for a switch beside a "
    "photo upload.",
    "-87 %; -61 %",
    _f14,
    "Nothing can be gained where nothing is lost: beside a photo upload, stock takes hardly longer for the switch "
    "than alone. For the launch see F10.",
)
F15 = Claim(
    "F15",
    "Figure 12",
    "On the N6, the switch beside an update takes 2.53 s without the device's scheduler, 0.75 s with it, 0.6 s alone.",
    "2.53, 0.75, 0.60 s",
    _f15,
    "One background request at a time is all that the dispatcher lets onto an eMMC, so there is little for the "
    "device to put in order. Why it is faster than alone: see F13.",
)
F16 = Claim("F16", "Figure 12", "Beside a backup, FastTrack equals foreground-only.", "1.00x", _f16, "See F13.")
F17 = Claim(
    "F17",
    "Figure 13",
    "With FastTrack, the switch takes 1.1 times foreground-only beside two background apps, 1.27 times beside six.",
    "1.10x -> 1.27x",
    _f17,
    "It is faster than the paper's: dispatcher, promotion and pauses of write-back leave no wait that grows with "
    "the number of apps. Why it is faster than alone: see F13.",
)
F18 = Claim(
    "F18",
    "Figure 13",
    "Beside six background apps, FastTrack takes 94 % less time than stock, which takes up to 24.2 times "
    "foreground-only.",
    "-94 %; stock 24.2x",
    _f18,
    "Our six apps are heavier for stock than the paper's, which it does not name: scan and sync write many small "
    "files and sync them.",
)
