#!/usr/bin/python3 -ESsBu
# SPDX-License-Identifier: GPL-2.0-only
"""Some tests of xfstests on partitions of the disk, while its processes change between front, behind and neither, and
another app reads and syncs beside them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from itertools import cycle
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from prologue import (
    BEHIND,
    BLOCK,
    CGROUP,
    DATA,
    DISK,
    FT,
    MIB,
    MKFS,
    MS_BIND,
    OUT,
    Shown,
    end,
    make,
    mount,
    mount_cgroup,
    read,
    run,
    start,
    tried,
    write,
)

ROOM = Path("/run/xfs")
"""Where the disks are mounted, and what xfstests writes beside them."""

PARTITIONS_MIB = 4096, 4096, 1024
"""TEST_DEV, SCRATCH_DEV, and the other app's."""

USERS = "fsgqa", "fsgqa2", "123456-fsgqa"
FIRST_UID = 3001

POLL_S, TURN_S = 0.005, 0.1
"""How often new processes are looked for, and how long one group is in front."""

PAUSE_S = 0.005
COLD_MIB = 64


def partition() -> None:
    """Three on the disk, of which the third is the other app's, at DATA."""
    lines = "label: dos\n" + "".join(f"size={mib}MiB\n" for mib in PARTITIONS_MIB)
    subprocess.run(["/sbin/sfdisk", "--quiet", "--no-tell-kernel", DISK], input=lines.encode(), check=True)
    subprocess.run(["/sbin/blockdev", "--rereadpt", DISK], check=True)
    subprocess.run([*MKFS["ext4"], DISK + "3"], check=True)
    DATA.mkdir()
    mount("ext4", DATA, DISK + "3")
    DATA.chmod(0o777)
    make("cold", COLD_MIB)


def shown_instead(path: str, text: str, mode: int = 0o644) -> None:
    """TEXT in place of a file of the host's."""
    copy = ROOM / Path(path).name
    copy.write_text(text)
    copy.chmod(mode)
    mount("none", path, str(copy), flags=MS_BIND)


def add_users() -> None:
    """Those that xfstests asks for. Nobody looks for devices with udev: what waits for it need not."""
    numbered = list(enumerate(USERS, FIRST_UID))
    users = "".join(f"{name}:x:{uid}:{uid}::/tmp:/bin/bash\n" for uid, name in numbered)
    groups = "".join(f"{name}:x:{uid}:\n" for uid, name in numbered)
    shown_instead("/etc/passwd", Path("/etc/passwd").read_text() + users)
    shown_instead("/etc/group", Path("/etc/group").read_text() + groups)
    if Path("/usr/bin/udevadm").exists():
        shown_instead("/usr/bin/udevadm", "#!/bin/sh\n", 0o755)


def reads_and_syncs() -> None:
    """Cold blocks and small fsyncs, with a pause after each, until it is killed."""
    cold = os.open(DATA / "cold", os.O_RDONLY)
    log = os.open(DATA / "log", os.O_CREAT | os.O_WRONLY, 0o644)
    for at in cycle(range(0, COLD_MIB * MIB, 64 << 10)):
        os.posix_fadvise(cold, at, 64 << 10, os.POSIX_FADV_DONTNEED)
        os.pread(cold, 64 << 10, at)
        os.pwrite(log, bytes(BLOCK), 0)
        os.fsync(log)
        time.sleep(PAUSE_S)


def pids(group: Path) -> list[int]:
    return [int(word) for word in read(group / "cgroup.procs").split()]


def split(groups: list[Path], kept: set[int], running: int) -> None:
    """While a process runs, each new one to the next of the groups. Two are in front in turns, and then none is."""
    nexts, fronts = cycle(groups), cycle(["/" + groups[0].name, "/" + groups[1].name, " "])
    known = set(kept)
    turn_over = 0.0
    while os.waitpid(running, os.WNOHANG) == (0, 0):
        time.sleep(POLL_S)
        if time.monotonic() > turn_over:
            tried(FT / "foreground_cgroups", next(fronts))
            turn_over = time.monotonic() + TURN_S
        for group in groups:
            for pid in pids(group):
                if pid not in known:
                    known.add(pid)
                    # It may have ended.
                    tried(next(nexts) / "cgroup.procs", str(pid))


def start_check(program: str, kind: str, tests: list[str], home: Path) -> int:
    """xfstests' own program in a group. What it finds is in the run's directory, also if this guest dies."""
    for name in "test", "scratch", "tmp":
        (ROOM / name).mkdir()
    environment = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/tmp",
        "FSTYP": kind,
        "TEST_DEV": DISK + "1",
        "TEST_DIR": str(ROOM / "test"),
        "SCRATCH_DEV": DISK + "2",
        "SCRATCH_MNT": str(ROOM / "scratch"),
        "RESULT_BASE": str(OUT / "results"),
        "TMPDIR": str(ROOM / "tmp"),
        "HOST_OPTIONS": "/dev/null/none",
        "DM_DISABLE_UDEV": "1",
        "DIFF_LENGTH": "40",
    }
    subprocess.run([*MKFS[kind], DISK + "1"], check=True, stdout=subprocess.DEVNULL)

    def check() -> None:
        write(home / "cgroup.procs", str(os.getpid()))
        log = os.open(OUT / "check.log", os.O_CREAT | os.O_WRONLY, 0o644)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.chdir(program)
        os.execve("./check", ["check", *tests], environment)

    return start(0, check)


def some(program: str, kind: str, tests: list[str], fasttrack: bool) -> Shown:
    """Each said in check.log whether it passed; here is what FastTrack did meanwhile, if it was on."""
    ROOM.mkdir()
    partition()
    add_users()
    mount_cgroup("one")
    groups = [CGROUP / name for name in ("one", "two", "neither")]
    for group in groups[1:]:
        group.mkdir()
    beside = start(BEHIND, reads_and_syncs)
    write(groups[0] / "cgroup.procs", str(beside))
    running = start_check(program, kind, tests, groups[2])
    if fasttrack:
        write(FT / "app_cgroups", "/one /two")
        write(FT / "enabled", "1")
        split(groups, {beside, running}, running)
    else:
        os.waitpid(running, 0)
    end(beside)
    if not fasttrack:
        return {}
    return {"ejected": read(FT / "ejected")} | {path.name: int(read(path)) for path in (FT / "stats").iterdir()}


run(some)
