# SPDX-License-Identifier: GPL-2.0-only
"""What blkparse prints by default.

8,0  3  57  0.024186000  697  D  W 223490 + 56 [kjournald]
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from fasttrack_lab.trace.importers.intake import (
    COMPLETE,
    ENDED,
    INSERT,
    ISSUE,
    QUEUE,
    REQUEUE,
    SECTOR,
    Event,
    Intake,
    asked,
)
from fasttrack_lab.trace.importers.text_numbers import device, nanoseconds, whole
from fasttrack_lab.trace.importers.windows import CUT_LINE, Line, Unread, lines, take_lines

_EVENT = re.compile(
    r"\s*(\d+),(\d+)\s+(\d+)\s+(\d+)\s+(\d+\.\d+)\s+(\d+)\s+([A-Za-z]{1,3})(?:\s+([A-Z]+))?(?:\s+(.*))?"
)
_EXTENT = re.compile(r"(?:(\d+)(?: \+ (\d+))?\s*)?(?:\(.*\)\s*)?(?:\[(.*)\])?\s*")
_KINDS = (QUEUE, INSERT, ISSUE, COMPLETE, REQUEUE)
_SUMMARY = re.compile(
    r"\s*(?:CPU ?\d+ |Total |Reads? |Writes? |PC |IO unplugs|Timer unplugs|Throughput|Events |Skips|Input file).*"
)


def recognises(head: str) -> bool:
    """Whether a text has such a line near its begin."""
    return any(_is_event(line) for line in head.splitlines()[:200])


def _is_event(line: str) -> bool:
    match = _EVENT.fullmatch(line)
    return match is not None and (match[7] == "m" or match[8] is not None)


def read(files: Sequence[Path], intake: Intake) -> None:
    """Reads texts."""
    for path in files:
        take_lines(lines(path), Unread(path, intake.damage), lambda line: _line(line, intake))


def _line(line: Line, intake: Intake) -> str | None:
    """Takes a line; why it is not understood."""
    if not line.text.strip():
        return None
    if _SUMMARY.fullmatch(line.text):
        intake.skipped["lines of the summary"] += 1
        return None
    match = _EVENT.fullmatch(line.text)
    if not line.is_whole and not line.text.endswith("]"):
        return CUT_LINE
    return "" if match is not None and _taken(match, intake) else "no event of blkparse's default output"


def _taken(match: re.Match[str], intake: Intake) -> bool:
    """Whether an event was understood."""
    major, minor, _, _, at, pid, action, rwbs, rest = match.groups()
    if action not in _KINDS:
        intake.skipped[f"events of kind {action}"] += 1
        return True
    time, dev, extent = nanoseconds(at), device(major, minor), _EXTENT.fullmatch(rest or "")
    if time is None or dev is None or rwbs is None or extent is None:
        return False
    sectors = whole(extent[2] or "0")
    ended = action in ENDED
    intake.event(
        Event(
            time,
            action,
            dev,
            whole(extent[1]),
            None if sectors is None else sectors * SECTOR,
            asked(rwbs),
            None if ended else whole(pid),
            None if ended else extent[3],
            _error(extent[3]) if action == COMPLETE else None,
        )
    )
    return True


def _error(said: str | None) -> int | None:
    """blkparse prints the 16 bits of an error without their sign."""
    if said is None or not re.fullmatch(r"-?\d{1,6}", said):
        return None
    error = int(said)
    return error - (1 << 16) if 1 << 15 <= error < 1 << 16 else error
