#!/usr/bin/python3 -ESsBu
# SPDX-License-Identifier: GPL-2.0-only
"""Init of a machine with a distribution's kernel: what fasttrack-trace records there, loses, refuses and costs."""

from __future__ import annotations

import fcntl
import mmap
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "oracle"))
sys.path.insert(0, str(Path(__file__).parent.parent / "guest"))

from trace import Collector, lines_of

import more_ways
import origin
from prologue import (
    BEHIND,
    BLOCK,
    DATA,
    DEBUG,
    FRONT,
    MIB,
    TRACE,
    Shown,
    drop_caches,
    mount,
    read,
    run,
    write,
)


def suite(program: str, source: str) -> Shown:
    """That of ../guest/origin.py, with more ways."""
    more_ways.add()
    return origin.suite(program, source)


def overruns() -> int:
    """Events that the rings of tracefs have lost."""
    (folder,) = (TRACE / "instances").glob("fasttrack-trace-*/per_cpu")
    return sum(lines_of(stats, "overrun") for stats in folder.glob("cpu*/stats"))


def floods(count: int) -> None:
    """Direct writes to a device without a file system: each is one bio, and nothing else happens."""
    handle = os.open("/dev/nullb0", os.O_WRONLY | os.O_DIRECT)
    block = mmap.mmap(-1, BLOCK)
    for index in range(count):
        os.pwritev(handle, [block], index * BLOCK)


def losses(program: str, count: int) -> Shown:
    """The collector is stopped while an app writes more than its ring holds."""
    collector = Collector(program, "--source", "bpf", "--buffer", "64")
    collector.process.send_signal(signal.SIGSTOP)
    floods(count)
    overrun = overruns()
    collector.process.send_signal(signal.SIGCONT)
    time.sleep(1)
    status = Path(f"/proc/{collector.process.pid}/status")
    resident = {name: lines_of(status, name) for name in ("VmHWM", "VmRSS", "RssAnon")}
    collector.end()
    dev = Path("/dev/nullb0").stat().st_rdev
    return {"overrun": overrun, "resident_kib": resident, "dev": os.major(dev) << 20 | os.minor(dev)}


def hotplug(program: str, source: str, count: int) -> Shown:
    """A processor goes while its ring has events, and comes back: writes on it before and after, and on the other."""
    collector = Collector(program, "--source", source)
    online = Path("/sys/devices/system/cpu/cpu1/online")
    for state, processor in (("1", 1), ("0", 0), ("1", 1)):
        write(online, state)
        os.sched_setaffinity(0, {processor})
        floods(count)
    # Away again, when it is the last thing that happens.
    os.sched_setaffinity(0, {0})
    write(online, "0")
    collector.end()
    dev = Path("/dev/nullb0").stat().st_rdev
    return {"dev": os.major(dev) << 20 | os.minor(dev)}


PATHS = tuple(f"top{number}" for number in range(3))
"""Files of the apps that `top` is compared by."""


def writes_first() -> None:
    for path in PATHS[:2]:
        with (DATA / path).open("wb", buffering=0) as handle:
            handle.write(bytes(2 * MIB))
            os.fsync(handle)


def writes_second() -> None:
    """Over pages that are dirty from another app, at once and later; and past the page cache."""
    handle = os.open(DATA / PATHS[0], os.O_WRONLY)
    os.pwrite(handle, bytes(MIB), 512 << 10)
    os.fdatasync(handle)
    handle = os.open(DATA / PATHS[2], os.O_CREAT | os.O_WRONLY | os.O_DIRECT, 0o644)
    block = mmap.mmap(-1, 16 * BLOCK)
    for index in range(8):
        os.pwritev(handle, [block], index * 16 * BLOCK)


def shares() -> None:
    """Leaves dirty pages of a file."""
    handle = os.open(DATA / PATHS[1], os.O_WRONLY)
    os.pwrite(handle, bytes(MIB), 0)


def reads_all() -> None:
    for path in PATHS:
        (DATA / path).read_bytes()


def tops(program: str) -> Shown:
    """`top`, which sums up in the kernel, while a collector records the same apps."""
    collector = Collector(program, "--source", "bpf")
    argv = [program, "--source", "bpf", "top", "--interval", "3600", "--count", "1", "--rows", "1000"]
    top = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    ring = TRACE / "instances" / f"fasttrack-trace-{top.pid}"
    while not ring.is_dir() or read(ring / "events/enable") == "0":
        time.sleep(0.1)
    time.sleep(1)
    origin.app(FRONT, writes_first)
    origin.app(BEHIND, writes_second)
    origin.app(FRONT, shares)
    origin.app(BEHIND, shares)
    os.sync()
    drop_caches()
    origin.app(BEHIND, reads_all)
    time.sleep(1)
    top.send_signal(signal.SIGTERM)
    text, _ = top.communicate()
    collector.end()
    return {"text": text, "status": top.returncode, "data": str(DATA)}


BATCHES, OPERATIONS = 9, 500
BLKTRACESETUP, BLKTRACESTART, BLKTRACESTOP, BLKTRACETEARDOWN = 0xC0481273, 0x1274, 0x1275, 0x1276
STOCK_EVENTS = ("block/block_rq_issue", "block/block_rq_complete")


@contextmanager
def two_events() -> Iterator[None]:
    """Of ftrace, in a ring that nobody reads."""
    instance = TRACE / "instances" / "two"
    instance.mkdir()
    for event in STOCK_EVENTS:
        write(instance / "events" / event / "enable", "1")
    yield
    for event in STOCK_EVENTS:
        write(instance / "events" / event / "enable", "0")
    instance.rmdir()


@contextmanager
def blktrace() -> Iterator[None]:
    """Its kernel side, with buffers that nobody reads."""
    disk = os.open("/dev/nullb0", os.O_RDONLY)
    asked = bytearray(72)
    # Of struct blk_user_trace_setup: all actions, 8 buffers of 1 MiB.
    struct.pack_into("<HxxIIxxxxQQI", asked, 32, 0xFFFF, MIB, 8, 0, 0, 0)
    fcntl.ioctl(disk, BLKTRACESETUP, asked)
    fcntl.ioctl(disk, BLKTRACESTART)
    yield
    fcntl.ioctl(disk, BLKTRACESTOP)
    folder = DEBUG / "block/nullb0"
    with (folder / "trace0").open("rb") as trace:
        kept = len(trace.read())
    if read(folder / "dropped") != "0" or kept < BATCHES * OPERATIONS * 48:
        raise ValueError(f"blktrace has {kept} bytes, and has dropped {read(folder / 'dropped')} events")
    fcntl.ioctl(disk, BLKTRACETEARDOWN)
    os.close(disk)


@contextmanager
def collected(program: str, source: str) -> Iterator[None]:
    """By a collector that is stopped meanwhile: what the kernel does is counted, and not what it does."""
    logs = Path("/run") / source
    collector = Collector(program, "--source", source, logs=logs)
    collector.process.send_signal(signal.SIGSTOP)
    yield
    collector.process.send_signal(signal.SIGCONT)
    collector.end()
    if any(record["record"] == "loss" for record in Collector.read(program, logs)):
        raise ValueError(f"{source} has lost events")


def batches(work: Callable[[int], object]) -> float:
    """Instructions of an operation: the median of batches."""
    taken = []
    for batch in range(BATCHES):
        begin = time.perf_counter_ns()
        for number in range(batch * OPERATIONS, (batch + 1) * OPERATIONS):
            work(number)
        taken.append((time.perf_counter_ns() - begin) / OPERATIONS)
    return sorted(taken)[BATCHES // 2]


def costs(program: str) -> Shown:
    """Instructions of a direct write to null_blk, and of a page that is written to the page cache, by who records."""
    block = mmap.mmap(-1, BLOCK)
    disk = os.open("/dev/nullb0", os.O_WRONLY | os.O_DIRECT)

    def put(to: int, number: int) -> None:
        os.pwritev(to, [block], number * BLOCK)

    # Nothing is written back meanwhile.
    for knob in ("dirty_background_ratio", "dirty_ratio"):
        write(Path("/proc/sys/vm") / knob, "90")
    states: dict[str, Callable[[], AbstractContextManager[None]]] = {
        "untraced": nullcontext,
        "two events": two_events,
        "blktrace": blktrace,
        "bpf": lambda: collected(program, "bpf"),
        "tracefs": lambda: collected(program, "tracefs"),
    }
    shown: Shown = {}
    for traced, state in states.items():
        handle = os.open(DATA / "pages", os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644)
        with state():
            shown[traced] = {"direct": batches(partial(put, disk)), "page": batches(partial(put, handle))}
        os.close(handle)
        os.sync()
    return shown


def said(*argv: str, uid: int = 0) -> list[object]:
    """How a program ends, and all that it says."""
    done = subprocess.run(argv, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, user=uid)
    return [done.returncode, done.stdout]


def faults(program: str) -> Shown:
    """Without privileges, without the kernel's types, locked down."""
    # The program may be where only root can look.
    copy = Path("/run/program")
    copy.write_bytes(Path(program).read_bytes())
    copy.chmod(0o755)
    record = ("record", "--output", "/run/refused", "--state", "/run/state", "--duration", "1")
    shown: Shown = {
        "doctor": said(program, "doctor"),
        "kernel": said(program, "--source", "kernel", *record),
        "no types": said(program, "--sysfs", "/run/none", "--source", "bpf", *record),
        "doctor without types": said(program, "--sysfs", "/run/none", "doctor"),
        "auto without types": said(program, "--sysfs", "/run/none", *record),
        "doctor of a user": said(str(copy), "doctor", uid=FRONT),
    }
    mount("securityfs", "/sys/kernel/security")
    write("/sys/kernel/security/lockdown", "confidentiality")
    shown["locked down"] = said(program, "--source", "bpf", *record)
    shown["doctor locked down"] = said(program, "doctor")
    return shown


if __name__ == "__main__":
    run(suite, losses, hotplug, tops, faults, costs)
