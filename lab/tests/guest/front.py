#!/usr/bin/python3 -ESsBu
# SPDX-License-Identifier: GPL-2.0-only
"""Who is in front, who is perceptible, who is an app: what the lists take and forget, and what it means for a task."""

from __future__ import annotations

import os
from pathlib import Path

from prologue import (
    BEHIND,
    CGROUP,
    DISK,
    FT,
    Shown,
    Work,
    direct_read,
    enable,
    events_of,
    mount_cgroup,
    ms_until,
    read,
    run,
    start,
    stat,
    tried,
    wait,
    write,
)


def kernel_log(word: str) -> list[str]:
    """Lines of FastTrack's in the kernel's log that have a word."""
    handle = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    found = []
    try:
        while True:
            line = os.read(handle, 8192).decode().split(";", 1)[1].splitlines()[0]
            if line.startswith("fasttrack: ") and word in line:
                found.append(line)
    except BlockingIOError:
        return found
    finally:
        os.close(handle)


def lists(steps: list[tuple[str, str]]) -> Shown:
    """Of each write of a value to a file: what was said, and what the file holds then."""
    shown = [[tried(FT / file, value), read(FT / file)] for file, value in steps]
    return {"steps": shown, "log": kernel_log("left out")}


# --- what is dead, and what is too much


def sizes(work: Work) -> list[str]:
    """The sizes of the foreground's lists, after each change of them."""
    fields = ("uids", "groups", "cgroups")
    return [" ".join(event[name] for name in fields) for event in events_of("fasttrack_foreground", work)]


def dead() -> Shown:
    """Cgroups and thread groups that die in the lists."""
    enable("fasttrack/fasttrack_foreground")
    mount_cgroup("stays")
    (CGROUP / "goes").mkdir()
    go = os.pipe()
    child = os.pipe()

    def leader() -> None:
        os.read(go[0], 1)
        pid = os.fork()
        if pid == 0:
            os.read(go[0], 1)
            os._exit(0)
        os.write(child[1], str(pid).encode())

    pid = start(BEHIND, leader)
    write(FT / "foreground_cgroups", "/stays /goes /never")
    write(FT / "foreground_tgids", str(pid))
    shown: Shown = {"log": kernel_log("left out"), "shown": read(FT / "foreground_cgroups")}
    (CGROUP / "goes").rmdir()
    shown["cgroup gone"] = sizes(lambda: read(FT / "foreground_uids"))
    shown["shown then"] = read(FT / "foreground_cgroups")
    os.write(go[1], b"x")
    wait(pid)
    grandchild = int(os.read(child[0], 20))
    shown["leader gone"] = [read(FT / "foreground_tgids"), *sizes(lambda: write(FT / "foreground_uids", "1"))]
    os.write(go[1], b"x")
    # Init reaps it.
    ms_until(lambda: os.waitpid(grandchild, os.WNOHANG)[0])
    shown["all gone"] = sizes(lambda: read(FT / "foreground_tgids"))
    return shown


def many(count: int) -> Shown:
    """As many cgroups as a list takes, and one more: their paths do not fit into a page."""
    mount_cgroup("other")
    enable("fasttrack/fasttrack_foreground")
    names = [f"/{number:04}-{'x' * 40}" for number in range(count + 1)]
    for name in names:
        (CGROUP / name[1:]).mkdir()

    def add(some: list[str]) -> str:
        return tried(FT / "foreground_cgroups", " ".join("+" + name for name in some))

    said = [add(names[at : min(at + 64, count)]) for at in range(0, count, 64)]
    last = names[count - 1]
    shown: Shown = {
        "said": sorted(set(said)),
        "too many": add(names[count:]),
        "shown": len(read(FT / "foreground_cgroups").split()),
        "whole": set(read(FT / "foreground_cgroups").split()) < set(names),
    }
    Path(DISK).chmod(0o666)

    def last_reads() -> bool:
        before = stat("bios_foreground")
        child = os.fork()
        if child == 0:
            write(CGROUP / last[1:] / "cgroup.procs", str(os.getpid()))
            direct_read()
            os._exit(0)
        wait(child)
        return stat("bios_foreground") > before

    write(FT / "enabled", "1")
    shown["last in front"] = last_reads()
    shown["last removed"] = sizes(lambda: write(FT / "foreground_cgroups", "-" + last))
    shown["last then"] = last_reads()
    shown["another"] = sizes(lambda: add(names[count:]))
    return shown


if __name__ == "__main__":
    run(lists, dead, many)
