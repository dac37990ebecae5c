#!/usr/bin/python3 -ESsBu
# SPDX-License-Identifier: GPL-2.0-only
"""What real machines put between a file and its storage: each is built on the disk, and the same app reads and syncs on
it alone and while two others write."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from beside import Call, Front, appends_and_syncs, play, start_behind
from prologue import (
    BEHIND,
    BLOCK,
    DATA,
    DISK,
    FRONT,
    MIB,
    MS_REMOUNT,
    PATTERN,
    VM,
    Shown,
    as_uid,
    drop_caches,
    format_data,
    meminfo_kb,
    mount,
    run,
    write,
)

ROOM = Path("/run/stack")
"""Where the foreground's files are."""

COLD_MIB = 16
READ = 64 << 10
READS, SYNCS, THINK_S = 100, 50, 0.01
SECTOR = 512
UUID = "00000000-0000-4000-8000-000000000001"
"""dm-verity's, that its place does not depend on the host's random numbers."""


def said(*argv: str) -> str:
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True).stdout


def mapped(name: str, table: str, *more: str) -> str:
    """A device of the device mapper, which nobody but this script waits for."""
    said("/sbin/dmsetup", "create", name, *more, "--noudevsync", "--table", table)
    return f"/dev/dm-{said('/sbin/dmsetup', 'info', '-c', '--noheadings', '-o', 'minor', name).strip()}"


def loop(image: Path) -> str:
    return said("/sbin/losetup", "--find", "--show", "--read-only", str(image)).strip()


def settle(kind: str, source: str, *mkfs: str) -> None:
    """A new file system at DATA, with the foreground's directory in it."""
    subprocess.run([*mkfs, source], check=True, stdout=subprocess.DEVNULL)
    DATA.mkdir()
    mount(kind, DATA, source)
    DATA.chmod(0o777)
    os.umask(0)
    write(VM / "min_free_kbytes", "12288")


def cold_files(room: Path) -> None:
    """Two that no cache holds later, half of it not compressible: one to read alone, one beside the others."""
    draw = random.Random(1)
    for turn in 0, 1:
        with (room / f"cold{turn}").open("wb") as file:
            for _ in range(COLD_MIB * MIB // BLOCK):
                file.write(draw.randbytes(BLOCK // 2) + PATTERN[: BLOCK // 2])


def image(*make: str) -> Path:
    """A read-only image of the cold files, in a file of its own; MAKE has {source} and {image}."""
    source, made = Path("/run/source"), DATA / "image"
    source.mkdir()
    cold_files(source)
    said(*(word.format(source=source, image=made) for word in make))
    return made


def ext4() -> None:
    format_data("ext4", "", "")


def xfs() -> None:
    settle("xfs", DISK, "/sbin/mkfs.xfs", "-q", "-f", "-d", "size=4g")


def btrfs() -> None:
    settle("btrfs", DISK, "/sbin/mkfs.btrfs", "-q", "-f", "-b", "4g")


def dm_crypt() -> None:
    sectors = 4 * 1024 * MIB // SECTOR
    table = f"0 {sectors} crypt aes-xts-plain64 {'00112233445566778899aabbccddeeff' * 2} 0 {DISK} 0"
    settle("ext4", mapped("crypt", table), "/sbin/mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0")


def overlay() -> None:
    ext4()
    for name in "lower", "upper", "work":
        (DATA / name).mkdir()
    cold_files(DATA / "lower")
    ROOM.mkdir()
    mount("overlay", ROOM, options=f"lowerdir={DATA}/lower,upperdir={DATA}/upper,workdir={DATA}/work")
    ROOM.chmod(0o777)


def erofs() -> None:
    ext4()
    ROOM.mkdir()
    mount("erofs", ROOM, loop(image("/usr/bin/mkfs.erofs", "-zlz4", "{image}", "{source}")), flags=1)


def squashfs() -> None:
    ext4()
    ROOM.mkdir()
    made = image("/usr/bin/mksquashfs", "{source}", "{image}", "-quiet", "-no-progress", "-processors", "1")
    mount("squashfs", ROOM, loop(made), flags=1)


def dm_verity() -> None:
    """As a phone's system image: a tree of hashes beside it, and both in files."""
    ext4()
    made, hashes = image("/usr/bin/mkfs.erofs", "{image}", "{source}"), DATA / "hashes"
    hashes.touch()
    data = loop(made)
    shown = said("/sbin/veritysetup", "format", data, str(hashes), "--salt=" + "00" * 32, "--uuid=" + UUID)
    root = shown.split("Root hash:")[1].split()[0]
    blocks = made.stat().st_size // BLOCK
    table = f"0 {blocks * BLOCK // SECTOR} verity 1 {data} {loop(hashes)} {BLOCK} {BLOCK} {blocks} 1 sha256 {root} "
    ROOM.mkdir()
    mount("erofs", ROOM, mapped("verity", table + "00" * 32, "--readonly"), flags=1)


BUILD = {made.__name__: made for made in (ext4, xfs, btrfs, dm_crypt, overlay, erofs, squashfs, dm_verity)}


def reads(room: Path) -> Front:
    """64 KiB here and there, as of pictures."""

    def work(call: Call, turn: int) -> None:
        handle = os.open(room / f"cold{turn}", os.O_RDONLY)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_RANDOM)
        for place in random.Random(1).sample(range(COLD_MIB * MIB // READ), READS):
            call(os.pread, handle, READ, place * READ)
            time.sleep(THINK_S)

    return work


def syncs(room: Path) -> Front:
    return lambda call, turn: appends_and_syncs(call, str(room / f"log{turn}"), SYNCS, THINK_S)


def by_ring(room: Path, turn: int, *more: str) -> None:
    """By fio, which knows io_uring; the page cache is used, so that workers do what would wait."""
    argv = ["/usr/bin/fio", "--name=ring", "--ioengine=io_uring", "--iodepth=4", f"--size={COLD_MIB}m"]
    subprocess.run([*argv, f"--filename={room / f'cold{turn}'}", *more], check=True, stdout=subprocess.DEVNULL)


def ring_reads(room: Path) -> Front:
    return lambda call, turn: call(by_ring, room, turn, "--rw=randread", f"--bs={READ}", f"--io_size={READS * READ}")


def ring_syncs(room: Path) -> Front:
    return lambda call, turn: call(
        by_ring, room, turn, "--rw=randwrite", "--bs=4k", "--fsync=1", f"--io_size={SYNCS * 4}k"
    )


FRONTS = {made.__name__: made for made in (reads, syncs, ring_reads, ring_syncs)}


def writes_and_syncs(index: int, sync_mib: int) -> None:
    """One that writes without end, and one that makes each few MiB durable."""
    handle = os.open(DATA / f"behind{index}", os.O_CREAT | os.O_WRONLY, 0o644)
    for at in range(1 << 20):
        os.pwrite(handle, PATTERN, at % 64 * MIB)
        if index and at % sync_mib == 0:
            os.fsync(handle)
        time.sleep(0.002)


def beside(stack: str, front: str) -> Shown:
    """Milliseconds of each call of the app in front, alone and while two others write."""
    BUILD[stack]()
    room = ROOM if ROOM.exists() else DATA
    if not (room / "cold0").exists():
        cold_files(room)
    drop_caches()
    return play(FRONTS[front](room), lambda: start_behind(partial(writes_and_syncs, sync_mib=8), 2))


def dirty_after_commit() -> Shown:
    """KiB of an app's that are not on the disk before and after the one in front commits, where a commit has all data
    with it."""
    btrfs()
    for name in "dirty_bytes", "dirty_background_bytes":
        write(VM / name, str(256 * MIB))
    mount("btrfs", DATA, DISK, "flushoncommit,notreelog", MS_REMOUNT)
    os.sync()

    def dirties() -> None:
        (DATA / "dirty").write_bytes(PATTERN * 64)

    def commits() -> None:
        handle = os.open(DATA / "synced", os.O_CREAT | os.O_WRONLY, 0o644)
        os.write(handle, PATTERN[:BLOCK])
        os.fsync(handle)

    shown = []
    for uid, work in (BEHIND, dirties), (FRONT, commits):
        if as_uid(uid, work):
            raise RuntimeError("an app has failed")
        shown.append(meminfo_kb("Dirty") + meminfo_kb("Writeback"))
    return {"dirty": shown}


if __name__ == "__main__":
    run(beside, dirty_after_commit)
