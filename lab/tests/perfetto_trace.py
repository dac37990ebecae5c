# SPDX-License-Identifier: GPL-2.0-only
"""A Perfetto trace of slices decoded again, as a reader of it would."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from fasttrack_lab.trace.importers.wire_format import Wrong, fields, message, number, signed, text

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


@dataclass
class Track:
    """A TrackDescriptor."""

    name: str
    parent: int | None = None
    pid: int | None = None
    tid: int | None = None
    counter: bool = False


@dataclass
class Slice:
    """A slice, or an instant: then it ends where it begins."""

    track: int
    name: str
    category: str
    begin: int
    arguments: dict[str, Any]
    flows: list[int]
    ends_flows: list[int]
    parent: Slice | None = None
    end: int | None = None


@dataclass
class Decoded:
    """What is in a file."""

    tracks: dict[int, Track] = field(default_factory=dict)
    slices: list[Slice] = field(default_factory=list)
    instants: list[Slice] = field(default_factory=list)
    begun: list[Slice] = field(default_factory=list)
    """Slices and instants, in the file's order."""
    counts: dict[int, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    clocks: list[dict[int, int]] = field(default_factory=list)
    packets: int = 0
    cut: bool = False

    def of(self, category: str) -> list[Slice]:
        return [one for one in self.slices if one.category == category]


class Decoder:
    """Takes packets in order; asserts what each says."""

    def __init__(self) -> None:
        self.found = Decoded()
        self._texts: dict[tuple[int, int], str] = {}
        self._open: dict[int, list[Slice]] = defaultdict(list)
        self._last = 0

    def read(self, data: bytes) -> Decoded:
        try:
            for tag, packet in fields(data):
                assert tag == 1 and isinstance(packet, bytes)
                self._packet(packet)
                self.found.packets += 1
        except Wrong:
            self.found.cut = True
        if not self.found.cut:
            assert not any(self._open.values()), "a slice has no end"
        return self.found

    def _packet(self, packet: bytes) -> None:
        said = message(packet)
        assert said[10] == 1 and said[13] == (2 if self.found.packets else 3)
        for kind, entry in fields(said.get(12, b"")):  # type: ignore[arg-type]
            pair = message(entry)  # type: ignore[arg-type]
            self._texts[kind, pair[1]] = text(pair[2]) or ""  # type: ignore[index]
        if 60 in said:
            self._track(message(said[60]))  # type: ignore[arg-type]
        elif 6 in said:
            snapshot = list(fields(said[6]))  # type: ignore[arg-type]
            assert (2, 6) in snapshot
            pairs = [message(value) for field, value in snapshot if field == 1]  # type: ignore[arg-type]
            self.found.clocks.append({pair[1]: pair[2] for pair in pairs})  # type: ignore[misc]
        else:
            assert said[58] == 6, "the boot clock"
            time = number(said[8])
            assert time is not None and time >= self._last, "packets are in order of time"
            self._last = time
            self._event(time, said[11])  # type: ignore[arg-type]

    def _track(self, said: dict[int, Any]) -> None:
        assert said[1] not in self.found.tracks
        parent = said.get(5)
        assert parent is None or parent in self.found.tracks
        process, thread = message(said.get(3, b"")), message(said.get(4, b""))
        name = text(said.get(2)) or text(process.get(6)) or text(thread.get(5)) or ""
        pid = number(process.get(1)) if process else number(thread.get(1))
        self.found.tracks[said[1]] = Track(name, parent, pid, number(thread.get(2)), 8 in said)

    def _event(self, time: int, data: bytes) -> None:
        every: dict[int, list[Any]] = defaultdict(list)
        for tag, value in fields(data):
            every[tag].append(value)
        (kind,), (track,) = every[9], every[11]
        assert track in self.found.tracks
        assert self.found.tracks[track].counter == (kind == COUNTER)
        if kind == COUNTER:
            self.found.counts[track].append((time, signed(every[30][0]) or 0))
        elif kind == END:
            self._open[track].pop().end = time
        else:
            self._begun(kind, time, track, every)

    def _begun(self, kind: int, time: int, track: int, every: dict[int, list[Any]]) -> None:
        arguments = {}
        for argument in map(message, every[4]):
            value = argument.get(4, argument.get(2))
            value = self._texts[29, argument[17]] if 17 in argument else signed(value)  # type: ignore[index]
            arguments[self._texts[3, argument[1]]] = value  # type: ignore[index]
        stack = self._open[track]
        name, category = self._texts[2, every[10][0]], self._texts[1, every[3][0]]
        parent = stack[-1] if stack else None
        one = Slice(track, name, category, time, arguments, every[47], every[48], parent)
        self.found.begun.append(one)
        if kind == BEGIN:
            stack.append(one)
            self.found.slices.append(one)
        else:
            one.end = time
            self.found.instants.append(one)


def decode(data: bytes) -> Decoded:
    """The trace in DATA; slices of a cut one may have no end."""
    return Decoder().read(data)
