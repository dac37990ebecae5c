# SPDX-License-Identifier: GPL-2.0-only
"""Perfetto's traces with ftrace's block events (protos/perfetto/trace/), packed or not.

Read are bundles of ftrace events, processes and threads, clocks, the system and statistics of losses.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from fasttrack_lab.trace.importers import file_events
from fasttrack_lab.trace.importers.intake import (
    COMPLETE,
    INSERT,
    ISSUE,
    QUEUE,
    REQUEUE,
    Clock,
    Event,
    Intake,
    Loss,
    block_event,
)
from fasttrack_lab.trace.importers.unpack import Packed, inflated
from fasttrack_lab.trace.importers.windows import Window
from fasttrack_lab.trace.importers.wire_format import (
    BOOTTIME,
    MONOTONIC,
    REALTIME,
    SAME_OFFSET_NS,
    Value,
    Wrong,
    fields,
    message,
    number,
    signed,
    text,
    varint,
)

_PACKET = 0x0A
"""Tag of a packet: field 1, bytes."""
_MOST = 512 << 20
"""Bytes: a larger packet is damage."""

_KINDS = {119: QUEUE, 126: INSERT, 45: ISSUE, 125: COMPLETE, 129: REQUEUE}
"""Field of FtraceEvent -> kind."""
_OTHERS = {
    115: "block_bio_backmerge",
    116: "block_bio_bounce",
    117: "block_bio_complete",
    118: "block_bio_frontmerge",
    121: "block_dirty_buffer",
    122: "block_getrq",
    123: "block_plug",
    131: "block_split",
    132: "block_touch_buffer",
    133: "block_unplug",
    546: "block_io_start",
    547: "block_io_done",
}
_PLACES = {
    QUEUE: {"rwbs": 4, "comm": 5},
    INSERT: {"bytes": 4, "rwbs": 5, "comm": 6},
    ISSUE: {"bytes": 4, "rwbs": 5, "comm": 6},
    COMPLETE: {"errors": 4, "rwbs": 5, "error": 7},
    REQUEUE: {"rwbs": 5},
}
"""Fields of the events; dev, sector and nr_sector are 1 to 3 in all."""
_FILE_EVENTS = {
    43: ("ext4_sync_file_enter", "dev ino parent datasync"),
    44: ("ext4_sync_file_exit", "dev ino ret"),
    120: ("block_bio_remap", "dev sector nr_sector old_dev old_sector"),
    154: ("ext4_es_lookup_extent_exit", "dev ino lblk len pblk status found"),
    167: ("ext4_ext_map_blocks_exit", "dev ino flags pblk lblk len mflags ret"),
    178: ("ext4_free_blocks", "dev ino block count"),
    183: ("ext4_ind_map_blocks_exit", "dev ino flags pblk lblk len mflags ret"),
    254: ("f2fs_submit_write_page", "dev ino type index block"),
    255: ("f2fs_sync_file_enter", "dev ino"),
    256: ("f2fs_sync_file_exit", "dev ino need_cp datasync ret"),
}
"""Field of FtraceEvent -> event, and the names of its fields from 1 on."""
_GENERIC = 327
"""Events of which Perfetto has no message: their name and their fields by name."""
_STATS_BEGIN, _STATS_END = 1, 2
_KTHREADD = 2


def recognises(head: bytes) -> bool:
    """Whether a file begins with packets."""
    try:
        if head[:1] != bytes([_PACKET]):
            return False
        size, at = varint(head, 1)
        packet = head[at : at + size]
        try:
            found = [field for field, _ in fields(packet)]
        except Wrong:
            # More than the head has.
            return at + size > len(head) and size < _MOST and packet[:1] in (b"\x0a", b"\x92")
        return bool(found) and max(found) < 2000 and head[at + size : at + size + 1] in (b"", bytes([_PACKET]))
    except Wrong:
        return False


def read(files: Sequence[Path], intake: Intake) -> None:
    """Reads files."""
    for path in files:
        _File(path, intake).read()


class _File:
    """One file."""

    def __init__(self, path: Path, intake: Intake) -> None:
        self._path = path
        self._intake = intake
        self._at = 0
        self._last: int | None = None
        self._flagged: defaultdict[int, list[tuple[int, int | None]]] = defaultdict(list)
        """Processor -> times at which the ring had lost events, and of the last event before."""
        self._overrun: defaultdict[int, Counter[int]] = defaultdict(Counter)
        """Phase -> processor -> lost events."""
        self._ends: dict[int, int] = {}
        self._utc_offset_s: int | None = None
        self._clock: Clock | None = None
        self._takes: dict[int, Callable[[bytes], None]] = {
            1: self._bundle,
            2: self._processes,
            6: self._clocks,
            34: self._ftrace_stats,
            35: self._trace_stats,
            45: self._system,
        }

    def read(self) -> None:
        with Window(self._path) as window:
            while window.has(1):
                self._at = window.at
                size = self._next(window)
                if size is None:
                    break
                if not window.has(size):
                    self._damage(window.size - self._at, "the file ends within a packet")
                    self._packet(window.take(max(0, window.size - window.at)), cut=True)
                    break
                self._packet(window.take(size))
        self._tell_losses()

    def _damage(self, size: int, what: str) -> None:
        self._intake.damage(self._path, self._at, size, what)

    def _next(self, window: Window) -> int | None:
        """Takes the head of a packet; its size, None where none follows."""
        window.has(min(11, window.size - window.at))
        head = window.peek(11)
        try:
            if head[:1] != bytes([_PACKET]):
                raise Wrong("no packet begins here")
            size, at = varint(head, 1)
            if size > _MOST:
                raise Wrong(f"a packet that says it has {size} bytes")
        except Wrong as wrong:
            self._damage(window.size - self._at, f"{wrong}; packets cannot be found again after it")
            return None
        window.skip(at)
        return size

    def _packet(self, data: bytes, cut: bool = False, inner: bool = False) -> None:
        """Takes a packet, or what is left of one."""
        try:
            for field, value in fields(data, cut):
                if not isinstance(value, bytes):
                    continue
                if field in (50, 133) and not inner:
                    self._unpacked(value, "zlib" if field == 50 else "zstd")
                elif field in self._takes:
                    self._takes[field](value)
        except Wrong as wrong:
            # Of the last packet it is told already.
            if not cut:
                self._damage(len(data), f"a packet: {wrong}")

    def _unpacked(self, data: bytes, codec: str) -> None:
        try:
            for field, packet in fields(inflated(data, codec)):
                if field == 1 and isinstance(packet, bytes):
                    self._packet(packet, inner=True)
        except (Packed, Wrong) as error:
            self._damage(len(data), f"packed packets: {error}")

    def _bundle(self, data: bytes) -> None:
        """Events of a processor."""
        events: list[bytes] = []
        said: dict[int, Value] = {}
        wrong: Wrong | None = None
        try:
            for field, value in fields(data):
                if field == 2 and isinstance(value, bytes):
                    events.append(value)
                else:
                    said[field] = value
        except Wrong as found:
            wrong = found
        cpu, boot, other = number(said.get(1)), number(said.get(7)), number(said.get(6))
        offset = boot - other if said.get(5) and boot is not None and other is not None else 0
        before = self._last
        times = [time for event in events if (time := self._event(event, offset)) is not None]
        if said.get(3) and times and cpu is not None:
            self._flagged[cpu].append((times[0], before))
        if wrong is not None:
            raise wrong

    def _event(self, data: bytes, offset: int) -> int | None:
        """Takes an event; its time."""
        try:
            return self._taken(message(data), offset)
        except Wrong as wrong:
            self._damage(len(data), f"an event: {wrong}")
            return None

    def _taken(self, said: dict[int, Value], offset: int) -> int | None:
        time = number(said.get(1))
        if time is None:
            self._intake.skipped["ftrace events without a time"] += 1
            return None
        time += offset
        self._last = time
        what = next((field for field in said if field > 2 and isinstance(said[field], bytes)), 0)
        kind = _KINDS.get(what)
        body = said.get(what)
        if isinstance(body, bytes) and (found := _file_event(what, body)) is not None:
            file_events.take(found[0], time, number(said.get(2)), None, found[1], self._intake)
            return time
        if kind is None:
            self._intake.skipped[_OTHERS.get(what, f"ftrace events of field {what}")] += 1
            return time
        assert isinstance(body, bytes)
        self._intake.event(_block(kind, time, number(said.get(2)), message(body)))
        return time

    def _processes(self, data: bytes) -> None:
        for field, value in fields(data):
            if not isinstance(value, bytes):
                continue
            said = message(value)
            pid = signed(said.get(1))
            if pid is None or pid < 0:
                continue
            task = self._intake.task(pid, (number(said.get(7)) or 0) if field == 1 else 0)
            if field == 1:
                parent, flag, uid = signed(said.get(2)), number(said.get(8)), signed(said.get(5))
                task.tgid = pid
                task.uid = uid if uid is not None and uid >= 0 else task.uid
                if flag is not None:
                    task.kernel_thread = bool(flag)
                elif parent is not None:
                    task.kernel_thread = _KTHREADD in (parent, pid)
            elif field == 2 and (tgid := signed(said.get(3))) is not None:
                task.tgid = tgid

    def _clocks(self, data: bytes) -> None:
        clocks: dict[int, int] = {}
        for field, value in fields(data):
            if field == 1 and isinstance(value, bytes):
                said = message(value)
                which, time = number(said.get(1)), number(said.get(2))
                if which is not None and time is not None:
                    clocks[which] = time
        if REALTIME not in clocks or BOOTTIME not in clocks:
            return
        found = Clock(clocks[BOOTTIME], clocks[REALTIME], None, clocks.get(MONOTONIC))
        last = self._clock
        if last is None or abs((found.real_ns - found.time) - (last.real_ns - last.time)) >= SAME_OFFSET_NS:
            self._intake.clocks.append(found)
            self._clock = found

    def _system(self, data: bytes) -> None:
        said = message(data)
        if isinstance(names := said.get(1), bytes):
            self._intake.kernel = text(message(names).get(3)) or self._intake.kernel
        self._intake.page_bytes = number(said.get(6)) or self._intake.page_bytes
        minutes = signed(said.get(7))
        self._utc_offset_s = self._utc_offset_s if minutes is None else minutes * 60

    def _ftrace_stats(self, data: bytes) -> None:
        phase = 0
        cpus: list[dict[int, Value]] = []
        for field, value in fields(data):
            if field == 1 and isinstance(value, int):
                phase = value
            elif field == 2 and isinstance(value, bytes):
                cpus.append(message(value))
        for said in cpus:
            cpu = number(said.get(1)) or 0
            self._overrun[phase][cpu] += (number(said.get(3)) or 0) + (number(said.get(4)) or 0)

    def _trace_stats(self, data: bytes) -> None:
        """The last one counts: it is of the whole trace."""
        gone = 0
        for field, value in fields(data):
            if field == 1 and isinstance(value, bytes):
                said = message(value)
                gone += (number(said.get(19)) or 0) + (number(said.get(3)) or 0)
        self._ends[0] = gone

    def _tell_losses(self) -> None:
        time = self._last or 0
        begin, end = self._overrun[_STATS_BEGIN], self._overrun[_STATS_END]
        for cpu, marks in self._flagged.items():
            if end[cpu] - begin[cpu] <= 0:
                self._intake.losses += [Loss(at, since, cpu) for at, since in marks]
        for cpu, count in end.items():
            if count > begin[cpu]:
                marks = self._flagged.get(cpu, [])
                at, since = (marks[-1][0], marks[0][1]) if marks else (time, None)
                self._intake.losses.append(Loss(at, since, cpu, count - begin[cpu]))
        if self._ends.get(0):
            # Chunks that the ring overwrote and packets that had no place: how many events, nobody says.
            self._intake.losses.append(Loss(time))
        if self._utc_offset_s is not None:
            self._intake.utc_offset_s = self._utc_offset_s


def _block(kind: str, time: int, pid: int | None, said: dict[int, Value]) -> Event:
    """A block event. A field that is 0 is not written."""
    places = _PLACES[kind]
    return block_event(
        kind,
        time,
        _device(number(said.get(1))),
        number(said.get(2)) or 0,
        number(said.get(3)) or 0,
        number(said.get(places.get("bytes", -1))),
        text(said.get(places["rwbs"])) or "",
        pid,
        text(said.get(places.get("comm", -1))) or None,
        signed(said.get(7)) or signed(said.get(4)) or 0,
    )


def _device(dev: int | None) -> int | None:
    """Of makedev(3)'s number."""
    if dev is None:
        return None
    major = (dev >> 8) & 0xFFF | (dev >> 32) & 0xFFFFF000
    minor = dev & 0xFF | (dev >> 12) & 0xFFFFFF00
    return major << 20 | minor


def _file_event(what: int, body: bytes) -> tuple[str, file_events.Said] | None:
    """The name and the fields of an event by which a file system or the page cache says something."""
    if what == _GENERIC:
        return _generic(body)
    if what not in _FILE_EVENTS:
        return None
    name, fields_of = _FILE_EVENTS[what]
    # A field that is 0 is not written.
    found: dict[str, int | str | None] = {}
    said = message(body)
    for place, field in enumerate(fields_of.split(), 1):
        value = signed(said.get(place)) or 0
        found[field] = _device(value) if field in ("dev", "old_dev") else value
    return name, found.get


def _generic(body: bytes) -> tuple[str, file_events.Said] | None:
    """Devices are the kernel's numbers here."""
    name = text(message(body).get(1))
    if name not in file_events.FILE_EVENTS:
        return None
    found: dict[str, int | str | None] = {}
    for field, value in fields(body):
        if field == 2 and isinstance(value, bytes):
            said = message(value)
            number_of = signed(said.get(4)) if 4 in said else number(said.get(5))
            found[text(said.get(1)) or ""] = text(said.get(3)) if 3 in said else number_of or 0
    return name, found.get
