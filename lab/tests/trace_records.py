# SPDX-License-Identifier: GPL-2.0-only
"""Records as `fasttrack-trace export` writes them: what a test says, in the columns of the contract."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from fasttrack_lab.trace import exporting, logs

SESSION, INSTALL = "ab" * 16, "cd" * 16
START_NS = 1_700_000_000_000_000_000
UTC_OFFSET_S = 3600
SECOND = 10**9

Record = tuple[str, dict[str, Any]]


def record(kind: str, time: int, /, **fields: Any) -> Record:
    """A record at a time of the boot clock, ns."""
    return kind, {"session": SESSION, "log": 1, "time": time, **fields}


HEAD = (
    record("session", 1000, install=INSTALL, kernel="6.12", clear_names="true", page_bytes=4096, calls_over_us=0),
    record("clock", 1000, reason="file_start", real_ns=START_NS, utc_offset_s=UTC_OFFSET_S),
    record("task", 2000, task=2, pid=10, tgid=10, uid=10101, name='mail, "new"', kernel_thread="false"),
    record("task", 2000, task=4, pid=11, tgid=11, uid=0, name="kworker/u2:0", kernel_thread="true"),
    record("file", 2000, file=2, event="first_use", path="/data/x.db", file_type="sqlite_db", bytes=0),
    record("file", 2000, file=4, event="first_use", path="/data/x.db-journal", file_type="sqlite_journal"),
)
"""A session, two tasks and two files of a database."""


def bio(number: int, time: int, owner: int | str = 2, file: int | str = 2, **fields: Any) -> tuple[Record, Record]:
    """A synchronous write of 4 KiB by an fsync, and its one segment."""
    sent = {"operation": "write", "bytes": 4096, "sync": "true", "class": "foreground", "cause": "fsync", "carrier": 4}
    block = {"offset": 0, "bytes": 4096, "block_type": "data", "file": file, "owner": owner}
    shown = sent | {"sector": number * 8, "dev": 1} | fields
    return record("bio", time, bio=number, **shown), record("segment", time, bio=number, **block)


def of_another(records: Sequence[Record], install: str, session: str, **more: Any) -> list[Record]:
    """Records, with the head of its own, of another installation's session; MORE: fields of its session's."""
    return [
        (kind, fields | {"session": session} | ({"install": install, **more} if kind == "session" else {}))
        for kind, fields in [*HEAD, *records]
    ]


def write(folder: Path, records: Sequence[Record]) -> None:
    """The tables of an export."""
    for kind, columns in logs.record_columns().items():
        with (folder / f"{kind}.csv").open("w", newline="") as handle:
            writer = csv.DictWriter(handle, list(columns), restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows(fields for name, fields in records if name == kind)


def exported(monkeypatch: pytest.MonkeyPatch, records: Sequence[Record]) -> None:
    """What log files have, whichever are asked for: the collector need not be built."""

    def start(paths: Sequence[Path], to: Path, counted: bool = False) -> Callable[[], None]:
        write(to, records)
        return lambda: None

    monkeypatch.setattr(exporting, "start", start)
