# SPDX-License-Identifier: GPL-2.0-only
"""Formats of the kernel's events, as `events/*/*/format` says them, and the fields of an event's bytes."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FIELD = re.compile(
    r"field:\s*(?P<what>[^;]+);\s*offset:(?P<offset>\d+);\s*size:(?P<size>\d+);(?:\s*signed:(?P<signed>\d);)?"
)
_NAME = re.compile(r"^name: (\S+)", re.MULTILINE)
_ID = re.compile(r"^ID: (\d+)", re.MULTILINE)
_DYNAMIC = ("__data_loc", "__rel_loc")


def number_of(data: bytes, order: str, signed: bool = False) -> int:
    """All of DATA as a number. ORDER is struct's sign."""
    return int.from_bytes(data, "big" if order == ">" else "little", signed=signed)


@dataclass(frozen=True)
class Field:
    """Where a field is."""

    offset: int
    size: int
    signed: bool
    dynamic: str = ""
    """`__data_loc` and `__rel_loc`: it says where its content is."""


@dataclass(frozen=True)
class Format:
    """What an event's bytes mean."""

    name: str
    number: int
    fields: dict[str, Field]

    def integer(self, data: bytes, name: str, order: str) -> int | None:
        """A number of an event; None if it has none."""
        field = self.fields.get(name)
        if field is None or not 0 < field.size <= 8 or field.offset + field.size > len(data):
            return None
        part = data[field.offset : field.offset + field.size]
        return number_of(part, order, field.signed)

    def text(self, data: bytes, name: str, order: str) -> str | None:
        """A text of an event; None if it has none."""
        field = self.fields.get(name)
        if field is None or field.offset + field.size > len(data):
            return None
        begin, size = field.offset, field.size
        if field.dynamic:
            place = number_of(data[begin : begin + 4], order)
            base = begin + 4 if field.dynamic == "__rel_loc" else 0
            begin, size = base + (place & 0xFFFF), place >> 16
        return data[begin : begin + size].split(b"\0", 1)[0].decode("utf-8", errors="replace")


def parse(text: str) -> Format | None:
    """A format; None where the text is none."""
    name, number = _NAME.search(text), _ID.search(text)
    if name is None or number is None or len(number[1]) > 5:
        return None
    return Format(name[1], int(number[1]), fields_of(text))


def fields_of(text: str) -> dict[str, Field]:
    """The fields of a format, or of a page's header."""
    found = {}
    for match in _FIELD.finditer(text):
        what = match["what"].split("[", 1)[0].split()
        if not what or len(match["offset"]) > 6 or len(match["size"]) > 6:
            continue
        dynamic = next((sign for sign in _DYNAMIC if sign in what), "")
        # `__data_loc char[] name`: the name is behind the brackets.
        name = match["what"].split()[-1].split("[", 1)[0]
        found[name] = Field(int(match["offset"]), int(match["size"]), match["signed"] == "1", dynamic)
    return found
