# SPDX-License-Identifier: GPL-2.0-only
"""The parts of a trace.dat: its head, formats of events, options, and where each processor's pages are."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from fasttrack_lab.trace.importers.event_formats import Format, fields_of, number_of, parse
from fasttrack_lab.trace.importers.ring_pages import Layout
from fasttrack_lab.trace.importers.unpack import Packed, inflated

MAGIC = b"\x17\x08\x44tracing"
_VERSIONS = (6, 7)
_PART = 256 << 20
"""Bytes: a part that says it is larger is damaged."""
_COUNT = 100_000
"""Systems, events, processors: more are damage."""
_PLACES = 1 << 42
"""Bytes: no file is larger; file systems refuse places that are."""
_COMPRESSED = 1
_CODECS = ("zstd", "zlib")
_DATE, _BUFFER, _CLOCK, _UNAME, _OFFSET, _TICK = 1, 3, 4, 5, 7, 14
_HEADER_INFO, _EVENT_FORMATS = 16, 18
_DONE = 0
_NS_PER_US = 1000
"""The option DATE counts us."""
Tell = Callable[[Path, int, int, str], None]


class Cut(Exception):
    """A part is not there, or is not what it should be."""

    def __init__(self, what: str, at: int) -> None:
        self.at = at
        super().__init__(what)


@dataclass(frozen=True)
class Processor:
    """Where a processor's pages are."""

    number: int
    at: int
    size: int


@dataclass
class Buffer:
    """The pages of an instance."""

    name: str
    clock: str
    page_bytes: int
    cpus: list[Processor] = field(default_factory=list)
    packed: bool = False


@dataclass
class Contents:
    """What a file says before its pages."""

    version: int
    order: str
    page_bytes: int
    codec: str | None = None
    formats: list[Format] = field(default_factory=list)
    page: Layout = field(default_factory=Layout)
    clock: str = ""
    uname: str = ""
    offset: int = 0
    """ns that are added to each time."""
    real_offset: int | None = None
    """ns from a time to real time."""
    tick: tuple[int, int] | None = None
    """Multiplier and shift that make ns of ticks."""
    buffers: list[Buffer] = field(default_factory=list)


class Parts:
    """Reads numbers and texts in the file's order of bytes; `Cut` where they end."""

    def __init__(self, file: BinaryIO, order: str, at: int = 0) -> None:
        """FILE is a file, or a part of one that was unpacked and begins at byte AT of it."""
        self._file = file
        self.order = order
        self._base = at

    @property
    def at(self) -> int:
        """Where it is in the file."""
        return self._base + self._file.tell()

    def seek(self, at: int) -> None:
        """Goes to a place."""
        if at >= _PLACES:
            raise Cut("a place outside the file", self.at)
        self._file.seek(at)

    def take(self, count: int, what: str) -> bytes:
        """So many bytes."""
        at = self.at
        if count > _PART:
            raise Cut(f"{what} says it has {count} bytes", at)
        data = self._file.read(count)
        if len(data) < count:
            raise Cut(f"the file ends within {what}", at)
        return data

    def number(self, size: int, what: str) -> int:
        """A number without a sign."""
        return number_of(self.take(size, what), self.order)

    def text(self, what: str) -> str:
        """A text that a 0 ends."""
        found = bytearray()
        while (sign := self.take(1, what)) != b"\0":
            found += sign
            if len(found) > 4096:
                raise Cut(f"{what} has no end", self.at)
        return found.decode("utf-8", errors="replace")

    def count(self, size: int, what: str) -> int:
        """How many of something follow."""
        at, found = self.at, self.number(size, what)
        if found > _COUNT:
            raise Cut(f"{what}: {found}", at)
        return found


def contents_of(path: Path, tell: Tell) -> Contents:
    """What is before the pages; `Cut` where nothing of the file can be read without it."""
    with path.open("rb") as file:
        parts = Parts(file, "<")
        if parts.take(len(MAGIC), "its magic") != MAGIC:
            raise Cut("no trace.dat: its first bytes are others", 0)
        version = parts.text("its version")
        if not version.isdigit() or int(version) not in _VERSIONS:
            raise Cut(f"version {version[:20]}; read are 6 and 7", len(MAGIC))
        parts.order = ">" if parts.number(1, "its order of bytes") else "<"
        long_bytes = parts.number(1, "its size of a long")
        contents = Contents(int(version), parts.order, parts.number(4, "its size of a page"))
        contents.page = Layout(long_bytes if long_bytes in (4, 8) else 8)
        if not 256 <= contents.page_bytes <= 1 << 24:
            raise Cut(f"a page of {contents.page_bytes} bytes", parts.at - 4)
        if contents.version == 7:
            _Seven(path, parts, contents, tell).read()
        else:
            _six(path, parts, contents, tell)
        return contents


def _six(path: Path, parts: Parts, contents: Contents, tell: Tell) -> None:
    """Version 6: one part after the other."""
    _page_header(parts, contents)
    for _ in range(parts.count(4, "the number of ftrace's formats")):
        parts.take(parts.number(8, "a format's size"), "a format of ftrace")
    _systems(parts, contents)
    parts.take(parts.number(4, "kallsyms"), "kallsyms")
    parts.take(parts.number(4, "formats of printk"), "formats of printk")
    parts.take(parts.number(8, "names of tasks"), "names of tasks")
    cpus = parts.count(4, "the number of processors")
    instances: list[tuple[int, str]] = []
    kind = parts.take(10, "the kind of its content")
    if kind == b"options  \0":
        while (option := parts.number(2, "an option")) != _DONE:
            data = parts.take(parts.number(4, "an option's size"), "an option")
            if option == _BUFFER and len(data) > 8:
                instances.append((number_of(data[:8], parts.order), _text_of(data[8:])))
            else:
                _option(option, data, contents)
        kind = parts.take(10, "the kind of its content")
    if kind != b"flyrecord\0":
        raise Cut("its content is no pages of events", parts.at - 10)
    contents.buffers.append(_six_buffer(parts, "", cpus, contents.page_bytes))
    for at, name in instances:
        try:
            parts.seek(at)
            if parts.take(10, f"the instance {name}") != b"flyrecord\0":
                raise Cut(f"the instance {name} is not there", at)
            contents.buffers.append(_six_buffer(parts, name, cpus, contents.page_bytes))
        except Cut as cut:
            tell(path, cut.at, 0, str(cut))


def _six_buffer(parts: Parts, name: str, cpus: int, page_bytes: int) -> Buffer:
    found = Buffer(name, "", page_bytes)
    for cpu in range(cpus):
        at, size = parts.number(8, "a processor's place"), parts.number(8, "a processor's size")
        found.cpus.append(Processor(cpu, at, size))
    return found


def _page_header(parts: Parts, contents: Contents) -> None:
    """How a page begins: the size of a long of the kernel is in it."""
    parts.take(len(b"header_page\0"), "the header of pages")
    text = parts.take(parts.number(8, "the header of pages"), "the header of pages").decode(errors="replace")
    fields = fields_of(text)
    if "commit" in fields and fields["commit"].size in (4, 8):
        contents.page = Layout(fields["commit"].size)
    parts.take(len(b"header_event\0"), "the header of events")
    parts.take(parts.number(8, "the header of events"), "the header of events")


def _systems(parts: Parts, contents: Contents) -> None:
    """The formats of events by system. What was read before a cut is kept."""
    for _ in range(parts.count(4, "the number of systems")):
        parts.text("a system's name")
        for _ in range(parts.count(4, "the number of events")):
            text = parts.take(parts.number(8, "a format's size"), "a format of an event")
            found = parse(text.decode("utf-8", errors="replace"))
            if found is not None:
                contents.formats.append(found)


def _text_of(data: bytes) -> str:
    return data.split(b"\0", 1)[0].decode("utf-8", errors="replace")


def _option(option: int, data: bytes, contents: Contents) -> None:
    """An option that matters here."""
    order = contents.order
    if option == _UNAME:
        contents.uname = _text_of(data)
    elif option == _CLOCK:
        # `[local] global counter`: the one in brackets.
        text = _text_of(data)
        contents.clock = text[text.find("[") + 1 : text.find("]")] if "[" in text else text.strip()
    elif option == _OFFSET:
        text = _text_of(data).strip()
        if text.lstrip("-").isdigit() and len(text) < 20:
            contents.offset += int(text)
    elif option == _TICK and len(data) >= 16:
        multiplier, shift = struct.unpack(order + "II", data[:8])
        if multiplier and shift < 64:
            contents.tick = multiplier, shift
    elif option == _DATE:
        text = _text_of(data).strip()
        sign = -1 if text.startswith("-") else 1
        digits = text.lstrip("-").removeprefix("0x")
        if digits and len(digits) <= 16 and all(one in "0123456789abcdefABCDEF" for one in digits):
            contents.real_offset = sign * int(digits, 16) * _NS_PER_US


class _Seven:
    """Version 7: sections, which options tell of."""

    def __init__(self, path: Path, parts: Parts, contents: Contents, tell: Tell) -> None:
        self._path = path
        self._parts = parts
        self._contents = contents
        self._tell = tell

    def read(self) -> None:
        parts, contents = self._parts, self._contents
        name = parts.text("the name of its compression")
        parts.text("the version of its compression")
        if name not in ("", "none"):
            if name not in _CODECS:
                raise Cut(f"its compression {name[:20]} is not known; zstd and zlib are", parts.at)
            contents.codec = name
        at = parts.number(8, "the place of its options")
        places: dict[int, int] = {}
        seen: set[int] = set()
        while at and at not in seen:
            seen.add(at)
            try:
                at = self._options(at, places)
            except Cut as cut:
                self._tell(self._path, cut.at, 0, f"options: {cut}")
                break
        for section, take in ((_HEADER_INFO, _page_header), (_EVENT_FORMATS, _systems)):
            if section not in places:
                continue
            try:
                take(self._section(places[section]), contents)
            except Cut as cut:
                self._tell(self._path, cut.at, 0, str(cut))

    def _section(self, at: int) -> Parts:
        """A section's content, unpacked."""
        parts = self._parts
        parts.seek(at)
        parts.number(2, "a section")
        packed = parts.number(2, "a section") & _COMPRESSED
        parts.number(4, "a section")
        size = parts.number(8, "a section's size")
        if not packed:
            at = parts.at
            return Parts(BytesIO(parts.take(size, "a section")), parts.order, at)
        if self._contents.codec is None:
            raise Cut("a packed section, while the head says that nothing is packed", at)
        small, whole = parts.number(4, "a section's size"), parts.number(4, "a section's size")
        if whole > _PART:
            raise Cut(f"a section says it has {whole} bytes", parts.at)
        try:
            return Parts(BytesIO(inflated(parts.take(small, "a section"), self._contents.codec, whole)), parts.order)
        except Packed as error:
            raise Cut(f"a section cannot be unpacked: {error}", at) from error

    def _options(self, at: int, places: dict[int, int]) -> int:
        """Takes a section of options; where the next is."""
        parts = self._section(at)
        while True:
            option = parts.number(2, "an option")
            data = parts.take(parts.number(4, "an option's size"), "an option")
            inside = Parts(BytesIO(data), parts.order, parts.at)
            if option == _DONE:
                return inside.number(8, "the place of more options")
            if option == _BUFFER:
                self._buffer(inside)
            elif option in (_HEADER_INFO, _EVENT_FORMATS):
                places[option] = inside.number(8, "the place of a section")
            else:
                _option(option, data, self._contents)

    def _buffer(self, option: Parts) -> None:
        """An instance and its processors."""
        at = option.number(8, "a buffer's place")
        found = Buffer(
            option.text("a buffer's name"), option.text("a buffer's clock"), option.number(4, "a page's size")
        )
        if not 256 <= found.page_bytes <= 1 << 24:
            found.page_bytes = self._contents.page_bytes
        self._contents.buffers.append(found)
        for _ in range(option.count(4, "a buffer's processors")):
            found.cpus.append(Processor(*(option.number(size, "a processor's place") for size in (4, 8, 8))))
        self._parts.seek(at)
        self._parts.number(2, "a buffer")
        found.packed = bool(self._parts.number(2, "a buffer") & _COMPRESSED)
