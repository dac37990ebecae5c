# SPDX-License-Identifier: GPL-2.0-only
"""A DuckDB without Ibis, which takes half a second and more to load."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from dataclasses import dataclass
from typing import Any, Protocol

import duckdb

MEMORY = "800MB"
"""What a report may take is 1 GB, and Python and Arrow take the rest."""


class Connected(Protocol):
    """A database that statements in SQL can be sent to: Ibis's, or one without it."""

    @property
    def con(self) -> Any:
        """DuckDB's own connection."""


@dataclass(frozen=True)
class Plain:
    """A database without Ibis."""

    con: duckdb.DuckDBPyConnection


def connect(memory: str = MEMORY, threads: int | None = None) -> Plain:
    """A database in memory; what does not fit goes to a directory of the user's alone, which ends with it."""
    spill = tempfile.mkdtemp(prefix="fasttrack-trace-")
    config: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": memory,
        "threads": threads or len(os.sched_getaffinity(0)),
        "temp_directory": spill,
        "preserve_insertion_order": False,
        # Names of a statement are tables, never variables of this program.
        "python_enable_replacements": False,
    }
    connection = duckdb.connect(":memory:", config=config)
    weakref.finalize(connection, shutil.rmtree, spill, ignore_errors=True)
    return Plain(connection)
