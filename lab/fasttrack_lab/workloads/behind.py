#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""An ordinary program behind; runs in the guest, with the standard library alone, until it is told to end.

behind.py KIND SEED works in the current directory. Kinds that fio does not do print lines of two numbers: a time of
CLOCK_MONOTONIC in ns, and the bytes that were read or written until then.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

MIB = 1 << 20
MODE = 0o644
NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
LARGE = "large"
"""What is there before a reader or a copier begins."""
SHOWN_NS = 250_000_000
"""Time between two lines."""
BREATH_S = 0.001
"""The processor is infinitely fast: a round that waits for nothing would have no end. It takes as long as this."""
UNTAR_S, LINK_S = 0.3, 0.1
"""What a program computes while it makes a tree of thousands of files, which takes no virtual time by itself."""
KEPT = 8
"""Trees that are there at once before the oldest is removed."""


class Count:
    """Counts bytes, and shows them now and then."""

    def __init__(self) -> None:
        self.bytes = 0
        self._shown_ns = 0
        self._ending = False
        self._lock = threading.Lock()

    def add(self, count: int) -> None:
        """So many more."""
        with self._lock:
            self.bytes += count
            now_ns = time.monotonic_ns()
            if self._ending or now_ns - self._shown_ns >= SHOWN_NS:
                self._shown_ns = now_ns
                os.write(1, f"{now_ns} {self.bytes}\n".encode())
            if self._ending:
                os._exit(0)

    def end(self, *_: object) -> None:
        """The next bytes are the last."""
        self._ending = True


def rounds() -> Iterator[int]:
    """Numbers without end, no two at the same time."""
    number = 0
    while True:
        begin_s = time.monotonic()
        yield number
        if time.monotonic() - begin_s < BREATH_S:
            time.sleep(BREATH_S)
        number += 1


def fill(count: Count, path: str, mib: int, *, sync: bool = False) -> None:
    """Writes a file, or overwrites it."""
    handle, block = os.open(path, NEW, MODE), b"w" * MIB
    for _ in range(mib):
        count.add(os.write(handle, block))
    if sync:
        os.fsync(handle)
    os.close(handle)


def write(count: Count, _: random.Random) -> None:
    """A file of 400 MiB is written over and over, not synced."""
    for _round in rounds():
        fill(count, "big", 400)


def writesync(count: Count, _: random.Random) -> None:
    """A file of 100 MiB is written and synced, over and over."""
    for _round in rounds():
        fill(count, "big", 100, sync=True)


def many(count: Count, chance: random.Random) -> None:
    """20 programs, each of which writes files of 25 MiB."""

    def one(name: str, _: random.Random) -> None:
        for _round in rounds():
            fill(count, name, 25)

    at_once(20, one, chance)


def copy(count: Count, _: random.Random) -> None:
    """A large file is copied and the copy removed, over and over."""
    for _round in rounds():
        source, target = os.open(LARGE, os.O_RDONLY), os.open("copied", NEW, MODE)
        while block := os.read(source, MIB):
            count.add(len(block) + os.write(target, block))
        os.close(source)
        os.close(target)
        Path("copied").unlink()


def read(count: Count, _: random.Random) -> None:
    """A large file is read over and over, each time from the storage."""
    handle = os.open(LARGE, os.O_RDONLY)
    for _round in rounds():
        # It fits into memory: a pass by the cache would take no virtual time.
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.lseek(handle, 0, os.SEEK_SET)
        while block := os.read(handle, MIB):
            count.add(len(block))


def untar(count: Count, _: random.Random) -> None:
    """An archive of 1500 small files is unpacked over and over; old trees are removed."""
    files, size = 1500, 3000
    Path("source").mkdir()
    for number in range(files):
        Path(f"source/{number}").write_bytes(b"u" * size)
    with tarfile.open("source.tar", "w") as archive:
        archive.add("source")
    for number in rounds():
        folder = f"unpacked{number}"
        Path(folder).mkdir()
        subprocess.run(["tar", "xf", "source.tar", "-C", folder], check=False)
        count.add(files * size)
        if number >= KEPT:
            shutil.rmtree(f"unpacked{number - KEPT}")
        time.sleep(UNTAR_S)


def hardlink(count: Count, _: random.Random) -> None:
    """Trees of 2000 hard links, as some back-up programs make; old ones are removed."""
    files = 2000
    Path("source").mkdir()
    for number in range(files):
        Path(f"source/{number}").touch()
    for number in rounds():
        tree = Path(f"linked{number}")
        tree.mkdir()
        for name in range(files):
            (tree / str(name)).hardlink_to(f"source/{name}")
        count.add(0)
        if number >= KEPT:
            shutil.rmtree(f"linked{number - KEPT}")
        time.sleep(LINK_S)


def fsyncs(count: Count, chance: random.Random) -> None:
    """Eight threads, each of which writes small files and syncs them."""

    def one(name: str, _: random.Random) -> None:
        for number in rounds():
            handle = os.open(f"{name}-{number % 50}", NEW, MODE)
            written = os.write(handle, b"s" * 5000)
            os.fsync(handle)
            os.close(handle)
            count.add(written)

    at_once(8, one, chance)


def append(count: Count, _: random.Random) -> None:
    """200 logs grow, and after each round one of them is synced."""
    logs = [os.open(f"log{number}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, MODE) for number in range(200)]
    for _round in rounds():
        count.add(sum(os.write(handle, b"a" * 3000) for handle in logs))
        os.fsync(logs[0])


def syncs(count: Count, _: random.Random) -> None:
    """60 MiB and sync(2), five times a second where the storage can."""
    for _round in rounds():
        fill(count, "big", 60)
        os.sync()
        time.sleep(0.2)


def memory(count: Count, _: random.Random) -> None:
    """360 MiB of memory are taken in one second, then a little is written."""
    taken = []
    for _step in range(36):
        taken.append(bytearray(b"h") * (10 * MIB))
        time.sleep(0.03)
    handle = os.open("small", NEW, MODE)
    for _round in rounds():
        count.add(os.pwrite(handle, b"h" * MIB, 0))
        time.sleep(0.05)


def sqlite(count: Count, chance: random.Random) -> None:
    """Eight threads, each of which does transactions in a database of its own."""

    def one(name: str, _: random.Random) -> None:
        base = sqlite3.connect(f"{name}.db", isolation_level=None)
        base.execute("create table row(number integer primary key, text)")
        for _round in rounds():
            base.execute("insert into row(text) values(?)", ("q" * 2000,))
            count.add(2000)

    at_once(8, one, chance)


def at_once(number: int, one: Callable[[str, random.Random], None], chance: random.Random) -> None:
    """So many threads; this one, which signals go to, waits."""
    for index in range(number):
        own = random.Random(chance.random())
        threading.Thread(target=one, args=(f"thread{index}", own), daemon=True).start()
    while True:
        time.sleep(1000)


def fio(purpose: str, *options: str) -> Callable[[Count, random.Random], None]:
    """A kind that fio does."""

    def become(_: Count, chance: random.Random) -> None:
        fixed = ("--name=fio", "--filename=fio", "--time_based", "--runtime=100000", "--zero_buffers")
        # fio's own clock reads the host's time stamp counter.
        own = ("--clocksource=clock_gettime", f"--randseed={chance.randrange(1 << 30)}", "--output=/dev/null")
        os.execvp("fio", ["fio", *fixed, *own, *options])

    become.__doc__ = purpose
    return become


Kind = Callable[[Count, random.Random], None]
KINDS: dict[str, Kind] = {
    "write": write,
    "writesync": writesync,
    "many": many,
    "copy": copy,
    "read": read,
    "untar": untar,
    "hardlink": hardlink,
    "fsyncs": fsyncs,
    "append": append,
    "syncs": syncs,
    "memory": memory,
    "sqlite": sqlite,
    "direct": fio(
        "A file is written with O_DIRECT, 32 requests at once.",
        "--rw=write",
        "--bs=512k",
        "--size=512m",
        "--direct=1",
        "--ioengine=libaio",
        "--iodepth=32",
    ),
    "randdirect": fio(
        "Anywhere in a file 4 KiB are written with O_DIRECT, 64 requests at once.",
        "--rw=randwrite",
        "--bs=4k",
        "--size=512m",
        "--direct=1",
        "--ioengine=libaio",
        "--iodepth=64",
    ),
    "uring": fio(
        "A file is written by io_uring, 16 requests at once.",
        "--rw=write",
        "--bs=256k",
        "--size=600m",
        "--ioengine=io_uring",
        "--iodepth=16",
    ),
    "mmap": fio(
        "Pages anywhere in a mapped file are written.", "--rw=randwrite", "--bs=4k", "--size=400m", "--ioengine=mmap"
    ),
    "randsync": fio(
        "4 KiB anywhere in a file, fsync after each 256.",
        "--rw=randwrite",
        "--bs=4k",
        "--size=400m",
        "--ioengine=psync",
        "--fsync=256",
    ),
}
"""The kinds that `./fasttrack matrix` has behind."""


def main(arguments: list[str]) -> None:
    """The command line."""
    count = Count()
    signal.signal(signal.SIGTERM, count.end)
    KINDS[arguments[0]](count, random.Random(int(arguments[1])))


if __name__ == "__main__":
    main(sys.argv[1:])
