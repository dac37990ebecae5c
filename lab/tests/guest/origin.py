#!/usr/bin/python3 -ESsBu
# SPDX-License-Identifier: GPL-2.0-only
"""Apps that write blocks which name who has written them and to which file, in every way, recorded."""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import sqlite3
import struct
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from trace import LOGS, Collector

from jbd2_log import read_log
from prologue import (
    BEHIND,
    BLOCK,
    DATA,
    DISK,
    FRONT,
    LIBC,
    SEEN,
    SERVICE,
    TRACE,
    Shown,
    as_uid,
    drop_caches,
    enable,
    pairs,
    read,
    run,
    write,
)

MARK = 0xF7
"""The first byte of each word."""

BLOCKS = 64
"""Of a file."""

PUNCH_HOLE = 3
"""FALLOC_FL_PUNCH_HOLE and FALLOC_FL_KEEP_SIZE."""

CALLS_OVER = Path("/sys/module/io_origin/parameters/calls_over_us")
"""The patched kernel's."""

TIMES: dict[str, int] = {}
"""Case -> when it began, ns of the records' clock: what came before it was on the disk."""

CALLS = 0
"""Place of the counter of calls in SEEN; a file's inode is at 8 and its number."""


def app(uid: int, work: Callable[[], object]) -> None:
    """WORK by a process of that app, which has ended when this returns."""
    if status := as_uid(uid, work):
        raise ChildProcessError(f"an app ended with {status}")


def word(path: int) -> int:
    """Who is current, which file, and which call of all."""
    SEEN[CALLS] += 1
    return MARK << 56 | os.getuid() << 40 | path << 24 | SEEN[CALLS] & 0xFFFFFF


def block(path: int) -> bytes:
    return word(path).to_bytes(8, "little") * (BLOCK // 8)


def name(path: int) -> Path:
    return DATA / f"path{path}"


def opened(path: int, flags: int = 0) -> int:
    handle = os.open(name(path), os.O_RDWR | os.O_CREAT | flags, 0o666)
    SEEN[8 + path] = os.fstat(handle).st_ino
    return handle


def write_blocks(handle: int, path: int, first: int = 0, count: int = BLOCKS) -> None:
    for index in range(first, first + count):
        os.pwrite(handle, block(path), index * BLOCK)


def buffered(path: int) -> None:
    write_blocks(opened(path), path)


def appended(path: int) -> None:
    handle = opened(path, os.O_APPEND)
    for _ in range(BLOCKS):
        os.write(handle, block(path))


def mapped(path: int) -> None:
    handle = opened(path)
    os.ftruncate(handle, BLOCKS * BLOCK)
    there = mmap.mmap(handle, BLOCKS * BLOCK)
    for index in range(BLOCKS):
        there[index * BLOCK : (index + 1) * BLOCK] = block(path)
    there.flush()
    # Written back, and now mapped for reading alone: each page faults again.
    for index in range(0, BLOCKS, 2):
        there[index * BLOCK : (index + 1) * BLOCK] = block(path)


def direct(path: int) -> None:
    handle = opened(path, os.O_DIRECT)
    page = mmap.mmap(-1, 4 * BLOCK)
    for index in range(0, BLOCKS, 4):
        page[:] = b"".join(block(path) for _ in range(4))
        os.pwritev(handle, [page], index * BLOCK)


def synchronous(path: int) -> None:
    write_blocks(opened(path, os.O_SYNC), path, count=8)


def synced(path: int) -> None:
    handle = opened(path)
    for sync in (os.fsync, os.fdatasync):
        for first in range(0, 16, 4):
            write_blocks(handle, path, first, 4)
            sync(handle)


def all_synced(path: int) -> None:
    buffered(path)
    os.sync()


def renamed(path: int) -> None:
    buffered(path)
    name(path).rename(DATA / f"renamed{path}")


def unlinked(path: int) -> None:
    handle = opened(path)
    write_blocks(handle, path)
    name(path).unlink()
    os.fsync(handle)


def truncated(path: int) -> None:
    handle = opened(path)
    write_blocks(handle, path)
    os.ftruncate(handle, 16 * BLOCK)
    write_blocks(handle, path, 8, 24)


def punched(path: int) -> None:
    """A hole is written again."""
    handle = opened(path)
    write_blocks(handle, path)
    os.fsync(handle)
    if LIBC.fallocate(handle, PUNCH_HOLE, ctypes.c_long(8 * BLOCK), ctypes.c_long(16 * BLOCK)):
        raise OSError(ctypes.get_errno(), "fallocate")
    write_blocks(handle, path, 12, 8)


def sent(path: int) -> None:
    """By sendfile(2), from memory."""
    with Path("/tmp/source").open("wb+", buffering=0) as source:
        write_blocks(source.fileno(), path)
        if os.sendfile(opened(path), source.fileno(), 0, BLOCKS * BLOCK) != BLOCKS * BLOCK:
            raise OSError("sendfile was short")
    Path("/tmp/source").unlink()


def copied(path: int) -> None:
    """By copy_file_range(2): the copy's blocks are the source's, which has the same owner."""
    source = opened(path)
    write_blocks(source, path)
    os.copy_file_range(source, source, 16 * BLOCK, 0, 32 * BLOCK)


EVERY: list[Callable[[int], None]] = [
    buffered,
    appended,
    mapped,
    direct,
    synchronous,
    synced,
    all_synced,
    renamed,
    unlinked,
    truncated,
    punched,
    sent,
    copied,
]


def shared(path: int) -> None:
    """One app overwrites a part of what another has dirtied, while it is dirty; then syncs all of it."""
    app(FRONT, lambda: buffered(path))
    app(BEHIND, lambda: write_blocks(opened(path), path, 16, 32))
    app(FRONT, lambda: os.fsync(opened(path)))


def shared_map(path: int) -> None:
    """The other app does it by mmap."""

    def over() -> None:
        there = mmap.mmap(opened(path), BLOCKS * BLOCK)
        for index in range(32, BLOCKS):
            there[index * BLOCK : (index + 1) * BLOCK] = block(path)

    app(FRONT, lambda: buffered(path))
    app(BEHIND, over)
    app(SERVICE, lambda: os.fsync(opened(path)))


def by_ring(path: int) -> None:
    """Through io_uring, by fio, which makes the file; its blocks are all of one word."""
    pattern = f"0x{word(path).to_bytes(8, 'little').hex()}"
    argv = [
        "fio",
        "--name=ring",
        f"--filename={name(path)}",
        "--ioengine=io_uring",
        "--thread",
        "--direct=1",
        "--rw=write",
        "--bs=16k",
        "--size=512k",
        "--iodepth=8",
        f"--buffer_pattern={pattern}",
    ]
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, cwd="/tmp", env={"PATH": "/usr/bin"})
    SEEN[8 + path] = name(path).stat().st_ino


def spliced(path: int) -> None:
    """By splice(2), from a pipe."""
    handle = opened(path)
    out, into = os.pipe()
    for _ in range(BLOCKS):
        os.write(into, block(path))
        if os.splice(out, handle, BLOCK) != BLOCK:
            raise OSError("splice was short")


EVERY.append(spliced)


def database(mode: str, path: int) -> None:
    """Transactions of SQLite, each durable when it ends. The log is kept: its blocks are its own until the end."""
    opened(path)
    db = sqlite3.connect(name(path), isolation_level=None)
    for pragma in (f"journal_mode={mode}", "synchronous=full", "wal_autocheckpoint=8"):
        db.execute(f"pragma {pragma}").fetchall()
    db.execute("create table rows (content blob)")
    for number in range(12):
        db.execute("begin")
        for _ in range(6):
            db.execute("insert into rows values (?)", [b"s" * 3000])
        db.execute("update rows set content = ? where rowid = ?", [b"t" * 3000, number + 1])
        db.execute("commit")
    # Without closing it, which would remove the log of write-ahead logging.
    os._exit(0)


FS_IOC_FIEMAP = 0xC020660B
EXTENTS = 256


def places(path: Path) -> list[int]:
    """The blocks of the disk that hold a file."""
    asked = bytearray(32 + 56 * EXTENTS)
    struct.pack_into("=QQIIII", asked, 0, 0, 1 << 62, 1, 0, EXTENTS, 0)
    handle = os.open(path, os.O_RDONLY)
    fcntl.ioctl(handle, FS_IOC_FIEMAP, asked)
    os.close(handle)
    count = struct.unpack_from("=I", asked, 20)[0]
    if not 0 < count < EXTENTS:
        raise ValueError(f"{path} has {count} extents")
    found: list[int] = []
    for at in range(32, 32 + 56 * count, 56):
        _, physical, length = struct.unpack_from("=QQQ", asked, at)
        found += range(physical // BLOCK, (physical + length) // BLOCK)
    return found


def databases() -> dict[int, list[dict[str, object]]]:
    """Path of a database -> it and its log: name, inode, and where they are."""
    found = {}
    case("sqlite")
    for path, mode, log, uid in ((400, "persist", "-journal", FRONT), (401, "wal", "-wal", BEHIND)):
        app(uid, partial(database, mode, path))
        os.sync()
        files = [name(path), name(path).with_name(name(path).name + log)]
        found[path] = [
            {"name": one.name, "inode": one.stat().st_ino, "uid": uid, "places": places(one)} for one in files
        ]
    return found


def reads(path: int) -> None:
    with name(path).open("rb", buffering=0) as handle:
        while handle.read(16 * BLOCK):
            pass


def reads_direct(path: int) -> None:
    handle = os.open(name(path), os.O_RDONLY | os.O_DIRECT)
    page = mmap.mmap(-1, 4 * BLOCK)
    for at in range(0, BLOCKS, 4):
        os.preadv(handle, [page], at * BLOCK)


def reads_mapped(path: int) -> None:
    handle = os.open(name(path), os.O_RDONLY)
    there = mmap.mmap(handle, BLOCKS * BLOCK, prot=mmap.PROT_READ)
    for at in range(0, BLOCKS * BLOCK, BLOCK):
        there[at]


READ = {0: reads, 1: reads_direct, 3: reads_mapped}
"""Path -> how it is read, by the app that has not written it."""


def read_again() -> None:
    case("read")
    drop_caches()
    for path, way in READ.items():
        app((BEHIND, FRONT)[path % 2], partial(way, path))


def makes(name: str, count: int, then: Callable[[int], None] | None = None) -> None:
    """Empty files, in a directory of their own; and what is done with the last one."""
    where = DATA / name
    where.mkdir()
    for number in range(count):
        handle = os.open(where / str(number), os.O_CREAT | os.O_WRONLY, 0o666)
        if then and number == count - 1:
            then(handle)
        os.close(handle)


def case(name: str) -> None:
    """What follows is of this case, when what came before is on the disk."""
    os.sync()
    TIMES[name] = time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def journals() -> None:
    """Whose transactions: of one app; of two, of which one syncs; of one whose data the flusher writes."""
    case("alone")
    app(FRONT, lambda: makes("alone", 20, os.fsync))
    case("both")
    app(BEHIND, lambda: makes("many", 40))
    app(FRONT, lambda: makes("few", 2, os.fsync))
    app(FRONT, os.sync)
    case("flusher")
    app(BEHIND, lambda: (DATA / "flushed").write_bytes(b"x" * BLOCK * BLOCKS))
    app(SERVICE, os.sync)
    case("end")


def suite(program: str, source: str) -> Shown:
    """Every way, each in a file of its own and as one of two apps; who has written has ended before write-back."""
    over = ("--calls-over", "0") if CALLS_OVER.exists() else ()
    collector = Collector(program, "--source", source, "--buffer", "16384", *over)
    case("write")
    ways: dict[int, str] = {}
    for number, way in enumerate(EVERY):
        ways[number] = way.__name__
        app((FRONT, BEHIND)[number % 2], partial(way, number))
    for number, way in enumerate((shared, shared_map), len(EVERY)):
        ways[number] = way.__name__
        way(number)
    number = len(ways)
    ways[number] = "by_ring"
    app(FRONT, lambda: by_ring(number))
    found = databases()
    read_again()
    journals()
    where = {path: places(name(path)) for path in READ}
    collector.end()
    return {
        "ways": ways,
        "databases": found,
        "read": {path: way.__name__ for path, way in READ.items()},
        "places": where,
        "inodes": {path: SEEN[8 + path] for path in ways},
        "times": TIMES,
    }


def taken(trace: Path) -> list[tuple[int, str]]:
    """Place and first word of each block that the device was given, in order."""
    wanted = ": mflash_block: write=1 lpn="
    with trace.open() as lines:
        said = [line.split(wanted)[1].split() for line in lines if wanted in line]
    return [(int(place), word.removeprefix("word=")) for place, word in said]


def is_ext4() -> bool:
    return any(line.split()[1:3] == [str(DATA), "ext4"] for line in Path("/proc/mounts").read_text().splitlines())


def watched(program: str, source: str) -> Shown:
    """The suite on mflash, which tells of each block that it is given; and the journal as it is on the disk."""
    write(TRACE / "buffer_size_kb", "16384")
    enable("mflash/mflash_block")
    shown = suite(program, source)
    enable("mflash/mflash_block", False)
    drop_caches()
    log = read_log(DISK) if is_ext4() else {}
    return shown | {
        "log": {number: [len(one.tags), one.others] for number, one in log.items()},
        "buffer": pairs(read(TRACE / "per_cpu/cpu0/stats"), ": "),
        "taken": taken(TRACE / "trace"),
        "records": Collector.read(program, LOGS),
    }


if __name__ == "__main__":
    run(watched)
