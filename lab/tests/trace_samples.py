# SPDX-License-Identifier: GPL-2.0-only
"""Small traces of other tools, written byte by byte: the same three requests in each format that can say them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

DEV = 8 << 20
BEGIN_NS = 1000 * 10**9
REAL_NS = 1_700_000_000 * 10**9
US = 1000


@dataclass(frozen=True)
class Sent:
    """A bio that is its own request: queued, inserted 1 us later, issued 1 us later."""

    at_us: int
    rwbs: str
    sector: int
    sectors: int
    pid: int
    comm: str
    device_us: int
    error: int = 0

    @property
    def steps(self) -> list[tuple[int, str]]:
        """Time, ns, and kind of its events."""
        at = BEGIN_NS + self.at_us * US
        return [(at, "Q"), (at + US, "I"), (at + 2 * US, "D"), (at + (2 + self.device_us) * US, "C")]


SENT = (
    Sent(0, "WSM", 2048, 8, 77, "mail", 100),
    Sent(10, "RA", 4096, 16, 88, "dd", 250, -5),
    Sent(1_000_000, "W", 1 << 33, 256, 55, "kworker/u8:1", 400),
)

Event = tuple[int, str, Sent]


def events() -> list[Event]:
    """All events in the order of time."""
    return sorted(((time, kind, sent) for sent in SENT for time, kind in sent.steps), key=lambda one: one[0])


# blktrace

_ACTIONS = {"Q": 1, "R": 6, "D": 7, "C": 8, "I": 12}
_LETTERS = {"R": 1 << 16, "W": 1 << 17, "S": 1 << 19, "A": 1 << 27, "M": 1 << 28}
NOTIFY = 1 << 26


def blk_event(
    order: str, number: int, time: int, sector: int, size: int, action: int, pid: int, cpu: int, error: int, pdu: bytes
) -> bytes:
    """A `struct blk_io_trace`."""
    layout = order + "IIQQIIIIIhH"
    head = (0x65617407, number, time, sector, size, action, pid, DEV, cpu, error, len(pdu))
    return struct.pack(layout, *head) + pdu


def blktrace(order: str = "<") -> list[bytes]:
    """The files of two processors; completions come to the second one."""
    files: list[list[bytes]] = [[], []]
    files[0].append(
        blk_event(order, 0, BEGIN_NS, 0, 0, NOTIFY | 1, 0, 0, 0, struct.pack(order + "II", REAL_NS // 10**9, 0))
    )
    for sent in SENT:
        name = sent.comm.encode().ljust(16, b"\0")
        files[0].append(blk_event(order, 0, BEGIN_NS, 0, 0, NOTIFY, sent.pid, 0, 0, name))
    numbers = [0, 0]
    for time, kind, sent in events():
        cpu = int(kind == "C")
        numbers[cpu] += 1
        action = _ACTIONS[kind] | sum(_LETTERS[letter] for letter in sent.rwbs)
        pid, error = (0, sent.error) if kind == "C" else (sent.pid, 0)
        files[cpu].append(
            blk_event(order, numbers[cpu], time, sent.sector, sent.sectors * 512, action, pid, cpu, error, b"")
        )
    return [b"".join(parts) for parts in files]


# Texts


def blkparse() -> str:
    """By default, with its sums."""
    found = []
    for number, (time, kind, sent) in enumerate(events(), 1):
        at = time - BEGIN_NS
        pid, said = (0, str(sent.error)) if kind == "C" else (sent.pid, sent.comm)
        extent = f"{sent.sector} + {sent.sectors}"
        found.append(
            f"  8,0    1 {number:8} {at // 10**9:5}.{at % 10**9:09} {pid:5}  {kind} {sent.rwbs:>3} {extent} [{said}]\n"
        )
    sums = "CPU0 (8,0):\n Reads Queued:           1,        8KiB\t Writes Queued:           2,      132KiB\n"
    return (
        "".join(found)
        + sums
        + "\nThroughput (R/W): 0KiB/s / 0KiB/s\nEvents (8,0): 12 entries\nSkips: 0 forward (0 -   0.0%)\n"
    )


def most() -> str:
    """MOST's output; the second has a file, the third is the journal's."""
    found = []
    kinds = {77: "M\tfile-NONE", 88: "D\t/data/data/a b/x.db-journal", 55: "J\tfile-NONE"}
    for time, kind, sent in events():
        at = time - BEGIN_NS
        place = f"{sent.sector:8}\t{sent.sectors:4}\t{sent.pid:4}\t{sent.comm:>20}"
        found.append(f"{at // 10**9:5}.{at % 10**9:09}\t{kind}\t{sent.rwbs}\t{place}\t{kinds[sent.pid]}\n")
    return "".join(found)


TRACED = {
    "Q": "block_bio_queue: 8,0 {rwbs} {sector} + {sectors} [{comm}]",
    "I": "block_rq_insert: 8,0 {rwbs} {bytes} () {sector} + {sectors}{priority} [{comm}]",
    "D": "block_rq_issue: 8,0 {rwbs} {bytes} () {sector} + {sectors}{priority} [{comm}]",
    "C": "block_rq_complete: 8,0 {rwbs} () {sector} + {sectors}{priority} [{error}]",
}


def ftrace(flags: str = "d..1.", tgid: bool = False, priority: str = " be,0,4", heading: bool = True) -> str:
    """tracefs's `trace`; without a heading and flags trace-cmd's report."""
    found = []
    for time, kind, sent in events():
        said = TRACED[kind].format(**vars(sent), bytes=sent.sectors * 512, priority=priority)
        task = ("<idle>", 0) if kind == "C" else (sent.comm, sent.pid)
        group = f" ({task[1]:6})" if tgid else ""
        found.append(
            f"{task[0]:>16}-{task[1]:<5}{group} [001] {flags} {time // 10**9}.{time % 10**9 // US:06}: {said}\n"
        )
    real = f"trace_event_clock_sync: realtime_ts={REAL_NS // 10**6}"
    sync = f"  atrace-1 [001] ..... 1000.000000: tracing_mark_write: {real}\n"
    return (
        "# tracer: nop\n#\n# entries-in-buffer/entries-written: 12/12   #P:2\n" + sync if heading else ""
    ) + "".join(found)


PIXEL = """proces,device,rw_flag,sector,size,timestamp
dmd-1181,8388608,R,2048,8,21262.894973
dmd-1181,8388608,R,2048,8,21262.895073
<...>-32156,8388608,W,4096,16,21263.5
AsyncTask,8388608,W,8192,8,21264.2457430001
"""


# trace.dat

_COMMON = (
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
    "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
    "\tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n"
    "\tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;\n"
    "\tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;\n"
)
_RWBS = "\tfield:char rwbs[8];\toffset:28;\tsize:8;\tsigned:0;\n"
_COMM = "\tfield:char comm[16];\toffset:36;\tsize:16;\tsigned:0;\n"
_ERROR = "\tfield:int error;\toffset:36;\tsize:4;\tsigned:1;\n"
_FORMATS = {
    "Q": (101, "block_bio_queue", _COMM),
    "I": (102, "block_rq_insert", _COMM),
    "D": (103, "block_rq_issue", _COMM),
    "C": (104, "block_rq_complete", _ERROR),
}
_PAGE = 4096


def _format(number: int, name: str, more: str) -> bytes:
    shown = (
        'print fmt: "%d,%d %s", ((unsigned int) ((REC->dev) >> 20)), ((unsigned int) ((REC->dev) & 1048575)), REC->rwbs'
    )
    return f"name: {name}\nID: {number}\nformat:\n{_COMMON}{_RWBS}{more}\n{shown}\n".encode()


def ring_page(order: str, first: int, found: Sequence[tuple[int, bytes]], missed: int = 0) -> bytes:
    """A page of the ring; MISSED events were lost before it."""
    body, last = b"", first
    for time, data in found:
        delta = time - last
        if delta >> 27:
            body += _head(order, 30, delta & (1 << 27) - 1) + struct.pack(order + "I", delta >> 27)
            delta = 0
        body += _head(order, len(data) // 4, delta) + data
        last = time
    commit = len(body) | (3 << 30 if missed else 0)
    counted = struct.pack(order + "Q", missed) if missed else b""
    return (struct.pack(order + "QQ", first, commit) + body + counted).ljust(_PAGE, b"\0")


def _head(order: str, kind: int, delta: int) -> bytes:
    return struct.pack(order + "I", delta << 5 | kind if order == "<" else kind << 27 | delta)


def ring_event(order: str, kind: str, sent: Sent) -> bytes:
    """An event's bytes."""
    number, pid = _FORMATS[kind][0], 0 if kind == "C" else sent.pid
    head = struct.pack(order + "HBBiI4xQI", number, 0, 0, pid, DEV, sent.sector, sent.sectors)
    more = struct.pack(order + "i", sent.error) if kind == "C" else sent.comm.encode().ljust(16, b"\0")
    return head + sent.rwbs.encode().ljust(8, b"\0") + more


def ring_pages(order: str) -> list[bytes]:
    """Of two processors; completions come to the second one, after 7 lost events."""
    of_cpu = [
        [(time, ring_event(order, kind, sent)) for time, kind, sent in events() if (kind == "C") == bool(cpu)]
        for cpu in (0, 1)
    ]
    return [ring_page(order, found[0][0] - 5, found, 7 if cpu else 0) for cpu, found in enumerate(of_cpu)]


class _Dat:
    """Writes a trace.dat."""

    def __init__(self, order: str, version: int, codec: str) -> None:
        self.order, self.codec = order, codec
        self.data = b"\x17\x08\x44tracing" + f"{version}\0".encode() + bytes([order == ">", 8])
        self.data += self.number(4, _PAGE)

    def number(self, size: int, value: int) -> bytes:
        return value.to_bytes(size, "big" if self.order == ">" else "little")

    def sized(self, data: bytes, size: int = 8) -> bytes:
        return self.number(size, len(data)) + data

    def packed(self, data: bytes) -> bytes:
        small = zlib.compress(data) if self.codec == "zlib" else pa.compress(data, "zstd", asbytes=True)
        return self.number(4, len(small)) + self.number(4, len(data)) + small

    def header_info(self) -> bytes:
        page = b"\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
        page += b"\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
        return b"header_page\0" + self.sized(page) + b"header_event\0" + self.sized(b"# compressed entry header\n")

    def formats(self) -> bytes:
        found = b"".join(self.sized(_format(*one)) for one in _FORMATS.values())
        return self.number(4, 1) + b"block\0" + self.number(4, len(_FORMATS)) + found

    def section(self, number: int, data: bytes) -> int:
        """Adds a section; where it is."""
        at = len(self.data)
        packed = self.codec != "none"
        data = self.packed(data) if packed else data
        self.data += self.number(2, number) + self.number(2, packed) + self.number(4, 0) + self.sized(data)
        return at

    def option(self, number: int, data: bytes) -> bytes:
        return self.number(2, number) + self.sized(data, 4)

    def fill(self) -> None:
        self.data = self.data.ljust(-(-len(self.data) // _PAGE) * _PAGE, b"\0")


def trace_dat_6(order: str = "<") -> bytes:
    """Version 6."""
    dat = _Dat(order, 6, "none")
    dat.data += dat.header_info() + dat.number(4, 0) + dat.formats() + dat.sized(b"", 4) + dat.sized(b"", 4)
    dat.data += dat.sized(b"77 mail\n") + dat.number(4, 2) + b"options  \0"
    dat.data += dat.option(5, b"Linux phone 6.1.75-android #1 SMP aarch64\0") + dat.option(4, b"local [boot] mono\0")
    dat.data += dat.number(2, 0) + b"flyrecord\0"
    at = -(-(len(dat.data) + 32) // _PAGE) * _PAGE
    for cpu in range(2):
        dat.data += dat.number(8, at + cpu * _PAGE) + dat.number(8, _PAGE)
    dat.fill()
    return dat.data + b"".join(ring_pages(order))


def trace_dat_7(order: str = "<", codec: str = "none") -> bytes:
    """Version 7."""
    dat = _Dat(order, 7, codec)
    dat.data += codec.encode() + b"\0" + b"1\0"
    place = len(dat.data)
    dat.data += dat.number(8, 0)
    info, formats = dat.section(16, dat.header_info()), dat.section(18, dat.formats())
    at = len(dat.data)
    dat.data += dat.number(2, 3) + dat.number(2, codec != "none") + dat.number(4, 0) + dat.number(8, 2 * _PAGE)
    dat.fill()
    cpus = b""
    for cpu, page in enumerate(ring_pages(order)):
        data = page if codec == "none" else dat.number(4, 1) + dat.packed(page)
        cpus += dat.number(4, cpu) + dat.number(8, len(dat.data)) + dat.number(8, len(data))
        dat.data += data
    buffer = dat.number(8, at) + b"\0boot\0" + dat.number(4, _PAGE) + dat.number(4, 2) + cpus
    real = f"0x{(REAL_NS - BEGIN_NS) // US:x}\0".encode()
    options = dat.option(16, dat.number(8, info)) + dat.option(18, dat.number(8, formats)) + dat.option(3, buffer)
    options += dat.option(1, real) + dat.option(5, b"Linux phone 6.1.75-android #1 SMP aarch64\0")
    first = dat.section(0, options + dat.option(0, dat.number(8, 0)))
    return dat.data[:place] + dat.number(8, first) + dat.data[place + 8 :]


# Perfetto

_PB = {"Q": 119, "I": 126, "D": 45, "C": 125}


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    found = b""
    while value > 0x7F:
        found += bytes([value & 0x7F | 0x80])
        value >>= 7
    return found + bytes([value])


def pb(*fields: tuple[int, int | bytes | str]) -> bytes:
    """A message."""
    found = b""
    for number, value in fields:
        if isinstance(value, int):
            found += varint(number << 3) + varint(value)
        else:
            data = value.encode() if isinstance(value, str) else value
            found += varint(number << 3 | 2) + varint(len(data)) + data
    return found


def _pb_event(time: int, kind: str, sent: Sent) -> bytes:
    body: list[tuple[int, int | bytes | str]] = [(1, 8 << 8), (2, sent.sector), (3, sent.sectors)]
    if kind == "Q":
        body += [(4, sent.rwbs), (5, sent.comm)]
    elif kind == "C":
        body += [(5, sent.rwbs), (7, sent.error)]
    else:
        body += [(4, sent.sectors * 512), (5, sent.rwbs), (6, sent.comm)]
    return pb((1, time), (2, 0 if kind == "C" else sent.pid), (_PB[kind], pb(*body)))


UP_S = 123_000
"""Uptime that leaves no second blank before perf's times, s."""


def perf_script(pid: str = "{:5}", later_s: int = 0) -> str:
    """`perf script` of recorded tracepoints: no flags, the event with its group, and an event that is no I/O."""
    first = f"{BEGIN_NS // 10**9 + later_s:5}.000000"
    found = [f"    Chrome_ChildIOT    91 [000] {first}: sched:sched_waking: comm=x pid=7 [a]\n"]
    for time, kind, sent in events():
        said = TRACED[kind].format(**vars(sent), bytes=sent.sectors * 512, priority=" be,0,4")
        comm, number = ("swapper", 0) if kind == "C" else (sent.comm, sent.pid)
        at = f"{time // 10**9 + later_s:5}.{time % 10**9 // US:06}"
        found.append(
            f"{comm:>16} {pid.format(number)} [001] {at}: {'block:' + said.split(':')[0]:>25}:{said.split(':', 1)[1]}\n"
        )
    return "".join(found)


def perfetto_packets() -> list[bytes]:
    """Packets: the system, clocks, processes, two processors' bundles, one event that is no I/O, losses."""
    system = pb((1, pb((1, "Linux"), (3, "6.1.75-android"))), (6, 4096), (7, 120))
    clocks = pb((1, pb((1, 6), (2, BEGIN_NS))), (1, pb((1, 1), (2, REAL_NS))), (1, pb((1, 3), (2, 5))))
    people = [
        pb((1, 77), (2, 1), (5, 10077), (3, "mail")),
        pb((1, 55), (2, 2), (5, 0)),
        pb((1, 80), (2, 1), (5, 10088)),
    ]
    tree = pb(*((1, one) for one in people), (2, pb((1, 88), (3, 80))))
    bundles = []
    for cpu in (1, 0):
        found = [(2, _pb_event(*event)) for event in events() if (event[1] == "C") == bool(cpu)]
        bundles.append(pb((1, cpu), *found, *([(2, pb((1, BEGIN_NS), (2, 1), (4, pb((1, 5)))))] if cpu else [(3, 1)])))
    stats = [pb((1, phase), (2, pb((1, 0), (3, lost)))) for phase, lost in ((1, 2), (2, 9))]
    return [
        pb((45, system)),
        pb((6, clocks)),
        pb((2, tree)),
        pb((34, stats[0])),
        *(pb((10, 2), (1, one)) for one in bundles),
        pb((34, stats[1])),
    ]


def perfetto_reused(at_s: Sequence[int], starts_s: Mapping[int, int]) -> bytes:
    """A thread id that processes have one after the other. AT_S: reads by it, STARTS_S: of the process of each user."""
    people = (pb((1, 77), (2, 1), (5, uid), (7, BEGIN_NS + second * 10**9)) for uid, second in starts_s.items())
    reads = [Sent(second * 10**6, "R", 8 * second, 8, 77, "mail", 100) for second in at_s]
    found = [(2, _pb_event(time, kind, sent)) for sent in reads for time, kind in sent.steps]
    packets = (pb((2, pb(*((1, one) for one in people)))), pb((10, 2), (1, pb((1, 0), *found))))
    return b"".join(pb((1, packet)) for packet in packets)


def perfetto(codec: str | None = None) -> bytes:
    """A trace; its packets packed by zlib or zstd, or as they are."""
    whole = b"".join(pb((1, packet)) for packet in perfetto_packets())
    if codec is None:
        return whole
    return pb(
        (1, pb((50, zlib.compress(whole)) if codec == "zlib" else (133, pa.compress(whole, "zstd", asbytes=True))))
    )


# AndroTrace


def uio_record(
    sent: Sent,
    issue: bool,
    second: int,
    ns: int,
    block: int,
    name: str = "",
    file_type: int = 0,
    sync: int = 0,
    year: int = 15,
) -> bytes:
    """A record of I/O at 2015-10-20 09:08, local time."""
    write, ws = sent.rwbs[0] == "W", sent.rwbs.startswith("WS")
    bits = issue | (write + 2 * ws) << 1 | ws << 3
    comm = sent.comm.encode()
    body = struct.pack("<BBBBBIIB", file_type, bits, 179, 28, block, sent.sector & 0xFFFFFFFF, sent.sectors, len(comm))
    body += comm + bytes([len(name)]) + name.encode()
    if ws:
        body += struct.pack("<BBIB", 1, sync, 4242, 1)
    date = year | 10 << 4 | 20 << 8 | 9 << 13 | 8 << 18 | second << 24
    return struct.pack("<BBII", 1, len(body) & 0xFF, date, ns) + body


def androtrace() -> bytes:
    """Two requests, one with the name of a file and in an fsync; a suspend between."""
    write, read = Sent(0, "WS", 2048, 8, 0, "mail", 0), Sent(0, "R", 4096, 16, 0, "dd", 0)
    suspend = struct.pack("<BBII", 4, 0, 15 | 10 << 4 | 20 << 8 | 9 << 13 | 8 << 18 | 7 << 24, 0) + b"\1"
    return b"".join(
        [
            uio_record(write, True, 7, 1000, 2, "x.db-journal", 2, 1),
            uio_record(write, False, 7, 101_000, 2, "x.db-journal", 2, 1),
            suspend,
            uio_record(read, True, 8, 0, 0),
            uio_record(read, False, 8, 50_000, 0),
        ]
    )


def _one(name: str, make: Callable[[], bytes | str]) -> Callable[[Path], list[Path]]:
    def write(folder: Path) -> list[Path]:
        made = make()
        (folder / name).write_bytes(made if isinstance(made, bytes) else made.encode())
        return [folder / name]

    return write


def _two(order: str) -> Callable[[Path], list[Path]]:
    def write(folder: Path) -> list[Path]:
        paths = [folder / f"sda.blktrace.{cpu}" for cpu in (0, 1)]
        for path, data in zip(paths, blktrace(order), strict=True):
            path.write_bytes(data)
        return paths

    return write


SAMPLES: dict[str, tuple[str, Callable[[Path], list[Path]]]] = {
    "blktrace": ("blktrace", _two("<")),
    "blktrace-big": ("blktrace", _two(">")),
    "blkparse": ("blkparse", _one("sda.txt", blkparse)),
    "trace.dat-6": ("trace.dat", _one("trace6.dat", trace_dat_6)),
    "trace.dat-6-big": ("trace.dat", _one("trace6b.dat", lambda: trace_dat_6(">"))),
    "trace.dat-7": ("trace.dat", _one("trace7.dat", trace_dat_7)),
    "trace.dat-7-zstd": ("trace.dat", _one("trace7z.dat", lambda: trace_dat_7("<", "zstd"))),
    "trace.dat-7-zlib": ("trace.dat", _one("trace7l.dat", lambda: trace_dat_7(">", "zlib"))),
    "ftrace": ("ftrace", _one("trace.txt", ftrace)),
    "systrace": (
        "ftrace",
        _one(
            "trace.html",
            lambda: (
                "<!DOCTYPE html>\n<script>var a = [0];</script><script class='trace-data'>\n"
                + ftrace("d..1", True, "")
                + "</script>\n"
            ),
        ),
    ),
    "report": ("ftrace", _one("report.txt", lambda: "cpus=2\n" + ftrace("", False, " 0x2,0,4", False))),
    "perf": ("ftrace", _one("perf.txt", perf_script)),
    "perf-threads": ("ftrace", _one("threads.txt", lambda: perf_script("{0:5}/{0}", UP_S))),
    "perfetto": ("perfetto", _one("trace.pftrace", perfetto)),
    "perfetto-packed": ("perfetto", _one("packed.pftrace", lambda: perfetto("zlib"))),
    "perfetto-zstd": ("perfetto", _one("zstd.pftrace", lambda: perfetto("zstd"))),
    "pixel6a": ("pixel6a", _one("phone.csv", lambda: PIXEL)),
    "most": ("most", _one("result.po", most)),
    "androtrace": ("androtrace", _one("151020090807.uio", androtrace)),
}
"""Sample -> its format, and what writes its files."""
WHOLE = [name for name in SAMPLES if name.split("-")[0] not in ("pixel6a", "most", "androtrace")]
"""Samples that say all of SENT's bios and requests."""
