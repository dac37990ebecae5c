# SPDX-License-Identifier: GPL-2.0-only
"""Packets of a Perfetto trace (protos/perfetto/trace/) of slices, instants, counters, flows and clocks.

One sequence; names and texts are interned, so a packet needs those before it and none after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fasttrack_lab.trace.importers.wire_encode import blob, fixed64, integer, string
from fasttrack_lab.trace.importers.wire_format import BOOTTIME, REALTIME

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


@dataclass(frozen=True)
class Event:
    """What happens on a track at a time, ns of the boot clock."""

    time: int
    kind: int
    track: Track
    name: str = ""
    category: str = ""
    arguments: Mapping[str, Argument] = field(default_factory=dict)
    """Unknown ones, None, are left out."""
    flows: Sequence[int] = ()
    ends_flows: Sequence[int] = ()
    value: int = 0


class Packets:
    """Makes packets, each with its head as a file has it."""

    def __init__(self) -> None:
        self._interned: dict[tuple[int, str], int] = {}
        self._new: list[bytes] = []
        self._uuids: dict[Track, int] = {}
        self._flags = _CLEARED | _NEEDED

    def clock(self, time: int, real_ns: int) -> bytes:
        """The clocks at one moment."""
        pairs = ((BOOTTIME, time), (REALTIME, real_ns))
        clocks = b"".join(blob(1, integer(1, clock) + integer(2, at)) for clock, at in pairs)
        return self._packet(blob(6, clocks + integer(2, BOOTTIME)))

    def event(self, event: Event) -> Iterator[bytes]:
        """An event, after its track where that is not told yet."""
        yield from self._told(event.track)
        body = [integer(9, event.kind), integer(11, self._uuids[event.track])]
        if event.kind == COUNTER:
            body.append(integer(30, event.value))
        elif event.kind != END:
            body += [integer(3, self._id(_CATEGORY, event.category)), integer(10, self._id(_NAME, event.name))]
            body += [self._argument(name, value) for name, value in event.arguments.items() if value is not None]
            body += [fixed64(47, flow) for flow in event.flows]
            body += [fixed64(48, flow) for flow in event.ends_flows]
        yield self._packet(integer(8, event.time) + integer(58, BOOTTIME) + blob(11, b"".join(body)))

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

    def _argument(self, name: str, value: Argument) -> bytes:
        body = integer(1, self._id(_ARGUMENT, name))
        if isinstance(value, bool):
            body += integer(2, value)
        elif isinstance(value, int):
            body += integer(4, value)
        else:
            body += integer(17, self._id(_TEXT, str(value)))
        return blob(4, body)

    def _id(self, kind: int, text: str) -> int:
        """Of a text, which goes into the packet where it is new."""
        key = (kind, text)
        if key not in self._interned:
            self._interned[key] = len(self._interned) + 1
            self._new.append(blob(kind, integer(1, self._interned[key]) + string(2, text)))
        return self._interned[key]

    def _packet(self, body: bytes) -> bytes:
        new = blob(12, b"".join(self._new)) if self._new else b""
        self._new.clear()
        head = integer(10, _SEQUENCE) + integer(13, self._flags)
        self._flags = _NEEDED
        return blob(1, head + new + body)
