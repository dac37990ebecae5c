# SPDX-License-Identifier: GPL-2.0-only
"""What dm-crypt has written, in clear: the begin of each block, by the key and openssl."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator

from stock_disk import BLOCK, SECTOR

KEY = bytes.fromhex("00112233445566778899aabbccddeeff0123456789abcdef0123456789abcdef")
"""Of aes-xts-plain64, as tests/stock/suite.py has it: AES-128 for the content, and another one for the tweak."""

LENGTH = 16
"""Bytes of a block of AES."""


def _aes(content: bytes, key: bytes, way: str) -> bytes:
    argv = ["openssl", "enc", "-aes-128-ecb", "-nopad", way, "-K", key.hex()]
    return subprocess.run(argv, input=content, check=True, capture_output=True).stdout


def _xor(one: bytes, other: bytes) -> bytes:
    return (int.from_bytes(one, "little") ^ int.from_bytes(other, "little")).to_bytes(len(one), "little")


def decrypted(blocks: Iterable[tuple[int, bytes]], start: int) -> Iterator[tuple[int, bytes]]:
    """Place on the disk and first bytes of blocks of a device that begins at this byte of the disk.

    XTS, IEEE 1619: the first block of a sector is D(C ^ T) ^ T, where T is its number, encrypted with the second key;
    plain64 counts sectors of 512 bytes from the device's begin.
    """
    mine = [(place, begin) for place, begin in blocks if place * BLOCK >= start]
    numbers = ((place * BLOCK - start) // SECTOR for place, _ in mine)
    tweaks = _aes(b"".join(number.to_bytes(LENGTH, "little") for number in numbers), KEY[LENGTH:], "-e")
    content = _xor(_aes(_xor(b"".join(begin for _, begin in mine), tweaks), KEY[:LENGTH], "-d"), tweaks)
    for at, (place, _) in enumerate(mine):
        yield place, content[at * LENGTH : (at + 1) * LENGTH]
