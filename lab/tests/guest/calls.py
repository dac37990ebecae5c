#!/usr/bin/python3 -ESsBu
# SPDX-License-Identifier: GPL-2.0-only
"""Apps that read, write and sync by io_uring, asynchronous I/O and splice(2), recorded."""

from __future__ import annotations

import os
from collections.abc import Callable
from trace import Collector

import aio
from prologue import BEHIND, BLOCK, DATA, FRONT, PATTERN, Shown, as_uid, drop_caches, fio, fio_job, run

KIB = 1024

RINGS = {
    "ring_writes": ("--rw=write", "--direct=1", "--bs=16k", "--size=512k", "--iodepth=8"),
    "ring_writes_over": ("--rw=randwrite", "--direct=1", "--bs=16k", "--size=512k", "--iodepth=8"),
    "ring_reads": ("--rw=randread", "--direct=1", "--bs=16k", "--size=512k", "--iodepth=8"),
    "ring_by_workers": ("--rw=randread", "--direct=1", "--bs=16k", "--size=512k", "--iodepth=8", "--force_async=1"),
    "ring_buffered_writes": ("--rw=write", "--bs=4k", "--size=64k", "--iodepth=4", "--fsync=8"),
    "ring_buffered_reads": ("--rw=randread", "--bs=4k", "--size=256k", "--iodepth=4"),
    "ring_fdatasyncs": ("--rw=write", "--bs=4k", "--size=64k", "--iodepth=1", "--fdatasync=4"),
}
"""Name, which is the file's -> what fio does by io_uring."""


def by_ring(name: str) -> int:
    """To its end; what it reads, or writes over, is there and not in memory. Returns how many fsyncs it counts."""
    argv = ["fio", f"--name={name}", f"--filename={DATA / name}", "--ioengine=io_uring", "--thread", *RINGS[name]]
    done = fio([*argv, "--invalidate=0", "--output-format=json"], FRONT)
    job = fio_job(done)
    if done.returncode:
        raise ChildProcessError(f"fio ended with {done.returncode}")
    return int(job["sync"]["total_ios"])


def queue(name: str, opcode: int, flags: int = os.O_DIRECT) -> Callable[[], None]:
    """Eight calls of 16 KiB at once."""

    def work() -> None:
        one = aio.Queue(DATA / name, 16 * KIB, 8, opcode, flags)
        one.submit(range(8))
        one.wait(8)

    return work


def syncs_by_queue() -> None:
    one = aio.Queue(DATA / "aio_syncs", BLOCK, 8, aio.WRITE, 0)
    for opcode in (aio.FSYNC, aio.FDSYNC):
        one.submit(range(8))
        one.wait(8)
        one.sync(opcode)


def sends(source: str, to: str) -> None:
    into = os.open(DATA / to, os.O_RDWR | os.O_CREAT, 0o666)
    if os.sendfile(into, os.open(DATA / source, os.O_RDONLY), 0, 256 * KIB) != 256 * KIB:
        raise OSError("sendfile was short")


def copies(source: str, to: str) -> None:
    into = os.open(DATA / to, os.O_RDWR | os.O_CREAT, 0o666)
    if os.copy_file_range(os.open(DATA / source, os.O_RDONLY), into, 256 * KIB, 0, 64 * KIB) != 256 * KIB:
        raise OSError("copy_file_range was short")


def splices(source: str, to: str) -> None:
    """Through a pipe, 32 KiB at a time."""
    into = os.open(DATA / to, os.O_RDWR | os.O_CREAT, 0o666)
    start = os.open(DATA / source, os.O_RDONLY)
    out, pipe = os.pipe()
    for _ in range(4):
        if os.splice(start, pipe, 32 * KIB) != 32 * KIB or os.splice(out, into, 32 * KIB) != 32 * KIB:
            raise OSError("splice was short")


MADE = (*RINGS, "aio_reads", "aio_writes", "aio_appends", "aio_buffered", "aio_syncs", "sent", "copied", "spliced")


def app(uid: int, work: Callable[[], object]) -> None:
    if status := as_uid(uid, work):
        raise ChildProcessError(f"an app ended with {status}")


def works(program: str) -> Shown:
    for name in MADE:
        (DATA / name).write_bytes(PATTERN[: 512 * KIB])
        (DATA / name).chmod(0o666)
    os.sync()
    drop_caches()
    collector = Collector(program, "--source", "kernel", "--buffer", "16384", "--calls-over", "0")
    syncs = sum([by_ring(name) for name in RINGS])
    app(BEHIND, queue("aio_reads", aio.READ))
    app(BEHIND, queue("aio_writes", aio.WRITE))
    app(BEHIND, queue("aio_appends", aio.WRITE, os.O_APPEND))
    app(BEHIND, queue("aio_buffered", aio.READ, 0))
    app(BEHIND, syncs_by_queue)
    for work, name in ((sends, "sent"), (copies, "copied"), (splices, "spliced")):
        app(BEHIND, lambda work=work, name=name: work(name, f"{name}_to"))  # type: ignore[misc]
    collector.end()
    return {"syncs": syncs, "records": collector.records()}


if __name__ == "__main__":
    run(works)
