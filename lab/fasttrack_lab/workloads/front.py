#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""An ordinary program in front; runs in the guest, with the standard library alone.

front.py KIND SEED works in the current directory and ends. front.py KIND SEED THINK_MS WINDOW_S does calls of a paced
kind for so long, with a pause after each; with a path behind it, until that is there, and ends with the status in it.
The last line that either prints is JSON: the time in its calls.
"""

from __future__ import annotations

import json
import mmap
import os
import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

LEAST_NS = 1000
"""A call that is shorter has waited for nothing: reading the clock takes 256 ns of virtual time."""
MIB = 1 << 20
PAGE = 4096
MODE = 0o644
NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
LOG = os.O_WRONLY | os.O_CREAT | os.O_APPEND

TREE, DATA, FILM, PROGRAMS = "tree", "data", "film", "bin"
"""What is there before a program begins: small files in folders, two large files, programs."""


class Calls:
    """Does calls, and takes the time in each."""

    def __init__(self) -> None:
        self.took_ns: list[int] = []
        self.begin_ns = time.monotonic_ns()

    def __call__(self, one: Callable[..., object], *arguments: object) -> None:
        """Do one."""
        begin_ns = time.monotonic_ns()
        one(*arguments)
        took_ns = time.monotonic_ns() - begin_ns
        self.took_ns.append(took_ns if took_ns >= LEAST_NS else 0)

    def report(self) -> dict[str, float]:
        """Sum, percentiles and longest in seconds; begin and end by CLOCK_MONOTONIC."""
        ordered = sorted(self.took_ns) or [0]
        count = len(ordered)
        ns = {
            "sum": sum(ordered),
            "p50": ordered[count // 2],
            "p99": ordered[min(count - 1, count * 99 // 100)],
            "longest": ordered[-1],
            "begin": self.begin_ns,
            "end": time.monotonic_ns(),
        }
        return {"calls": len(self.took_ns)} | {f"{name}_s": value / 1e9 for name, value in ns.items()}


def write_file(path: str, data: bytes, *, sync: bool = False) -> None:
    """Makes a file, or overwrites it."""
    handle = os.open(path, NEW, MODE)
    os.write(handle, data)
    if sync:
        os.fsync(handle)
    os.close(handle)


def sync_folder(path: str) -> None:
    """fsync of a directory: a name in it is on the storage then."""
    handle = os.open(path, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)


def database(name: str, journal: str) -> sqlite3.Connection:
    """A database with one table, in which each statement is a transaction."""
    base = sqlite3.connect(name, isolation_level=None)
    base.execute(f"pragma journal_mode={journal}")
    base.execute("pragma synchronous=full")
    base.execute("create table if not exists message(number integer primary key, text)")
    return base


def insert(base: sqlite3.Connection) -> None:
    """A transaction of one row."""
    base.execute("insert into message(text) values(?)", ("m" * 400,))


def make_and_rename(folder: str, number: int, size: int) -> None:
    """A file that appears under its name when it is whole; nothing waits for the storage."""
    write_file(f"{folder}/new", b"c" * size)
    Path(folder, "new").rename(f"{folder}/{number}")


def small_files() -> list[Path]:
    """The files of the tree, in the order of their names."""
    return sorted(path for path in Path(TREE).rglob("*") if path.is_file())


def create(call: Calls, _: random.Random) -> None:
    """2000 small files, each renamed, none synced: an archive that is unpacked."""
    Path("made").mkdir()
    for number in range(2000):
        call(make_and_rename, "made", number, PAGE)


def createslow(call: Calls, _: random.Random) -> None:
    """A small file each 20 ms, not synced: thumbnails, a browser's cache."""
    Path("made").mkdir()
    for number in range(200):
        call(make_and_rename, "made", number, 6000)
        time.sleep(0.02)


def save(call: Calls, _: random.Random) -> None:
    """An editor saves 30 times: a new file, fsync, rename, fsync of the folder."""

    def one() -> None:
        write_file(".draft", b"t" * 20_000, sync=True)
        Path(".draft").rename("draft")
        sync_folder(".")

    for _time in range(30):
        call(one)
        time.sleep(0.05)


def type_(call: Calls, _: random.Random) -> None:
    """An append of 1 KiB with fdatasync each 100 ms: text that is typed."""
    handle = os.open("journal", LOG, MODE)

    def one() -> None:
        os.write(handle, b"k" * 1024)
        os.fdatasync(handle)

    for _time in range(40):
        call(one)
        time.sleep(0.1)


def unlink(call: Calls, _: random.Random) -> None:
    """A tree of small files is removed."""
    for folder, _folders, names in os.walk(TREE, topdown=False):
        for name in names:
            call(os.unlink, f"{folder}/{name}")
        call(os.rmdir, folder)


def wal(call: Calls, _: random.Random) -> None:
    """100 SQLite transactions with a write-ahead log."""
    base = database("wal.db", "wal")
    for _time in range(100):
        call(insert, base)


def rollback(call: Calls, _: random.Random) -> None:
    """40 SQLite transactions with a rollback journal."""
    base = database("rollback.db", "delete")
    for _time in range(40):
        call(insert, base)


def chat(call: Calls, _: random.Random) -> None:
    """A SQLite transaction each 200 ms: messages that arrive."""
    base = database("chat.db", "delete")
    for _time in range(25):
        call(insert, base)
        time.sleep(0.2)


def bigwrite(call: Calls, _: random.Random) -> None:
    """300 MiB are written and synced."""
    handle, block = os.open("big", NEW, MODE), b"b" * MIB
    for _time in range(300):
        call(os.write, handle, block)
    call(os.fsync, handle)


def record(call: Calls, _: random.Random) -> None:
    """A film of 5 s: 1 MiB a frame, 30 frames a second, then fsync."""
    handle, block = os.open("shot", NEW, MODE), b"f" * MIB
    begin_s = time.monotonic()
    for frame in range(150):
        call(os.write, handle, block)
        time.sleep(max(0.0, begin_s + (frame + 1) / 30 - time.monotonic()))
    call(os.fsync, handle)


def copy(call: Calls, _: random.Random) -> None:
    """200 MiB are read, written and synced."""
    source, target = os.open(FILM, os.O_RDONLY), os.open("copied", NEW, MODE)

    def one() -> None:
        os.write(target, os.read(source, MIB))

    for _time in range(200):
        call(one)
    call(os.fsync, target)


def fsyncdir(call: Calls, _: random.Random) -> None:
    """60 new folders, each with a small file that is synced, and the folder too."""

    def one(number: int) -> None:
        folder = f"folder{number}"
        Path(folder).mkdir()
        write_file(f"{folder}/file", b"d" * 100, sync=True)
        sync_folder(folder)

    for number in range(60):
        call(one, number)


def mmapwrite(call: Calls, chance: random.Random) -> None:
    """3000 pages of a mapped file of 64 MiB are written, then msync."""
    handle = os.open("mapped", os.O_RDWR | os.O_CREAT, MODE)
    os.ftruncate(handle, 64 * MIB)
    mapped, page = mmap.mmap(handle, 64 * MIB), b"p" * PAGE

    def one() -> None:
        at = chance.randrange(64 * MIB // PAGE) * PAGE
        mapped[at : at + PAGE] = page

    for _time in range(3000):
        call(one)
    call(mapped.flush)


def osync(call: Calls, _: random.Random) -> None:
    """100 writes of 4 KiB with O_DSYNC."""
    handle = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_DSYNC, MODE)
    for number in range(100):
        call(os.pwrite, handle, b"o" * PAGE, number * PAGE)


def direct(call: Calls, chance: random.Random) -> None:
    """300 writes of 64 KiB with O_DIRECT, then as many random reads."""
    handle = os.open("direct", os.O_RDWR | os.O_CREAT | os.O_DIRECT, MODE)
    block = mmap.mmap(-1, 64 << 10)
    block.write(b"r" * len(block))
    for number in range(300):
        call(os.pwrite, handle, block, number * len(block))
    for _time in range(300):
        call(os.preadv, handle, [block], chance.randrange(300) * len(block))


def coldexec(call: Calls, _: random.Random) -> None:
    """Programs that no cache has are started, and again."""

    def one(program: Path) -> None:
        subprocess.run([f"./{program}", "--version"], capture_output=True, check=False)

    for _time in range(3):
        for program in sorted(Path(PROGRAMS).iterdir()):
            call(one, program)


def coldread(call: Calls, _: random.Random) -> None:
    """A tree of small files that no cache has is read."""
    for path in small_files():
        call(path.read_bytes)


def pages(call: Calls, chance: random.Random) -> None:
    """1500 faults anywhere in a mapped file."""
    handle = os.open(DATA, os.O_RDONLY)
    mapped = mmap.mmap(handle, 0, prot=mmap.PROT_READ)
    mapped.madvise(mmap.MADV_RANDOM)
    for _time in range(1500):
        call(mapped.__getitem__, chance.randrange(len(mapped)))


def sync(call: Calls, _: random.Random) -> None:
    """5 times a small file and sync(2)."""

    def one(number: int) -> None:
        write_file(f"small{number}", b"s" * 5000)
        os.sync()

    for number in range(5):
        call(one, number)


def log(call: Calls, _: random.Random) -> None:
    """A line of a log each 5 ms, not synced: a game, a chat."""
    handle = os.open("log", LOG, MODE)
    for _time in range(1000):
        call(os.write, handle, b"l" * 300)
        time.sleep(0.005)


READ_BYTES, WRITE_BYTES = 64 << 10, 16 << 10


def reader(chance: random.Random) -> Callable[[], object]:
    """What reads 64 KiB of a file that no cache has; each part of it once, as long as there are any."""
    handle = os.open(DATA, os.O_RDONLY)
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_RANDOM)
    places = list(range(os.fstat(handle).st_size // READ_BYTES))
    chance.shuffle(places)
    left: list[int] = []

    def one() -> None:
        if not left:
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            left.extend(places)
        os.pread(handle, READ_BYTES, left.pop() * READ_BYTES)

    return one


def writer(_: random.Random) -> Callable[[], object]:
    """What appends 16 KiB to a file and syncs it."""
    handle = os.open("notes", LOG, MODE)

    def one() -> None:
        os.write(handle, b"n" * WRITE_BYTES)
        os.fsync(handle)

    return one


def committer(_: random.Random) -> Callable[[], object]:
    """What does a SQLite transaction."""
    base = database("paced.db", "delete")
    return lambda: insert(base)


def nothing(_: random.Random) -> Callable[[], object]:
    """What does nothing."""
    return lambda: None


def thinkread(call: Calls, chance: random.Random) -> None:
    """A cold read of 64 KiB each 30 ms: pictures that are looked at."""
    one = reader(chance)
    for _time in range(100):
        call(one)
        time.sleep(0.03)


Kind = Callable[[Calls, random.Random], None]
KINDS: dict[str, Kind] = {
    "create": create,
    "createslow": createslow,
    "save": save,
    "type": type_,
    "unlink": unlink,
    "wal": wal,
    "rollback": rollback,
    "chat": chat,
    "bigwrite": bigwrite,
    "record": record,
    "copy": copy,
    "fsyncdir": fsyncdir,
    "mmapwrite": mmapwrite,
    "osync": osync,
    "direct": direct,
    "coldexec": coldexec,
    "coldread": coldread,
    "pages": pages,
    "sync": sync,
    "log": log,
    "thinkread": thinkread,
}
"""The kinds that `./fasttrack matrix` has in front."""

Paced = Callable[[random.Random], Callable[[], object]]
IDLE = "nothing"
PACED: dict[str, Paced] = {"read": reader, "write": writer, "commit": committer, IDLE: nothing}
"""The kinds of `./fasttrack frontier`: what makes the call that is done again and again."""

BREATH_S = 0.001
"""The processor is infinitely fast: calls that wait for nothing, without a pause, would have no end."""


def pace(call: Calls, one: Callable[[], object], think_s: float, window_s: float, until: str = "") -> None:
    """Calls for so long, with a pause after each; or until a path is there."""
    end_ns = call.begin_ns + round(window_s * 1e9)
    while time.monotonic_ns() < end_ns and not (until and Path(until).exists()):
        call(one)
        pause_s = think_s if call.took_ns[-1] else max(think_s, BREATH_S)
        if pause_s:
            time.sleep(pause_s)


def main(arguments: list[str]) -> None:
    """The command line."""
    kind, chance = arguments[0], random.Random(int(arguments[1]))
    if kind in KINDS:
        call = Calls()
        KINDS[kind](call, chance)
    else:
        one = PACED[kind](chance)
        call = Calls()
        pace(call, one, float(arguments[2]) / 1e3, float(arguments[3]), *arguments[4:])
    print(json.dumps(call.report()))
    for until in arguments[4:]:
        sys.exit(int(Path(until).read_text()) if Path(until).exists() else 1)


if __name__ == "__main__":
    main(sys.argv[1:])
