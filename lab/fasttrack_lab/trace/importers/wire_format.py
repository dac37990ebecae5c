# SPDX-License-Identifier: GPL-2.0-only
"""Protocol Buffers' wire format, as far as a reader of a few fields needs it; and the clocks of Perfetto's traces."""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
REALTIME, MONOTONIC, BOOTTIME = 1, 3, 6
"""BuiltinClock."""
SAME_OFFSET_NS = 1_000_000
"""Clocks that differ less than before are not told again."""
Value = int | bytes


class Wrong(Exception):
    """No such message, or a message that is cut."""


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number and where it ends."""
    found = shift = 0
    end = len(data)
    while at < end:
        byte = data[at]
        at += 1
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return found & 0xFFFF_FFFF_FFFF_FFFF, at
        shift += 7
        if shift > 63:
            raise Wrong("a number of more than 64 bits")
    raise Wrong("it is cut within a number")


def fields(data: bytes, cut: bool = False) -> Iterator[tuple[int, Value]]:
    """Number and value of each field, an int or bytes; `Wrong` after what could be read. CUT: the rest comes too."""
    at, end = 0, len(data)
    while at < end:
        tag, at = varint(data, at)
        number, wire = tag >> 3, tag & 7
        if number == 0:
            raise Wrong("a field without a number")
        if wire == VARINT:
            value, at = varint(data, at)
            yield number, value
            continue
        if wire == BYTES:
            size, at = varint(data, at)
        elif wire in (FIXED64, FIXED32):
            size = 8 if wire == FIXED64 else 4
        else:
            raise Wrong(f"a field of kind {wire}")
        if at + size > end:
            if cut and wire == BYTES:
                yield number, data[at:]
            raise Wrong("it is cut within a field")
        part = data[at : at + size]
        yield number, part if wire == BYTES else int.from_bytes(part, "little")
        at += size


def message(data: bytes) -> dict[int, Value]:
    """The fields of a message; of a repeated one the last."""
    return dict(fields(data))


def signed(value: Value | None) -> int | None:
    """An int32 or int64: its lower 64 bits, two's complement."""
    if not isinstance(value, int):
        return None
    return value - (1 << 64) if value >> 63 else value


def number(value: Value | None) -> int | None:
    """A number without a sign; None where the field is not there or is none."""
    return value if isinstance(value, int) else None


def text(value: Value | None) -> str | None:
    """A text; None where the field is not there or is none."""
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else None
