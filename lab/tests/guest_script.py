# SPDX-License-Identifier: GPL-2.0-only
"""A Python program as the guest's init: it looks at the kernel from inside and prints JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fasttrack_lab.host.paths import CHECKOUT, cache_root
from fasttrack_lab.host.rundir import run_dir
from fasttrack_lab.inputs import phone
from fasttrack_lab.run.boot.backend import BootSpec
from fasttrack_lab.run.image import ROOM_MIB, storage_params
from fasttrack_lab.run.result import judge_boot, tail
from fasttrack_lab.run.runner import Tools
from fasttrack_lab.run.script import init_script

MEMORY_MIB = 512
FRONT, BEHIND = 10101, 10102
"""UIDs of two apps, as prologue.py has them."""

FT = "/sys/kernel/fasttrack/"
QUEUE = "/sys/block/sda/queue/"
Settings = Sequence[dict[str, str]]


def setting(path: str, value: object) -> dict[str, str]:
    return {"path": path, "value": str(value)}


FASTTRACK: Settings = (
    setting(QUEUE + "scheduler", "fasttrack"),
    setting(FT + "foreground_uids", FRONT),
    setting(FT + "enabled", 1),
)

OWN = ("/tmp", "/run")
"""Directories that a script has for itself."""

KEPT = [str(path) for path in (CHECKOUT, cache_root(), Path(sys.prefix)) if str(path).startswith(OWN)]
"""What lies below them and is needed all the same: programs of the checkout, and their Python."""

PROLOGUE = (
    """#!/usr/bin/python3 -ISu
import ctypes, json, mmap, os, subprocess, sys, time, traceback
LIBC = ctypes.CDLL(None, use_errno=True)

def failed(kind, error, where):
    # Init must not exit: say what went wrong, and switch off.
    traceback.print_exception(kind, error, where)
    print(f"fasttrack-guest: error: {kind.__name__}: {error}", flush=True)
    write("/proc/sysrq-trigger", "o")
    time.sleep(10)
sys.excepthook = failed

def mount(kind, target, source="none", options="", flags=0):
    if LIBC.mount(source.encode(), target.encode(), kind.encode(), flags, options.encode()):
        raise OSError(ctypes.get_errno(), f"mount {target}")

def own(target, kept=()):
    # A directory of this script's instead of the host's, whose directories KEPT are shown in it again.
    handles = {path: os.open(path, os.O_PATH) for path in kept if path.startswith(target + "/")}
    mount("tmpfs", target)
    for path, handle in handles.items():
        os.makedirs(path, exist_ok=True)
        mount("none", path, f"/proc/self/fd/{handle}", flags=4096)  # MS_BIND
        os.close(handle)

def read(path):
    with open(path) as handle:
        return handle.read().strip()

def write(path, value):
    # One write(2) of the whole value; what it said as a word.
    handle = os.open(path, os.O_WRONLY)
    try:
        os.write(handle, value.encode())
        return "ok"
    except OSError as error:
        return error.strerror
    finally:
        os.close(handle)

def as_uid(uid, work):
    # WORK in a process of its own UID; its exit status.
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setgid(uid)
            os.setuid(uid)
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def direct_read():
    # One bio: the page cache would answer a second read.
    buffer = mmap.mmap(-1, 4096)
    handle = os.open("/dev/sda", os.O_RDONLY | os.O_DIRECT)
    os.preadv(handle, [buffer], 0)
    os.close(handle)

def events_of(name, work):
    # The fields of each event NAME, which must be enabled, during WORK.
    open(TRACE + "trace", "w").close()
    work()
    lines = [line.split(name + ": ")[1].split() for line in read(TRACE + "trace").splitlines() if name + ": " in line]
    return [dict(pair.split("=") for pair in line) for line in lines]

def bios_of(work):
    # The fields of each bio that is sent during WORK; fasttrack_bio must be enabled.
    return events_of("fasttrack_bio", work)

def fill_disk(mib):
    # The device's first MIB; what was never written is not read from flash.
    handle = os.open("/dev/sda", os.O_WRONLY | os.O_DIRECT)
    block = mmap.mmap(-1, 1 << 20)
    for index in range(mib):
        os.pwritev(handle, [block], index << 20)
    os.close(handle)

def fio_job(process):
    # The report's job, when fio has ended. Notes, that only root may flush a device for one, come before the report.
    said = process.communicate()[0].decode()
    return json.loads(said[said.index("{"):])["jobs"][0]

FT = "/sys/kernel/fasttrack/"
TRACE = "/sys/kernel/tracing/"
QUEUE = "/sys/block/sda/queue/"
SHOWN = {}
"""
    + f"KEPT = {KEPT!r}"
    + """
mount("proc", "/proc")
mount("sysfs", "/sys")
own("/tmp", KEPT)
own("/run", KEPT)
mount("tracefs", "/sys/kernel/tracing")
os.mkdir("/run/out")
mount("hostfs", "/run/out", options="/proc/self/cwd/.")
"""
)

EPILOGUE = """
with open("/run/out/shown.json", "w") as handle:
    json.dump(SHOWN, handle)
os.sync()
write("/proc/sysrq-trigger", "o")
time.sleep(10)
"""

# A file system at /run/data, and functions for apps: some go on until they are killed.
FILES = """
import random, signal
MKFS = {
    "ext4": ["/sbin/mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0"],
    "f2fs": ["/sbin/mkfs.f2fs", "-q", "-f"],
}
MIB = 1 << 20
PATTERN = b"fasttrac" * (MIB // 8)
# A page that every process here sees: word N is counter N.
SEEN = memoryview(mmap.mmap(-1, 4096)).cast("Q")

def make(name, mib):
    with open("/run/data/" + name, "wb", buffering=0) as handle:
        for _ in range(mib):
            handle.write(PATTERN)
        os.fsync(handle.fileno())

def drop_caches():
    os.sync()
    write("/proc/sys/vm/drop_caches", "3")

def start(uid, work):
    child = os.fork()
    if child == 0:
        os.setgid(uid)
        os.setuid(uid)
        try:
            work()
        finally:
            os._exit(0)
    return child

def end(*children):
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

def reads_for_ever(name):
    # One cold block after another, a millisecond apart: somebody scrolls.
    handle = os.open("/run/data/" + name, os.O_RDONLY)
    pages = os.fstat(handle).st_size // 4096
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_RANDOM)
    draw = random.Random(1)
    while True:
        at = draw.randrange(pages) * 4096
        os.pread(handle, 4096, at)
        os.posix_fadvise(handle, at, 4096, os.POSIX_FADV_DONTNEED)
        time.sleep(0.001)

def writes_for_ever(name, counter=0, mib=1):
    handle = os.open("/run/data/" + name, os.O_CREAT | os.O_WRONLY, 0o644)
    while True:
        os.pwrite(handle, PATTERN * mib, SEEN[counter] % 64 * MIB)
        SEEN[counter] += 1
        time.sleep(0.002)

def reads_whole(name):
    with open("/run/data/" + name, "rb", buffering=0) as handle:
        while handle.read(MIB):
            pass

def resident(name):
    # The part of a file that is in the page cache.
    handle = os.open("/run/data/" + name, os.O_RDWR)
    size = os.fstat(handle).st_size
    area = mmap.mmap(handle, size)
    there = (ctypes.c_ubyte * (size // 4096))()
    address = ctypes.addressof(ctypes.c_char.from_buffer(area))
    if LIBC.mincore(ctypes.c_void_p(address), ctypes.c_size_t(size), there):
        raise OSError(ctypes.get_errno(), "mincore")
    os.close(handle)
    return sum(page & 1 for page in there) / len(there)

def meminfo_kb(name):
    return int(read("/proc/meminfo").split(name + ":")[1].split()[0])

def stat(name):
    return int(read(FT + "stats/" + name))

def stalls():
    # Times that an allocation has had to reclaim.
    vmstat = dict(line.split() for line in read("/proc/vmstat").splitlines())
    return sum(int(value) for name, value in vmstat.items() if name.startswith("allocstall"))

def ms_until(done, limit=5):
    begin = time.monotonic()
    while not done():
        if time.monotonic() > begin + limit:
            raise TimeoutError("what was waited for did not happen")
        time.sleep(0.0005)
    return (time.monotonic() - begin) * 1000

def format_data(kind, features, options):
    # 4 GiB are enough, and ext4 is quick to make.
    more = ["-O", features] if features else []
    size = ["4G"] if kind == "ext4" else []
    subprocess.run([*MKFS[kind], *more, "/dev/sda", *size], check=True)
    os.mkdir("/run/data")
    mount(kind, "/run/data", "/dev/sda", options)
    os.chmod("/run/data", 0o777)
    os.umask(0)

# As phones do: what cannot wait finds free pages, also where one processor does everything.
write("/proc/sys/vm/min_free_kbytes", "12288")
"""
UNMOUNT = 'LIBC.umount2(b"/run/data", 2)\n'


def look(tools: Tools, script: str, phone_name: str = "s6") -> dict[str, Any]:
    """What SCRIPT put into SHOWN; the kernel's log must be clean."""
    one = phone.load(phone_name)
    with run_dir(MEMORY_MIB + ROOM_MIB) as where:
        init = init_script(PROLOGUE + script + EPILOGUE)
        params = storage_params(tools.backend, one)
        spec = BootSpec(tools.kernel.image, init, MEMORY_MIB, where, 120.0, 1, params)
        outcome = tools.backend.boot(spec)
        error = judge_boot(outcome)
        assert error is None, f"{error}\n{tail(outcome.console)}"
        shown: dict[str, Any] = json.loads((where / "shown.json").read_text())
        return shown


@dataclass(frozen=True)
class Data:
    """The file system at /run/data."""

    kind: str = "ext4"
    features: str = ""
    options: str = ""


EXT4 = Data()


def look_at_files(tools: Tools, script: str, data: Data = EXT4, phone_name: str = "s6") -> dict[str, Any]:
    """What SCRIPT shows on a fresh file system; the kernel's log must be clean."""
    made = f"format_data({data.kind!r}, {data.features!r}, {data.options!r})\n"
    return look(tools, FILES + made + script + UNMOUNT, phone_name)


def script(name: str) -> Path:
    """A script as the guest sees it: until the script mounts something, all is where the host has it."""
    return Path(__file__).parent / "guest" / f"{name}.py"


def write_asked(
    where: Path, work: str, data: Data | None = None, settings: Settings = (), /, **parameters: object
) -> None:
    """What the script of a run's directory is asked to do."""
    asked = {
        "work": work,
        "data": asdict(data) if data else None,
        "settings": list(settings),
        "parameters": parameters,
    }
    (where / "asked.json").write_text(json.dumps(asked))


def ask(
    tools: Tools,
    what: str,
    *,
    data: Data | None = None,
    phone_name: str = "s6",
    settings: Settings = (),
    **parameters: object,
) -> dict[str, Any]:
    """What SCRIPT.WORK shows, after the settings, on a fresh file system or none; the kernel's log must be clean."""
    name, _, work = what.partition(".")
    with run_dir(MEMORY_MIB + ROOM_MIB) as where:
        write_asked(where, work, data, settings, **parameters)
        return _shown(tools, script(name), where, phone_name)


def _shown(tools: Tools, init: Path, where: Path, phone_name: str) -> dict[str, Any]:
    params = storage_params(tools.backend, phone.load(phone_name))
    outcome = tools.backend.boot(BootSpec(tools.kernel.image, init, MEMORY_MIB, where, 120.0, 1, params))
    error = judge_boot(outcome)
    assert error is None, f"{error}\n{tail(outcome.console)}"
    shown: dict[str, Any] = json.loads((where / "shown.json").read_text())
    return shown
