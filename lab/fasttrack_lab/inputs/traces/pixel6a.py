# SPDX-License-Identifier: GPL-2.0-only
"""Block recordings by eBPF on a Pixel 6a: CSV, plain or gzip.

Columns: process, device, rw_flag, sector, size (512-byte sectors), timestamp (seconds). The recorder may log a
request twice; an equal one (device, direction, sector, size) within 1 s of the one kept is dropped and counted.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from fasttrack_lab.host.errors import InputError
from fasttrack_lab.inputs.traces.block import SECTOR, Request, to_trace
from fasttrack_lab.inputs.traces.model import MOST, Stats, Trace, Window, read_lines, seconds, whole_number

COLUMNS = ("device", "rw_flag", "sector", "size", "timestamp")
TWICE_WITHIN_S = 1.0
_OPS = {"R": "read", "W": "write", "F": "flush"}


def recognises(line: str) -> bool:
    """Whether a line is the heading of such a file."""
    names = line.split(",")
    return all(column in names for column in COLUMNS)


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Line number and fields of every record."""
    reader = csv.reader(read_lines(path))
    heading = next(reader, [])
    missing = [column for column in COLUMNS if column not in heading]
    if missing:
        raise InputError(f"the heading lacks {', '.join(missing)}; wanted: process,{','.join(COLUMNS)}", path, 1)
    try:
        for fields in reader:
            if len(fields) != len(heading):
                raise InputError(f"{len(fields)} fields, the heading has {len(heading)}", path, reader.line_num)
            yield reader.line_num, dict(zip(heading, fields, strict=True))
    except csv.Error as error:
        raise InputError(f"not CSV: {error}", path, reader.line_num) from error


def _request(path: Path, line: int, row: dict[str, str]) -> Request | None:
    """One record; None where it moves no data."""
    op = _OPS.get(row["rw_flag"][:1])
    if op is None:
        if row["rw_flag"][:1] == "D":
            return None
        raise InputError(f"rw_flag '{row['rw_flag']}'; valid: R, W, F, D", path, line)
    try:
        sector, sectors, at_s = whole_number(row["sector"]), whole_number(row["size"]), seconds(row["timestamp"])
    except ValueError as error:
        raise InputError(f"sector, size and timestamp must be numbers: {error}", path, line) from error
    if sector < 0 or sectors < 0:
        raise InputError("sector and size cannot be negative", path, line)
    if sector + sectors >= MOST // SECTOR:
        raise InputError("sector and size are larger than any device", path, line)
    process = row.get("process", row.get("proces", "?"))
    return Request(at_s, process, op, row["device"], sector, sectors)


def requests_of(path: Path, stats: Stats) -> list[Request]:
    """The requests of a recording, each once, in seconds from the first."""
    requests: list[Request] = []
    kept: dict[tuple[str, str, int, int], float] = {}
    first: float | None = None
    for line, row in _rows(path):
        stats.lines += 1
        request = _request(path, line, row)
        if request is None or (request.sectors == 0 and request.op != "flush"):
            stats.left_out["discards and empty requests"] += 1
            continue
        first = request.at_s if first is None else min(first, request.at_s)
        key = (request.device, request.op, request.sector, request.sectors)
        if key in kept and abs(request.at_s - kept[key]) < TWICE_WITHIN_S:
            stats.left_out["requests logged twice within 1 s"] += 1
            continue
        kept[key] = request.at_s
        requests.append(request)
    begin = first or 0.0
    return [
        Request(max(0.0, item.at_s - begin), item.process, item.op, item.device, item.sector, item.sectors)
        for item in requests
    ]


def read(path: Path, window: Window) -> Trace:
    """Reads a recording."""
    stats = Stats()
    return to_trace(path, "pixel6a", requests_of(path, stats), stats, window)
