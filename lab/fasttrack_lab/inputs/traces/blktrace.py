# SPDX-License-Identifier: GPL-2.0-only
"""Block recordings as `blkparse` prints them by default.

    8,0  3  57  0.024186000  697  D  W 223490 + 56 [kjournald]

The issue events (D) are replayed; a recording without them is replayed by its queue events (Q). Completions (C)
say how long a request took, which is then no think time. Discards move no data and are left out.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, replace
from pathlib import Path

from fasttrack_lab.host.errors import InputError
from fasttrack_lab.inputs.traces.block import SECTOR, Request, to_trace
from fasttrack_lab.inputs.traces.model import MOST, Stats, Trace, Window, read_lines, seconds, whole_number

_EVENT = re.compile(
    r"\s*(?P<device>\d+,\d+)\s+(?P<cpu>\d+)\s+(?P<seq>\d+)\s+(?P<time>\d+\.\d+)\s+(?P<pid>\d+)\s+"
    r"(?P<action>[A-Za-z]{1,2})\s+(?P<rwbs>\S+)(?P<rest>.*)"
)
_EXTENT = re.compile(r"\s+(?P<sector>\d+) \+ (?P<sectors>\d+)")
_MESSAGE = re.compile(r"\s*\d+,\d+\s+\d+\s+\d+\s+\d+\.\d+\s+\d+\s+m\s")
_SUMMARY = re.compile(r"\s*(CPU\s?\d+|Total|Reads|Writes|Read|Write|IO unplugs|PC |Throughput|Events|Skips)")


@dataclass(frozen=True)
class _Event:
    """One line of interest."""

    action: str
    rwbs: str
    request: Request


def recognises(line: str) -> bool:
    """Whether a line is an event."""
    return _EVENT.fullmatch(line) is not None


def _ops(rwbs: str) -> list[str]:
    """What an RWBS field asks for: a flush before (leading F), data, a flush after (FUA, a later F)."""
    ops = ["flush"] if rwbs.startswith("F") else []
    if "R" in rwbs:
        ops.append("read")
    elif "W" in rwbs:
        ops.append("write")
    if "F" in rwbs[1:] and "write" in ops:
        ops.append("flush")
    return ops


def _events(path: Path, stats: Stats) -> list[_Event]:
    """The issue, queue and completion events of a file."""
    events: list[_Event] = []
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        match = _EVENT.fullmatch(line)
        if match is None or _MESSAGE.match(line):
            if events and _SUMMARY.match(line):
                break
            if _MESSAGE.match(line) or _SUMMARY.match(line):
                continue
            raise InputError(
                "not an event of blkparse's default output (device cpu seq time pid action rwbs sector + n)",
                path,
                number,
            )
        stats.lines += 1
        if match["action"] not in ("D", "Q", "C"):
            stats.left_out[f"events of kind {match['action']}"] += 1
            continue
        extent = _EXTENT.match(match["rest"])
        if extent is None and "F" not in match["rwbs"]:
            raise InputError(f"event {match['action']} {match['rwbs']} has no 'sector + n'", path, number)
        try:
            sector, sectors = (whole_number(extent[name]) if extent else 0 for name in ("sector", "sectors"))
            at_s = seconds(match["time"])
        except ValueError as error:
            raise InputError(str(error), path, number) from error
        if sector + sectors >= MOST // SECTOR:
            raise InputError("sector + n is larger than any device", path, number)
        request = Request(at_s, match["pid"], "", match["device"], sector, sectors)
        events.append(_Event(match["action"], match["rwbs"], request))
    return events


def _times(events: list[_Event]) -> dict[int, float]:
    """Seconds from issue to completion, by the event's position, where the completion was recorded."""
    open_events: defaultdict[tuple[str, int], deque[int]] = defaultdict(deque)
    took: dict[int, float] = {}
    for index, event in enumerate(events):
        key = (event.request.device, event.request.sector)
        if event.action != "C":
            open_events[key].append(index)
        elif open_events[key]:
            start = open_events[key].popleft()
            took[start] = max(0.0, event.request.at_s - events[start].request.at_s)
    return took


def requests_of(path: Path, stats: Stats) -> list[Request]:
    """The requests of a recording, in seconds from the first event, with what each took in the device."""
    events = _events(path, stats)
    actions = Counter(event.action for event in events)
    chosen = "D" if actions["D"] else "Q"
    for action, number in actions.items():
        if action != chosen:
            stats.left_out[f"events of kind {action}"] += number
    used = [event for event in events if event.action in (chosen, "C")]
    took = _times(used)
    begin = min((event.request.at_s for event in used), default=0.0)
    requests: list[Request] = []
    for index, event in enumerate(used):
        if event.action == "C":
            continue
        ops = [] if "D" in event.rwbs else _ops(event.rwbs)
        if not ops:
            stats.left_out["discards and other requests without data"] += 1
        for op in ops:
            if op != "flush" and event.request.sectors == 0:
                continue
            seconds = 0.0 if op == "flush" else took.get(index, 0.0)
            requests.append(replace(event.request, op=op, at_s=event.request.at_s - begin, took_s=seconds))
    stats.notes.append(f"replayed by {'issue (D)' if chosen == 'D' else 'queue (Q)'} events")
    return requests


def read(path: Path, window: Window) -> Trace:
    """Reads a recording."""
    stats = Stats()
    return to_trace(path, "blktrace", requests_of(path, stats), stats, window)
