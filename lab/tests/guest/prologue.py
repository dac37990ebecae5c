# SPDX-License-Identifier: GPL-2.0-only
"""What the scripts of this directory share. Each is a guest's init: it does what it is asked and shows what it saw.

They run under the host's own Python, with the standard library alone, and see the host's file system read-only. What is
asked is in asked.json of the run directory, what is shown in shown.json.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import random
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

LIBC = ctypes.CDLL(None, use_errno=True)
FRONT, BEHIND, SERVICE = 10101, 10102, 1000
"""UIDs: of two apps, as guest_script.py has them, and of a system service."""

APPS = "10000-19999"
"""The UIDs of apps."""

FT = Path("/sys/kernel/fasttrack")
TRACE = Path("/sys/kernel/tracing")
DEBUG = Path("/sys/kernel/debug")
QUEUE = Path("/sys/block/sda/queue")
CGROUP = Path("/run/cgroup")
VM = Path("/proc/sys/vm")
OUT = Path("/run/out")
DATA = Path("/run/data")
DISK = "/dev/sda"

MKFS = {
    "ext4": ["/sbin/mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0"],
    "f2fs": ["/sbin/mkfs.f2fs", "-q", "-f"],
}
MIB = 1 << 20
BLOCK = 4096
PATTERN = b"fasttrac" * (MIB // 8)
SEEN = memoryview(mmap.mmap(-1, BLOCK)).cast("Q")
"""A page that every process here sees: word N is counter N."""

MNT_DETACH = 2
MS_BIND, MS_REMOUNT = 4096, 32
FIFREEZE, FITHAW = 0xC0045877, 0xC0045878
"""Of linux/mount.h, linux/fs.h."""
SYNC_FILE_RANGE_WAIT_BEFORE, SYNC_FILE_RANGE_WRITE = 1, 2
IOPRIO_NONE, IOPRIO_IDLE = 0, 3
"""Classes of linux/ioprio.h."""

Shown = dict[str, Any]
Work = Callable[[], object]


# --- the machine


def power_off() -> NoReturn:
    write("/proc/sysrq-trigger", "o")
    time.sleep(10)
    raise SystemExit(1)


def tell(kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
    """An error, so that the boot fails."""
    traceback.print_exception(kind, error, where)
    print(f"fasttrack-guest: error: {kind.__name__ if kind else kind}: {error}", flush=True)


def failed(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
    """Init must not exit: say what went wrong, and switch off."""
    tell(kind, error, where)
    power_off()


def mount(kind: str, target: Path | str, source: str = "none", options: str = "", flags: int = 0) -> None:
    if LIBC.mount(source.encode(), str(target).encode(), kind.encode(), flags, options.encode()):
        raise OSError(ctypes.get_errno(), f"mount {target}")


def own(target: str) -> None:
    """A directory of this script instead of the host's, in which what the lab needs of the host's is shown again."""
    kept = [path for path in os.environ.get("FASTTRACK_KEPT", "").split(":") if path.startswith(target + "/")]
    handles = {Path(path): os.open(path, os.O_PATH) for path in kept}
    mount("tmpfs", target)
    for path, handle in handles.items():
        path.mkdir(parents=True)
        mount("none", path, f"/proc/self/fd/{handle}", flags=MS_BIND)
        os.close(handle)


def unmount(target: Path, flags: int = 0) -> None:
    if LIBC.umount2(str(target).encode(), flags):
        raise OSError(ctypes.get_errno(), f"umount {target}")


def read(path: Path | str) -> str:
    return Path(path).read_text().strip()


def write(path: Path | str, value: str) -> None:
    """One write(2) of the whole value."""
    handle = os.open(path, os.O_WRONLY)
    try:
        os.write(handle, value.encode())
    except OSError as error:
        raise OSError(error.errno, f"{path}: {value!r}: {error.strerror}") from error
    finally:
        os.close(handle)


def tried(path: Path | str, value: str) -> str:
    """What a file says to a value, as a word."""
    try:
        write(path, value)
    except OSError as error:
        return os.strerror(error.errno or 0)
    return "ok"


def format_data(kind: str, features: str, options: str) -> None:
    """A file system at DATA. 4 GiB are enough, and ext4 is quick to make."""
    more = ["-O", features] if features else []
    size = ["4G"] if kind == "ext4" else []
    subprocess.run([*MKFS[kind], *more, DISK, *size], check=True)
    DATA.mkdir()
    mount(kind, DATA, DISK, options)
    DATA.chmod(0o777)
    os.umask(0)
    # As phones do: what cannot wait finds free pages, also where one processor does everything.
    write(VM / "min_free_kbytes", "12288")


def mount_cgroup(name: str) -> Path:
    """The tree of control groups, with one group."""
    CGROUP.mkdir()
    mount("cgroup2", CGROUP)
    (CGROUP / name).mkdir()
    return CGROUP / name


def run(*works: Callable[..., Shown]) -> NoReturn:
    """Do the one of WORKS that is asked for, with its parameters and after the settings, and switch off."""
    sys.excepthook = failed
    mount("proc", "/proc")
    mount("sysfs", "/sys")
    own("/tmp")
    own("/run")
    mount("tracefs", TRACE)
    mount("debugfs", DEBUG)
    OUT.mkdir()
    if "hostfs" in read("/proc/filesystems"):
        mount("hostfs", OUT, options="/proc/self/cwd/.")
    else:
        mount("9p", OUT, "run", "trans=virtio,version=9p2000.L,msize=262144,cache=none")
    asked = json.loads((OUT / "asked.json").read_text())
    if asked["data"]:
        format_data(**asked["data"])
    for setting in asked["settings"]:
        write(setting["path"], setting["value"])
    shown = {work.__name__: work for work in works}[asked["work"]](**asked["parameters"])
    if asked["data"]:
        unmount(DATA, MNT_DETACH)
    (OUT / "shown.json").write_text(json.dumps(shown))
    os.sync()
    power_off()


# --- processes


def become(uid: int, work: Work) -> NoReturn:
    """WORK in this process, which was forked for it."""
    status = 1
    try:
        os.setgid(uid)
        os.setuid(uid)
        work()
        status = 0
    finally:
        if status:
            tell(*sys.exc_info())
        os._exit(status)


def start(uid: int, work: Work) -> int:
    """WORK in a process of its own UID: its PID."""
    child = os.fork()
    if child == 0:
        become(uid, work)
    return child


def wait(child: int) -> int:
    """The exit status of a child; of one that was killed the negative signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def as_uid(uid: int, work: Work) -> int:
    """WORK in a process of its own UID: its exit status."""
    return wait(start(uid, work))


def end(*children: int) -> None:
    """Kill those that go on until they are killed."""
    for child in children:
        os.kill(child, signal.SIGKILL)
        status = wait(child)
        if status not in (0, -signal.SIGKILL):
            raise ChildProcessError(f"a process ended with {status}")


def fio(argv: list[str], uid: int = 0) -> subprocess.Popen[bytes]:
    return subprocess.Popen(argv, cwd="/tmp", user=uid, group=uid, stdout=subprocess.PIPE)


def fio_job(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """The report's job, when fio has ended. It may say before that only root may flush a device."""
    said = process.communicate()[0].decode()
    job: dict[str, Any] = json.loads(said[said.index("{") :])["jobs"][0]
    return job


def ms_until(done: Callable[[], object], limit_s: float = 5) -> float:
    begin = time.monotonic()
    while not done():
        if time.monotonic() > begin + limit_s:
            raise TimeoutError("what was waited for did not happen")
        time.sleep(0.0005)
    return (time.monotonic() - begin) * 1000


def timed(work: Callable[[], object]) -> float:
    """Milliseconds of one call."""
    begin = time.monotonic()
    work()
    return (time.monotonic() - begin) * 1000


# --- what apps do; some go on until they are killed


def direct_read() -> None:
    """One bio: the page cache would answer a second read."""
    handle = os.open(DISK, os.O_RDONLY | os.O_DIRECT)
    os.preadv(handle, [mmap.mmap(-1, BLOCK)], 0)
    os.close(handle)


def make(name: str, mib: int) -> None:
    with (DATA / name).open("wb", buffering=0) as handle:
        for _ in range(mib):
            handle.write(PATTERN)
        os.fsync(handle.fileno())


def fill_disk(mib: int) -> None:
    """The device's first MIB; what was never written is not read from flash."""
    handle = os.open(DISK, os.O_WRONLY | os.O_DIRECT)
    block = mmap.mmap(-1, MIB)
    for index in range(mib):
        os.pwritev(handle, [block], index * MIB)
    os.close(handle)


def drop_caches() -> None:
    os.sync()
    write(VM / "drop_caches", "3")


def reads_whole(name: str) -> None:
    with (DATA / name).open("rb", buffering=0) as handle:
        while handle.read(MIB):
            pass


def reads_for_ever(name: str, think_s: float = 0.0) -> None:
    """One cold block after another: somebody scrolls."""
    handle = os.open(DATA / name, os.O_RDONLY)
    pages = os.fstat(handle).st_size // BLOCK
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_RANDOM)
    draw = random.Random(1)
    while True:
        at = draw.randrange(pages) * BLOCK
        os.pread(handle, BLOCK, at)
        os.posix_fadvise(handle, at, BLOCK, os.POSIX_FADV_DONTNEED)
        if think_s:
            time.sleep(think_s)


def writes_for_ever(name: str, counter: int = 0, mib: int = 1) -> None:
    handle = os.open(DATA / name, os.O_CREAT | os.O_WRONLY, 0o644)
    while True:
        os.pwrite(handle, PATTERN * mib, SEEN[counter] % 64 * MIB)
        SEEN[counter] += 1
        time.sleep(0.002)


def touch(size: int, counter: int | None = None) -> mmap.mmap:
    """Memory, page by page; the MiB that are done are in a counter."""
    area = mmap.mmap(-1, size)
    for at in range(0, size, BLOCK):
        area[at] = 1
        if counter is not None:
            SEEN[counter] = at // MIB
    return area


def set_ioprio(ioprio_class: int) -> None:
    """ioprio_set(2) of this thread; those that it starts inherit it. The number of the call is x86-64's."""
    if LIBC.syscall(251, 1, 0, ioprio_class << 13):
        raise OSError(ctypes.get_errno(), "ioprio_set")


def sync_range(handle: int, at: int, size: int, flags: int) -> None:
    if LIBC.sync_file_range(handle, ctypes.c_long(at), ctypes.c_long(size), flags):
        raise OSError(ctypes.get_errno(), "sync_file_range")


# --- what the kernel shows


def pairs(lines: str, between: str | None = None) -> dict[str, str]:
    """Lines of a name and a value."""
    split = (line.split(between) for line in lines.splitlines())
    return {words[0]: words[1] for words in split if len(words) == 2}


def stat(name: str) -> int:
    """A counter of FastTrack's."""
    return int(read(FT / "stats" / name))


def vmstat(name: str) -> int:
    return int(pairs(read("/proc/vmstat"))[name])


def stalls() -> int:
    """Times that an allocation has had to reclaim."""
    return sum(int(value) for name, value in pairs(read("/proc/vmstat")).items() if name.startswith("allocstall"))


def meminfo_kb(name: str) -> int:
    return int(read("/proc/meminfo").split(name + ":")[1].split()[0])


def tags(which: str) -> tuple[int, int]:
    """Of the elevator's (sched_tags) or the device's (tags): in use, of how many."""
    said = pairs(read(DEBUG / "block/sda/hctx0" / which), "=")
    return int(said["busy"]), int(said["depth"])


def resident(name: str) -> float:
    """The part of a file that is in the page cache."""
    handle = os.open(DATA / name, os.O_RDWR)
    size = os.fstat(handle).st_size
    area = mmap.mmap(handle, size)
    there = (ctypes.c_ubyte * (size // BLOCK))()
    address = ctypes.addressof(ctypes.c_char.from_buffer(area))
    if LIBC.mincore(ctypes.c_void_p(address), ctypes.c_size_t(size), there):
        raise OSError(ctypes.get_errno(), "mincore")
    os.close(handle)
    return sum(page & 1 for page in there) / len(there)


def trace_lines(name: str, work: Work) -> list[str]:
    """What each event NAME, which must be enabled, says during WORK."""
    (TRACE / "trace").open("w").close()
    work()
    return [line.split(name + ": ")[1] for line in read(TRACE / "trace").splitlines() if name + ": " in line]


def events_of(name: str, work: Work) -> list[dict[str, str]]:
    """The fields of each event NAME, which must be enabled, during WORK."""
    return [dict(pair.split("=") for pair in line.split()) for line in trace_lines(name, work)]


def enable(event: str, on: bool = True) -> None:
    """SYSTEM/NAME, or all of a system."""
    write(TRACE / "events" / event / "enable", str(int(on)))


def bios_of(work: Work) -> list[dict[str, str]]:
    """The fields of each bio that is sent during WORK; fasttrack_bio must be enabled."""
    return events_of("fasttrack_bio", work)
