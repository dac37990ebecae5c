# SPDX-License-Identifier: GPL-2.0-only
"""Protocol Buffers' wire format, as far as a writer of a few fields needs it: each function gives a field's bytes."""

from __future__ import annotations

from functools import cache

from fasttrack_lab.trace.importers.wire_format import BYTES, FIXED64, VARINT

_LIMIT = 1 << 64
_ONE = tuple(bytes([number]) for number in range(0x80))
"""Numbers of one byte, of which most fields are."""
_TWO = tuple(bytes([number & 0x7F | 0x80, number >> 7]) for number in range(0x4000))
"""Two bytes that end a number; where they do not, both have the bit that says so."""
_MORE = tuple(bytes([number & 0x7F | 0x80, number >> 7 | 0x80]) for number in range(0x4000))


def varint(number: int) -> bytes:
    """A number; one below 0 as two's complement of 64 bits."""
    if 0 <= number < 0x80:
        return _ONE[number]
    if number < 0:
        number %= _LIMIT
    found = b""
    while number > 0x3FFF:
        found += _MORE[number & 0x3FFF]
        number >>= 14
    return found + (_ONE[number] if number < 0x80 else _TWO[number])


@cache
def tag(field: int, wire: int) -> bytes:
    """What stands before a field."""
    return varint(field << 3 | wire)


def integer(field: int, number: int) -> bytes:
    """An int, uint, bool or enum of any size."""
    return tag(field, VARINT) + varint(number)


def fixed64(field: int, number: int) -> bytes:
    """A fixed64."""
    return tag(field, FIXED64) + (number % _LIMIT).to_bytes(8, "little")


def blob(field: int, data: bytes) -> bytes:
    """A message, or bytes."""
    return tag(field, BYTES) + varint(len(data)) + data


def string(field: int, text: str) -> bytes:
    """A text."""
    return blob(field, text.encode("utf-8", errors="replace"))
