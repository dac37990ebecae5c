#!/usr/bin/python3 -ESsBu
# SPDX-License-Identifier: GPL-2.0-only
"""fasttrack-trace records what some apps do, beside the device's own counters."""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import signal
import sqlite3
import struct
import subprocess
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

from prologue import (
    BEHIND,
    BLOCK,
    DATA,
    DEBUG,
    DISK,
    FRONT,
    MIB,
    MKFS,
    MNT_DETACH,
    OUT,
    PATTERN,
    SEEN,
    SERVICE,
    TRACE,
    Shown,
    Work,
    as_uid,
    drop_caches,
    end,
    make,
    mount,
    pairs,
    read,
    run,
    start,
    stat,
    unmount,
    write,
)

LOGS = OUT / "trace"
FITRIM = 0xC0185879


class Collector:
    """fasttrack-trace at work."""

    def __init__(
        self,
        program: str,
        *options: str,
        logs: Path = LOGS,
        stderr: int | None = None,
    ) -> None:
        argv = [program, "record", "--output", str(logs), "--state", "/run/state", "--clear-names", *options]
        self.program, self.logs = program, logs
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=stderr, text=True)
        assert self.process.stdout is not None
        self.printed = self.process.stdout
        if not self.printed.readline().startswith("recording"):
            raise ChildProcessError("fasttrack-trace does not record")

    def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        said = self.printed.read()
        if self.process.wait():
            raise ChildProcessError(f"fasttrack-trace ended with {self.process.returncode}: {said}")

    def records(self) -> list[dict[str, Any]]:
        return self.read(self.program, self.logs)

    @staticmethod
    def read(program: str, logs: Path) -> list[dict[str, Any]]:
        argv = [program, "cat", "--json", str(logs)]
        lines = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True).stdout
        return [json.loads(line) for line in lines.splitlines()]


def counters() -> dict[str, int]:
    """Bytes that the device has read, written and discarded, as it counts them; its flushes and writes with FUA."""
    words = [int(word) for word in read("/sys/block/sda/stat").split()]
    fua = int(pairs(read(DEBUG / "mflash/stats"))["fua"])
    return {"read": words[2] * 512, "write": words[6] * 512, "discard": words[13] * 512, "flush": words[15], "fua": fua}


def writes_new() -> None:
    with (DATA / "shared").open("wb", buffering=0) as handle:
        handle.write(PATTERN * 2)
    # The collector looks at a task while it lives.
    time.sleep(1)


def in_a_thread(work: Work) -> None:
    """So that who does it has another id than its process, which SEEN[0] then has."""

    def works() -> None:
        SEEN[0] = threading.get_native_id()
        work()

    thread = threading.Thread(target=works)
    thread.start()
    thread.join()


def writes_over() -> None:
    """The second half of the file, when its first owner's pages are clean or not."""
    handle = os.open(DATA / "shared", os.O_WRONLY)
    os.pwrite(handle, PATTERN, 2 * MIB)
    os.fsync(handle)
    time.sleep(1)


def reads_cold() -> None:
    with (DATA / "cold").open("rb", buffering=0) as handle:
        while handle.read(MIB):
            pass
    time.sleep(1)


def saves(size: int) -> None:
    """As editors do: a new file takes the name of the old one."""
    (DATA / "draft").write_bytes(PATTERN[:size])
    handle = os.open(DATA / "draft", os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)
    (DATA / "draft").rename(DATA / "saved")


def discard_free() -> None:
    """As fstrim(8) does."""
    handle = os.open(DATA, os.O_RDONLY)
    fcntl.ioctl(handle, FITRIM, struct.pack("=QQQ", 0, (1 << 64) - 1, 0))
    os.close(handle)


SIZES = 5 * BLOCK, 3 * BLOCK
"""Of a file that is saved, and saved again."""


def works(program: str) -> Shown:
    """Two apps write one file, and one reads another; a file takes the place of another, and one is removed."""
    make("cold", 4)
    drop_caches()
    os.sync()
    before = counters()
    collector = Collector(program)
    as_uid(FRONT, writes_new)
    as_uid(BEHIND, lambda: in_a_thread(writes_over))
    as_uid(BEHIND, reads_cold)
    for size in SIZES:
        as_uid(FRONT, partial(saves, size))
    os.sync()
    (DATA / "shared").unlink()
    os.sync()
    discard_free()
    time.sleep(1)
    after = counters()
    status = pairs(read(f"/proc/{collector.process.pid}/status"), ":\t")
    collector.end()
    return {
        "before": before,
        "after": after,
        "records": collector.records(),
        "thread": SEEN[0],
        "status": status,
    }


def sends(count: int, per_second: int) -> None:
    """Direct writes at a rate."""
    handle = os.open(DATA / "direct", os.O_CREAT | os.O_RDWR | os.O_DIRECT, 0o644)
    block = mmap.mmap(-1, BLOCK)
    begin = time.monotonic()
    for index in range(count):
        os.pwritev(handle, [block], index % 256 * BLOCK)
        late = begin + index / per_second - time.monotonic()
        if late > 0:
            time.sleep(late)
    os.close(handle)


def lines_of(path: Path, name: str) -> int:
    return next(int(line.split()[1]) for line in path.read_text().splitlines() if line.startswith(name + ":"))


def stopped(program: str, stop_s: float, count: int, per_second: int, buffer_kib: int) -> Shown:
    """The collector is stopped while an app writes."""
    as_uid(FRONT, lambda: sends(256, 100_000))
    collector = Collector(program, "--buffer", str(buffer_kib))
    collector.process.send_signal(signal.SIGSTOP)
    begin = time.monotonic()
    as_uid(FRONT, lambda: sends(count, per_second))
    took = time.monotonic() - begin
    time.sleep(max(0.0, stop_s - took))
    (stats,) = (TRACE / "instances").glob("fasttrack-trace-*/per_cpu/cpu0/stats")
    overrun = lines_of(stats, "overrun")
    collector.process.send_signal(signal.SIGCONT)
    time.sleep(1)
    resident = lines_of(Path(f"/proc/{collector.process.pid}/status"), "VmHWM")
    collector.end()
    records = collector.records()
    losses = [record for record in records if record["record"] == "loss"]
    bios = sum(record["record"] == "bio" for record in records)
    sizes = {"records": len(records), "bytes": sum(path.stat().st_size for path in LOGS.glob("*.ftlog"))}
    return {"overrun": overrun, "losses": losses, "bios": bios, "took_s": took, "resident_kib": resident, **sizes}


PAYERS = 90


def makes_its_file() -> None:
    (DATA / str(os.getuid())).touch()


def payers(program: str) -> Shown:
    """More apps than a transaction has room for make a file each."""
    shown: Shown = {}
    os.sync()
    collector = Collector(program)
    for number in range(PAYERS):
        as_uid(10_200 + number, makes_its_file)
    os.sync()
    time.sleep(1)
    shown["left_out"] = int(read("/sys/module/io_origin/parameters/payers_left_out"))
    collector.end()
    return shown | {"records": collector.records()}


def writes_anew(name: str) -> None:
    (DATA / name).write_bytes(PATTERN[: 64 * BLOCK])


def dirty_before(program: str) -> Shown:
    """An app makes pages dirty before it is recorded, another one while it is; sync(2) writes all of them."""
    as_uid(FRONT, partial(writes_anew, "before"))
    collector = Collector(program)
    as_uid(BEHIND, partial(writes_anew, "since"))
    os.sync()
    collector.end()
    return {"records": collector.records()}


KINDS = {"hold": "dispatch_held", "promote": "promoted", "pause": "pauses", "protect": "reclaim_protected"}
"""Record of a wait -> counter of FastTrack's."""


def writes_on() -> None:
    while True:
        with (DATA / "behind").open("wb", buffering=0) as handle:
            for _ in range(4):
                handle.write(PATTERN)
            os.fsync(handle)


def reads_slowly() -> None:
    handle = os.open(DATA / "cold", os.O_RDONLY | os.O_DIRECT)
    area = mmap.mmap(-1, 4 * BLOCK)
    for index in range(0, 8 * MIB // BLOCK, 4):
        os.preadv(handle, [area], index * BLOCK)
        time.sleep(0.002)


def beside(program: str) -> Shown:
    """The front reads beside writes behind it, which it makes wait."""
    make("cold", 8)
    drop_caches()
    os.sync()
    collector = Collector(program)
    before = {kind: stat(name) for kind, name in KINDS.items()}
    behind = start(BEHIND, writes_on)
    as_uid(FRONT, reads_slowly)
    end(behind)
    os.sync()
    time.sleep(1)
    after = {kind: stat(name) for kind, name in KINDS.items()}
    collector.end()
    return {"before": before, "after": after, "records": collector.records()}


DIRECT_AT = 64 * MIB
"""On the disk, behind the file system."""


def past_the_file_system(number: int, source: int, flags: int) -> None:
    """Writes to the disk itself, and reads it, with memory of some kind."""
    area = mmap.mmap(source, 4 * BLOCK, flags)
    if source < 0:
        area[:] = PATTERN[:BLOCK] * 4
    disk = os.open(DISK, os.O_RDWR | os.O_DIRECT)
    at = DIRECT_AT + number * MIB
    os.pwritev(disk, [area], at)
    os.preadv(disk, [area], at)


def unformatted(program: str) -> Shown:
    """Direct I/O by three apps: with memory of their own, with shared memory, and with the map of a file."""
    subprocess.run(["/sbin/mkfs.ext4", "-q", "-F", DISK, "48M"], check=True)
    DATA.mkdir()
    mount("ext4", DATA, DISK)
    DATA.chmod(0o777)
    Path(DISK).chmod(0o666)
    make("source", 1)
    (DATA / "source").chmod(0o666)
    source = os.open(DATA / "source", os.O_RDWR)
    os.sync()
    collector = Collector(program)
    kinds = ((-1, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), (-1, mmap.MAP_SHARED), (source, mmap.MAP_SHARED))
    for number, (uid, kind) in enumerate(zip((FRONT, BEHIND, SERVICE), kinds, strict=True)):
        as_uid(uid, partial(past_the_file_system, number, *kind))
    collector.end()
    return {"records": collector.records()}


LOOP, INNER = "/dev/loop0", Path("/run/inner")


def writes_inside(name: str, pages: int, flags: int = 0) -> None:
    area = mmap.mmap(-1, BLOCK)
    area[:] = PATTERN[:BLOCK]
    handle = os.open(INNER / name, os.O_CREAT | os.O_RDWR | flags)
    for index in range(pages):
        os.pwritev(handle, [area], index * BLOCK)


def looped(program: str) -> Shown:
    """Apps use a file system on a loop device, whose worker uses the file behind it, from its second page on."""
    (DATA / "image").touch()
    os.truncate(DATA / "image", 64 * MIB)
    subprocess.run(["/usr/sbin/losetup", "--offset", str(BLOCK), LOOP, str(DATA / "image")], check=True)
    subprocess.run([*MKFS["ext4"], "-b", str(BLOCK), LOOP], check=True)
    INNER.mkdir()
    mount("ext4", INNER, LOOP)
    INNER.chmod(0o777)
    os.sync()
    collector = Collector(program)
    as_uid(FRONT, partial(writes_inside, "direct", 32, os.O_DIRECT))
    as_uid(BEHIND, partial(writes_inside, "buffered", 16))
    os.sync()
    drop_caches()
    as_uid(SERVICE, (INNER / "direct").read_bytes)
    collector.end()
    unmount(INNER)
    subprocess.run(["/usr/sbin/losetup", "-d", LOOP], check=True)
    return {"records": collector.records()}


def own(program: str) -> Shown:
    """The logs are on the phone: the collector causes I/O itself."""
    make("other", 1)
    os.sync()
    collector = Collector(program, "--sync", "block", logs=DATA / "logs")
    as_uid(FRONT, lambda: sends(2000, 2000))
    os.sync()
    time.sleep(1)
    collector.end()
    return {"records": collector.records()}


def killed(program: str, after_s: float) -> Shown:
    """By SIGKILL, at some time; and what the next one finds."""
    collector = Collector(program, "--block-time", "0.05")
    child = start(FRONT, lambda: sends(100_000, 10_000))
    time.sleep(after_s)
    end(collector.process.pid, child)
    first = collector.records()
    # It left its ring buffer, too.
    second = Collector(program)
    as_uid(FRONT, lambda: sends(100, 10_000))
    second.end()
    return {"killed": first, "both": second.records()}


def synced() -> None:
    handle = os.open(DATA / "synced", os.O_CREAT | os.O_WRONLY, 0o644)
    os.pwrite(handle, PATTERN, 0)
    os.fsync(handle)
    time.sleep(0.5)


def flight(program: str) -> Shown:
    """What is in the files after an fsync that is too long, and after a signal."""
    make("seen", 1)
    drop_caches()
    shown: Shown = {}
    collector = Collector(program, "--flight", "2", "--fsync-over", "1")
    as_uid(FRONT, lambda: sends(2, 1000))
    time.sleep(3)
    shown["before"] = collector.records()
    as_uid(FRONT, lambda: sends(100, 1000))
    as_uid(BEHIND, synced)
    time.sleep(1)
    shown["fsync"] = collector.records()
    as_uid(FRONT, lambda: sends(50, 1000))
    time.sleep(0.5)
    collector.process.send_signal(signal.SIGUSR1)
    time.sleep(0.5)
    shown["signal"] = collector.records()
    collector.end()
    return shown


def now() -> int:
    """Time of records, ns."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


TRANSACTIONS = 10
"""Of each database, after that which makes its table."""


def transactions(name: str, mode: str, pipe: int) -> None:
    """SQLite's own: begin and end of each on the pipe. Each second one is rolled back first."""
    db = sqlite3.connect(DATA / name, isolation_level=None)
    for pragma in (f"journal_mode={mode}", "synchronous=full", "wal_autocheckpoint=8"):
        db.execute(f"pragma {pragma}").fetchall()
    took = []
    for number in range(-1, TRANSACTIONS):
        begin = now()
        if number < 0:
            db.execute("create table rows (content blob)")
        else:
            db.execute("begin")
            for _ in range(4):
                db.execute("insert into rows values (?)", [b"s" * 3000])
            db.execute("rollback" if number % 2 else "commit")
        if number % 2 == 0 or number < 0:
            took.append((begin, now()))
        time.sleep(0.05)
    os.write(pipe, json.dumps(took).encode())
    os._exit(0)


def databases(program: str) -> Shown:
    """Transactions by each kind of log, as SQLite's own process sees them and as the trace has them."""
    collector = Collector(program, "--calls-over", "0")
    truth = {}
    for mode in ("delete", "truncate", "persist", "wal"):
        out, into = os.pipe()
        as_uid(FRONT, partial(transactions, mode, mode, into))
        truth[mode] = json.loads(os.read(out, 1 << 16))
    os.sync()
    time.sleep(2)
    collector.end()
    return {"truth": truth, "records": collector.records()}


def waits(program: str) -> Shown:
    """A flight recorder with a bound of waits, of which an fsync's is over it; what it had before, and after."""
    shown: Shown = {}
    collector = Collector(program, "--flight", "2", "--wait-over", "0.5")
    as_uid(FRONT, lambda: sends(2, 1000))
    time.sleep(1)
    shown["before"] = collector.records()
    as_uid(BEHIND, synced)
    time.sleep(1)
    shown["after"] = collector.records()
    collector.end()
    return shown


def disturbed(program: str) -> Shown:
    """Somebody removes the ring while it records: the kernel refuses, and it records on."""
    collector = Collector(program)
    (ring,) = (TRACE / "instances").glob("fasttrack-trace-*")
    shown: Shown = {"rmdir": "ok"}
    try:
        ring.rmdir()
    except OSError as error:
        shown["rmdir"] = error.strerror
    as_uid(FRONT, lambda: sends(100, 1000))
    time.sleep(0.5)
    collector.end()
    return shown | {"records": collector.records(), "stays": ring.exists()}


def ends_with(process: subprocess.Popen[str]) -> tuple[int, str]:
    """How a collector ends by itself, and the last that it says."""
    said = process.communicate(timeout=60)[1]
    return process.returncode, said.strip().splitlines()[-1]


def faults(program: str) -> Shown:
    """A directory that is in use, a full one, and a tracefs that goes."""
    shown: Shown = {}
    first = Collector(program, stderr=subprocess.PIPE)
    argv = [program, "record", "--state", "/run/state", "--clear-names", "--output"]

    def starts(*options: str) -> subprocess.Popen[str]:
        return subprocess.Popen([*argv, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    shown["busy"] = ends_with(starts(str(LOGS)))
    small = Path("/run/small")
    small.mkdir()
    mount("tmpfs", small, options="size=64k")
    second = starts(str(small / "logs"), "--file-size", "64", "--block-time", "0.2")
    time.sleep(0.5)
    as_uid(FRONT, lambda: sends(15_000, 20_000))
    second.terminate()
    shown["full"] = ends_with(second)
    shown["kept"] = len(Collector.read(program, small / "logs"))
    # A clock that is set, and a user who may not.
    mount("tmpfs", small)
    time.clock_settime(time.CLOCK_REALTIME, time.time() + 3600)
    time.sleep(0.5)
    # The program may be where only root can look.
    (small / "program").write_bytes(Path(program).read_bytes())
    (small / "program").chmod(0o755)
    said = small / "said"
    said.touch()
    said.chmod(0o666)
    as_uid(FRONT, lambda: doctor_says(small / "program", said))
    shown["doctor"] = said.read_text()
    unmount(TRACE, MNT_DETACH)
    time.sleep(0.5)
    shown["gone"] = ends_with(first.process)
    kinds = [record.get("reason") or record["record"] for record in first.records()]
    shown["before"] = {kind: kinds.count(kind) for kind in ("bio", "jump")}
    mount("tracefs", TRACE)
    return shown


def doctor_says(program: Path, to: Path) -> None:
    """What a user who is not root is told."""
    done = subprocess.run([program, "doctor"], check=False, stdout=subprocess.PIPE, text=True)
    to.write_text(f"{done.returncode} {done.stdout}")


def from_boot(program: str, events: list[str]) -> Shown:
    """A ring has filled before the collector begins, as from boot on; another one has another clock."""
    for name, clock in (("boot", "boot"), ("local", "local")):
        (TRACE / "instances" / name).mkdir()
        write(TRACE / "instances" / name / "trace_clock", clock)
    for event in events:
        write(TRACE / "instances/boot/events" / event / "enable", "1")
    time.sleep(1)
    as_uid(FRONT, lambda: sends(100, 10_000))
    argv = [program, "record", "--state", "/run/state", "--output", "/run/local", "--ring", "local"]
    wrong = subprocess.run(argv, check=False, stderr=subprocess.PIPE, text=True)
    collector = Collector(program, "--ring", "boot")
    as_uid(FRONT, lambda: sends(100, 10_000))
    time.sleep(0.5)
    collector.end()
    stays = (TRACE / "instances/boot").is_dir()
    return {"wrong": [wrong.returncode, wrong.stderr], "stays": stays, "records": collector.records()}


def ring(events: list[str]) -> Shown:
    """The descriptions of events, and a ring's pages of them while two apps write, sync and read."""
    make("cold", 1)
    drop_caches()
    instance = TRACE / "instances/ring"
    instance.mkdir()
    write(instance / "trace_clock", "boot")
    there = [event for event in events if (instance / "events" / event).is_dir()]
    for event in there:
        write(instance / "events" / event / "enable", "1")
    time.sleep(1)
    as_uid(FRONT, lambda: (DATA / "shared").write_bytes(PATTERN[:65536]))
    as_uid(BEHIND, lambda: in_a_thread(synced))
    as_uid(BEHIND, (DATA / "cold").read_bytes)
    as_uid(FRONT, lambda: sends(16, 10_000))
    (DATA / "shared").unlink()
    os.sync()
    write(instance / "tracing_on", "0")
    pages = []
    with (instance / "per_cpu/cpu0/trace_pipe_raw").open("rb", buffering=0) as pipe:
        os.set_blocking(pipe.fileno(), False)
        while page := pipe.read(BLOCK):
            pages.append(page.hex())
    return {"formats": [read(instance / "events" / event / "format") for event in there], "pages": pages}


if __name__ == "__main__":
    run(
        works,
        stopped,
        payers,
        dirty_before,
        beside,
        unformatted,
        looped,
        own,
        killed,
        flight,
        waits,
        disturbed,
        databases,
        faults,
        from_boot,
        ring,
    )
