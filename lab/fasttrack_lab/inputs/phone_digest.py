# SPDX-License-Identifier: GPL-2.0-only
"""The parameters of the emulated phones' storage, as the kernel's source has them.

The lab passes a phone's name to the emulated device, which looks the parameters up in its own table; so they are read
there. A profile keeps their digest: with other parameters its numbers are those of another device.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path

from fasttrack_lab.host.errors import LabError
from fasttrack_lab.host.paths import KERNEL
from fasttrack_lab.host.paths import digest as digest_of

SOURCE = KERNEL / "overlay" / "drivers" / "scsi" / "mflash" / "phones.c"

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_MACRO = re.compile(r"^#define[ \t]+(\w+)[ \t]+(.*)$", re.MULTILINE)
_TABLE = re.compile(r"^static const struct mflash_phone phones\[\] = \{(.*?)^\};", re.MULTILINE | re.DOTALL)
_ENTRY = re.compile(r"\{([^{}]*)\}")
_FIELD = re.compile(r"\.(\w+)\s*=\s*(\S.*)", re.DOTALL)
_PRODUCT = re.compile(r"\d+(\s*\*\s*\d+)*")


def _expanded(text: str, macros: Mapping[str, str]) -> str:
    """TEXT with the macros' values; one that names itself is an error."""
    for _ in range(len(macros) + 1):
        before, text = text, re.sub(r"\b[A-Za-z_]\w*", lambda word: macros.get(word[0], word[0]), text)
        if text == before:
            return text
    raise LabError("a macro names itself")


def _value(text: str) -> str:
    """A product of integers as its value, all else as it is."""
    return str(math.prod(map(int, text.split("*")))) if _PRODUCT.fullmatch(text) else text


def _entry(text: str, macros: Mapping[str, str]) -> dict[str, str]:
    """Fields of an initialiser; as in C, the last of a name counts."""
    found = {}
    for part in filter(None, map(str.strip, _expanded(text, macros).split(","))):
        field = _FIELD.fullmatch(part)
        if not field:
            raise LabError(f"{part!r} is no field with a value")
        found[field[1]] = _value(field[2])
    return found


def parameters(name: str, source: Path = SOURCE) -> dict[str, str]:
    """A phone's parameters by their names in struct mflash_phone, macros expanded. Raises LabError."""
    try:
        text = _COMMENT.sub(" ", source.read_text(encoding="utf-8").replace("\\\n", " "))
        table = _TABLE.search(text)
        entries = [_entry(one, dict(_MACRO.findall(text))) for one in _ENTRY.findall(table[1] if table else "")]
    except (OSError, UnicodeDecodeError, LabError) as error:
        raise LabError(f"{source}: the phones' parameters cannot be read: {error}") from error
    for found in entries:
        if found.get("name") == f'"{name}"':
            return found
    raise LabError(f"{source} has no parameters of the phone {name}")


def digest(name: str, source: Path = SOURCE) -> str:
    """SHA-256 of a phone's parameters; their order, layout and comments do not count."""
    return digest_of(f"{key}={value}" for key, value in sorted(parameters(name, source).items()))
