# SPDX-License-Identifier: GPL-2.0-only
"""Packets of a Perfetto trace (protos/perfetto/trace/) of slices, instants, counters, flows and clocks.

One sequence; names and texts are interned, so a packet needs those before it and none after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from fasttrack_lab.trace.importers.wire_encode import blob, fixed64, integer, string, tag, varint
from fasttrack_lab.trace.importers.wire_format import BOOTTIME, BYTES, REALTIME, VARINT

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
"""TrackEvent.Type."""
_SEQUENCE = 1
_CLEARED, _NEEDED = 1, 2
"""TracePacket.SequenceFlags, of the incremental state."""
_COUNT = 2
"""CounterDescriptor.UNIT_COUNT."""
_CATEGORY, _NAME, _ARGUMENT, _TEXT = 1, 2, 3, 29
"""Fields of InternedData; each entry is an id and a text."""

Argument = int | bool | str | None


@dataclass(frozen=True, eq=False)
class Track:
    """A row of the timeline, told at its first event."""

    name: str
    parent: Track | None = None
    pid: int | None = None
    """Of a process: then NAME is the process's. With TID of a thread."""
    tid: int | None = None
    counter: bool = False


_NOTHING: Mapping[str, Argument] = MappingProxyType({})


class Event(NamedTuple):
    """What happens on a track at a time, ns of the boot clock."""

    time: int
    kind: int
    track: Track
    name: str = ""
    category: str = ""
    arguments: Mapping[str, Argument] = _NOTHING
    """Unknown ones, None, are left out."""
    flows: Sequence[int] = ()
    ends_flows: Sequence[int] = ()
    value: int = 0


_TIME = tag(8, VARINT)
_OF_CLOCK = integer(58, BOOTTIME)
_EVENT, _ANNOTATION = tag(11, BYTES), tag(4, BYTES)
_BOOL, _INT = tag(2, VARINT), tag(4, VARINT)
_KEPT = 1 << 16
"""Texts of arguments whose bytes are kept: all names of files and more, but not all of a long trace."""


class Packets:
    """Makes packets, each with its head as a file has it. What comes again and again is kept as bytes."""

    def __init__(self) -> None:
        self._interned: dict[tuple[int, str], int] = {}
        self._new: list[bytes] = []
        self._uuids: dict[Track, int] = {}
        self._kinds: dict[tuple[int, Track], bytes] = {}
        self._names: dict[tuple[str, str], bytes] = {}
        self._arguments: dict[str, bytes] = {}
        self._texts: dict[tuple[str, str], bytes] = {}
        self._flags = _CLEARED | _NEEDED
        self._head = integer(10, _SEQUENCE) + integer(13, _NEEDED)

    def clock(self, time: int, real_ns: int) -> bytes:
        """The clocks at one moment."""
        pairs = ((BOOTTIME, time), (REALTIME, real_ns))
        clocks = b"".join(blob(1, integer(1, clock) + integer(2, at)) for clock, at in pairs)
        return self._packet(blob(6, clocks + integer(2, BOOTTIME)))

    def event(self, event: Event) -> bytes:
        """An event, after its track where that is not told yet."""
        time, kind, track, name, category, arguments, flows, ends_flows, value = event
        before = b"" if track in self._uuids else b"".join(self._told(track))
        body = self._kinds.get((kind, track)) or self._kind(kind, track)
        if kind == COUNTER:
            body += integer(30, value)
        elif kind != END:
            body += self._names.get((category, name)) or self._name(category, name)
            for argument, said in arguments.items():
                if said is not None:
                    body += self._argument(argument, said)
            for flow in flows:
                body += fixed64(47, flow)
            for flow in ends_flows:
                body += fixed64(48, flow)
        return before + self._packet(_TIME + varint(time) + _OF_CLOCK + _EVENT + varint(len(body)) + body)

    def _kind(self, kind: int, track: Track) -> bytes:
        made = self._kinds[kind, track] = integer(9, kind) + integer(11, self._uuids[track])
        return made

    def _name(self, category: str, name: str) -> bytes:
        made = integer(3, self._id(_CATEGORY, category)) + integer(10, self._id(_NAME, name))
        self._names[category, name] = made
        return made

    def _told(self, track: Track) -> Iterator[bytes]:
        if track in self._uuids:
            return
        if track.parent is not None:
            yield from self._told(track.parent)
        uuid = self._uuids[track] = len(self._uuids) + 1
        body = integer(1, uuid)
        if track.tid is not None:
            body += blob(4, integer(1, track.pid or 0) + integer(2, track.tid) + string(5, track.name))
        elif track.pid is not None:
            body += blob(3, integer(1, track.pid) + string(6, track.name))
        else:
            body += string(2, track.name)
            body += integer(5, self._uuids[track.parent]) if track.parent is not None else b""
        body += blob(8, integer(3, _COUNT)) if track.counter else b""
        yield self._packet(blob(60, body))

    def _argument(self, name: str, value: int | bool | str) -> bytes:
        if isinstance(value, str):
            return self._texts.get((name, value)) or self._text(name, value)
        head = self._arguments.get(name)
        if head is None:
            head = self._arguments[name] = integer(1, self._id(_ARGUMENT, name))
        body = head + (_BOOL if isinstance(value, bool) else _INT) + varint(value)
        return _ANNOTATION + varint(len(body)) + body

    def _text(self, name: str, value: str) -> bytes:
        if len(self._texts) >= _KEPT:
            self._texts.clear()
        made = blob(4, integer(1, self._id(_ARGUMENT, name)) + integer(17, self._id(_TEXT, value)))
        self._texts[name, value] = made
        return made

    def _id(self, kind: int, text: str) -> int:
        """Of a text, which goes into the packet where it is new."""
        key = (kind, text)
        if key not in self._interned:
            self._interned[key] = len(self._interned) + 1
            self._new.append(blob(kind, integer(1, self._interned[key]) + string(2, text)))
        return self._interned[key]

    def _packet(self, body: bytes) -> bytes:
        if not self._new and self._flags == _NEEDED:
            return blob(1, self._head + body)
        new = blob(12, b"".join(self._new)) if self._new else b""
        self._new.clear()
        head = integer(10, _SEQUENCE) + integer(13, self._flags)
        self._flags = _NEEDED
        return blob(1, head + new + body)
