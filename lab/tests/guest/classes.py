#!/usr/bin/python3 -ESsBu
# SPDX-License-Identifier: GPL-2.0-only
"""The class of what is sent: by UID, thread group and control group, and by whose work it is."""

from __future__ import annotations

import os
import subprocess
import time
from functools import partial
from pathlib import Path

from prologue import (
    APPS,
    BEHIND,
    CGROUP,
    DATA,
    DISK,
    FRONT,
    FT,
    QUEUE,
    SERVICE,
    VM,
    Shown,
    Work,
    as_uid,
    bios_of,
    direct_read,
    enable,
    mount,
    read,
    run,
    stat,
    unmount,
    write,
)

CLASSES = ("neutral", "background", "foreground")


def classes(work: Work) -> dict[str, int]:
    """How many bios of each class WORK sends."""
    before = {name: stat("bios_" + name) for name in CLASSES}
    work()
    return {name: stat("bios_" + name) - old for name, old in before.items()}


def by(uid: int) -> dict[str, int]:
    return classes(lambda: as_uid(uid, direct_read))


def by_uid() -> Shown:
    shown = {"off": by(BEHIND)}
    write(FT / "enabled", "1")
    shown["no apps"] = by(BEHIND)
    write(FT / "app_uids", APPS)
    shown["app"] = by(BEHIND)
    shown["service"] = by(SERVICE)
    write(FT / "foreground_uids", f"{FRONT} {BEHIND}")
    shown["uid"] = by(BEHIND)
    write(FT / "foreground_uids", str(FRONT))
    shown["uid removed"] = by(BEHIND)
    return shown


def family(go: int, gone: int) -> int:
    """A process, told to, forks a child and ends; so does the child. The grandchild sends one bio each time."""
    leader = os.fork()
    if leader == 0:
        os.read(go, 1)
        if os.fork() == 0:
            if os.fork() == 0:
                for _ in range(2):
                    os.read(go, 1)
                    as_uid(BEHIND, direct_read)
                    os.write(gone, b"x")
            os._exit(0)
        os.wait()
        os.write(gone, b"x")
        os._exit(0)
    return leader


def by_thread_group() -> Shown:
    """A thread group, and its grandchild whose parent is gone; then not any more."""
    go, gone = os.pipe(), os.pipe()
    leader = family(go[0], gone[1])

    def step() -> None:
        os.write(go[1], b"x")
        os.read(gone[0], 1)

    write(FT / "foreground_tgids", str(leader))
    shown: Shown = {"tgid shown": read(FT / "foreground_tgids") == str(leader), "leader forks": classes(step)}
    os.waitpid(leader, 0)
    shown["grandchild"] = classes(step)
    shown["tgid dead"] = read(FT / "foreground_tgids")
    write(FT / "foreground_tgids", " ")
    shown["grandchild removed"] = classes(step)
    return shown


def in_cgroup(group: Path) -> dict[str, int]:
    """Of a process of a group."""

    def work() -> None:
        child = os.fork()
        if child == 0:
            write(group / "cgroup.procs", str(os.getpid()))
            as_uid(500, direct_read)
            os._exit(0)
        os.waitpid(child, 0)

    return classes(work)


def by_cgroup() -> Shown:
    CGROUP.mkdir()
    mount("cgroup2", CGROUP)
    editor, other = CGROUP / "app.slice/editor.scope", CGROUP / "app.slice/other.scope"
    editor.mkdir(parents=True)
    other.mkdir()
    write(FT / "app_cgroups", "/app.slice")
    write(FT / "foreground_cgroups", "/app.slice/editor.scope")
    return {
        "cgroups": [read(FT / "app_cgroups"), read(FT / "foreground_cgroups")],
        "cgroup in front": in_cgroup(editor),
        "cgroup behind": in_cgroup(other),
        "no app's cgroup": in_cgroup(CGROUP),
    }


def by_membership() -> Shown:
    Path(DISK).chmod(0o666)
    shown = by_uid() | by_thread_group() | by_cgroup()
    write(FT / "enabled", "0")
    return shown | {"off again": by(FRONT)}


def dirty(name: str) -> int:
    handle = os.open(DATA / name, os.O_CREAT | os.O_WRONLY, 0o644)
    os.write(handle, os.urandom(1 << 20))
    return handle


def by_work() -> Shown:
    """All bios of write-back, syncs and reads of two apps."""
    subprocess.run(["/sbin/mkfs.ext4", "-q", "-F", DISK, "1G"], check=True)
    DATA.mkdir()
    mount("ext4", DATA, DISK, "noinit_itable")
    DATA.chmod(0o777)
    write(QUEUE / "scheduler", "fasttrack")
    write(FT / "app_uids", APPS)
    write(FT / "foreground_uids", str(FRONT))
    write(FT / "enabled", "1")
    enable("fasttrack/fasttrack_bio")

    for name in ("dirty_expire_centisecs", "dirty_writeback_centisecs"):
        write(VM / name, "10")

    def write_back(uid: int) -> None:
        as_uid(uid, lambda: dirty(f"behind{uid}"))
        time.sleep(1)

    def sync_all() -> None:
        as_uid(BEHIND, lambda: dirty("synced"))
        os.sync()

    def sync_write() -> None:
        handle = os.open(DATA / "c", os.O_CREAT | os.O_WRONLY | os.O_DSYNC, 0o644)
        os.write(handle, b"x" * 8192)

    shown: Shown = {f"write-back {uid}": bios_of(partial(write_back, uid)) for uid in (FRONT, BEHIND)}
    shown["sync"] = bios_of(sync_all)
    shown["fsync"] = bios_of(lambda: as_uid(FRONT, lambda: os.fsync(dirty("a"))))
    shown["fdatasync"] = bios_of(lambda: as_uid(BEHIND, lambda: os.fdatasync(dirty("b"))))
    shown["O_DSYNC"] = bios_of(lambda: as_uid(BEHIND, sync_write))
    write(VM / "drop_caches", "3")
    shown["read"] = bios_of(lambda: as_uid(FRONT, (DATA / "a").read_bytes))
    enable("fasttrack/fasttrack_bio", False)
    unmount(DATA)
    return shown


if __name__ == "__main__":
    run(by_membership, by_work)
