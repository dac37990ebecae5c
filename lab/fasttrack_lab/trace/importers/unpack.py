# SPDX-License-Identifier: GPL-2.0-only
"""What is packed: whole files (gzip, atrace's), and parts of files (zstd, zlib)."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

GZIP = b"\x1f\x8b"
ATRACE = b"TRACE:\n"
"""What `atrace -z` prints before zlib's bytes."""
_CHUNK = 1 << 20
_MOST = 512 << 20
"""Bytes that a packed part may have: more is damage, or made to fill the memory."""
_ANY_HEAD = 32 + zlib.MAX_WBITS
"""zlib finds out whether it is gzip's or zlib's head."""


class Packed(Exception):
    """Bytes that cannot be unpacked."""


def inflated(data: bytes, codec: str, most: int = _MOST) -> bytes:
    """Unpacks a part of at most so many bytes. CODEC is zstd or zlib."""
    if codec == "zlib":
        one = zlib.decompressobj(_ANY_HEAD)
        try:
            found = one.decompress(data, min(most, _MOST) + 1)
        except zlib.error as error:
            raise Packed(str(error)) from error
    else:
        try:
            with pa.input_stream(pa.BufferReader(data), compression=codec) as stream:
                found = stream.read(min(most, _MOST) + 1)
        except (OSError, pa.ArrowException) as error:
            raise Packed(str(error)) from error
    if len(found) > min(most, _MOST):
        raise Packed(f"it is larger than {min(most, _MOST)} bytes")
    return bytes(found)


def is_packed(head: bytes) -> bool:
    """Whether a whole file is."""
    return head.startswith((GZIP, ATRACE)) and _begin(head) is not None


def _begin(head: bytes) -> int | None:
    """Where the packed bytes begin."""
    if head.startswith(GZIP):
        return 0
    return len(ATRACE) if head[len(ATRACE) : len(ATRACE) + 1] == b"\x78" else None


def head_of(path: Path, count: int) -> bytes:
    """The first bytes of a file, unpacked if it is packed."""
    with path.open("rb") as file:
        head = file.read(count)
    if not is_packed(head):
        return head
    try:
        return zlib.decompressobj(_ANY_HEAD).decompress(head[_begin(head) :], count)
    except zlib.error:
        return head


def unpacked(path: Path, to: Path, tell: Callable[[Path, int, int, str], None]) -> Path:
    """PATH if it is not packed, else what is in it, in the file TO; what cannot be unpacked is told."""
    with path.open("rb") as file:
        head = file.read(len(ATRACE) + 1)
        if not is_packed(head):
            return path
        file.seek(_begin(head) or 0)
        one = zlib.decompressobj(_ANY_HEAD)
        with to.open("wb") as out:
            while data := one.unconsumed_tail or file.read(_CHUNK):
                at = file.tell() - len(data)
                try:
                    out.write(one.decompress(data, _CHUNK))
                except zlib.error as error:
                    tell(path, at, path.stat().st_size - at, f"cannot be unpacked: {error}")
                    return to
                if one.eof:
                    # gzip files may follow each other.
                    data = one.unused_data or file.read(_CHUNK)
                    if not data.startswith(GZIP):
                        return to
                    one = zlib.decompressobj(_ANY_HEAD)
                    out.write(one.decompress(data, _CHUNK))
        tell(path, path.stat().st_size, 0, "it ends within packed bytes")
        return to
