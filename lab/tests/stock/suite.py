#!/usr/bin/python3 -ESsBu
# SPDX-License-Identifier: GPL-2.0-only
"""Init of a machine with a distribution's kernel: what fasttrack-trace records there, loses, refuses and costs."""

from __future__ import annotations

import fcntl
import mmap
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import IO

sys.path.insert(0, str(Path(__file__).parent.parent / "oracle"))
sys.path.insert(0, str(Path(__file__).parent.parent / "guest"))

from trace import LOGS, Collector, lines_of

import more_ways
import origin
import stacks
from prologue import (
    BEHIND,
    BLOCK,
    DATA,
    DEBUG,
    DISK,
    FRONT,
    MIB,
    MKFS,
    TRACE,
    Shown,
    drop_caches,
    mount,
    pairs,
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


def number(device: str) -> int:
    """Of a device, as records have it."""
    dev = Path(device).stat().st_rdev
    return os.major(dev) << 20 | os.minor(dev)


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
    return {"overrun": overrun, "resident_kib": resident, "dev": number("/dev/nullb0")}


def stalled(program: str, count: int) -> Shown:
    """The collector is stopped while an app writes; its files are on the disk that it records."""
    collector = Collector(program, "--source", "bpf", logs=DATA / "logs")
    status = pairs(read(f"/proc/{collector.process.pid}/status"), ":\t")
    collector.process.send_signal(signal.SIGSTOP)
    floods(count)
    collector.process.send_signal(signal.SIGCONT)
    time.sleep(2)
    os.sync()
    time.sleep(1)
    collector.end()
    shutil.copytree(DATA / "logs", LOGS)
    return {"status": status, "dev": number("/dev/nullb0")}


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
    return {"dev": number("/dev/nullb0")}


STACKED_AT, STACKED_SIZE, SECTOR = 16 * MIB, 4096 * MIB, 512
"""Begin and size of the device of device-mapper on the disk."""

TARGETS = {
    "linear": "linear",
    "crypt": "crypt aes-xts-plain64 00112233445566778899aabbccddeeff0123456789abcdef0123456789abcdef 0",
}


def stacked(program: str, source: str, target: str) -> Shown:
    """The apps of the suite on ext4 on a device of device-mapper over a part of the disk."""
    table = f"0 {STACKED_SIZE // SECTOR} {TARGETS[target]} {DISK} {STACKED_AT // SECTOR}"
    stacks.settle("ext4", stacks.mapped(target, table), *MKFS["ext4"])
    return origin.suite(program, source) | {"start": STACKED_AT}


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


BEGUN = {"bpf": ("enable", "X"), "kernel": ("io_origin/io_call/trigger", "hist:keys=task")}
"""Source -> file of the events of a ring, and what it has when all has begun that sums up in the kernel."""


def begun(argv: list[str], file: str, text: str, stdout: int | IO[str] = subprocess.PIPE) -> subprocess.Popen[str]:
    """A collector, when FILE of the events of its ring has TEXT."""
    top = subprocess.Popen(argv, stdout=stdout, stderr=subprocess.PIPE, text=True)
    events = TRACE / "instances" / f"fasttrack-trace-{top.pid}" / "events"
    while not (events / file).exists() or text not in read(events / file):
        if top.poll() is not None:
            raise ChildProcessError(top.communicate()[1])
        time.sleep(0.1)
    time.sleep(2)
    return top


def ended(top: subprocess.Popen[str]) -> list[object]:
    """How it ends, its last picture, and what else it says."""
    top.send_signal(signal.SIGTERM)
    text, errors = top.communicate()
    return [top.returncode, text, errors]


ONE_PICTURE = ("--interval", "3600", "--count", "1", "--rows", "1000")


def tops(program: str, source: str, named: bool = True) -> Shown:
    """`top`, which sums up in the kernel, while a collector records the same apps with all their calls."""
    asked = ("--source", source) if named else ()
    top = begun([program, "top", *asked, *ONE_PICTURE], *BEGUN[source])
    over = ("--calls-over", "0") if origin.CALLS_OVER.exists() else ()
    collector = Collector(program, "--source", source, *over)
    origin.app(FRONT, writes_first)
    origin.app(BEHIND, writes_second)
    origin.app(FRONT, shares)
    origin.app(BEHIND, shares)
    os.sync()
    drop_caches()
    origin.app(BEHIND, reads_all)
    time.sleep(1)
    shown = ended(top)
    collector.end()
    return {"top": shown, "data": str(DATA)}


SIZES = {"small": 3 * BLOCK, "large": 5 * BLOCK}
"""Name of a file -> bytes of each of its bios, which are its number."""

_BIO = "bio=%di:u64 dev=\\8388608:u32 sector=+32(%di):u64 bytes=+40(%di):u32 operation=+16(%di):u8 carrier=\\3:u32"
_RUN = "bio=%di:u64 offset=\\0:u32 bytes=+40(%di):u32 block_type=\\1:u8 file=+40(%di):u32 index=+32(%di):u64"
_CALL = "task=\\3:u32 file=\\0:u32 call=\\3:u8 offset=\\0:u64 bytes=\\0:u64 took_ns=\\3000000:u64 result=\\0:s64"
_TASK = f'task=\\3:u32 tgid=\\77:u32 uid=\\{FRONT}:u32 name=\\"mail":string kernel_thread=\\0:u8'
_INODE = "event=\\0:u8 dev=\\1:u32 inode=\\{0}:u64 generation=\\1:u32 created_ns=\\0:u64 bytes=\\0:u64"
_FILE = "file=\\{0}:u32 " + _INODE + ' path=\\"/{1}":string'
_NEVER = "__x64_sys_swapoff"
ORIGIN = (
    ("io_session", "__x64_sys_ppoll", "pages=\\0:u64 missing=\\0:u32"),
    ("io_task", "__x64_sys_sethostname", _TASK),
    *(
        ("io_file", where, _FILE.format(SIZES[name], name))
        for name, where in (("small", "__x64_sys_sethostname"), ("large", "__x64_sys_sync"))
    ),
    ("io_bio", "submit_bio_noacct", _BIO),
    ("io_segment", "blk_mq_submit_bio", f"{_RUN} owner=\\3:u32 call=\\2:u8"),
    ("io_call", "vfs_fsync_range", _CALL),
    *((name, _NEVER, "dev=\\0:u32") for name in ("io_transaction", "io_share", "io_wait")),
)
"""Events with names and fields of the patched kernel's, made by probes of this one's functions: name, where, fields."""


def sends_sizes(written: int) -> None:
    """Bios of two files, which get their names, and syncs."""
    socket.sethostname("guest")
    os.sync()
    handle = os.open("/dev/nullb0", os.O_RDWR | os.O_DIRECT)
    for size in SIZES.values():
        block = mmap.mmap(-1, size)
        for index in range(written):
            os.pwritev(handle, [block], index * size)
        os.preadv(handle, [block], 0)
    for _ in range(7):
        os.fsync(handle)
    os.close(handle)
    time.sleep(1)


def histograms(program: str, written: int) -> Shown:
    """`top` with histograms of such events, after one was killed, while a collector records them; and without."""
    # What would truncate it removes all probes; and there is no seeking to its end.
    probes = os.open(TRACE / "kprobe_events", os.O_WRONLY | os.O_APPEND)
    for name, where, fields in ORIGIN:
        os.write(probes, f"p:io_origin/{name} {where} {fields}\n".encode())
    os.close(probes)
    argv = [program, "top", "--source", "kernel", *ONE_PICTURE]
    killed = begun(argv, *BEGUN["kernel"])
    killed.kill()
    killed.wait()
    collector = Collector(program, "--source", "kernel")
    shown: Shown = {"orphan": read(TRACE / "synthetic_events"), "doctor": said(program, "doctor")}
    top = begun(argv, *BEGUN["kernel"])
    sends_sizes(written)
    shown["sums"] = ended(top)
    collector.end()
    rings = [path.name for path in (TRACE / "instances").iterdir()]
    shown |= {"rings": rings, "synthetic": read(TRACE / "synthetic_events")}
    # Nothing can be made there: no histogram is.
    subprocess.run(["mount", "--bind", "/dev/null", str(TRACE / "synthetic_events")], check=True)
    top = begun(argv, "io_origin/io_segment/enable", "1")
    sends_sizes(written)
    return shown | {"events": ended(top)}


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
        "kernel": said(program, *record, "--source", "kernel"),
        "no types": said(program, *record, "--sysfs", "/run/none", "--source", "bpf"),
        "doctor without types": said(program, "doctor", "--sysfs", "/run/none"),
        "auto without types": said(program, *record, "--sysfs", "/run/none"),
        "doctor of a user": said(str(copy), "doctor", uid=FRONT),
        "record of a user": said(str(copy), *record, uid=FRONT),
        "ring of a user": said(str(copy), "record", "-o", "/tmp/logs", "--state", "/tmp/state", uid=FRONT),
    }
    mount("securityfs", "/sys/kernel/security")
    write("/sys/kernel/security/lockdown", "confidentiality")
    shown["locked down"] = said(program, *record, "--source", "bpf")
    shown["doctor locked down"] = said(program, "doctor")
    return shown


if __name__ == "__main__":
    run(suite, stacked, losses, stalled, hotplug, tops, histograms, faults, costs)
