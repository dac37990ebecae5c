#!/usr/bin/python3 -ISu
# SPDX-License-Identifier: GPL-2.0-only
"""The guest's init of ./fasttrack stress. It imports nothing of the lab: the guest sees this one file.

Phase "play": apps of several UIDs read, write, fsync and allocate on ext4 and f2fs, while others switch who is in
front, change every knob, and stop, freeze and kill them. The machine ends in a power cut. Phase "check", after it: both
file systems are mounted, what was acknowledged is read back, and they are checked.

Everything is drawn from generators seeded by (stress_seed, actor); the interleaving is the machine's own.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import mmap
import os
import random
import signal
import struct
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NoReturn

LIBC = ctypes.CDLL(None, use_errno=True)
FT = Path("/sys/kernel/fasttrack")
QUEUE = Path("/sys/block/sda/queue")
IOSCHED = QUEUE / "iosched"
MFLASH = Path("/sys/module/mflash/parameters")
CGROUP = Path("/sys/fs/cgroup")
OUT = Path("/run/out")
PLACES = {"ext4": Path("/run/ext4"), "f2fs": Path("/run/f2fs")}
PARTITIONS = {"ext4": "/dev/sda1", "f2fs": "/dev/sda2"}
UIDS = range(10001, 10007)

MIB = 1 << 20
PIECE = MIB // 4
PAGE = 4096
SECTOR = 512
"""The unit of sysfs, whatever the device's blocks are."""

RECORDS = 64
"""Records of a file of acknowledged writes; each is a page that repeats its number."""

LIMITED = "hog-1"
"""The actor that reclaims for its own control group."""

GAP_LIMIT_S = 120.0
"""An actor that does nothing for so long is stuck. The longest pause that is asked for is 1 s, but a freeze of a file
system waits for its write-back, and everybody for the freeze; on a busy host that was seen to take a minute."""

SHOWN_S = 20.0
"""After so long the kernel shows who sleeps where, and who holds what."""

RECLAIM = ("nr_vmscan_write", "workingset_refault_anon", "workingset_refault_file")
"""Of /proc/vmstat: whether memory was short."""

MS_REMOUNT = 32
FIFREEZE, FITHAW, BLKRRPART = 0xC0045877, 0xC0045878, 0x125F

Work = Callable[[random.Random, Callable[[], None]], None]


# --- the machine


def power_off() -> NoReturn:
    """End the guest. Without ACPI a reset is the only way out; QEMU does not boot again."""
    os.sync()
    write(Path("/proc/sysrq-trigger"), "b")
    time.sleep(60)
    raise SystemExit(1)


def failed(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
    """Init must not exit: say what went wrong, and switch off."""
    traceback.print_exception(kind, error, where)
    print(f"fasttrack-guest: error: {kind.__name__}: {error}", flush=True)
    power_off()


def mount(kind: str, target: Path, source: str = "none", options: str = "", flags: int = 0) -> None:
    """mount(2)."""
    if LIBC.mount(source.encode(), str(target).encode(), kind.encode(), flags, options.encode()):
        raise OSError(ctypes.get_errno(), f"mount {source} on {target}")


def unmount(target: Path) -> None:
    """umount(2)."""
    if LIBC.umount(str(target).encode()):
        raise OSError(ctypes.get_errno(), f"umount {target}")


def write(path: Path, value: str, allowed: Iterable[int] = ()) -> bool:
    """One write(2) of the whole value; whether it was taken. An error that is not ALLOWED is raised."""
    handle = os.open(path, os.O_WRONLY)
    try:
        os.write(handle, value.encode() or b"\n")
    except OSError as error:
        number = error.errno or 0
        if number not in allowed:
            raise OSError(number, f"{path}: {value!r}: {error.strerror}") from error
        return False
    finally:
        os.close(handle)
    return True


def tool(*argv: str) -> None:
    """Run a program of the host; its output is shown if it fails."""
    done = subprocess.run(
        argv, capture_output=True, text=True, check=False, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    )
    if done.returncode:
        raise OSError(f"{' '.join(argv)}: exit status {done.returncode}: {done.stdout}{done.stderr}")


def partition() -> None:
    """Two halves of the storage, in an MBR, which counts in the device's blocks."""
    block = int((QUEUE / "logical_block_size").read_text())
    aligned = MIB // block
    blocks = int(Path("/sys/block/sda/size").read_text()) * SECTOR // block
    half = blocks // 2 // aligned * aligned
    parts = ((aligned, half - aligned), (half, blocks - half))
    entries = b"".join(struct.pack("<B3xB3xII", 0, 0x83, first, count) for first, count in parts)
    disk = os.open("/dev/sda", os.O_RDWR)
    os.pwrite(disk, entries.ljust(64, b"\0") + b"\x55\xaa", 446)
    os.fsync(disk)
    fcntl.ioctl(disk, BLKRRPART)
    os.close(disk)


# --- the apps


def blob(rng: random.Random, size: int) -> bytes:
    """Content that mflash cannot keep as one word."""
    return rng.randbytes(min(size, PAGE)) * -(-size // PAGE)


def record(number: int) -> bytes:
    """A page of a file of acknowledged writes."""
    return struct.pack("<Q", number) * (PAGE // 8)


def syncer(place: Path, name: str, acknowledged: int) -> Work:
    """Numbered records, each durable before its number goes to the host; renames and unlinks beside them."""

    def work(rng: random.Random, beat: Callable[[], None]) -> None:
        handle = os.open(place / f"records-{name}", os.O_RDWR | os.O_CREAT, 0o600)
        synced = os.open(place / f"records-{name}", os.O_WRONLY | os.O_DSYNC)
        number = int.from_bytes(os.pread(acknowledged, 8, 0), "little")
        while True:
            number += 1
            how = rng.choice((os.fsync, os.fsync, os.fdatasync, None))
            os.pwrite(handle if how else synced, record(number), number % RECORDS * PAGE)
            if rng.random() < 0.3:
                new = place / f"new-{name}"
                new.write_bytes(blob(rng, rng.randrange(1, 200_000)))
                new.rename(place / f"old-{name}")
            if how:
                how(handle)
            os.pwrite(acknowledged, number.to_bytes(8, "little"), 0)
            beat()

    return work


def writer(place: Path, name: str) -> Work:
    """Dirty pages, never synced."""

    def work(rng: random.Random, beat: Callable[[], None]) -> None:
        handle = os.open(place / f"dirty-{name}", os.O_RDWR | os.O_CREAT, 0o600)
        while True:
            size = rng.choice((4, 64, 256, 1024)) * 1024
            os.pwrite(handle, blob(rng, size), rng.randrange(0, 24 * MIB, PAGE))
            if rng.random() < 0.01:
                os.ftruncate(handle, rng.randrange(0, 24 * MIB))
            beat()

    return work


def reader(place: Path, name: str) -> Work:
    """Buffered reads, sequential and random, and faults of a shared mapping."""

    def work(rng: random.Random, beat: Callable[[], None]) -> None:
        size = 32 * MIB
        handle = os.open(place / f"read-{name}", os.O_RDWR | os.O_CREAT, 0o600)
        for offset in range(os.fstat(handle).st_size, size, MIB):
            os.pwrite(handle, blob(rng, MIB), offset)
            beat()
        mapped = mmap.mmap(handle, size)
        while True:
            start = rng.randrange(0, size, PAGE)
            if rng.random() < 0.5:
                os.pread(handle, rng.choice((16, 128, 2048)) * 1024, start)
            for offset in range(start, min(start + rng.randrange(1, 64) * PAGE, size), PAGE):
                mapped[offset]
            if rng.random() < 0.2:
                mapped[start] = rng.randrange(256)
            if rng.random() < 0.05:
                os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            beat()

    return work


def direct(place: Path, name: str) -> Work:
    """Direct reads and writes."""

    def work(rng: random.Random, beat: Callable[[], None]) -> None:
        buffer = mmap.mmap(-1, MIB)
        buffer[:] = blob(rng, MIB)
        handle = os.open(place / f"direct-{name}", os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o600)
        os.pwritev(handle, [buffer], 0)
        while True:
            size = rng.choice((4, 32, 512)) * 1024
            offset = rng.randrange(0, 8 * MIB, PAGE)
            part = memoryview(buffer)[:size]
            if rng.random() < 0.5:
                os.pwritev(handle, [part], offset)
            else:
                os.preadv(handle, [part], offset)
            beat()

    return work


def files(place: Path, name: str) -> Work:
    """Directories and small files that come and go."""

    def work(rng: random.Random, beat: Callable[[], None]) -> None:
        top = place / f"files-{name}"
        top.mkdir(exist_ok=True)
        while True:
            path = top / str(rng.randrange(40))
            with suppress(FileNotFoundError):
                match rng.randrange(4):
                    case 0:
                        path.write_bytes(blob(rng, rng.randrange(1, 30_000)))
                    case 1:
                        path.rename(top / str(rng.randrange(40)))
                    case 2:
                        path.unlink()
                    case 3:
                        path.read_bytes()
            beat()

    return work


def available() -> int:
    """Memory that can be had without swapping, in bytes."""
    lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return int(lines["MemAvailable"].split()[0]) * 1024


def hog(short: bool) -> Work:
    """Anonymous memory; if memory is to be short all that can be had, so that two hogs take the swap file too."""

    def work(rng: random.Random, beat: Callable[[], None]) -> None:
        while True:
            most = max(available() if short else os.sysconf("SC_PHYS_PAGES") * PAGE // 4, 8 * MIB)
            with mmap.mmap(-1, rng.randrange(most // 2, most) // PAGE * PAGE) as memory:
                for offset in range(0, len(memory), PIECE):
                    memory[offset : offset + PIECE] = b"\1" * min(PIECE, len(memory) - offset)
                    beat()

    return work


def storm(rng: random.Random, beat: Callable[[], None]) -> None:
    """As root: processes that are put in front, change their UID, exec, fork and exit."""
    while True:
        children = []
        for what in [rng.random() for _ in range(rng.randrange(1, 6))]:
            child = os.fork()
            if not child:
                storm_child(what)
            children.append(child)
        for child in children:
            if rng.random() < 0.3:
                os.kill(child, signal.SIGKILL)
        for child in children:
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if status not in (0, -signal.SIGKILL):
                raise ChildProcessError(f"a process of the storm ended with {status}")
        beat()


def storm_child(what: float) -> NoReturn:
    """One process of a storm."""
    if what < 0.4:
        write(FT / "foreground_tgids", str(os.getpid()))
    os.setgid(UIDS[0])
    os.setuid(UIDS[int(what * 1000) % len(UIDS)])
    if what < 0.2 or what > 0.9:
        os.execv("/bin/true", ["true"])
    if what > 0.6 and os.fork() == 0:
        time.sleep(what / 20)
    os._exit(0)


# --- those who disturb them


def switcher(pids: Callable[[], list[int]]) -> Work:
    """Who is in front: UIDs, thread groups, control groups, also ones that are gone."""

    def work(rng: random.Random, beat: Callable[[], None]) -> None:
        while True:
            match rng.randrange(6):
                case 0 | 1:
                    value = " ".join(map(str, rng.sample(UIDS, rng.randrange(4))))
                    write(FT / "foreground_uids", value)
                case 2:
                    value = " ".join(map(str, rng.sample(pids(), 2)))
                    write(FT / "foreground_tgids", value, {errno.EINVAL})
                case 5:
                    file = FT / rng.choice(("foreground_tgids", "perceptible_tgids"))
                    write(file, f"{rng.choice('+-')}{rng.choice(pids())}", {errno.ESRCH, errno.EINVAL})
                case 3:
                    groups = [f"/{path.name}" for path in CGROUP.glob("app-*")]
                    write(FT / "foreground_cgroups", " ".join(rng.sample(groups, rng.randrange(3))))
                    write(FT / "app_cgroups", " ".join(rng.sample(groups, rng.randrange(3))))
                case 4:
                    (CGROUP / "gone").mkdir()
                    write(FT / "foreground_cgroups", "/gone")
                    (CGROUP / "gone").rmdir()
            beat()
            time.sleep(rng.random() ** 3 / 5)

    return work


KNOBS: dict[Path, tuple[str, ...]] = {
    QUEUE / "scheduler": ("mq-deadline", "fasttrack", "fasttrack", "smartio", "none"),
    QUEUE / "nr_requests": ("4", "32", "128"),
    FT / "enabled": ("0", "1", "1"),
    FT / "page_allocator": ("0", "1"),
    FT / "page_reclaimer": ("0", "1"),
    FT / "promotion": ("0", "1"),
    FT / "background_pause_ms": ("1", "100", "1000"),
    FT / "idle_window_us": ("0", "20000", "200000"),
    FT / "segment_kb": ("4", "512", "4096"),
    FT / "reserve_kb": ("0", "16384", "65536"),
    FT / "foreground_cache_percent": ("0", "60", "100"),
    FT / "app_uids": (" ", "10000-10003", "10000-19999", "+10000-19999 -10000-10003"),
    FT / "neutral_uids": (" ", "10002", "+10001 -10002"),
    FT / "perceptible_uids": (" ", "10001", "+10002 -10001"),
    FT / "lease_ms": ("0", "0", "50", "1000"),
    IOSCHED / "idle_window_us": ("0", "20000", "200000"),
    IOSCHED / "background_expire_ms": ("1", "500", "2000"),
    IOSCHED / "background_depth": ("0", "1", "8"),
    IOSCHED / "background_share": ("1", "5", "100"),
    IOSCHED / "foreground_reserve": ("0", "4", "64"),
    IOSCHED / "background_kb": ("0", "4", "128"),
    IOSCHED / "write_wait_ms": ("1", "100", "2000"),
    IOSCHED / "prio_aging_ms": ("1", "10000"),
    IOSCHED / "sequential_read_depth": ("0", "1", "4"),
    IOSCHED / "random_read_depth": ("0", "1", "4"),
    IOSCHED / "sequential_write_depth": ("0", "1", "4"),
    IOSCHED / "random_write_depth": ("0", "1", "4"),
    MFLASH / "scheduler": ("fifo", "read-first", "foreground"),
    Path("/sys/kernel/mm/lru_gen/enabled"): ("n", "y"),
    Path("/proc/sys/vm/drop_caches"): ("1",),
    Path("/proc/sys/vm/compact_memory"): ("1",),
}

MAY_REFUSE = {QUEUE / "nr_requests": {errno.EINVAL}, IOSCHED: {errno.ENODEV}}
"""Errors that are no surprise."""


def toggler(short: bool) -> Work:
    """Every switch and knob, in the middle of everything.

    Where memory is short the elevator stays the kernel's own. Linux 6.12 takes kernfs_rwsem to change it while the
    queue is frozen; under that lock others allocate, and their swapping waits for the queue: lockdep says so, and then
    says no more.
    """
    knobs = {path: values for path, values in KNOBS.items() if not (short and QUEUE in path.parents)}

    def work(rng: random.Random, beat: Callable[[], None]) -> None:
        often = [path for path in (QUEUE / "scheduler", FT / "enabled") if path in knobs]
        while True:
            path = rng.choice((*often, rng.choice(list(knobs))))
            # An elevator's knobs are there while it is chosen, and may go at any time.
            with suppress(FileNotFoundError):
                write(path, rng.choice(knobs[path]), MAY_REFUSE.get(path, MAY_REFUSE.get(path.parent, ())))
            beat()
            time.sleep(rng.random() / 2)

    return work


def freezer(rng: random.Random, beat: Callable[[], None]) -> None:
    """Freezes of a whole file system; f2fs with and without a thread for its checkpoints."""
    while True:
        merge = rng.choice(("checkpoint_merge", "nocheckpoint_merge"))
        mount("f2fs", PLACES["f2fs"], PARTITIONS["f2fs"], merge, MS_REMOUNT)
        place = os.open(rng.choice(list(PLACES.values())), os.O_RDONLY)
        fcntl.ioctl(place, FIFREEZE, 0)
        time.sleep(rng.random() / 10)
        fcntl.ioctl(place, FITHAW, 0)
        os.close(place)
        beat()
        time.sleep(rng.random() * 5)


def breaker(victims: Callable[[], dict[str, int]]) -> Work:
    """Stops, freezes and kills apps."""

    def work(rng: random.Random, beat: Callable[[], None]) -> None:
        while True:
            name, pid = rng.choice(list(victims().items()))
            frozen = CGROUP / f"app-{name}" / "cgroup.freeze"
            what = rng.random()
            with suppress(ProcessLookupError):
                if what < 0.4:
                    os.kill(pid, signal.SIGSTOP)
                    time.sleep(rng.random() / 5)
                    os.kill(pid, signal.SIGCONT)
                elif what < 0.8:
                    write(frozen, "1")
                    time.sleep(rng.random() / 5)
                    if what < 0.5:
                        os.kill(pid, signal.SIGKILL)
                    write(frozen, "0")
                else:
                    os.kill(pid, signal.SIGKILL)
            beat()
            time.sleep(rng.random() / 3)

    return work


# --- who runs them


@dataclass
class Actor:
    """A process that works until it is killed; one that is killed by a breaker starts again."""

    name: str
    uid: int
    work: Work
    pid: int = 0
    starts: int = 0
    beats: int = 0
    last_s: float = 0.0
    gap_s: float = 0.0


def state(pid: int) -> str:
    """What a process does: R, S, D, T, ... and where it sleeps."""
    try:
        what = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return f"{what} in {Path(f'/proc/{pid}/wchan').read_text()}"
    except (FileNotFoundError, ProcessLookupError):
        return "gone"


class Stage:
    """All actors, their pids and their progress, shared by memory: a word each, which is written at once.

    struct.pack_into() writes zeros first, and a signal to PID 0 goes to everybody.
    """

    def __init__(self, seed: str) -> None:
        self.seed = seed
        self.actors: list[Actor] = []
        self.beats, self.leaders = (memoryview(mmap.mmap(-1, PAGE)).cast("Q") for _ in range(2))
        self.shown_s = 0.0

    def pids(self) -> list[int]:
        """The pids of all actors, some of them dead perhaps."""
        return list(self.leaders[: len(self.actors)])

    def victims(self) -> dict[str, int]:
        """Actors that may be killed: all that are apps."""
        return {actor.name: pid for actor, pid in zip(self.actors, self.pids(), strict=True) if actor.uid}

    def start(self, index: int) -> None:
        """Fork an actor, in its own control group, as its own UID."""
        actor = self.actors[index]
        actor.starts += 1
        group = CGROUP / f"app-{actor.name}"
        group.mkdir(exist_ok=True)
        if actor.name == LIMITED:
            write(group / "memory.high", str(24 * MIB))
        write(group / "cgroup.freeze", "0")
        actor.pid = os.fork()
        if actor.pid == 0:
            self._child(index, actor, group)
        self.leaders[index] = actor.pid

    def _child(self, index: int, actor: Actor, group: Path) -> NoReturn:
        def beat() -> None:
            self.beats[index] += 1

        try:
            os.setpgid(0, 0)
            write(group / "cgroup.procs", str(os.getpid()))
            os.setgid(actor.uid)
            os.setuid(actor.uid)
            actor.work(random.Random(f"{self.seed} {actor.name} {actor.starts}"), beat)
        finally:
            traceback.print_exc()
            os._exit(1)

    def watch(self, now: float) -> None:
        """Start again who was killed; note who has worked."""
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG) if self.actors else (0, 0)
            if not pid:
                break
            for index, actor in enumerate(self.actors):
                if actor.pid != pid:
                    continue
                if os.waitstatus_to_exitcode(status) != -signal.SIGKILL or not actor.uid:
                    print(f"fasttrack-guest: error: {actor.name} ended with status {status:#x}", flush=True)
                self.start(index)
        for index, actor in enumerate(self.actors):
            beats = self.beats[index]
            if beats != actor.beats or not actor.last_s:
                actor.last_s = now
            actor.beats = beats
            actor.gap_s = max(actor.gap_s, now - actor.last_s)
            if now - actor.last_s > SHOWN_S and now > self.shown_s + SHOWN_S:
                self.shown_s = now
                print(f"stress: {actor.name} has not moved for {SHOWN_S} s", flush=True)
                for other in self.actors:
                    print(f"stress: {other.name} is {state(other.pid)}", flush=True)
                write(Path("/proc/sysrq-trigger"), "w")
                write(Path("/proc/sysrq-trigger"), "d")

    def report(self) -> dict[str, dict[str, float]]:
        """What each has done."""
        return {
            actor.name: {"beats": actor.beats, "starts": actor.starts, "longest_gap_s": round(actor.gap_s, 1)}
            for actor in self.actors
        }


def cast(stage: Stage, short: bool) -> list[Actor]:
    """All actors."""
    actors = []
    for kind, place in PLACES.items():
        for index, uid in enumerate((UIDS[0], UIDS[1])):
            name = f"sync-{kind}-{index}"
            acknowledged = os.open(OUT / name, os.O_RDWR | os.O_CREAT, 0o600)
            actors.append(Actor(name, uid, syncer(place, name, acknowledged)))
        makers = (
            ("write", writer, UIDS[2]),
            ("read", reader, UIDS[3]),
            ("direct", direct, UIDS[4]),
            ("files", files, UIDS[5]),
        )
        actors += [Actor(f"{name}-{kind}", uid, make(place, name)) for name, make, uid in makers]
    actors += [Actor("hog-0", UIDS[0], hog(short)), Actor("hog-1", UIDS[3], hog(short))]
    actors += [
        Actor("storm", 0, storm),
        Actor("switcher", 0, switcher(stage.pids)),
        Actor("toggler", 0, toggler(short)),
        Actor("freezer", 0, freezer),
        Actor("breaker", 0, breaker(stage.victims)),
    ]
    return actors


def swap_on(path: Path, size: int) -> None:
    """A swap file."""
    with path.open("wb") as handle:
        for _ in range(0, size, MIB):
            handle.write(bytes(MIB))
        os.fsync(handle.fileno())
    path.chmod(0o600)
    tool("mkswap", str(path))
    if LIBC.swapon(str(path).encode(), 0):
        raise OSError(ctypes.get_errno(), f"swapon {path}")


def play(duration_s: float, seed: str, short: bool) -> NoReturn:
    """Everything at once, then the power cut."""
    partition()
    tool("mkfs.ext4", "-q", "-F", PARTITIONS["ext4"])
    tool("mkfs.f2fs", "-q", "-f", PARTITIONS["f2fs"])
    for kind, place in PLACES.items():
        place.mkdir()
        mount(kind, place, PARTITIONS[kind])
        place.chmod(0o1777)
    # See toggler(): one change of the elevator is enough for lockdep.
    if short:
        swap_on(PLACES["ext4"] / "swap", 64 * MIB)
    else:
        write(QUEUE / "scheduler", "fasttrack")
    write(FT / "app_uids", "10000-19999")
    write(FT / "enabled", "1")
    write(CGROUP / "cgroup.subtree_control", "+memory +io")
    stage = Stage(seed)
    stage.actors = cast(stage, short)
    begin = time.monotonic()
    for index in range(len(stage.actors)):
        stage.start(index)
    shown = begin
    while (now := time.monotonic()) < begin + duration_s:
        stage.watch(now)
        if now > shown + 30:
            shown = now
            print(f"stress: {now - begin:.0f} s: {json.dumps({a.name: a.beats for a in stage.actors})}", flush=True)
        time.sleep(0.2)
    stats = {path.name: int(path.read_text()) for path in sorted((FT / "stats").iterdir())}
    vmstat = dict(line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    stats |= {name: int(vmstat[name]) for name in RECLAIM}
    with (OUT / "progress.json").open("w") as handle:
        json.dump({"actors": stage.report(), "stats": stats, "seconds": duration_s}, handle)
        handle.flush()
        os.fsync(handle.fileno())
    print("stress: power cut", flush=True)
    write(MFLASH / "power_cut_persist", "30")
    write(MFLASH / "power_cut_after", "200")
    while time.monotonic() < now + GAP_LIMIT_S:
        stage.watch(time.monotonic())
        time.sleep(0.2)
    raise TimeoutError("the power cut did not come")


def verify(place: Path, name: str) -> None:
    """All records up to the acknowledged one are there; the next may be."""
    last = int.from_bytes((OUT / name).read_bytes(), "little")
    content = (place / f"records-{name}").read_bytes()
    for number in range(max(1, last - RECORDS + 2), last + 1):
        start = number % RECORDS * PAGE
        if content[start : start + PAGE] != record(number):
            raise ValueError(
                f"{place}: record {number} of {last} of {name} is lost: {content[start : start + 16].hex()}"
            )
    print(f"stress: {place}: {name}: {last} records", flush=True)


def check() -> NoReturn:
    """After the power cut."""
    for kind, place in PLACES.items():
        place.mkdir()
        mount(kind, place, PARTITIONS[kind])
        for index in range(2):
            verify(place, f"sync-{kind}-{index}")
        unmount(place)
    tool("e2fsck", "-fn", PARTITIONS["ext4"])
    tool("fsck.f2fs", "--dry-run", PARTITIONS["f2fs"])
    print("stress: file systems are whole", flush=True)
    power_off()


def main() -> None:
    """Mount what is needed, and do what the kernel's command line says."""
    sys.excepthook = failed
    mount("proc", Path("/proc"))
    mount("sysfs", Path("/sys"))
    mount("tmpfs", Path("/tmp"))
    mount("tmpfs", Path("/run"))
    mount("debugfs", Path("/sys/kernel/debug"))
    mount("cgroup2", CGROUP)
    OUT.mkdir()
    mount("9p", OUT, "run", "trans=virtio,version=9p2000.L,msize=262144,cache=none")
    write(Path("/proc/sys/kernel/hung_task_timeout_secs"), str(int(GAP_LIMIT_S)))
    print(f"stress: {os.uname().release}, {os.cpu_count()} processors", flush=True)
    words = Path("/proc/cmdline").read_text().split()
    given = dict(word.split("=", 1) for word in words if "=" in word)
    if given["stress_phase"] == "check":
        check()
    play(float(given["stress_s"]), given["stress_seed"], bool(int(given["stress_short"])))


if __name__ == "__main__":
    main()
