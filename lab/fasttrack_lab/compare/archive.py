# SPDX-License-Identifier: GPL-2.0-only
"""The records that docs/RESULTS.md is made of, kept beside it: JSON lines, compressed with xz.

They are raw records without what is the machine's own: of a recording that was replayed only the file's name is kept,
and of the host nothing.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from fasttrack_lab.compare import records
from fasttrack_lab.compare.comparison import RECORDING
from fasttrack_lab.compare.records import Record
from fasttrack_lab.host.errors import InputError
from fasttrack_lab.host.paths import recording
from fasttrack_lab.inputs.cell import recording_part

SUFFIX = ".jsonl.xz"


def beside(page: Path) -> Path:
    """The archive of a page's records."""
    return page.with_suffix(SUFFIX)


def _portable(record: Record) -> Record:
    name = Path(record.cell.scenario).name
    result = record.result and {key: value for key, value in record.result.items() if key != "host"}
    return replace(record, cell=replace(record.cell, scenario=name), result=result)


def _here(record: Record) -> Record:
    """With the place that the recording has on this machine, if it is there."""
    found = recording(RECORDING)
    if found is None or recording_part(record.cell.scenario)[0] != found.name:
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
