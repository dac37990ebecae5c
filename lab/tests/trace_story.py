# SPDX-License-Identifier: GPL-2.0-only
"""Records of one fsync of 10 ms, and of what is around it."""

from __future__ import annotations

from typing import Any

from trace_records import HEAD, SECOND, Record, record

MS = 1_000_000
BEGIN = 3 * SECOND
DEV = 8 << 20
MAIL, WORKER, JOURNAL, CAMERA = 2, 4, 6, 8

PEOPLE = (
    record("task", 2000, task=JOURNAL, pid=16, tgid=16, uid=0, name="jbd2/sda-8", kernel_thread="true"),
    record("task", 2000, task=CAMERA, pid=20, tgid=20, uid=10102, name="camera", kernel_thread="false"),
    record("file", 2000, file=6, event="first_use", path="/data/photo.jpg", file_type="multimedia"),
)


def at(ms: float) -> int:
    """So long after the call's begin."""
    return BEGIN + round(ms * MS)


def sent(number: int, ms: float, sector: int, carrier: int, **fields: Any) -> Record:
    """A synchronous write of 4 KiB."""
    what = {"operation": "write", "bytes": 4096, "sync": "true", "class": "foreground", "dev": DEV}
    return record("bio", at(ms), bio=number, sector=sector, carrier=carrier, **(what | fields))


def run(number: int, ms: float, **fields: Any) -> Record:
    """A run of its blocks."""
    return record("segment", at(ms), **({"bio": number, "offset": 0, "bytes": 4096, "block_type": "data"} | fields))


def request(ms: float, sector: int, queued_ms: float, device_ms: float, **fields: Any) -> Record:
    """A request that ended."""
    took = {"queued_ns": round(queued_ms * MS), "device_ns": round(device_ms * MS), "error": 0}
    what = {"dev": DEV, "operation": "write", "bytes": 4096}
    return record("request", at(ms), sector=sector, **(what | took | fields))


def wait(begin_ms: float, end_ms: float, kind: str, task: int = MAIL, **fields: Any) -> Record:
    """A wait."""
    told = {"duration_ns": round((end_ms - begin_ms) * MS), "class": "foreground", "dev": DEV}
    return record("wait", at(end_ms), task=task, kind=kind, **(told | fields))


def call(begin_ms: float, end_ms: float, kind: str, task: int = MAIL, **fields: Any) -> Record:
    """A call."""
    told = {"duration_ns": round((end_ms - begin_ms) * MS), "offset": 0, "bytes": 0, "result": 0, "file": 2}
    return record("call", at(end_ms), task=task, kind=kind, **(told | fields))


def transaction(number: int, began_ms: float, end_ms: float, **fields: Any) -> Record:
    """A transaction of the journal."""
    told = {"kind": "jbd2", "dev": DEV, "carrier": JOURNAL, "handles": 5, "blocks": 4, "logged": 6}
    return record("transaction", at(end_ms), transaction=number, began=at(began_ms), **(told | fields))


def share(number: int, end_ms: float, task: int | str, blocks: int, **fields: Any) -> Record:
    """What somebody pays of it."""
    told = {"transaction": number, "dev": DEV, "handles": blocks + 1, "through_flusher": "false"}
    return record("share", at(end_ms), task=task, blocks=blocks, **(told | fields))


FSYNC = (
    call(0, 10, "fsync"),
    wait(0.5, 3.5, "folio", file=2, index=0),
    wait(3.5, 9.5, "transaction", transaction=7),
    wait(5, 6, "buffer", sector=500),
    wait(5, 9, "buffer", JOURNAL, sector=500),
    sent(1, 0, 100, MAIL, cause="fsync"),
    run(1, 0, file=2, index=0, owner=MAIL, call="write"),
    request(3.4, 100, 1, 2),
    sent(2, 4.5, 500, JOURNAL, cause="journal", transaction=7),
    run(2, 4.5, block_type="journal"),
    request(9, 500, 0.5, 4),
    transaction(6, -2, 4, trigger=CAMERA, trigger_call="fsync"),
    transaction(7, 4.2, 9.4, trigger=MAIL, trigger_call="fsync"),
    share(7, 9.4, MAIL, 3),
    share(7, 9.4, CAMERA, 1, through_flusher="true"),
)
"""Of 10 ms 9 are waits."""

OTHERS = (
    call(1, 2, "read", CAMERA, file=6, bytes=4096, result=4096),
    sent(3, 1, 900, CAMERA, operation="read", sync="false", cause="read"),
    run(3, 1, file=6, index=0, owner=CAMERA, call="read"),
    request(1.9, 900, 0, 0.8, operation="read"),
    sent(4, 2, 1000, WORKER, cause="writeback", **{"class": "background"}),
    run(4, 2, file=6, index=9, owner=CAMERA, call="write"),
    wait(1.2, 1.9, "folio", CAMERA, file=6, index=0),
)
"""Of other apps at the same time; write-back whose end is not there."""

STORY = (*HEAD, *PEOPLE, *FSYNC, *OTHERS)
