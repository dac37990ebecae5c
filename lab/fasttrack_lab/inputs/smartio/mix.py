# SPDX-License-Identifier: GPL-2.0-only
"""How many operations of each kind an app does, so that the block layer counts the I/Os that the table asks for."""

from __future__ import annotations

from dataclasses import dataclass

from fasttrack_lab.inputs.smartio.table import Row

LAUNCH_READS_PER_WRITE = 5.0
RUN_SHARE = 0.5
"""Of the I/Os of a launch; this and the five reads to a write are the poster's averages."""
RUN_READS_PER_WRITE = 2.0
"""The poster does not say it. It lies between a launch's five and the two writes to a read that Androtrace counts over
days of use (A4)."""

# Requests at the block layer, counted on s6 and n6 with ext4; test_smartio_apps.py holds them to it.
SELECT_READS, SELECT_ROWS = 7, 4
"""Of one SELECT of so many rows that are not in the page cache."""
INSERT_WRITES, INSERT_ROWS = 13, 2
"""Of one transaction: rollback journal, its header, database and truncated journal, each with its fsync."""
SYNCED_WRITES = 3
"""Of one new file and its fsync: data, ext4's journal, its commit block."""


@dataclass(frozen=True)
class Overhead:
    """I/Os of a phase that belong to no single operation: inodes, directories, the database's schema and journal."""

    reads: int
    writes: int


LAUNCH_OVERHEAD, RUN_OVERHEAD = Overhead(reads=23, writes=4), Overhead(reads=8, writes=0)


@dataclass(frozen=True)
class Mix:
    """How many operations of each kind, and the I/Os that the block layer counts for them."""

    faults: int
    """In code, each in a library of its own."""
    large: int
    """Whole files of content."""
    selects: int
    small: int
    """Pieces of the package."""
    inserts: int
    synced: int
    """New files with their fsync."""
    plain: int
    """New files that stay in the page cache."""
    overhead: Overhead

    @property
    def reads(self) -> int:
        """Read I/Os."""
        return self.faults + self.large + self.small + self.selects * SELECT_READS + self.overhead.reads

    @property
    def writes(self) -> int:
        """Write I/Os."""
        return self.inserts * INSERT_WRITES + self.synced * SYNCED_WRITES + self.overhead.writes


def _mix(row: Row, ios: float, reads_per_write: float, overhead: Overhead) -> Mix:
    """The operations that make so many I/Os with the overhead."""
    writes = ios / (1 + reads_per_write)
    reads = ios - writes
    faults, large = round(reads * row.mmap), round(reads * row.large)
    left = reads - faults - large
    selects = max(round((left * row.sqlite - overhead.reads) / SELECT_READS), 1)
    inserts = max(round(writes * row.sqlite / INSERT_WRITES), 1)
    synced = max(round((writes - overhead.writes - inserts * INSERT_WRITES) / SYNCED_WRITES), 1)
    small = max(round(left - overhead.reads - selects * SELECT_READS), 0)
    plain = round(synced * (1 - row.fsync) / row.fsync)
    return Mix(faults, large, selects, small, inserts, synced, plain, overhead)


def launch_mix(row: Row) -> Mix:
    """Of a launch."""
    return _mix(row, row.ios, LAUNCH_READS_PER_WRITE, LAUNCH_OVERHEAD)


def run_mix(row: Row) -> Mix:
    """Of run time; the launch has opened the database."""
    return _mix(row, row.ios * RUN_SHARE, RUN_READS_PER_WRITE, RUN_OVERHEAD)
