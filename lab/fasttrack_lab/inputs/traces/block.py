# SPDX-License-Identifier: GPL-2.0-only
"""What the readers of block recordings share: requests, and the dense mapping of their sectors onto one file.

The 4 KiB blocks that the recording touches are put one after another in the order of their sectors, so neighbours
stay neighbours and requests that were sequential stay sequential, while the gaps between them vanish. A file above
`MAX_FILE` is folded: the offset modulo that size, moved down where a request would cross the end.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fasttrack_lab.host.units import format_size
from fasttrack_lab.inputs.traces.model import Call, NeededFile, Stats, Trace, Window, finish

SECTOR = 512
BLOCK = 4096
MAX_FILE = 1 << 30
"""Bytes: a phone of the lab holds 16 GiB, and a prepared image of 1 GiB is made in seconds."""
MAX_THREADS = 64
"""Recordings name hundreds of kernel workers; above this number they share replaying threads."""
FILE = "blocks"


@dataclass(frozen=True)
class Request:
    """One recorded request: seconds from the first event, who issued it, what, and how long it took (0: unknown)."""

    at_s: float
    process: str
    op: str
    """read, write or flush."""
    device: str
    sector: int
    sectors: int
    took_s: float = 0.0


class DenseMap:
    """Sectors of a recording -> offsets in one file."""

    def __init__(self, requests: Iterable[Request]) -> None:
        """Takes every block that a request touches."""
        spans = sorted(
            (item.device, item.sector * SECTOR // BLOCK, -(-(item.sector + item.sectors) * SECTOR // BLOCK))
            for item in requests
            if item.sectors
        )
        self._starts: list[tuple[str, int]] = []
        self._offsets: list[int] = []
        self.blocks = 0
        end = 0
        for device, span_start, span_end in spans:
            if not self._starts or device != self._starts[-1][0] or span_start > end:
                self._starts.append((device, span_start))
                self._offsets.append(self.blocks)
                end = span_start
            self.blocks += max(0, span_end - end)
            end = max(end, span_end)

    @property
    def folded(self) -> bool:
        """Whether the dense file had to be folded."""
        return self.blocks * BLOCK > MAX_FILE

    @property
    def file_bytes(self) -> int:
        """Size of the file."""
        return min(self.blocks * BLOCK, MAX_FILE)

    def place(self, request: Request) -> tuple[int, int]:
        """Offset and length in bytes, both multiples of the block."""
        first = request.sector * SECTOR // BLOCK
        last = -(-(request.sector + request.sectors) * SECTOR // BLOCK)
        index = bisect_right(self._starts, (request.device, first)) - 1
        offset = (self._offsets[index] + first - self._starts[index][1]) * BLOCK
        length = min((last - first) * BLOCK, self.file_bytes)
        offset %= self.file_bytes
        return min(offset, self.file_bytes - length), length


def _thread_numbers(requests: list[Request]) -> dict[str, int]:
    """A number for each process, in the order of appearance, folded to `MAX_THREADS`."""
    numbers: dict[str, int] = {}
    for request in requests:
        numbers.setdefault(request.process, len(numbers) % MAX_THREADS + 1)
    return numbers


def to_trace(source: Path, format: str, requests: list[Request], stats: Stats, window: Window) -> Trace:
    """The trace of the requests inside the window. A request's own time is taken off the gap that follows it."""
    inside = [request for request in requests if window.holds(request.at_s)]
    if len(inside) < len(requests):
        stats.left_out["outside the window"] += len(requests) - len(inside)
    inside.sort(key=lambda request: request.at_s)
    mapping = DenseMap(inside)
    threads = _thread_numbers(inside)
    early: dict[int, float] = {}
    calls: list[Call] = []
    for request in inside:
        thread = threads[request.process]
        us = round((request.at_s - early.get(thread, 0.0)) * 1e6)
        early[thread] = early.get(thread, 0.0) + request.took_s
        if request.op == "flush":
            calls.append(Call(thread, us, "bflush"))
            continue
        offset, length = mapping.place(request)
        calls.append(Call(thread, us, "bread" if request.op == "read" else "bwrite", (offset, length)))
        if request.op == "read":
            stats.bytes_read += length
        else:
            stats.bytes_written += length
    if mapping.folded:
        stats.notes.append(
            f"{format_size(mapping.blocks * BLOCK)} of distinct blocks folded into a file of {format_size(MAX_FILE)}"
        )
    if len(set(threads)) > MAX_THREADS:
        stats.notes.append(f"{len(set(threads))} processes share {MAX_THREADS} replaying threads")
    needed = [NeededFile(FILE, mapping.file_bytes)] if mapping.blocks else []
    return Trace(source, format, finish(calls, stats, window), needed, stats)
