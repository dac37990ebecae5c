#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tables of a trace of any size, made from a seed: `trace_generator.py ARCHIVE RECORDS` writes an archive."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fasttrack_lab.trace import delta
from fasttrack_lab.trace.tables import COLUMNS, schema

INSTALL, SESSION = "0123456789abcdef", "fedcba9876543210"
START_NS = 1_790_000_000_000_000_000
UTC_OFFSET_S = 7200
PER_SECOND = 200
CHUNK = 500_000
SHARES = {
    "io": 0.28,
    "segments": 0.34,
    "requests": 0.26,
    "calls": 0.07,
    "waits": 0.03,
    "files": 0.01,
    "transactions": 0.003,
    "shares": 0.0065,
    "losses": 0.0005,
}
"""Of all records."""
LOSS_EVERY = PER_SECOND * 10
"""Rows of other tables between two losses."""

OPERATIONS = np.array(["read", "write", "flush", "discard"])
CLASSES = np.array(["neutral", "background", "foreground", None], dtype=object)
CAUSES = np.array(["read", "writeback", "fsync", "fdatasync", "sync_write", "journal", "metadata"])
BLOCK_TYPES = np.array(["data", "journal", "metadata", "unknown"])
TYPES = np.array(["other", "sqlite_db", "sqlite_journal", "sqlite_wal", "multimedia", "executable", "cache", "temp"])
CALLS = np.array(["read", "write", "fsync", "fdatasync", "fault"])
WAITS = np.array(["folio", "dirty_throttle", "transaction", "tag", "hold", "pause"])
REASONS = np.array(["ring_overrun", "disk_cap", "budget", "sampled"])
ENDS = {"sqlite_journal": "-journal", "sqlite_wal": "-wal"}
FILES = 4000


class Maker:
    """Draws rows."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def choice(self, values: np.ndarray, *weights: float) -> Any:
        return lambda count: self.random.choice(values, count, p=np.array(weights) / sum(weights))

    def some(self, values: np.ndarray, missing: float) -> pa.Array:
        """VALUES, of which a share is not known."""
        return pa.array(values, mask=self.random.random(len(values)) < missing)

    def when(self, first: int, count: int, every: int = 1) -> dict[str, Any]:
        """Rows from the place FIRST on, some a second, or one EVERY so many of these."""
        time = (np.arange(first, first + count) * (10**9 // PER_SECOND * every)).astype(np.int64)
        real = START_NS + time
        local_s = real // 10**9 + UTC_OFFSET_S
        place = {"install": [INSTALL] * count, "session": [SESSION] * count, "log": time // 10**12 + 1}
        return {
            **place,
            "time": time,
            "second": time // 10**9,
            "hour": local_s // 3600,
            "real_ns": real,
            "utc_offset_s": np.full(count, UTC_OFFSET_S),
        }

    def sent(self, count: int) -> dict[str, Any]:
        return {
            "dev": np.full(count, 8 << 20),
            "bytes": self.random.integers(1, 65, count) * 4096,
            "operation": self.choice(OPERATIONS, 60, 38, 1, 1)(count),
            "sync": self.random.random(count) < 0.6,
            "class": self.choice(CLASSES, 2, 4, 3, 1)(count),
            "cause": self.choice(CAUSES, 30, 20, 10, 15, 5, 10, 10)(count),
            "app_uid": self.uid(count),
        }

    def uid(self, count: int) -> np.ndarray:
        return 10000 + np.minimum(self.random.zipf(1.6, count), 200)

    def task(self, count: int) -> dict[str, Any]:
        uid = self.uid(count)
        return {
            "task": self.some(uid, 0.1),
            "pid": uid,
            "tgid": uid,
            "uid": self.some(uid, 0.02),
            "name": np.char.add("app-", uid.astype(str)),
            "kernel_thread": self.random.random(count) < 0.1,
        }

    def file(self, count: int) -> dict[str, Any]:
        number = np.minimum(self.random.zipf(1.3, count), FILES)
        kind = TYPES[number % len(TYPES)]
        stem = np.char.add("/data/app/file-", (number // len(TYPES)).astype(str))
        path = np.char.add(stem, np.array([ENDS.get(name, "") for name in TYPES])[number % len(TYPES)])
        no_database = ~np.char.startswith(kind, "sqlite_")
        return {
            "file": number,
            "path": self.some(path, 0.01),
            "file_type": kind,
            "database": pa.array(stem, mask=no_database),
        }

    def rows(self, table: str, first: int, count: int) -> pa.Table:
        """Some rows of a table."""
        found = self.when(first, count, LOSS_EVERY if table == "losses" else 1)
        found |= _KINDS[table](self, count)
        if table in ("transactions", "shares"):
            # A transaction has several payers.
            place = np.arange(first, first + count) * SHARES["transactions"] / SHARES[table]
            found["journal_transaction"] = place.astype(np.int64) + 1
        if table == "losses":
            found["since"] = found["time"] - 10**8
        if table in ("io", "segments"):
            found["bio"] = np.arange(first, first + count)
        nothing = {name: pa.nulls(count) for name in COLUMNS[table]}
        return pa.table({name: pa.array((nothing | found)[name]) for name in COLUMNS[table]}).cast(
            schema(table).to_pyarrow()
        )


def _io(maker: Maker, count: int) -> dict[str, Any]:
    carrier = maker.choice(np.array(["kworker/u2:1", "mail", "camera"]), 6, 2, 2)(count)
    return {
        **maker.sent(count),
        "sector": maker.random.integers(0, 1 << 28, count) * 8,
        "sequential": maker.some(maker.random.random(count) < 0.4, 0.01),
        "carrier": carrier,
        "carrier_kernel": np.char.startswith(carrier, "kworker"),
    }


def _segments(maker: Maker, count: int) -> dict[str, Any]:
    return {
        **maker.sent(count),
        **maker.task(count),
        **maker.file(count),
        "block_type": maker.choice(BLOCK_TYPES, 70, 20, 9, 1)(count),
        "call": maker.some(maker.choice(CALLS, 3, 3, 1, 2, 1)(count), 0.3),
    }


def _requests(maker: Maker, count: int) -> dict[str, Any]:
    return {
        **maker.sent(count),
        "queued_us": maker.random.exponential(300, count).astype(np.int64),
        "device_us": maker.some(maker.random.lognormal(5, 1, count).astype(np.int64), 0.01),
        "error": np.zeros(count, np.int64),
    }


def _calls(maker: Maker, count: int) -> dict[str, Any]:
    times = {"duration_us": maker.random.lognormal(7, 2, count).astype(np.int64)}
    return {
        **maker.task(count),
        **maker.file(count),
        **times,
        "kind": maker.choice(CALLS, 3, 3, 1, 2, 1)(count),
        "bytes": maker.random.integers(1, 9, count) * 512,
        "result": np.zeros(count, np.int64),
        "every_call": np.ones(count, np.int64),
    }


def _waits(maker: Maker, count: int) -> dict[str, Any]:
    return {
        **maker.task(count),
        "kind": maker.choice(WAITS, 6, 1, 3, 1, 1, 1)(count),
        "class": maker.choice(CLASSES, 2, 4, 3, 1)(count),
        "duration_us": maker.random.lognormal(6, 2, count).astype(np.int64),
    }


def _files(maker: Maker, count: int) -> dict[str, Any]:
    return {
        **maker.file(count),
        "event": maker.choice(np.array(["first_use", "rename", "unlink"]), 6, 1, 3)(count),
        "bytes": maker.random.integers(0, 1 << 22, count),
        "life_ms": maker.some(maker.random.lognormal(8, 3, count).astype(np.int64), 0.2),
    }


def _transactions(maker: Maker, count: int) -> dict[str, Any]:
    trigger = maker.uid(count)
    blocks = maker.random.integers(1, 200, count)
    return {
        "dev": np.full(count, 8 << 20),
        "kind": maker.choice(np.array(["jbd2", "checkpoint"]), 9, 1)(count),
        "handles": maker.random.integers(1, 50, count),
        "blocks": blocks,
        "logged": blocks + 2,
        "trigger_call": maker.some(maker.choice(CALLS, 1, 1, 5, 8, 1)(count), 0.2),
        "trigger_uid": trigger,
        "trigger_name": np.char.add("app-", trigger.astype(str)),
        "carrier": np.full(count, "jbd2/sda-8"),
    }


def _shares(maker: Maker, count: int) -> dict[str, Any]:
    return {
        **maker.task(count),
        "dev": np.full(count, 8 << 20),
        "handles": maker.random.integers(1, 20, count),
        "blocks": maker.random.integers(1, 90, count),
        "through_flusher": maker.random.random(count) < 0.2,
    }


def _losses(maker: Maker, count: int) -> dict[str, Any]:
    return {
        "reason": maker.choice(REASONS, 5, 1, 3, 1)(count),
        "cpu": maker.some(maker.random.integers(0, 8, count), 0.3),
        "lost": maker.some(maker.random.integers(1, 1000, count), 0.2),
    }


def _sessions(maker: Maker, count: int) -> dict[str, Any]:
    return {
        "boot": ["boot"] * count,
        "kernel": ["6.12.1"] * count,
        "clear_names": [True] * count,
        "page_bytes": np.full(count, 4096),
        "calls_over_us": np.zeros(count, np.int64),
    }


_KINDS = {
    "sessions": _sessions,
    "io": _io,
    "segments": _segments,
    "requests": _requests,
    "calls": _calls,
    "waits": _waits,
    "files": _files,
    "transactions": _transactions,
    "shares": _shares,
    "losses": _losses,
}


def chunks(records: int, seed: int = 1) -> Iterator[tuple[str, pa.Table]]:
    """So many records, in tables of at most CHUNK rows."""
    maker = Maker(seed)
    yield "sessions", maker.rows("sessions", 0, 1)
    for table, share in SHARES.items():
        count = round(records * share)
        for first in range(0, count, CHUNK):
            yield table, maker.rows(table, first, min(CHUNK, count - first))


def write(folder: Path, records: int, seed: int = 1) -> None:
    """An archive."""
    for table, rows in chunks(records, seed):
        delta.commit(folder / table, delta.dated(rows), [], [])


if __name__ == "__main__":
    write(Path(sys.argv[1]), int(sys.argv[2]))
