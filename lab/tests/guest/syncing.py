#!/usr/bin/python3 -ESsBu
# SPDX-License-Identifier: GPL-2.0-only
"""Who makes data durable, or stops all that do, beside others' dirty pages: each work with FastTrack off and on."""

from __future__ import annotations

import fcntl
import mmap
import os
import shutil
import struct
import threading
import time
from collections.abc import Callable
from functools import partial

from pauses import nobody_writes_back
from prologue import (
    BEHIND,
    BLOCK,
    DATA,
    FIFREEZE,
    FITHAW,
    FRONT,
    FT,
    LIBC,
    MIB,
    MS_REMOUNT,
    PATTERN,
    SEEN,
    SERVICE,
    VM,
    Shown,
    as_uid,
    drop_caches,
    end,
    make,
    meminfo_kb,
    mount,
    ms_until,
    read,
    reads_for_ever,
    run,
    start,
    timed,
    wait,
    write,
)

GET_FLAGS, SET_FLAGS, EXTENTS, DIRSYNC = 0x80086601, 0x40086602, 0x80000, 0x10000
"""Of linux/fs.h; flags of ext4's."""

F2FS_START_ATOMIC, F2FS_COMMIT_ATOMIC = 0xF501, 0xF502
"""Of linux/f2fs.h."""

BLOCK_OF_DATA = PATTERN[:BLOCK]


def dirty(name: str, mib: int) -> int:
    """A handle of a file with so many dirty pages, and the pause for them paid."""
    handle = os.open(DATA / name, os.O_CREAT | os.O_RDWR, 0o666)
    for at in range(mib):
        os.pwrite(handle, PATTERN, at * MIB)
    return handle


def dirty_behind(name: str, mib: int) -> None:
    """An app behind has made a file dirty, which nobody writes back, before anybody came to the front."""
    uids = read(FT / "foreground_uids")
    write(FT / "foreground_uids", "\n")
    nobody_writes_back()
    write(VM / "dirty_background_ratio", "80")
    write(VM / "dirty_ratio", "90")
    as_uid(BEHIND, lambda: dirty(name, mib))
    write(FT / "foreground_uids", uids or "\n")


def scrolls_beside(mib: int) -> int:
    """Somebody scrolls in front of MIB that an app behind has made dirty."""
    make("cold", 64)
    dirty_behind("target", mib)
    front = start(FRONT, lambda: reads_for_ever("cold"))
    time.sleep(0.1)
    return front


def syncs() -> None:
    os.fsync(os.open(DATA / "target", os.O_WRONLY))


def whole(who: str) -> Shown:
    """sync(2) by root, or syncfs(2) by the app in front, beside 60 MiB that an app behind has made dirty."""
    front = scrolls_beside(60)

    def syncs_all() -> None:
        handle = os.open(DATA, os.O_RDONLY)
        SEEN[1] = int(timed(lambda: LIBC.syncfs(handle) if who == "front" else os.sync()) * 1000)

    wait(start(FRONT if who == "front" else 0, syncs_all))
    end(front)
    return {"ms": SEEN[1] / 1000}


def syncs_whole() -> None:
    LIBC.syncfs(os.open(DATA, os.O_RDONLY))


def stops(how: str, whole: bool) -> Shown:
    """
    Root freezes the file system and thaws it at once, or mounts it again with another option, beside an app behind that
    syncs 60 MiB of a file or, with 300 MiB of it, the whole file system: how long that takes, and the longest write of
    one in front meanwhile.
    """
    front = scrolls_beside(300 if whole else 60)
    behind = start(BEHIND, syncs_whole if whole else syncs)
    time.sleep(0.05)

    def writes() -> None:
        handle = os.open(DATA / "small", os.O_CREAT | os.O_WRONLY, 0o644)
        while True:
            SEEN[1] = max(SEEN[1], int(timed(partial(os.pwrite, handle, BLOCK_OF_DATA, 0)) * 1000))
            SEEN[2] += 1
            time.sleep(0.002)

    writer = start(FRONT, writes)
    ms_until(lambda: SEEN[2] > 5)
    root = os.open(DATA, os.O_RDONLY)

    def freezes() -> None:
        fcntl.ioctl(root, FIFREEZE, 0)
        fcntl.ioctl(root, FITHAW, 0)

    def mounts_again() -> None:
        mount("ext4", DATA, options="commit=7", flags=MS_REMOUNT)

    shown = {"ms": timed(freezes if how == "freeze" else mounts_again)}
    seen = SEEN[2]
    ms_until(lambda: SEEN[2] > seen + 5)
    end(front, behind, writer)
    return shown | {"write_ms": SEEN[1] / 1000}


def change_flags(handle: int, add: int = 0, remove: int = 0) -> None:
    """What chattr(1) does."""
    flags = struct.unpack("i", fcntl.ioctl(handle, GET_FLAGS, bytes(4)))[0]
    fcntl.ioctl(handle, SET_FLAGS, struct.pack("i", flags & ~remove | add))


def migrates() -> Shown:
    """Behind, an fsync of 240 MiB and, without a right, `chattr -e` of a file; the longest fsync of a page in front."""

    def syncs() -> None:
        handle = os.open(DATA / "large", os.O_CREAT | os.O_WRONLY, 0o644)
        for at in range(240):
            os.pwrite(handle, PATTERN, at * MIB)
        SEEN[0] = 1
        os.fsync(handle)

    def changes() -> None:
        (DATA / "other").write_bytes(PATTERN[: 8 * BLOCK])
        handle = os.open(DATA / "other", os.O_RDONLY)
        ms_until(lambda: SEEN[0], limit_s=60)
        change_flags(handle, remove=EXTENTS)
        SEEN[2] = 1

    def stores() -> None:
        handle = os.open(DATA / "small", os.O_CREAT | os.O_WRONLY, 0o644)
        for _ in range(50):
            os.pwrite(handle, BLOCK_OF_DATA, 0)
            SEEN[1] = max(SEEN[1], int(timed(lambda: os.fsync(handle)) * 1000))
            time.sleep(0.1)

    behind = start(BEHIND, syncs), start(BEHIND + 1, changes)
    ms_until(lambda: SEEN[0], limit_s=60)
    wait(start(FRONT, stores))
    end(*behind)
    return {"ms": SEEN[1] / 1000, "changed": SEEN[2]}


def unpacks(app: int) -> None:
    """Archives of 1500 small files are unpacked, one after the other; old trees go. SEEN[APP] counts files."""
    for number in range(100000):
        tree = DATA / f"tree{app}-{number}"
        tree.mkdir()
        for name in range(1500):
            (tree / str(name)).write_bytes(PATTERN[:3000])
            SEEN[app] += 1
        if number >= 4:
            shutil.rmtree(DATA / f"tree{app}-{number - 4}")
        time.sleep(0.3)


def syncs_now_and_then() -> Shown:
    """A small file and sync(2) each 100 ms, alone and beside two apps that unpack: ms a call, files a second behind."""
    first, calls = 8, 20

    def syncs_all() -> None:
        def one() -> None:
            (DATA / "small").write_bytes(PATTERN[:5000])
            os.sync()

        for number in range(first, first + calls):
            SEEN[number] = int(timed(one) * 1000)
            time.sleep(0.1)

    def took() -> list[float]:
        return [us / 1000 for us in SEEN[first : first + calls]]

    DATA.chmod(0o1777)
    wait(start(FRONT, syncs_all))
    shown: Shown = {"alone": took()}
    behind = [start(BEHIND + app, partial(unpacks, app)) for app in range(2)]
    time.sleep(2)
    begin, before = time.monotonic(), SEEN[0] + SEEN[1]
    wait(start(FRONT, syncs_all))
    shown["files_s"] = (SEEN[0] + SEEN[1] - before) / (time.monotonic() - begin)
    end(*behind)
    return shown | {"ms": took()}


def service_unpacks() -> Shown:
    """An editor in front saves a file 30 times, each by a new one, beside two programs of a service that unpack: ms."""

    def saves() -> None:
        def one() -> None:
            handle = os.open(DATA / "new", os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644)
            os.write(handle, PATTERN[: 10 * BLOCK])
            os.fsync(handle)
            os.close(handle)
            (DATA / "new").rename(DATA / "text")

        for _ in range(30):
            SEEN[2] += int(timed(one) * 1000)
            time.sleep(0.05)

    DATA.chmod(0o1777)
    services = [start(SERVICE, partial(unpacks, app)) for app in range(2)]
    time.sleep(2)
    wait(start(FRONT, saves))
    end(*services)
    return {"ms": SEEN[2] / 1000}


def service_syncs(whole: bool) -> Shown:
    """A service makes a file and syncs its folder, or all (WHOLE), now and then, beside two apps that unpack.

    Who is in front types. Its times and the service's in all, ms, and files that were unpacked.
    """

    def types() -> None:
        handle = os.open(DATA / "text", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
        for _ in range(60):
            os.write(handle, PATTERN[:1024])
            SEEN[2] += int(timed(lambda: os.fdatasync(handle)) * 1000)
            time.sleep(0.1)

    def stores() -> None:
        folder = DATA / "service"
        folder.mkdir()
        handle = os.open(folder, os.O_RDONLY)

        def one(number: int) -> None:
            (folder / str(number)).write_bytes(PATTERN[:5000])
            if whole:
                os.sync()
            else:
                os.fsync(handle)

        for number in range(8):
            SEEN[3] += int(timed(partial(one, number)) * 1000)
            time.sleep(0.7)

    DATA.chmod(0o1777)
    behind = [start(BEHIND + app, partial(unpacks, app)) for app in range(2)]
    time.sleep(2)
    before = SEEN[0] + SEEN[1]
    service = start(SERVICE, stores)
    wait(start(FRONT, types))
    files = SEEN[0] + SEEN[1] - before
    wait(service)
    end(*behind)
    return {"front_ms": SEEN[2] / 1000, "service_ms": SEEN[3] / 1000, "files": files}


def flusher() -> Shown:
    """A service drops a page of a file of its own, and the flusher writes it, beside an fsync of 48 MiB behind."""
    front = scrolls_beside(48)
    behind = start(BEHIND, syncs)
    time.sleep(0.02)

    def drops() -> None:
        handle = dirty("mine", 1)
        SEEN[1] = int(timed(lambda: os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)) * 1000)

    wait(start(SERVICE, drops))
    end(front, behind)
    return {"ms": SEEN[1] / 1000}


def killed(how: str) -> Shown:
    """From SIGKILL to exit of an app that syncs 100 MiB; or of four tasks of it, each in a direct write of 8 MiB."""
    front = scrolls_beside(100 if how == "fsync" else 0)

    def stores(number: int) -> None:
        handle = os.open(DATA / f"direct{number}", os.O_CREAT | os.O_WRONLY | os.O_DIRECT, 0o644)
        os.pwrite(handle, mmap.mmap(-1, 8 * MIB), 0)

    if how == "fsync":
        behind = [start(BEHIND, syncs)]
    else:
        behind = [start(BEHIND, partial(stores, number)) for number in range(4)]
    time.sleep(0.05)
    shown = {"ms": timed(lambda: end(*behind))}
    end(front)
    return shown


def leaves() -> Shown:
    """An app behind ends itself while another thread of it syncs 100 MiB: KiB that are not written when it is gone."""
    front = scrolls_beside(100)

    def syncs_and_leaves() -> None:
        threading.Thread(target=syncs, daemon=True).start()
        time.sleep(0.05)
        os._exit(0)

    wait(start(BEHIND, syncs_and_leaves))
    left = meminfo_kb("Dirty") + meminfo_kb("Writeback")
    end(front)
    return {"left_kb": left}


def atomic() -> Shown:
    """The front's fsyncs, in ms, beside one behind that commits atomic writes of f2fs: flush, data and FUA each."""
    calls = 200
    make("cold", 64)
    drop_caches()

    def commits() -> None:
        handle = os.open(DATA / "base", os.O_CREAT | os.O_RDWR, 0o644)
        os.pwrite(handle, PATTERN, 0)
        os.fsync(handle)
        while True:
            fcntl.ioctl(handle, F2FS_START_ATOMIC)
            os.pwrite(handle, BLOCK_OF_DATA, SEEN[0] % 256 * BLOCK)
            fcntl.ioctl(handle, F2FS_COMMIT_ATOMIC)
            SEEN[0] += 1

    def saves() -> None:
        handle = os.open(DATA / "saved", os.O_CREAT | os.O_RDWR, 0o644)
        for at in range(calls):
            os.pwrite(handle, BLOCK_OF_DATA, at * BLOCK)
            SEEN[1 + at] = int(timed(lambda: os.fsync(handle)) * 1000)
            time.sleep(0.02)

    behind = start(BEHIND, commits)
    front = start(FRONT, lambda: reads_for_ever("cold"))
    time.sleep(0.2)
    SEEN[0] = 0
    wait(start(FRONT, saves))
    times = sorted(SEEN[1 : 1 + calls])
    shown = {
        "mean_ms": sum(times) / calls / 1000,
        "p95_ms": times[calls * 95 // 100 - 1] / 1000,
        "longest_ms": times[-1] / 1000,
        "commits": SEEN[0],
    }
    end(front, behind)
    return shown


def allocates(app: int, flags: int = 0, sync: Callable[[int], None] = os.fsync) -> None:
    """Space, which a sync of the file commits, though it has no dirty pages."""
    name = DATA / f"allocated{app}"
    handle = os.open(name, os.O_CREAT | os.O_WRONLY | flags, 0o644)
    os.posix_fallocate(handle, 0, 200 * MIB)
    sync(handle)
    os.close(handle)
    name.unlink()


def allocates_in_sync(app: int) -> None:
    """The same, and nobody calls fsync(2)."""
    allocates(app, flags=os.O_SYNC, sync=lambda _handle: None)


def renews(app: int, folder_flag: int = 0, sync: Callable[[int], None] = os.fsync) -> None:
    """A name in a folder, which is synced."""
    folder = DATA / f"folder{app}"
    fresh = not folder.exists()
    folder.mkdir(exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    if fresh and folder_flag:
        change_flags(handle, add=folder_flag)
    name = folder / str(SEEN[app])
    name.touch()
    sync(handle)
    os.close(handle)
    name.unlink()


def renews_in_sync(app: int) -> None:
    """The same in a folder that is always in sync."""
    renews(app, folder_flag=DIRSYNC, sync=lambda _handle: None)


def syncs_everything(app: int) -> None:
    """A name, and sync(2)."""
    renews(app, sync=lambda _handle: os.sync())


def links(app: int) -> None:
    """A second name of a file, which is synced: f2fs makes a checkpoint then."""
    name, other = DATA / f"linked{app}", DATA / f"other{app}"
    name.touch()
    other.hardlink_to(name)
    handle = os.open(name, os.O_WRONLY)
    os.fsync(handle)
    os.close(handle)
    other.unlink()


def appends_in_sync(app: int) -> None:
    """A block of a file without a page in the cache."""
    handle = os.open(DATA / f"appended{app}", os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_DIRECT | os.O_SYNC, 0o644)
    block = mmap.mmap(-1, BLOCK)
    for _ in range(100):
        os.write(handle, block)
        SEEN[app] += 1
    os.ftruncate(handle, 0)
    os.close(handle)


def commits(how: str) -> Shown:
    """
    Saves of small files in front, in ms, alone and beside two apps that make the file system commit what has no dirty
    pages. How often they do in 0.3 s in which nobody else does anything, and during the saves.
    """

    def saves(prefix: str, seconds: float) -> None:
        ends = time.monotonic() + seconds
        calls = 0
        while time.monotonic() < ends:
            handle = os.open(DATA / f"{prefix}{calls}", os.O_CREAT | os.O_WRONLY, 0o644)
            os.pwrite(handle, BLOCK_OF_DATA, 0)
            os.fsync(handle)
            os.close(handle)
            calls += 1
        SEEN[0] = int(seconds * 1e6 / calls)

    def commits_for_ever(app: int) -> None:
        one = {one.__name__: one for one in COMMITS}[how]
        while True:
            one(app)
            SEEN[app] += 1

    wait(start(FRONT, lambda: saves("alone", 0.2)))
    alone = SEEN[0]
    behind = [start(BEHIND, partial(commits_for_ever, app)) for app in (1, 2)]
    time.sleep(0.3)
    before = SEEN[1] + SEEN[2]
    time.sleep(0.3)
    idle = SEEN[1] + SEEN[2] - before
    wait(start(FRONT, lambda: saves("beside", 1.2)))
    shown = {
        "alone_ms": alone / 1000,
        "ms": SEEN[0] / 1000,
        "idle": idle,
        "behind": SEEN[1] + SEEN[2] - before - idle,
    }
    end(*behind)
    return shown


COMMITS = (
    allocates,
    allocates_in_sync,
    renews,
    renews_in_sync,
    syncs_everything,
    links,
    appends_in_sync,
)


def changes_inodes(how: str) -> Shown:
    """
    Two apps behind make files and remove them again, or change those that a checkpoint has written, beside one in front
    that does nothing: how many, in half a second, and MiB that the storage is given to write for them.
    """

    def makes(app: int) -> None:
        folder = DATA / f"made{app}"
        folder.mkdir()
        for number in range(300):
            # In two parts, as tar does: the first is inline, and written when the second comes.
            with (folder / str(number)).open("wb", buffering=0) as file:
                file.write(PATTERN[:512])
                file.write(PATTERN[:8488])
            SEEN[app] += 1

    def removes(app: int) -> None:
        makes(app)
        shutil.rmtree(DATA / f"made{app}")

    def touches(app: int) -> None:
        for file in (DATA / f"made{app}").iterdir():
            os.utime(file)
            SEEN[app] += 1
        time.sleep(0.01)

    def appends(app: int) -> None:
        for file in (DATA / f"made{app}").iterdir():
            with file.open("ab", buffering=0) as handle:
                handle.write(BLOCK_OF_DATA)
            SEEN[app] += 1
        time.sleep(0.01)

    def for_ever(app: int) -> None:
        while True:
            {"removes": removes, "touches": touches, "appends": appends}[how](app)

    def sectors() -> int:
        return int(read("/sys/block/sda/stat").split()[6])

    if how != "removes":
        for app in (1, 2):
            wait(start(BEHIND, partial(makes, app)))
        os.sync()
        # Until nobody has waited for a checkpoint lately.
        time.sleep(1.2)
    front = start(FRONT, lambda: time.sleep(1000))
    behind = [start(BEHIND, partial(for_ever, app)) for app in (1, 2)]
    time.sleep(0.1)
    files, before = SEEN[1] + SEEN[2], sectors()
    time.sleep(0.5)
    shown = {"files": SEEN[1] + SEEN[2] - files, "written_mib": (sectors() - before) / 2048}
    end(front, *behind)
    return shown


def replaces() -> Shown:
    """
    An editor in front replaces a file 20 times and syncs nothing, beside two apps that write 64 MiB and sync them, over
    and over: ms in all, alone and beside them. ext4 has the new file written back when it gets the old one's name.
    """

    def saves() -> None:
        def one() -> None:
            (DATA / "new").write_bytes(PATTERN[: 10 * BLOCK])
            (DATA / "new").rename(DATA / "text")

        for _ in range(20):
            SEEN[0] += int(timed(one) * 1000)
            time.sleep(0.02)

    def syncs_for_ever(app: int) -> None:
        while True:
            os.fsync(dirty(f"large{app}", 64))

    DATA.chmod(0o1777)
    (DATA / "text").touch()
    os.chown(DATA / "text", FRONT, FRONT)
    wait(start(FRONT, saves))
    alone, SEEN[0] = SEEN[0], 0
    behind = [start(BEHIND + app, partial(syncs_for_ever, app)) for app in range(2)]
    time.sleep(0.5)
    wait(start(FRONT, saves))
    shown = {"alone_ms": alone / 1000, "ms": SEEN[0] / 1000}
    end(*behind)
    return shown


def nearly_full() -> Shown:
    """
    Somebody in front writes eight blocks to a file, beside 280 MiB that an app behind has made dirty, on a disk with as
    much left: the longest call in ms. ext4 has a task that writes there send all that is dirty.
    """
    DATA.chmod(0o777)
    dirty_behind("target", 280)
    free = os.statvfs(DATA)
    filler = os.open(DATA / "filler", os.O_CREAT | os.O_WRONLY)
    os.posix_fallocate(filler, 0, free.f_bavail * free.f_bsize - 10 * MIB)

    def writes() -> None:
        handle = os.open(DATA / "own", os.O_CREAT | os.O_WRONLY, 0o644)
        for at in range(8):
            SEEN[0] = max(SEEN[0], int(timed(partial(os.pwrite, handle, BLOCK_OF_DATA, at * BLOCK)) * 1000))

    wait(start(FRONT, writes))
    return {"ms": SEEN[0] / 1000}


if __name__ == "__main__":
    run(
        whole,
        stops,
        migrates,
        syncs_now_and_then,
        service_unpacks,
        service_syncs,
        flusher,
        killed,
        leaves,
        atomic,
        commits,
        changes_inodes,
        replaces,
        nearly_full,
    )
