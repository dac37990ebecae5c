# SPDX-License-Identifier: GPL-2.0-only
"""Block I/O that other tools have recorded, as tables: Pixel 6a CSV, blktrace text. What they lack is unknown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa

from fasttrack_lab.host.errors import InputError
from fasttrack_lab.inputs.traces import blktrace, pixel6a, recognise
from fasttrack_lab.inputs.traces.block import SECTOR, Request
from fasttrack_lab.inputs.traces.model import Stats
from fasttrack_lab.trace.tables import COLUMNS, Tables, schema

_READERS: dict[str, Callable[[Path, Stats], list[Request]]] = {
    "pixel6a": pixel6a.requests_of,
    "blktrace": blktrace.requests_of,
}
_KNOWN_CARRIER = "pixel6a"
"""Its process is the one that sends; blkparse's is a number."""


def read(path: Path, engine: ibis.BaseBackend) -> tuple[Tables, list[str]]:
    """The tables of a recording, and what was left out of it."""
    form = recognise(path)
    if form not in _READERS:
        raise InputError(f"a recording of {form} has no block I/O; read are {', '.join(_READERS)}", path)
    stats = Stats()
    requests = _READERS[form](path, stats)
    io = [_row(path, number, request, form) for number, request in enumerate(requests)]
    served = [_row(path, number, request, form) for number, request in enumerate(requests) if request.took_s]
    by_name = {name: _make(engine, name, {"io": io, "requests": served}.get(name, [])) for name in COLUMNS}
    return Tables(by_name, engine), [f"{path.name}: left out: {count} {what}" for what, count in stats.left_out.items()]


def _row(path: Path, number: int, request: Request, form: str) -> dict[str, Any]:
    return {
        "session": path.name,
        "time": round(request.at_s * 1e9),
        "second": int(request.at_s),
        "bio": number,
        "sector": request.sector,
        "bytes": request.sectors * SECTOR,
        "operation": request.op,
        "carrier": request.process if form == _KNOWN_CARRIER else None,
        "device_us": round(request.took_s * 1e6),
    }


def _make(engine: ibis.BaseBackend, name: str, rows: list[dict[str, Any]]) -> ibis.Table:
    """A table of rows that lack what nobody knows."""
    shape = schema(name).to_pyarrow()
    shaped = [{column: row.get(column) for column in COLUMNS[name]} for row in rows]
    return engine.create_table(name, pa.Table.from_pylist(shaped, schema=shape), temp=True)
