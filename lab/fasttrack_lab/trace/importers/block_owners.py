# SPDX-License-Identifier: GPL-2.0-only
"""Which file has which blocks, and who dirtied them: what file systems and the page cache say before a bio is sent.

The rules are those of device/trace/src/join (segments.rs, blocks.rs, pages.rs), and stricter where a live system could
be asked: what a device is, and how large ext4's blocks are, is taken only from events that prove it. A place that
nothing proves has no file.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator
from typing import NamedTuple

from fasttrack_lab.trace.importers.intake import EXTENT, SECTOR, Intake

_RUNS = 100_000
"""So many runs of blocks are kept; then all is forgotten, and known again as it is used."""
_DIRTY = 500_000
"""The same of dirty pages: some 100 MB."""
_REMAPS = 65_536
"""Bios that are on their way to another place: more are lost."""
_CHAIN = 4
"""Devices on top of each other."""
_RECENT = 16
"""Runs that a thread was told last: its next bio begins at one of them."""
_BLOCK_SIZES = (1024, 2048, 4096, 8192, 16384, 32768, 65536)
"""Of ext4, bytes."""
_PAGE_BYTES = 4096

_SCSI = frozenset({8, *range(65, 72), *range(128, 136)})
"""Majors of SCSI disks, which have 16 minors each (Documentation/admin-guide/devices.txt)."""
_MINORS = 16
_MINOR_BITS = 20

Place = tuple[int, int]
"""A device and a sector of it."""


class Run(NamedTuple):
    """What a run of sectors holds."""

    dev: int
    sectors: int
    inode: int | None
    page: int | None
    """Of the file, at the first sector."""
    block_type: str

    def after(self, sectors: int, page_sectors: int) -> Run:
        """The rest behind so many sectors."""
        page = None if self.page is None else self.page + sectors // page_sectors
        return self._replace(sectors=self.sectors - sectors, page=page)


Owner = tuple[int | None, int]
"""Id of the task that dirtied a page, and when."""


class BlockOwners:
    """Keeps what was said, in the order of time."""

    def __init__(self, intake: Intake) -> None:
        """What INTAKE says of devices is of the whole recording."""
        self._disks = intake.disks
        self._parts = intake.parts
        self._remapped = bool(intake.kinds["remap"])
        self._devices = {dev for dev in intake.by_device if dev is not None} | intake.parts
        self._page = intake.page_bytes or _PAGE_BYTES
        self.page_sectors = self._page // SECTOR
        self._begins: defaultdict[int, list[int]] = defaultdict(list)
        self._runs: dict[Place, Run] = {}
        self._dirty: dict[tuple[int, int, int], Owner] = {}
        self._remaps: OrderedDict[Place, Place] = OrderedDict()
        self._block_bytes: dict[int, int] = {}
        """Of ext4's devices, where a bio has proved it."""
        self._unplaced: defaultdict[int, list[tuple[int, int, Run]]] = defaultdict(list)
        """Runs of a device whose blocks' size is not known: first block, how many, what they hold."""
        self._recent: defaultdict[int | None, deque[Place]] = defaultdict(lambda: deque(maxlen=_RECENT))
        """By thread: device and first block."""

    def forget(self) -> None:
        """Events were lost: what was kept of them may be wrong."""
        for kept in (self._begins, self._runs, self._dirty, self._remaps, self._unplaced, self._recent):
            kept.clear()

    def map(self, kind: str, pid: int | None, dev: int, block: int, count: int, run: Run) -> None:
        """Blocks of a file system are at a place, RUN's page counts the file's blocks."""
        size = self._block_bytes.get(dev) if kind == EXTENT else self._page
        if kind == EXTENT:
            self._recent[pid].append((dev, block))
        if size is not None:
            self._place(dev, block, count, run, size)
        elif len(self._unplaced[dev]) < _RUNS:
            self._unplaced[dev].append((block, count, run))

    def _place(self, dev: int, block: int, count: int, run: Run, size: int) -> None:
        if len(self._runs) >= _RUNS:
            self._begins.clear()
            self._runs.clear()
        sectors = size // SECTOR
        page = None if run.page is None else run.page * size // self._page
        self._put(dev, block * sectors, run._replace(sectors=count * sectors, page=page))

    def free(self, dev: int, block: int, count: int) -> None:
        """Blocks of ext4 are nobody's."""
        size = self._block_bytes.get(dev)
        if size is None:
            self._unplaced.pop(dev, None)
        else:
            self._clear(dev, block * (size // SECTOR), count * (size // SECTOR))

    def _put(self, dev: int, sector: int, run: Run) -> None:
        """A run is there; one that goes on where another ends is a part of it."""
        self._clear(dev, sector, run.sectors)
        begins = self._begins[dev]
        at = bisect_left(begins, sector)
        begin = begins[at - 1] if at else sector
        before = self._runs.get((dev, begin))
        if before is not None and begin + before.sectors == sector:
            goes_on = before.after(before.sectors, self.page_sectors)._replace(sectors=run.sectors)
            if goes_on == run:
                self._runs[dev, begin] = before._replace(sectors=before.sectors + run.sectors)
                return
        begins.insert(at, sector)
        self._runs[dev, sector] = run

    def _over(self, dev: int, sector: int, end: int) -> list[int]:
        """Begins of the runs that overlap."""
        begins = self._begins.get(dev, [])
        first = bisect_right(begins, sector) - 1
        if first < 0 or begins[first] + self._runs[dev, begins[first]].sectors <= sector:
            first += 1
        return begins[first : bisect_left(begins, end)]

    def _clear(self, dev: int, sector: int, sectors: int) -> None:
        """These sectors hold nothing that is known."""
        end = sector + sectors
        for begin in self._over(dev, sector, end):
            run = self._runs.pop((dev, begin))
            begins = self._begins[dev]
            del begins[bisect_left(begins, begin)]
            if begin < sector:
                insort(begins, begin)
                self._runs[dev, begin] = run._replace(sectors=sector - begin)
            if begin + run.sectors > end:
                insort(begins, end)
                self._runs[dev, end] = run.after(end - begin, self.page_sectors)

    def remap(self, to: Place, before: Place) -> None:
        """A bio goes on to another place."""
        self._remaps.pop(to, None)
        if len(self._remaps) >= _REMAPS:
            self._remaps.popitem(last=False)
        self._remaps[to] = before

    def place(self, dev: int, sector: int, queued: bool) -> Place | None:
        """A bio's place on the file system's device; None where nothing proves it. QUEUED: it is a bio, no request."""
        at = dev, sector
        if queued:
            for _ in range(_CHAIN):
                before = self._remaps.pop(at, None)
                if before is None:
                    break
                at = before
        if at != (dev, sector):
            return at
        whole = dev in self._disks or (queued and self._remapped and dev not in self._parts)
        return at if whole else None

    def look_up(self, place: Place, sectors: int, pid: int | None) -> Iterator[tuple[int, Run | None]]:
        """What these sectors hold: runs that cover them, known or not, in sectors."""
        dev, sector = place
        self._prove(dev, sector, pid)
        at, end = sector, sector + sectors
        for begin in self._over(dev, sector, end):
            run = self._runs[dev, begin]
            if begin > at:
                yield begin - at, None
                at = begin
            until = min(end, begin + run.sectors)
            yield until - at, run.after(at - begin, self.page_sectors)
            at = until
        if at < end:
            yield end - at, None

    def _prove(self, dev: int, sector: int, pid: int | None) -> None:
        """A thread that was told a block and sends a bio there says how large ext4's blocks are."""
        if dev not in self._unplaced:
            return
        told = {block for of, block in self._recent[pid] if of == dev}
        sizes = [size for size in _BLOCK_SIZES if any(block * (size // SECTOR) == sector for block in told)]
        if len(sizes) != 1:
            return
        self._block_bytes[dev] = sizes[0]
        for block, count, run in self._unplaced.pop(dev):
            self._place(dev, block, count, run, sizes[0])

    def dirty(self, disk: int, inode: int, index: int, owner: Owner) -> None:
        """A page has become dirty."""
        if len(self._dirty) >= _DIRTY:
            self._dirty.clear()
        self._dirty[disk, inode, index] = owner

    def disk_of(self, dev: int) -> int | None:
        """How the page cache names a file system's disk. Files of two partitions of it cannot be told apart."""
        if dev in self._disks and dev not in self._parts:
            return dev
        disk = dev - dev % _MINORS
        beside = any(part not in (dev, disk) and part - part % _MINORS == disk for part in self._devices)
        return disk if dev >> _MINOR_BITS in _SCSI and disk in self._disks and not beside else None

    def written(self, dev: int, inode: int, index: int, pages: int) -> Iterator[tuple[int, Owner | None]]:
        """Pages of a file are written, and clean then: runs of them with one owner, where that is known."""
        disk = self.disk_of(dev)
        last: Owner | None = None
        count = 0
        for page in range(index, index + pages):
            owner = None if disk is None else self._dirty.pop((disk, inode, page), None)
            if count and (owner and owner[0]) != (last and last[0]):
                yield count, last
                count = 0
            last = last if count else owner
            count += 1
        if count:
            yield count, last
