# SPDX-License-Identifier: GPL-2.0-only
"""MOST's text, and blkparse's in the format that MOST asks for:

    0.097858699  C  WAS  23901648  8  10336  GCMReader  D  /data/com.google.android.gms/databases/rmq.db-journal

time, action, RWBS, sector, sectors, pid, process, and what MOST finds: D with the file's path, J the journal, M
metadata. The device is not there. MOST's kernel has the task that sent a request in all its events.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from fasttrack_lab.trace.importers.intake import COMPLETE, INSERT, ISSUE, QUEUE, REQUEUE, SECTOR, Event, Intake, asked
from fasttrack_lab.trace.importers.text_numbers import nanoseconds, whole
from fasttrack_lab.trace.importers.windows import CUT_LINE, Line, Unread, lines, take_lines

_KINDS = (QUEUE, INSERT, ISSUE, COMPLETE, REQUEUE)
_TYPES = {"D": "data", "J": "journal", "M": "metadata"}
_NO_FILE = ("file-NONE", "NONE", "")
_WORDS = re.compile(
    r"\s*(\d+\.\d+)\s+([A-Za-z]{1,3})\s+([A-Z]+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(.*?)"
    r"(?:\s+([DJM]))?(?:\s+(/.*|file-NONE))?\s*"
)
"""Where somebody made spaces of the tabs."""


def recognises(head: str) -> bool:
    """Whether a text has such a line near its begin."""
    return any(_parts(line) is not None for line in head.splitlines()[:50])


def read(files: Sequence[Path], intake: Intake) -> None:
    """Reads texts."""
    for path in files:
        take_lines(lines(path), Unread(path, intake.damage), lambda line: _line(line, intake))


def _line(line: Line, intake: Intake) -> str | None:
    """Takes a line; why it is not understood."""
    if not line.text.strip():
        return None
    if not line.is_whole and not line.text.endswith(_NO_FILE[0]):
        # A path may be cut and still be one.
        return CUT_LINE
    parts = _parts(line.text)
    if parts is None:
        return "no event of MOST: time, action, RWBS, sector, sectors, pid, process, type, path"
    if parts[1] in _KINDS:
        intake.event(_event(parts))
    else:
        intake.skipped[f"events of kind {parts[1]}"] += 1
    return ""


def _parts(line: str) -> list[str] | None:
    """The fields of a line; None where it is none."""
    parts = [part.strip() for part in line.split("\t")]
    if len(parts) < 6:
        match = _WORDS.fullmatch(line)
        parts = [part or "" for part in match.groups()] if match else []
    right = (
        6 <= len(parts) <= 10
        and nanoseconds(parts[0]) is not None
        and "." in parts[0]
        and re.fullmatch(r"[A-Za-z]{1,3}", parts[1])
        and re.fullmatch(r"[A-Z]+", parts[2])
        and all(part.isdigit() for part in parts[3:6])
    )
    return [*parts, *[""] * (9 - len(parts))] if right else None


def _event(parts: list[str]) -> Event:
    at, action, rwbs, sector, sectors, pid, process, kind, path = parts[:9]
    if kind.startswith("/"):
        # Some versions have the path in place of the type.
        kind, path = "D", kind
    count = whole(sectors)
    return Event(
        nanoseconds(at) or 0,
        action,
        None,
        whole(sector),
        None if count is None else count * SECTOR,
        asked(rwbs),
        whole(pid),
        process or None,
        path=None if path in _NO_FILE else path,
        block_type=_TYPES.get(kind),
    )
