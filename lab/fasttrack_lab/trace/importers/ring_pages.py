# SPDX-License-Identifier: GPL-2.0-only
"""Pages of ftrace's ring buffer (Documentation/trace/ring-buffer-map.rst, include/linux/ring_buffer.h), as trace-cmd
saves them: packed in chunks or not.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fasttrack_lab.trace.importers.unpack import Packed, inflated
from fasttrack_lab.trace.importers.windows import Window

_PADDING, _EXTEND, _ABSOLUTE = 29, 30, 31
_MISSED, _STORED, _COMMIT = 1 << 31, 1 << 30, (1 << 27) - 1
_DELTA_BITS = 27
_UPPER = 0x1F << 59
"""Bits of a time that an absolute one does not have."""
_CHUNK = 64 << 20
"""Bytes: a larger chunk is damage."""
Tell = Callable[[Path, int, int, str], None]


@dataclass(frozen=True)
class Layout:
    """How a page begins."""

    long_bytes: int = 8
    """Of the kernel."""

    @property
    def header(self) -> int:
        """Bytes before the events."""
        return 8 + self.long_bytes


@dataclass
class Found:
    """What a page has."""

    begin: int = 0
    """Its first time."""
    events: list[tuple[int, bytes]] = field(default_factory=list)
    lost: list[int | None] = field(default_factory=list)
    """Events lost before it, if the ring counted them."""
    wrong: str = ""
    """Why the rest of it cannot be read."""


def events(page: bytes, layout: Layout, order: str) -> Found:
    """The events of a page with their times."""
    found = Found()
    if len(page) < layout.header:
        found.wrong = "a page without its head"
        return found
    word, long_word = struct.Struct(order + "I"), struct.Struct(order + ("Q" if layout.long_bytes == 8 else "I"))
    (time,) = struct.unpack_from(order + "Q", page)
    (commit,) = long_word.unpack_from(page, 8)
    found.begin = time
    at, end = layout.header, layout.header + (commit & _COMMIT)
    if end > len(page):
        found.wrong = f"a page that says it has {commit & _COMMIT} bytes"
        end = len(page)
    if commit & _MISSED:
        stored = commit & _STORED and end + layout.long_bytes <= len(page)
        found.lost.append(long_word.unpack_from(page, end)[0] if stored else None)
    little = order == "<"
    while at + 4 <= end:
        (head,) = word.unpack_from(page, at)
        kind, delta = (head & 31, head >> 5) if little else (head >> _DELTA_BITS, head & ((1 << _DELTA_BITS) - 1))
        at += 4
        if 1 <= kind < _PADDING:
            time += delta
            found.events.append((time, page[at : at + kind * 4]))
            at += kind * 4
            continue
        if kind == _PADDING and delta == 0:
            break
        if at + 4 > end:
            found.wrong = "an event that is cut"
            break
        (more,) = word.unpack_from(page, at)
        if kind == _EXTEND:
            time += (more << _DELTA_BITS) + delta
            at += 4
        elif kind == _ABSOLUTE:
            time = (more << _DELTA_BITS) + delta | time & _UPPER
            at += 4
        elif more < 4 or at + more > end:
            found.wrong = f"an event of {more} bytes"
            break
        else:
            time += delta
            if kind != _PADDING:
                found.events.append((time, page[at + 4 : at + more]))
            at += more
    return found


def pages(
    path: Path, begin: int, size: int, page_bytes: int, codec: str | None, order: str, tell: Tell
) -> Iterator[tuple[int, bytes]]:
    """The pages of a processor with their places in the file."""
    if size == 0:
        return
    if codec is not None:
        # SIZE leaves out the heads of chunks, and is the unpacked one in some files.
        with Window(path, begin) as window:
            yield from _packed(path, window, page_bytes, codec, order, tell)
        return
    with Window(path, begin, begin + size) as window:
        if window.size < begin + size:
            tell(path, window.size, begin + size - window.size, "the file ends within the events of a processor")
        yield from _plain(window, page_bytes)


def _plain(window: Window, page_bytes: int) -> Iterator[tuple[int, bytes]]:
    while window.has(1):
        at, count = window.at, min(page_bytes, window.size - window.at)
        if not window.has(count):
            return
        yield at, window.take(count)


def _packed(
    path: Path, window: Window, page_bytes: int, codec: str, order: str, tell: Tell
) -> Iterator[tuple[int, bytes]]:
    """Chunks: how many, and each with its size packed and not."""
    if not window.has(4):
        tell(path, window.at, 0, "the chunks of a processor are not there")
        return
    (count,) = struct.unpack(order + "I", window.take(4))
    for chunk in range(count):
        at = window.at
        if not window.has(8):
            tell(path, at, 0, f"{count - chunk} chunks of a processor are not there")
            return
        packed, whole = struct.unpack(order + "II", window.take(8))
        if packed > _CHUNK or whole > _CHUNK or not window.has(packed):
            tell(path, at, window.size - at, "a chunk of a processor is cut")
            return
        try:
            data = inflated(window.take(packed), codec, whole)
        except Packed as error:
            tell(path, at, packed + 8, f"a chunk of a processor: {error}")
            continue
        for begin in range(0, len(data), page_bytes):
            yield at, data[begin : begin + page_bytes]
