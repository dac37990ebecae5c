# SPDX-License-Identifier: GPL-2.0-only
"""What the host must offer, checked before anything is built.

Runs with the system's Python too, before the lab's own environment exists: standard library only.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import shutil
import sys
import tempfile
from pathlib import Path

MIB = 1 << 20

CACHE_MIB = 6 * 1024
"""A kernel tree of 1.2 GB, three build directories, the Rust build, the Python environment, prepared phones."""

RUN_MIB = 2 * 1024
"""One guest: its memory file at worst, and its phone's storage."""

PTRACE_TRACEME = 0
SHM = Path("/dev/shm")


def ptrace_works() -> bool:
    """Try PTRACE_TRACEME in a child: containers and hardened hosts may refuse it."""
    libc = ctypes.CDLL(None, use_errno=True)
    child = os.fork()
    if child == 0:
        os._exit(0 if libc.ptrace(PTRACE_TRACEME, 0, None, None) == 0 else 1)
    return os.waitpid(child, 0)[1] == 0


def _executable_room(directory: Path) -> bool:
    """Whether a file there can be mapped as code, as UML maps its memory."""
    try:
        with tempfile.TemporaryFile(dir=directory) as handle:
            handle.truncate(mmap.PAGESIZE)
            mmap.mmap(
                handle.fileno(), mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_EXEC, flags=mmap.MAP_SHARED
            ).close()
    except OSError:
        return False
    return True


def free_mib(directory: Path) -> int:
    """Free room in MiB for this user; of a tmpfs, no more than the memory that is there."""
    free = shutil.disk_usage(directory).free // MIB
    if directory == SHM:
        free = min(free, _memory_available_mib())
    return free


def _memory_available_mib() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) // 1024
    return 0


def run_room(need_mib: int) -> tuple[Path | None, str]:
    """A directory for runs of NEED_MIB: TMPDIR if set, /dev/shm, the temporary directory; or why there is none."""
    own = os.environ.get("TMPDIR")
    # A guest runs in its own directory, with paths in here as arguments.
    candidates = [Path(own).absolute()] if own else []
    candidates += [SHM, Path(tempfile.gettempdir())]
    reasons = []
    for directory in dict.fromkeys(candidates):
        if not os.access(directory, os.W_OK | os.X_OK):
            reasons.append(f"{directory} cannot be written")
        elif not _executable_room(directory):
            reasons.append(f"{directory} is mounted noexec")
        elif (free := free_mib(directory)) < need_mib:
            reasons.append(f"{directory} has {free} MiB free")
        else:
            return directory, ""
    return (
        None,
        f"a guest needs {need_mib} MiB for its memory and storage: {', '.join(reasons)}. "
        "Set TMPDIR to a directory with room",
    )


def _existing_parent(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path


def problems(cache: Path) -> list[str]:
    """What is missing on this host, one line each."""
    found = []
    machine, system = platform.machine(), platform.system()
    if (system, machine) != ("Linux", "x86_64"):
        return [
            f"this is {system} on {machine}: the lab needs Linux on x86-64, because its guests run as x86-64 processes"
        ]
    if sys.version_info < (3, 11):  # noqa: UP036 (runs before the environment exists)
        found.append(f"Python is {platform.python_version()}: 3.11 or newer is needed")
    if not ptrace_works():
        found.append(
            "ptrace is refused, and guests need it. "
            "In a container, add the capability SYS_PTRACE, or allow ptrace in the seccomp profile"
        )
    directory, why = run_room(RUN_MIB)
    if directory is None:
        found.append(why)
    room = _existing_parent(cache)
    if not os.access(room, os.W_OK):
        found.append(f"{room} cannot be written: set FASTTRACK_CACHE to a directory of yours")
    elif not (cache / "kernels").is_dir() and (free := free_mib(room)) < CACHE_MIB:
        found.append(
            f"{room} has {free} MiB free, the cache needs {CACHE_MIB}: set FASTTRACK_CACHE to a directory with room"
        )
    return found


def main() -> int:
    """Print what is missing; 1 if anything is."""
    found = problems(Path(sys.argv[1]))
    for line in found:
        print(f"fasttrack: {line}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
