# SPDX-License-Identifier: GPL-2.0-only
"""What is measured: the patterns, the queue depths, and which pattern runs beside which. No device is touched here.

A *point* is the throughput of one pattern at one queue depth. A *pair* is the latency of one pattern at depth 1, the
subject, beside a stream of another one at depth 1: what one read waits for one writer, and one write for one reader.
Alone, the subject is the pattern's point at depth 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from fasttrack_lab.inputs.patterns import MAX_DEPTH, PATTERNS, Pattern
from fasttrack_lab.run import fio

MIB = 1 << 20

BEST_SHARE = 0.95
"""The best concurrency is the smallest depth that reaches this share of the best throughput.

The last few per cent cost twice the requests in the device's queue, and everything that comes after waits for them."""

FILL = "fill"
"""The name of the step that fills the range."""

STREAM_TIMES = 2
"""The limit of a pair's stream in that of its subject, which ends both."""


PAIRS = tuple((subject, stream) for subject in PATTERNS for stream in PATTERNS if subject.reads != stream.reads)
"""Every read beside every write, and every write beside every read."""


@dataclass(frozen=True)
class Amount:
    """Bytes that a job moves at most."""

    sequential: int
    random: int

    def of(self, pattern: Pattern) -> int:
        """For a pattern."""
        return self.random if pattern.random else self.sequential


@dataclass(frozen=True)
class Plan:
    """How much of everything."""

    range_bytes: int
    """The part of the device or file that is used."""
    point: Amount
    subject: Amount
    limit_s: float
    """Time after which a point ends in any case: virtual in a guest, real on a real device."""
    depths: tuple[int, ...]
    pairs: tuple[tuple[Pattern, Pattern], ...] = PAIRS
    options: tuple[str, ...] = ()
    """For every job."""
    fresh: bool = False
    """Each part begins on a fresh device, so that none finds what another wrote in its way."""


def depths_to(queue_depth: int) -> tuple[int, ...]:
    """1, 2, 4, ... to what the device takes at once, which is the last; 0: nobody knows, so all."""
    most = min(queue_depth or MAX_DEPTH, MAX_DEPTH)
    powers = [1 << shift for shift in range(most.bit_length()) if 1 << shift < most]
    return (*powers, most)


def for_phone(queue_depth: int) -> Plan:
    """The plan for an emulated phone. Virtual time makes the numbers exact, however few the requests.

    1 GiB is more than a slow phone's map cache translates. A point of sequential writes is 16 times the largest
    volatile cache; six of them fit into the SLC buffer, and so do a fill and all pairs. Zeros need no memory here.
    """
    return Plan(
        range_bytes=1024 * MIB,
        point=Amount(256 * MIB, 32 * MIB),
        subject=Amount(64 * MIB, 2 * MIB),
        limit_s=5.0,
        depths=depths_to(queue_depth),
        options=("--zero_buffers",),
        fresh=True,
    )


def for_file(size: int, seconds: float, queue_depth: int) -> Plan:
    """The plan for a file of SIZE bytes on a real device: SECONDS for each point, and no more than the file once."""
    whole = Amount(size, size)
    return Plan(size, whole, whole, seconds, depths_to(queue_depth))


class Point(Protocol):
    """What best_depth needs of a measured point."""

    @property
    def depth(self) -> int:
        """Requests at once."""
        ...

    @property
    def mb_s(self) -> float:
        """Throughput, 10^6 bytes a second."""
        ...


def best_depth(curve: Sequence[Point]) -> int:
    """The smallest depth of a curve that reaches BEST_SHARE of its best throughput. CURVE has a point at least."""
    enough = BEST_SHARE * max(point.mb_s for point in curve)
    return min(point.depth for point in curve if point.mb_s >= enough)


Step = tuple[fio.Job, ...]
"""Jobs that run at once. The name of the first is the step's, and is there once in a plan."""


@dataclass(frozen=True)
class Files:
    """Where patterns read and write: paths for fio."""

    read: str
    write: str
    read_bytes: int
    write_bytes: int

    def of(self, pattern: Pattern) -> tuple[str, int]:
        """The path and the range in bytes for a pattern."""
        return (self.read, self.read_bytes) if pattern.reads else (self.write, self.write_bytes)


def point_name(pattern: Pattern, depth: int) -> str:
    """The name of a point's job."""
    return f"{pattern.name}-{depth}"


def pair_name(subject: Pattern, stream: Pattern) -> str:
    """The name of a pair's subject."""
    return f"{subject.name}-beside-{stream.name}"


def _job(name: str, pattern: Pattern, plan: Plan, files: Files, moved: int, depth: int, *options: str) -> fio.Job:
    path, size = files.of(pattern)
    every = ("--allow_file_create=0", "--stonewall", f"--io_size={min(moved, size)}", *plan.options, *options)
    return fio.Job(name, path, pattern.rw, str(pattern.block), depth, str(size), plan.limit_s, options=every)


def fill(plan: Plan, files: Files) -> Step:
    """Write the range once: what was never written is not read from flash."""
    options = ("--allow_file_create=0", "--end_fsync=1", *plan.options)
    return (fio.Job(FILL, files.write, "write", str(512 << 10), 8, str(files.write_bytes), options=options),)


def curve(pattern: Pattern, plan: Plan, files: Files) -> Iterator[Step]:
    """The points of a pattern. Each has its own seed, so that none finds in a cache what the one before it read."""
    for depth in plan.depths:
        moved = plan.point.of(pattern)
        yield (_job(point_name(pattern, depth), pattern, plan, files, moved, depth, f"--randseed={depth}"),)


def pair(subject: Pattern, stream: Pattern, plan: Plan, files: Files) -> Step:
    """A subject beside a stream, in the two halves of the range: neither finds the other's data in a cache."""
    half = Files(files.read, files.write, files.read_bytes // 2, files.write_bytes // 2)
    name = pair_name(subject, stream)
    first = _job(name, subject, plan, half, plan.subject.of(subject), 1, "--exitall")
    path, size = half.of(stream)
    endless = (f"--offset={size}", "--time_based=1", "--allow_file_create=0", *plan.options)
    limit_s = STREAM_TIMES * plan.limit_s
    second = fio.Job(f"{name}-stream", path, stream.rw, str(stream.block), 1, str(size), limit_s, options=endless)
    return (first, second)
