# SPDX-License-Identifier: GPL-2.0-only
"""blktrace's own files, one for each processor: `struct blk_io_trace` (include/uapi/linux/blktrace_api.h), either order
of bytes. One file that has all processors (`blkparse -d`, `blktrace -o -`) is read too.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from fasttrack_lab.trace.importers.intake import (
    COMPLETE,
    INSERT,
    ISSUE,
    NAME,
    QUEUE,
    REQUEUE,
    Clock,
    Event,
    Intake,
    Loss,
    asked,
)
from fasttrack_lab.trace.importers.windows import Window

_MAGIC = 0x65617400
_VERSION = 7
_LAYOUT = "IIQQIIIIIhH"
_BYTES = 48
_ORDERS = {sign: (struct.Struct(sign + _LAYOUT), struct.pack(sign + "I", _MAGIC | _VERSION)) for sign in ("<", ">")}

_KINDS = {1: QUEUE, 6: REQUEUE, 7: ISSUE, 8: COMPLETE, 12: INSERT}
_OTHERS = {
    2: "back merges (M)",
    3: "front merges (F)",
    4: "allocations of requests (G)",
    5: "sleeps for requests (S)",
    9: "plugs (P)",
    10: "unplugs (U)",
    11: "unplugs by timer (UT)",
    13: "splits (X)",
    14: "bounces (B)",
    15: "remaps (A)",
    16: "aborts (A)",
    17: "drivers' data",
}
_CODE = 0xFF
"""Of the lower 16 bits; above it is whether a control group's id follows."""
_WRITE, _FLUSH, _SYNC, _PC, _NOTIFY, _AHEAD, _META, _DISCARD, _FUA = (
    1 << 16 + bit for bit in (1, 2, 3, 9, 10, 11, 12, 13, 15)
)
_PROCESS, _TIMESTAMP = 0, 1


def recognises(head: bytes) -> bool:
    """Whether a file begins so."""
    return len(head) >= 4 and any(
        (number & ~0xFF) == _MAGIC for number in struct.unpack("<I", head[:4]) + struct.unpack(">I", head[:4])
    )


def read(files: Sequence[Path], intake: Intake) -> None:
    """Reads the files of one recording."""
    for path in files:
        sequence: dict[tuple[int, int], tuple[int, int]] = {}
        for order, fields, pdu in _events(path, intake):
            action, number = fields[5], fields[1]
            if action & _NOTIFY:
                _notice(order, fields, pdu, intake)
                continue
            _count(sequence, (fields[7], fields[8]), number, fields[2], intake)
            kind = _KINDS.get(action & _CODE)
            if kind is None:
                intake.skipped[_OTHERS.get(action & _CODE, "unknown events")] += 1
            else:
                intake.event(_event(kind, fields))


def _event(kind: str, fields: tuple[int, ...]) -> Event:
    _, _, time, sector, size, action, pid, dev, _, error, _ = fields
    completes = kind == COMPLETE
    return Event(
        time,
        kind,
        dev,
        sector,
        size,
        asked(_rwbs(action, size)),
        None if completes else pid,
        None,
        error if completes else None,
    )


def _rwbs(action: int, size: int) -> str:
    """The letters, as blkparse makes them of an action's bits."""
    if action & _PC:
        return "N"
    preflush = "F" if action & _FLUSH else ""
    if action & _DISCARD:
        what = "D"
    elif action & _WRITE:
        what = preflush + "W"
    elif size:
        what = preflush + "R"
    else:
        what = preflush or "N"
    flags = (("F", _FUA), ("A", _AHEAD), ("S", _SYNC), ("M", _META))
    return what + "".join(letter for letter, bit in flags if action & bit)


def _count(
    sequence: dict[tuple[int, int], tuple[int, int]], at: tuple[int, int], number: int, time: int, intake: Intake
) -> None:
    """The kernel numbers a device's events on each processor: a gap is what was lost."""
    last, since = sequence.get(at, (number - 1, time))
    if number > last + 1:
        intake.losses.append(Loss(time, since, at[1], number - last - 1))
    sequence[at] = number, time


def _notice(order: str, fields: tuple[int, ...], pdu: bytes, intake: Intake) -> None:
    """What is no I/O: names of tasks, the real time, messages."""
    time, what = fields[2], fields[5] & _CODE
    if what == _PROCESS:
        comm = pdu.split(b"\0", 1)[0].decode(errors="replace")
        if comm:
            intake.event(Event(time, NAME, pid=fields[6], comm=comm))
    elif what == _TIMESTAMP and len(pdu) >= 8:
        seconds, ns = struct.unpack(order + "II", pdu[:8])
        intake.clocks.append(Clock(time, seconds * 10**9 + ns))
    else:
        intake.skipped["messages (m)"] += 1


def _events(path: Path, intake: Intake) -> Iterator[tuple[str, tuple[int, ...], bytes]]:
    """Order of bytes, fields and payload of each event; what is between events is damage."""
    with Window(path) as window:
        order = ""
        while window.has(1):
            found = _here(window) if window.has(_BYTES) else None
            if found is None:
                newer = window.has(4) and _newer(window.peek(4))
                if newer and not order:
                    intake.damage(path, window.at, window.size - window.at, f"version {newer}; read is {_VERSION}")
                    return
                _resynchronise(window, path, intake)
                continue
            order, fields = found
            if not window.has(_BYTES + fields[-1]):
                intake.damage(path, window.at, window.size - window.at, "the last event is cut", 1)
                return
            window.skip(_BYTES)
            yield order, fields, window.take(fields[-1])


def _here(window: Window) -> tuple[str, tuple[int, ...]] | None:
    """The event that begins here."""
    head = window.peek(_BYTES)
    for sign, (layout, magic) in _ORDERS.items():
        if head.startswith(magic):
            return sign, layout.unpack(head)
    return None


def _newer(head: bytes) -> int:
    """Another version than ours; 0 where it is none."""
    for sign in _ORDERS:
        (number,) = struct.unpack(sign + "I", head)
        if (number & ~0xFF) == _MAGIC and number & 0xFF != _VERSION:
            return int(number & 0xFF)
    return 0


def _resynchronise(window: Window, path: Path, intake: Intake) -> None:
    """To the next event."""
    begin = window.at
    window.skip_to([magic for _, magic in _ORDERS.values()])
    last = not window.has(1)
    what = "the end is no whole event" if last else "no event"
    intake.damage(path, begin, window.at - begin, what)
