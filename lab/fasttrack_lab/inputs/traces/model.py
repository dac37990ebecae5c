# SPDX-License-Identifier: GPL-2.0-only
"""What every reader of recordings produces: normalised calls, the files they need, and what was left out."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fasttrack_lab.host.errors import InputError
from fasttrack_lab.host.paths import replaced
from fasttrack_lab.host.units import format_size

GZIP_MAGIC = b"\x1f\x8b"
MOST = 1 << 62
"""What no offset, length or time in microseconds of a normalised trace reaches: the guest adds two of them."""


def whole_number(text: str) -> int:
    """A number of a recording; ValueError where it is none, or too large for a trace."""
    if len(text) > len(str(-MOST)) or abs(number := int(text)) >= MOST:
        raise ValueError(f"'{text[:20]}' is no whole number below 2^62")
    return number


def seconds(text: str) -> float:
    """A time of a recording, in s; ValueError where it is none, or too large for a trace."""
    value = float(text)
    if not abs(value) < MOST / 2e6:
        raise ValueError(f"'{text[:20]}' is no time")
    return value


@dataclass(frozen=True)
class Call:
    """One call of the normalised trace (`contract/README.md`): thread, microseconds from its start, name, arguments."""

    thread: int
    us: int
    name: str
    args: tuple[str | int, ...] = ()

    def line(self) -> str:
        """The call as a line of the normalised trace, without the line end."""
        return "\t".join(str(part) for part in (self.thread, self.us, self.name, *self.args))


@dataclass(frozen=True)
class NeededFile:
    """A file that must be there, with at least so many bytes, before the replay begins."""

    path: str
    bytes: int


@dataclass
class Stats:
    """What a recording held and what became of it."""

    lines: int = 0
    replayed: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    """Calls or requests that are not replayed, by reason."""
    descriptors: Counter[str] = field(default_factory=Counter)
    """File descriptors by what they were taken for; empty for block recordings."""
    notes: list[str] = field(default_factory=list)
    bytes_read: int = 0
    bytes_written: int = 0
    span_s: float = 0.0
    threads: int = 0

    def text(self) -> str:
        """The statistics as lines for a person."""
        rows = [
            f"{self.replayed} of {self.lines} recorded lines replayed by {self.threads} threads over "
            f"{self.span_s:.3f} s: {format_size(self.bytes_read)} read, {format_size(self.bytes_written)} written"
        ]
        rows += [f"left out: {number} {reason}" for reason, number in self.left_out.most_common()]
        rows += [f"descriptors: {number} {kind}" for kind, number in self.descriptors.most_common()]
        return "\n".join(rows + self.notes)


@dataclass
class Trace:
    """A recording in the form that the guest replays."""

    source: Path
    format: str
    calls: list[Call]
    needed: list[NeededFile]
    stats: Stats

    @property
    def files(self) -> list[dict[str, object]]:
        """The `files` of a job, without the app's name: path, bytes and kind."""
        return [{"path": item.path, "bytes": item.bytes, "kind": "data"} for item in self.needed]

    def text(self) -> str:
        """The normalised trace."""
        return "".join(call.line() + "\n" for call in self.calls)

    def write(self, path: Path) -> None:
        """Writes the normalised trace, whole or not at all."""
        with replaced(path) as out:
            out.write(self.text().encode())


@dataclass(frozen=True)
class Window:
    """The part of a recording to replay, in seconds from its first event. A length of None goes to the end."""

    start_s: float = 0.0
    length_s: float | None = None

    def holds(self, seconds: float) -> bool:
        """Whether an event at this time is inside."""
        return seconds >= self.start_s and (self.length_s is None or seconds < self.start_s + self.length_s)

    @property
    def whole(self) -> bool:
        """Whether nothing is cut off."""
        return self.start_s == 0 and self.length_s is None


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a text file or a gzip file of text, without their ends."""
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == GZIP_MAGIC
        with gzip.open(path, "rt", encoding="utf-8") if packed else path.open(encoding="utf-8") as text:
            for line in text:
                yield line.rstrip("\r\n")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", path) from error


def finish(calls: list[Call], stats: Stats, window: Window) -> list[Call]:
    """The calls in the contract's order (thread, then time), counted, with times from the window's start."""
    first = int(window.start_s * 1e6)
    ordered = sorted(calls, key=lambda call: (call.thread, call.us))
    moved = [Call(call.thread, max(0, call.us - first), call.name, call.args) for call in ordered]
    stats.replayed = len(moved)
    stats.threads = len({call.thread for call in moved})
    times = [call.us for call in moved]
    stats.span_s = (max(times) - min(times)) / 1e6 if times else 0.0
    return moved
