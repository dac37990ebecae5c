# SPDX-License-Identifier: GPL-2.0-only
"""Block recordings by eBPF on a Pixel 6a: CSV with a heading. Columns in any order; what a file lacks is unknown.

The recorder may log a request twice; an equal one within a second of the one kept is left out and counted, as
`inputs/traces/pixel6a.py` does.
"""

from __future__ import annotations

import csv
import re
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

from fasttrack_lab.inputs.traces.pixel6a import TWICE_WITHIN_S
from fasttrack_lab.trace.importers.intake import QUEUE, SECTOR, Asked, Event, Intake, asked
from fasttrack_lab.trace.importers.text_numbers import device, scientific, whole
from fasttrack_lab.trace.importers.windows import CUT_LINE, Line, Unread, lines, take_lines

_NEEDED = {"rw_flag", "timestamp"}
_COUNTS = ("sector", "size", "pid")
_PROCESS = ("proces", "process", "comm")
_TWICE_NS = int(TWICE_WITHIN_S * 1e9)
_FLAG = "RWFDN"
Key = tuple[int | None, str, int | None, int | None]


_UNKNOWN = ("", "nan", "none", "null")
"""What programs write for what they do not know."""
_DELIMITERS = ",;\t"
_FRACTION = re.compile(r"\d\.(\d+)\Z")
_NUMBER = re.compile(r"(\d+)(?:\.0*)?")
"""A column in which a number is missing is one of floating point for some programs."""


def _delimiter(heading: str) -> str:
    return max(_DELIMITERS, key=heading.count)


def _names(line: str) -> list[str]:
    return [name.strip().strip('"').lower() for name in line.split(_delimiter(line))]


def recognises(head: str) -> bool:
    """Whether a text begins with such a heading."""
    first = next((line for line in head.splitlines() if line.strip()), "")
    return set(_names(first)) >= _NEEDED


def read(files: Sequence[Path], intake: Intake) -> None:
    """Reads files."""
    for path in files:
        _read(path, intake)


def _read(path: Path, intake: Intake) -> None:
    kept: OrderedDict[Key, int] = OrderedDict()
    found = lines(path)
    heading = next((line for line in found if line.text.strip()), None)
    if heading is None:
        return
    names = _names(heading.text)
    if not set(names) >= _NEEDED:
        intake.damage(path, 0, path.stat().st_size, "its heading lacks rw_flag or timestamp; nothing is read")
        return

    decimals: set[int] = set()

    def take(line: Line) -> str | None:
        if not line.text.strip():
            return None
        count = _decimals(line.text)
        # A number that is cut has fewer than those before it, if these all have as many.
        if not line.is_whole and (count == 0 or decimals != {count}):
            return CUT_LINE
        decimals.add(count)
        event, why = _event(names, line.text, _delimiter(heading.text))
        if event is None:
            return why
        if _is_new(kept, event):
            intake.event(event)
        else:
            intake.skipped["requests logged twice within 1 s"] += 1
        return ""

    take_lines(found, Unread(path, intake.damage), take)


def _decimals(line: str) -> int:
    """Digits behind the point of a line's last number."""
    match = _FRACTION.search(line)
    return 0 if match is None else len(match[1])


def _is_new(kept: OrderedDict[Key, int], event: Event) -> bool:
    """Whether a request was not logged a moment ago."""
    key = (event.dev, event.asked.operation or "", event.sector, event.bytes)
    last = kept.get(key)
    if last is not None and abs(event.time - last) < _TWICE_NS:
        return False
    kept.pop(key, None)
    kept[key] = event.time
    while event.time - next(iter(kept.values())) > 2 * _TWICE_NS:
        kept.popitem(last=False)
    return True


def _event(names: list[str], line: str, delimiter: str) -> tuple[Event | None, str]:
    """A request, or why there is none."""
    try:
        cells = [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])]
    except csv.Error as error:
        return None, f"no CSV: {error}"
    if len(cells) != len(names):
        return None, f"{len(cells)} fields, the heading has {len(names)}"
    row = dict(zip(names, cells, strict=True))
    time = scientific(row["timestamp"])
    flag = row["rw_flag"].upper()
    wrong = next((name for name in _COUNTS if not _is_count(row.get(name, ""))), None)
    if time is None:
        return None, f"timestamp '{row['timestamp'][:20]}'"
    if flag[:1] not in _FLAG or not flag:
        return None, f"rw_flag '{flag[:20]}'"
    if wrong is not None:
        return None, f"{wrong} '{row[wrong][:20]}'"
    sectors = _count(row.get("size", ""))
    comm, pid = _task(next((row[name] for name in _PROCESS if name in row), ""))
    pid = _count(row.get("pid", "")) if pid is None else pid
    # A letter alone does not say that the others are not set.
    how = asked(flag) if len(flag) > 1 else Asked(asked(flag).operation)
    dev = _device(row.get("device", ""))
    return Event(
        time,
        QUEUE,
        dev,
        _count(row.get("sector", "")),
        None if sectors is None else sectors * SECTOR,
        how,
        pid,
        comm,
    ), ""


def _is_count(text: str) -> bool:
    """Whether it is a number, or says that there is none: the kernel's -1 is no place."""
    return text.lower() in _UNKNOWN or _NUMBER.fullmatch(text.removeprefix("-")) is not None


def _count(text: str) -> int | None:
    match = _NUMBER.fullmatch(text)
    return None if match is None else whole(match[1])


def _task(text: str) -> tuple[str | None, int | None]:
    """`dmd-1181`: name and thread id; `<...>` is a name that the recorder did not know."""
    name, _, pid = text.rpartition("-")
    comm, number = (name, whole(pid)) if name and whole(pid) is not None else (text, None)
    return (None if comm in ("", "<...>") else comm), number


def _device(text: str) -> int | None:
    """The kernel's number, or MAJOR,MINOR or MAJOR:MINOR."""
    major, sign, minor = text.replace(":", ",").partition(",")
    return device(major, minor) if sign else _count(text)
