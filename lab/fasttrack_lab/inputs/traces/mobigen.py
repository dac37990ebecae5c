# SPDX-License-Identifier: GPL-2.0-only
"""MobiGen recordings: system calls of an Android app, as Mobibench replays them.

A line is `thread microseconds call arguments`; microseconds count from the start of the recording, and calls have no
length. Three things about these files decide how they are read:

- Descriptors that were open before the recording began, or came from a call that is not recorded (pipe, socket, dup),
  have a made-up `open /data/data O_WRONLY|O_CREAT|O_TRUNC|O_LARGEFILE FD`, without quotes, before their first use.
- Many names are lost: `data/data` stands for any of them. SQLite looks its journal up before it opens it, which
  gives the name of some; the others get made-up names of their own.
- Pipes, eventfds and sockets stand among the files. They are told apart by `descriptors.py`, left out and counted.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from fasttrack_lab.host.errors import InputError, unknown
from fasttrack_lab.inputs.traces import mobigen_emit
from fasttrack_lab.inputs.traces.descriptors import Descriptor, DescriptorTable
from fasttrack_lab.inputs.traces.model import Stats, Trace, Window, finish, read_lines, whole_number

PREOPENED = "/data/data"
_LINE = re.compile(r"(\d+)\s+(\d+)\s+([a-z_]+\d*)\s*(.*)")
_SHAPES: dict[str, str] = {
    "open": "pfi",
    "close": "ii",
    "read": "ii",
    "write": "ii",
    "pread": "iii",
    "pwrite": "iii",
    "fsync": "ii",
    "fdatasync": "ii",
    "access": "pi",
    "stat": "pi",
    "stat64": "pi",
    "lstat": "pi",
    "lstat64": "pi",
    "fstat": "ii",
    "fstat64": "ii",
    "unlink": "pi",
    "mkdir": "pi",
    "rmdir": "pi",
    "rename": "ppi",
    "lseek": "iii",
    "truncate": "pii",
    "ftruncate": "iii",
}
"""Arguments of each call: p path, f flags, i integer. The last integer is the result, save for read and write, where
it is the number of bytes, or -1; pread and pwrite have descriptor, offset, bytes."""
_PLACED = ("pread", "pwrite", "truncate", "ftruncate")
"""Calls whose second argument is an offset or a length."""


@dataclass(frozen=True)
class Raw:
    """One line of the recording. `quoted` says whether the path was written as a quoted name."""

    line: int
    thread: int
    us: int
    call: str
    args: tuple[str | int, ...]
    quoted: bool = False

    def number(self, index: int) -> int:
        """An integer argument."""
        return int(self.args[index])


def recognises(line: str) -> bool:
    """Whether a line is a MobiGen call."""
    match = _LINE.fullmatch(line.strip())
    return match is not None and match[3] in _SHAPES


def _split(text: str) -> list[str]:
    """The arguments of a call; names may be quoted, half quoted or not quoted."""
    try:
        return shlex.split(text, posix=False)
    except ValueError:
        return text.split()


def _parse(path: Path, number: int, line: str) -> Raw:
    """One line."""
    match = _LINE.fullmatch(line.strip())
    if match is None:
        raise InputError(f"not 'thread microseconds call arguments': {line[:60]!r}", path, number)
    call = match[3]
    shape = _SHAPES.get(call)
    if shape is None:
        raise InputError(unknown("call", call, sorted(_SHAPES)), path, number)
    parts = _split(match[4])
    if len(parts) != len(shape):
        raise InputError(f"{call} has {len(parts)} arguments, {len(shape)} are wanted", path, number)
    args: list[str | int] = []
    for kind, part in zip(shape, parts, strict=True):
        if kind == "i":
            try:
                args.append(whole_number(part))
            except ValueError as error:
                raise InputError(f"{call}: '{part[:20]}' is not a whole number", path, number) from error
        elif "\t" in part:
            raise InputError(f"{call}: a tab in a name, which separates the fields of a normalised trace", path, number)
        else:
            args.append(part)
    if call in _PLACED and int(args[1]) < 0:
        raise InputError(f"{call}: an offset or a length cannot be negative", path, number)
    try:
        thread, us = whole_number(match[1]), whole_number(match[2])
    except ValueError as error:
        raise InputError(f"thread and microseconds: {error}", path, number) from error
    return Raw(number, thread, us, call, tuple(args), shape[0] == "p" and parts[0].startswith('"'))


def _follow(raws: list[Raw], stats: Stats) -> list[tuple[Raw, Descriptor | None]]:
    """Every call with the descriptor that it uses, in the order of time."""
    table = DescriptorTable()
    followed: list[tuple[Raw, Descriptor | None]] = []
    for raw in raws:
        shape = _SHAPES[raw.call]
        if raw.call == "open":
            descriptor = None
            if str(raw.args[0]) == PREOPENED and not raw.quoted:
                table.preopened(raw.number(2))
                stats.left_out["made-up opens of descriptors without a recorded open"] += 1
                continue
            if raw.number(2) >= 0:
                name = table.name_of(raw.thread, str(raw.args[0]), str(raw.args[1]))
                descriptor = table.open(raw.number(2), name, str(raw.args[1]))
        elif shape[0] == "i":
            descriptor = table.use(raw.number(0), raw.call, raw.args)
        else:
            descriptor = None
            table.look_up(raw.thread, str(raw.args[0]))
        followed.append((raw, descriptor))
    return followed


def read(path: Path, window: Window) -> Trace:
    """Reads a recording."""
    raws = [_parse(path, number, line) for number, line in enumerate(read_lines(path), start=1) if line.strip()]
    stats = Stats(lines=len(raws))
    raws.sort(key=lambda raw: raw.us)
    begin = raws[0].us if raws else 0
    followed = _follow(raws, stats)
    seen: set[int] = set()
    for _, descriptor in followed:
        if descriptor is not None and descriptor.number not in seen:
            seen.add(descriptor.number)
            stats.descriptors[descriptor.kind()] += 1
    emitter = mobigen_emit.Emitter(stats)
    for raw, descriptor in followed:
        if window.holds((raw.us - begin) / 1e6):
            emitter.call(raw.thread, raw.us - begin, raw.call, raw.args, descriptor)
        else:
            emitter.outside(descriptor, raw.call)
    calls = finish(emitter.calls, stats, window)
    return Trace(path, "mobigen", calls, emitter.needed(), stats)
