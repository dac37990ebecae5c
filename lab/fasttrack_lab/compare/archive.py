# SPDX-License-Identifier: GPL-2.0-only
"""The records that docs/RESULTS.md is made of, kept beside it: JSON lines, compressed with xz.

They are raw records without what no page shows, and without what is the machine's own: of a recording that was replayed
only the file's name is kept, and of the host nothing.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fasttrack_lab.compare import records, report
from fasttrack_lab.compare.comparison import RECORDING, replays_recording
from fasttrack_lab.compare.records import Record
from fasttrack_lab.host.errors import InputError
from fasttrack_lab.host.paths import recording

SUFFIX = ".jsonl.xz"


def beside(page: Path) -> Path:
    """The archive of a page's records."""
    return page.with_suffix(SUFFIX)


RESULT = ("fs", "kernel", "log_problems", "response_s", "total_s")
APPS = ("foregrounds", "background")
APP = ("bytes_read", "bytes_written", "bytes_since_touch", "longest_pause_s")
COUNTERS = {"counters": report.HOLDS, "elevator": (report.WRITE_WAIT,)}
"""What is kept of a result, of each of its apps, and of its counters."""


def _part(values: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: values[name] for name in names if name in values}


def _shown(result: Mapping[str, Any]) -> dict[str, Any]:
    """What reports show of a result."""
    apps = {side: {name: _part(app, APP) for name, app in result.get(side, {}).items()} for side in APPS}
    counters = {side: _part(result.get(side, {}), names) for side, names in COUNTERS.items()}
    return {**_part(result, RESULT), **apps, **counters}


def _portable(record: Record) -> Record:
    name = Path(record.cell.scenario).name
    return replace(record, cell=replace(record.cell, scenario=name), result=record.result and _shown(record.result))


def _here(record: Record) -> Record:
    """With the place that the recording has on this machine, if it is there."""
    found = recording(RECORDING)
    if found is None or not replays_recording(record.cell):
        return record
    return replace(record, cell=replace(record.cell, scenario=str(found.with_name(record.cell.scenario))))


def write(path: Path, found: Iterable[Record]) -> None:
    """Makes the archive, or replaces it."""
    lines = (records.line_of(_portable(record)) for record in found)
    path.write_bytes(lzma.compress("".join(lines).encode(), preset=9))


def read(path: Path) -> list[Record]:
    """The records of an archive; none where there is no archive. InputError if it is damaged."""
    if not path.exists():
        return []
    try:
        text = lzma.decompress(path.read_bytes()).decode()
    except (lzma.LZMAError, UnicodeDecodeError) as error:
        raise InputError(f"damaged: {error}; ./fasttrack results makes it", path) from error
    return [_here(record) for record in records.parse(text, path)]
