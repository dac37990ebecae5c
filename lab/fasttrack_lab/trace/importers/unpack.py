# SPDX-License-Identifier: GPL-2.0-only
"""What is packed: whole files (gzip, zstd, atrace's; UTF-16 too), and parts of files (zstd, zlib)."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
ATRACE = b"TRACE:\n"
"""What `atrace -z` prints before zlib's bytes."""
UTF_16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
"""Texts that some shells make of another program's output."""
OTHERS = {b"\xfd7zXZ\0": "xz", b"BZh": "bzip2", b"PK\x03\x04": "zip", b"\x04\x22\x4d\x18": "lz4"}
"""Begins of what is not unpacked here."""
_CHUNK = 1 << 20
_MOST = 512 << 20
"""Bytes that a packed part may have: more is damage, or made to fill the memory."""
_ANY_HEAD = 32 + zlib.MAX_WBITS
"""zlib finds out whether it is gzip's or zlib's head."""
Tell = Callable[[Path, int, int, str], None]


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
    return head.startswith((GZIP, ZSTD, *UTF_16)) or _begin(head) > 0


def _begin(head: bytes) -> int:
    """Where zlib's bytes begin."""
    return len(ATRACE) if head.startswith(ATRACE + b"\x78") else 0


def head_of(path: Path, count: int) -> bytes:
    """The first bytes of a file, unpacked if it is packed."""
    with path.open("rb") as file:
        head = file.read(count)
    if not is_packed(head):
        return head
    if head[:2] in UTF_16:
        return head[2:].decode(UTF_16[head[:2]], errors="replace").encode(errors="replace")
    try:
        if head.startswith(ZSTD):
            with pa.input_stream(pa.BufferReader(head), compression="zstd") as stream:
                return bytes(stream.read1(count))
        return zlib.decompressobj(_ANY_HEAD).decompress(head[_begin(head) :], count)
    except (zlib.error, OSError, pa.ArrowException):
        return head


def unpacked(path: Path, to: Path, tell: Tell) -> Path:
    """PATH if it is not packed, else what is in it, in the file TO; what cannot be unpacked is told."""
    with path.open("rb") as file:
        head = file.read(len(ATRACE) + 1)
        if not is_packed(head):
            return path
        with to.open("wb") as out:
            if head[:2] in UTF_16:
                _decode(path, UTF_16[head[:2]], out)
            elif head.startswith(ZSTD):
                _unpack_zstd(path, out, tell)
            else:
                file.seek(_begin(head))
                _unpack_zlib(path, file, out, tell)
        return to


def _decode(path: Path, encoding: str, out: BinaryIO) -> None:
    with path.open(encoding=encoding, errors="replace", newline="") as text:
        text.read(1)
        while some := text.read(_CHUNK):
            out.write(some.encode(errors="replace"))


def _unpack_zstd(path: Path, out: BinaryIO, tell: Tell) -> None:
    with path.open("rb") as file:
        try:
            with pa.input_stream(file, compression="zstd") as stream:
                while data := stream.read(_CHUNK):
                    out.write(data)
        except (OSError, pa.ArrowException) as error:
            # Arrow reads ahead: where it is exactly is not known.
            tell(path, 0, 0, f"cannot be unpacked behind byte {out.tell()} of its content: {error}")


def _unpack_zlib(path: Path, file: BinaryIO, out: BinaryIO, tell: Tell) -> None:
    one = zlib.decompressobj(_ANY_HEAD)
    while data := one.unconsumed_tail or file.read(_CHUNK):
        at = file.tell() - len(data)
        try:
            out.write(one.decompress(data, _CHUNK))
        except zlib.error as error:
            tell(path, at, path.stat().st_size - at, f"cannot be unpacked: {error}")
            return
        if one.eof:
            # gzip files may follow each other.
            data = one.unused_data or file.read(_CHUNK)
            if not data.startswith(GZIP):
                return
            one = zlib.decompressobj(_ANY_HEAD)
            out.write(one.decompress(data, _CHUNK))
    tell(path, path.stat().st_size, 0, "it ends within packed bytes")
