#!/usr/bin/python3 -ESsBu
# SPDX-License-Identifier: GPL-2.0-only
"""Harm that FastTrack could do and stock does not: each work is the same with FastTrack off and on."""

from __future__ import annotations

import fcntl
import mmap
import os
import random
import signal
import subprocess
import threading
import time
from functools import partial

from front import kernel_log
from pauses import counted
from prologue import (
    BEHIND,
    BLOCK,
    DATA,
    FIFREEZE,
    FITHAW,
    FRONT,
    FT,
    IOPRIO_IDLE,
    IOPRIO_NONE,
    MIB,
    PATTERN,
    QUEUE,
    SEEN,
    SERVICE,
    VM,
    Shown,
    as_uid,
    drop_caches,
    end,
    make,
    mount,
    ms_until,
    read,
    reads_for_ever,
    reads_whole,
    run,
    set_ioprio,
    start,
    stat,
    timed,
    wait,
    write,
    writes_for_ever,
)

BLOCK_OF_DATA = PATTERN[:BLOCK]


# --- a foreground that does little, or nothing


def cached() -> Shown:
    """One page that is in memory each 10 ms: no I/O. What an app behind writes in 20 s, in MiB."""
    make("page", 1)

    def draws() -> None:
        handle = os.open(DATA / "page", os.O_RDONLY)
        while True:
            os.pread(handle, BLOCK, 0)
            time.sleep(0.01)

    front = start(FRONT, draws)
    behind = start(BEHIND, lambda: writes_for_ever("target"))
    time.sleep(0.5)
    shown = {"mib": counted(20)}
    end(front, behind)
    return shown


def seldom(every_ms: int) -> Shown:
    """64 KiB that are not in memory each EVERY_MS: the front's calls in us, and MiB an app behind writes."""
    make("cold", 64)
    drop_caches()

    def looks() -> None:
        handle = os.open(DATA / "cold", os.O_RDONLY)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_RANDOM)
        draw = random.Random(1)
        while True:
            at = draw.randrange(1024) * 16 * BLOCK
            SEEN[1] += int(timed(partial(os.pread, handle, 16 * BLOCK, at)) * 1000)
            SEEN[2] += 1
            os.posix_fadvise(handle, at, 16 * BLOCK, os.POSIX_FADV_DONTNEED)
            time.sleep(every_ms / 1000)

    def stores() -> None:
        handle = os.open(DATA / "target", os.O_CREAT | os.O_WRONLY | os.O_DIRECT, 0o644)
        block = mmap.mmap(-1, MIB // 2)
        at = 0
        while True:
            os.pwritev(handle, [block], at % 128 * MIB // 2)
            at += 1
            SEEN[0] += 1

    front = start(FRONT, looks)
    behind = start(BEHIND, stores)
    time.sleep(0.5)
    SEEN[1] = SEEN[2] = 0
    halves = counted(5)
    shown = {"mib": halves / 2, "mean_us": SEEN[1] / max(SEEN[2], 1)}
    end(front, behind)
    return shown


# --- somebody who holds what others want


def position() -> Shown:
    """A service writes a byte to an open file to which an app behind writes 32 MiB in one call."""
    make("cold", 64)
    handle = os.open(DATA / "shared", os.O_CREAT | os.O_WRONLY, 0o666)
    front = start(FRONT, lambda: reads_for_ever("cold"))
    time.sleep(0.1)

    def fills() -> None:
        SEEN[0] = 1
        os.write(handle, PATTERN * 32)

    behind = start(BEHIND, fills)
    ms_until(lambda: SEEN[0])
    time.sleep(0.02)
    shown = {"ms": timed(lambda: os.write(handle, b"x"))}
    end(front, behind)
    return shown


def pipe() -> Shown:
    """A service writes a byte each 5 ms to a pipe that an app behind splices a file into: the longest, and the mean."""
    make("cold", 64)
    make("film", 64)
    drop_caches()
    source, sink = os.pipe()
    front = start(FRONT, lambda: reads_for_ever("cold"))
    time.sleep(0.1)

    def splices() -> None:
        handle = os.open(DATA / "film", os.O_RDONLY)
        for at in range(1000):
            os.splice(handle, sink, 16 * BLOCK - BLOCK, offset_src=at * 16 * BLOCK)
            os.read(source, MIB)

    def says() -> None:
        for _ in range(100):
            took = int(timed(lambda: os.write(sink, b"x")) * 1000)
            SEEN[1] = max(SEEN[1], took)
            SEEN[2] += took
            time.sleep(0.005)

    behind = start(BEHIND, splices)
    wait(start(SERVICE, says))
    end(front, behind)
    return {"longest_ms": SEEN[1] / 1000, "mean_ms": SEEN[2] / 1e5}


def keyboard() -> Shown:
    """A keyboard on the screen, perceptible, reads a page each 50 ms, beside a deep queue in front: the longest."""
    make("cold", 64)
    make("keys", 16)
    drop_caches()
    write(FT / "perceptible_uids", str(SERVICE))
    front = start(FRONT, lambda: floods_deep("cold", 8))
    behind = start(BEHIND, lambda: writes_for_ever("target"))
    time.sleep(0.5)

    def types() -> None:
        handle = os.open(DATA / "keys", os.O_RDONLY)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_RANDOM)
        for at in range(60):
            SEEN[1] = max(SEEN[1], int(timed(partial(os.pread, handle, BLOCK, at * MIB // 4)) * 1000))
            time.sleep(0.05)

    wait(start(SERVICE, types))
    end(front, behind)
    return {"ms": SEEN[1] / 1000}


def music() -> Shown:
    """A player with a real-time policy behind reads 64 KiB each 50 ms, beside a deep queue in front: the longest."""
    make("cold", 64)
    make("film", 64)
    drop_caches()
    front = start(FRONT, lambda: floods_deep("cold", 8))
    behind = start(BEHIND, lambda: writes_for_ever("target"))
    time.sleep(0.5)

    def plays() -> None:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        os.setuid(BEHIND)
        handle = os.open(DATA / "film", os.O_RDONLY)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_RANDOM)
        for at in range(60):
            SEEN[1] = max(SEEN[1], int(timed(partial(os.pread, handle, MIB // 16, at * MIB)) * 1000))
            time.sleep(0.05)

    wait(start(0, plays))
    end(front, behind)
    return {"ms": SEEN[1] / 1000}


# --- services


def floods(handle: int) -> None:
    """One of many threads that read what is not in memory."""
    pages = os.fstat(handle).st_size // BLOCK or 128 * MIB // BLOCK
    block = mmap.mmap(-1, BLOCK)
    draw = random.Random(threading.get_ident())
    while True:
        os.preadv(handle, [block], draw.randrange(pages) * BLOCK)


def floods_deep(name: str, deep: int) -> None:
    """So many threads that read a file directly, for ever."""
    handle = os.open(DATA / name, os.O_RDONLY | os.O_DIRECT)
    for _ in range(deep - 1):
        threading.Thread(target=floods, args=(handle,), daemon=True).start()
    floods(handle)


def deep() -> Shown:
    """A service reads a page, and syncs one, beside 32 reads in front."""
    make("cold", 64)
    drop_caches()
    front = start(FRONT, lambda: floods_deep("cold", 32))
    time.sleep(0.2)

    def serves() -> None:
        handle = os.open(DATA / "service", os.O_CREAT | os.O_RDWR, 0o644)
        os.pwrite(handle, PATTERN, 0)
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_RANDOM)
        reads = [timed(partial(os.pread, handle, BLOCK, at * 4 * BLOCK)) for at in range(20)]
        syncs = []
        for _ in range(10):
            os.pwrite(handle, PATTERN[:BLOCK], 0)
            syncs.append(timed(lambda: os.fsync(handle)))
        SEEN[1], SEEN[2] = int(max(reads) * 1000), int(max(syncs) * 1000)

    wait(start(SERVICE, serves))
    end(front)
    return {"read_ms": SEEN[1] / 1000, "sync_ms": SEEN[2] / 1000}


def priorities() -> Shown:
    """Two services read directly, 32 deep in all, one of them with I/O priority idle: reads of each in 2 s."""
    make("cold", 64)
    drop_caches()

    def serves(ioprio_class: int, counter: int) -> None:
        set_ioprio(ioprio_class)
        handle = os.open(DATA / "cold", os.O_RDONLY | os.O_DIRECT)

        def counts() -> None:
            block = mmap.mmap(-1, BLOCK)
            draw = random.Random(threading.get_ident())
            while True:
                os.preadv(handle, [block], draw.randrange(64 * MIB // BLOCK) * BLOCK)
                SEEN[counter] += 1

        for _ in range(15):
            threading.Thread(target=counts, daemon=True).start()
        counts()

    services = [start(SERVICE, partial(serves, IOPRIO_NONE, 1)), start(SERVICE, partial(serves, IOPRIO_IDLE, 2))]
    time.sleep(0.5)
    before = SEEN[1], SEEN[2]
    time.sleep(2)
    shown = {"normal": SEEN[1] - before[0], "idle": SEEN[2] - before[1]}
    end(*services)
    return shown


def machine() -> Shown:
    """The virtual machine of a service writes 512 KiB, 16 deep and direct; the front's cold reads, in us."""
    make("cold", 64)
    drop_caches()

    def stores(at: int, handle: int) -> None:
        block = mmap.mmap(-1, MIB // 2)
        while True:
            os.pwritev(handle, [block], at * 4 * MIB)

    def many() -> None:
        handle = os.open(DATA / "disk", os.O_CREAT | os.O_WRONLY | os.O_DIRECT, 0o644)
        for at in range(15):
            threading.Thread(target=stores, args=(at, handle), daemon=True).start()
        stores(15, handle)

    def looks() -> None:
        handle = os.open(DATA / "cold", os.O_RDONLY)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_RANDOM)
        for at in range(100):
            SEEN[1] += int(timed(partial(os.pread, handle, 16 * BLOCK, at * 64 * BLOCK)) * 1000)

    service = start(SERVICE, many)
    time.sleep(0.5)
    wait(start(FRONT, looks))
    end(service)
    return {"mean_us": SEEN[1] / 100}


# --- ways out


def timer() -> Shown:
    """What an app behind reads of a file in 5 s, in MiB, with a timer of 1 ms; and without."""
    make("cold", 64)
    make("film", 64)
    drop_caches()
    front = start(FRONT, lambda: reads_for_ever("cold"))

    def reads(interval: float) -> None:
        signal.signal(signal.SIGALRM, lambda *_: None)
        if interval:
            signal.setitimer(signal.ITIMER_REAL, interval, interval)
        handle = os.open(DATA / "film", os.O_RDONLY)
        while True:
            for at in range(64):
                os.pread(handle, MIB, at * MIB)
                SEEN[0] += 1
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)

    shown: Shown = {}
    for name, interval in ("without", 0.0), ("with", 0.001):
        behind = start(BEHIND, partial(reads, interval))
        time.sleep(0.2)
        shown[name] = counted(5)
        end(behind)
    end(front)
    return shown


def borrowed() -> Shown:
    """What an app behind writes directly in 5 s, in pages, and what is promoted meanwhile: from a file of nobody's, and
    from the one that somebody in front syncs all the time."""
    for name in "own", "other":
        make(name, 1)
        (DATA / name).chmod(0o666)
    make("target", 64)
    (DATA / "target").chmod(0o666)

    def syncs() -> None:
        handle = os.open(DATA / "own", os.O_WRONLY)
        while True:
            os.pwrite(handle, PATTERN, 0)
            os.fsync(handle)

    def writes(name: str) -> None:
        source = os.open(DATA / name, os.O_RDONLY)
        area = memoryview(mmap.mmap(source, MIB, prot=mmap.PROT_READ))
        handle = os.open(DATA / "target", os.O_WRONLY | os.O_DIRECT)
        for at in range(1 << 20):
            part = at * BLOCK % MIB
            os.pwritev(handle, [area[part : part + BLOCK]], at % 16384 * BLOCK)
            SEEN[0] += 1

    front = start(FRONT, syncs)
    shown: Shown = {}
    for name in "other", "own":
        behind = [start(BEHIND, partial(writes, name)) for _ in range(4)]
        time.sleep(0.2)
        promoted = stat("promoted")
        shown[name] = counted(5)
        shown[f"{name} promoted"] = stat("promoted") - promoted
        end(*behind)
    end(front)
    return shown


# --- what nobody has named, and the safety net


def lock_behind(stuck_ms: int, deep: int) -> Shown:
    """
    A service writes a byte to a file that an app behind makes longer, directly: it waits for the inode's lock. In front
    are so many readers.
    """
    make("cold", 64)
    write(FT / "stuck_ms", str(stuck_ms))
    handle = os.open(DATA / "shared", os.O_CREAT | os.O_RDWR, 0o666)
    front = start(FRONT, lambda: floods_deep("cold", deep))
    time.sleep(0.1)

    def grows() -> None:
        direct = os.open(DATA / "shared", os.O_WRONLY | os.O_DIRECT)
        SEEN[0] = 1
        os.pwritev(direct, [mmap.mmap(-1, 16 * MIB)], 0)

    behind = start(BEHIND, grows)
    ms_until(lambda: SEEN[0])
    time.sleep(0.01)
    shown = {"ms": timed(lambda: os.pwrite(handle, b"x", 0)), "stuck": stat("stuck")}
    end(front, behind)
    return shown


def ordinary() -> Shown:
    """A service syncs a MiB of an own file, 30 times, beside a foreground and an app behind that is held back."""
    make("cold", 64)
    make("film", 64)
    drop_caches()
    write(FT / "stuck_ms", "1")
    front = start(FRONT, lambda: reads_for_ever("cold"))
    behind = start(BEHIND, reads_pages)
    time.sleep(0.2)

    def serves() -> None:
        handle = os.open(DATA / "service", os.O_CREAT | os.O_RDWR, 0o644)
        for at in range(30):
            os.pwrite(handle, PATTERN, at * MIB)
            SEEN[1] = max(SEEN[1], int(timed(lambda: os.fsync(handle)) * 1000))
            time.sleep(0.01)

    wait(start(SERVICE, serves))
    shown = {"ms": SEEN[1] / 1000, "stuck": stat("stuck")}
    end(front, behind)
    return shown


def throttled() -> Shown:
    """A service that has written directly writes 200 MiB, beside reads in front and an app behind that writes."""
    make("cold", 64)
    drop_caches()
    front = start(FRONT, lambda: reads_for_ever("cold"))
    behind = start(BEHIND, lambda: writes_for_ever("target"))
    time.sleep(1)
    before = stat("stuck")

    def stores() -> None:
        direct = os.open(DATA / "direct", os.O_CREAT | os.O_WRONLY | os.O_DIRECT, 0o644)
        os.pwritev(direct, [mmap.mmap(-1, BLOCK)], 0)
        handle = os.open(DATA / "service", os.O_CREAT | os.O_WRONLY, 0o644)
        for at in range(200):
            os.pwrite(handle, PATTERN, at * MIB)

    shown = {"ms": timed(lambda: wait(start(SERVICE, stores))), "stuck": stat("stuck") - before}
    end(front, behind)
    return shown


def log_space() -> Shown:
    """A service makes folders; two apps behind make and remove many small files, in a small journal that is full."""
    os.chdir("/")
    subprocess.run(["/bin/umount", str(DATA)], check=True)
    for change in (["-O", "^has_journal"], ["-J", "size=4"]):
        subprocess.run(["/sbin/tune2fs", *change, "/dev/sda"], check=True, stdout=subprocess.DEVNULL)
    mount("ext4", DATA, "/dev/sda")
    make("cold", 64)
    drop_caches()

    def makes(name: str) -> None:
        handle = os.open(DATA / name, os.O_RDONLY)
        for turn in range(10_000):
            folder = DATA / f"{name}/{turn}"
            folder.mkdir()
            for number in range(100):
                (folder / str(number)).write_bytes(BLOCK_OF_DATA)
            os.fsync(handle)

    for name in ("a", "b"):
        (DATA / name).mkdir()
        (DATA / name).chmod(0o777)
    behind = [start(BEHIND, partial(makes, name)) for name in ("a", "b")]
    time.sleep(2)
    front = start(FRONT, lambda: floods_deep("cold", 8))
    time.sleep(0.2)
    before = stat("stuck")
    (DATA / "service").mkdir()
    (DATA / "service").chmod(0o777)

    def serves() -> None:
        for at in range(100):
            (DATA / "service" / str(at)).mkdir()
            time.sleep(0.02)

    shown = {"ms": timed(lambda: wait(start(SERVICE, serves))), "stuck": stat("stuck") - before}
    end(front, *behind)
    return shown


def looks_up() -> Shown:
    """An app behind looks names up that no cache has, and the one in front the same a moment later: its calls, ms."""
    names = 200
    make("cold", 64)
    folder = DATA / "names"
    folder.mkdir()
    for name in range(names):
        (folder / str(name)).mkdir()
        (folder / str(name) / "file").write_bytes(b"x")
    # A journal's blocks are in memory until they are in their places.
    whole = os.open(DATA, os.O_RDONLY)
    fcntl.ioctl(whole, FIFREEZE, 0)
    fcntl.ioctl(whole, FITHAW, 0)
    drop_caches()
    front = start(FRONT, lambda: reads_for_ever("cold"))
    time.sleep(0.1)

    def until(word: int, value: int) -> None:
        while SEEN[word] != value:
            time.sleep(0.0001)

    def looks() -> None:
        for name in range(names):
            until(1, name)
            SEEN[0] = name + 1
            (folder / str(name) / "file").stat()

    def follows() -> None:
        for name in range(names):
            SEEN[1] = name
            until(0, name + 1)
            SEEN[2 + name] = int(timed((folder / str(name) / "file").stat) * 1000)

    behind = start(BEHIND, looks)
    wait(start(FRONT, follows))
    times = [us / 1000 for us in SEEN[2 : 2 + names]]
    end(front, behind)
    return {"mean_ms": sum(times) / names, "longest_ms": max(times)}


def ejects(why: str) -> Shown:
    """FastTrack switches itself off: what it says, whether it is on, and when it was switched on again."""
    make("cold", 64)
    make("film", 64)
    drop_caches()
    front = start(FRONT, lambda: reads_for_ever("cold"))
    if why == "pause":
        write(FT / "background_pause_ms", "5000")
    if why == "request":
        # Nothing of background's goes for a minute.
        for knob, value in ("background_depth", "0"), ("background_expire_ms", "60000"):
            write(QUEUE / "iosched" / knob, value)
    behind = start(BEHIND, lambda: floods_deep("film", 32) if why == "request" else writes_for_ever("target"))
    time.sleep(0.5)
    if why == "SysRq":
        write("/proc/sysrq-trigger", "F")
    else:
        # A pause under way is longer than anybody may be kept waiting now.
        write(FT / "background_pause_ms", "1000")
        write(FT / "eject_ms", "2000")
    ms_until(lambda: read(FT / "enabled") == "0", 20)
    shown: Shown = {"said": read(FT / "ejected"), "behind": behind, "log": kernel_log("switched off")}
    write(FT / "eject_ms", "30000")
    write(FT / "enabled", "1")
    shown["again"] = [read(FT / "enabled"), read(FT / "ejected")]
    end(front, behind)
    return shown


def reads_pages() -> None:
    """An app behind that reads directly, a page at a time."""
    handle = os.open(DATA / "film", os.O_RDONLY | os.O_DIRECT)
    block = mmap.mmap(-1, BLOCK)
    draw = random.Random(1)
    while True:
        os.preadv(handle, [block], draw.randrange(64 * MIB // BLOCK) * BLOCK)
        SEEN[0] += 1


def vain(stuck_ms: int, tasks: int) -> Shown:
    """
    So many tasks of a service wait for a file system that root has frozen: nobody who is let go for them helps. What an
    app behind reads in 0.7 s: before that, when it is let go, and later. After 0.1 s stuck_ms is set.
    """
    make("cold", 64)
    make("film", 64)
    drop_caches()
    front = start(FRONT, lambda: reads_for_ever("cold"))
    behind = start(BEHIND, reads_pages)
    time.sleep(0.5)
    shown: Shown = {"held": counted(0.7)}
    root = os.open(DATA, os.O_RDONLY)
    fcntl.ioctl(root, FIFREEZE, 0)

    def makes() -> None:
        threads = [threading.Thread(target=(DATA / f"service{number}").mkdir) for number in range(tasks)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    service = start(SERVICE, makes)
    time.sleep(0.1)
    write(FT / "stuck_ms", str(stuck_ms))
    time.sleep(0.1)
    shown["lifted"] = counted(0.7)
    # As many as are looked at together take a second.
    time.sleep(0.5 + tasks / 40)
    shown["later"] = counted(0.7)
    shown |= {name: stat(name) for name in ("stuck", "stuck_vain")}
    fcntl.ioctl(root, FITHAW, 0)
    end(front, behind)
    wait(service)
    return shown


# --- memory


def names() -> Shown:
    """An app in front looks at many files; one behind reads four times what fits. What a second look takes, in ms."""
    folders = [DATA / f"folder{number}" for number in range(30)]
    for folder in folders:
        folder.mkdir()
        for number in range(100):
            (folder / str(number)).write_bytes(b"x")
    files = [f"film{number}" for number in range(8)]
    for name in files:
        make(name, 200)
    drop_caches()
    write(VM / "drop_caches", "2")

    def looks() -> None:
        for folder in folders:
            for entry in os.scandir(folder):
                entry.stat()

    def uses() -> None:
        SEEN[1] = int(timed(looks) * 1000)
        SEEN[0] = 1
        while SEEN[0] == 1:
            time.sleep(0.05)
        SEEN[2] = int(timed(looks) * 1000)

    front = start(FRONT, uses)
    ms_until(lambda: SEEN[0], limit_s=60)
    for name in files:
        as_uid(BEHIND, partial(reads_whole, name))
    SEEN[0] = 2
    wait(front)
    return {"first_ms": SEEN[1] / 1000, "again_ms": SEEN[2] / 1000}


def idle_front() -> Shown:
    """An app in front has used 60 % of memory and does nothing; one behind reads 70 % of memory round and round."""
    make("mine", 280)
    make("film", 330)
    drop_caches()

    def uses() -> None:
        reads_whole("mine")
        time.sleep(1000)

    def loops() -> None:
        handle = os.open(DATA / "film", os.O_RDONLY)
        while True:
            for at in range(330):
                os.pread(handle, MIB, at * MIB)
                SEEN[0] += 1
                # A guest's processor takes no time: a read of memory has to.
                time.sleep(0.0002)

    front = start(FRONT, uses)
    time.sleep(2)
    behind = start(BEHIND, loops)
    time.sleep(1)
    shown = {"mib": counted(15)}
    end(front, behind)
    return shown


if __name__ == "__main__":
    run(
        cached,
        seldom,
        position,
        pipe,
        keyboard,
        music,
        deep,
        priorities,
        machine,
        timer,
        borrowed,
        lock_behind,
        looks_up,
        ordinary,
        throttled,
        log_space,
        ejects,
        vain,
        names,
        idle_front,
    )
