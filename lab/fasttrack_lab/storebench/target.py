# SPDX-License-Identifier: GPL-2.0-only
"""Where a real device is measured: in one file that is made for it, and nowhere else.

The file is unlinked as soon as it is there, and fio reaches it by this process's descriptor alone. So there is no path
by which anything else could be written, and however this process ends, the kernel takes the file away.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from fasttrack_lab.host import process
from fasttrack_lab.host.errors import LabError
from fasttrack_lab.inputs.device import Device
from fasttrack_lab.storebench import disk, filesystem, plan
from fasttrack_lab.storebench.apply import ELEVATOR
from fasttrack_lab.storebench.disk import Files

SMALLEST = 64 * plan.MIB
"""Of a range: a smaller one is in a device's cache for the most part."""

MARGIN = 0.1
"""Of the file's size, left free: a file system that is filled to the last block is slow, and others use it."""

PREFIX = ".fasttrack-storebench-"
CLONE_NEWNS = 0x20000
"""Of sched.h; Python has os.unshare() from 3.12 on."""


@dataclass(frozen=True)
class Target:
    """A real device, ready to be measured."""

    name: str
    """Of the disk."""
    device: Device
    elevator: str
    files: plan.Files
    descriptor: int
    """Of the file that is written; fsync flushes the device's cache."""


def need_bytes(size: int) -> int:
    """Room that a file of SIZE bytes asks for."""
    return size + int(size * MARGIN)


def _check_free(directory: Path, size: int, name: Path) -> None:
    room = os.statvfs(directory)
    free = room.f_bavail * room.f_frsize
    if free < need_bytes(size):
        raise LabError(
            f"{name} has {free >> 20} MiB free, a file of {size >> 20} MiB needs {need_bytes(size) >> 20}; see --size"
        )


def _check_directory(directory: Path, size: int) -> None:
    if os.statvfs(directory).f_flag & os.ST_RDONLY:
        raise LabError(f"{directory} is on a file system that is mounted read-only; name another, or remount it")
    if not os.access(directory, os.W_OK | os.X_OK):
        raise LabError(f"{directory} cannot be written by this user; name another")
    _check_free(directory, size, directory)


def fio_path(descriptor: int) -> str:
    """A path by which a child opens what DESCRIPTOR is, whatever has become of its name."""
    return f"/proc/{os.getpid()}/fd/{descriptor}"


def _check_direct(path: Path, descriptor: int) -> None:
    try:
        os.close(os.open(fio_path(descriptor), os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC))
    except OSError as error:
        raise LabError(f"{path}: its file system does no direct I/O: {error.strerror}") from error


@contextmanager
def own_file(path: Path, size: int) -> Iterator[int]:
    """A new file of SIZE bytes, without a name from the start; its descriptor. An existing PATH is an error."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise LabError(f"{path} cannot be made: {error.strerror}") from error
    try:
        path.unlink()
        _check_direct(path, descriptor)
        try:
            os.posix_fallocate(descriptor, 0, size)
        except OSError as error:
            raise LabError(f"{path}: no room for {size >> 20} MiB: {error.strerror}") from error
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _users_file(path: Path) -> Iterator[tuple[int, int]]:
    """The user's file, opened to be read: its descriptor, and the bytes of it that can be measured."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise LabError(f"{path} cannot be read: {error.strerror}") from error
    try:
        _check_direct(path, descriptor)
        found = os.fstat(descriptor)
        usable = found.st_size // plan.MIB * plan.MIB
        if usable < SMALLEST:
            raise LabError(f"{path} is too small: {found.st_size >> 20} MiB, at least {SMALLEST >> 20} are needed")
        if found.st_blocks * 512 < usable:
            raise LabError(f"{path} is sparse or compressed: what is not on the device cannot be read from it")
        yield descriptor, usable
    finally:
        os.close(descriptor)


def _elevator(files: Files, name: str) -> str:
    chosen = disk.elevator(files, name)[0] or "none"
    if chosen == ELEVATOR:
        # It holds requests back by the very numbers that are to be found.
        raise LabError(
            f"{name} has the I/O scheduler {chosen}, which would be measured too; "
            f"choose another one first: echo none > /sys/block/{name}/queue/scheduler"
        )
    return chosen


@contextmanager
def _in_directory(directory: Path, name: str, size: int, files: Files, user: Path | None = None) -> Iterator[Target]:
    """A target in a new file NAME of DIRECTORY; with USER, reads are measured in that file."""
    below = disk.below(files, directory)
    elevator = _elevator(files, below)
    _check_directory(directory, size)
    with ExitStack() as stack:
        reads, read_bytes = stack.enter_context(_users_file(user)) if user else (-1, size)
        own = stack.enter_context(own_file(directory / name, size))
        paths = plan.Files(fio_path(reads if user else own), fio_path(own), min(read_bytes, size), size)
        yield Target(below, disk.device(files, below), elevator, paths, own)


def _private_mounts() -> None:
    """From now on what this process mounts is seen by it and its children alone."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS):
        raise LabError(f"there is no mount namespace for it: {os.strerror(ctypes.get_errno())}")
    process.output(["mount", "--make-rprivate", "/"])


@contextmanager
def _mount(path: Path, where: Path, kind: str, options: str) -> Iterator[None]:
    """A mount of a file system of a KIND for the time."""
    try:
        process.output(["mount", "-t", kind, "-o", f"{options},nosuid,nodev,noexec,noatime", str(path), str(where)])
    except LabError as error:
        raise LabError(f"{path}: its {kind} cannot be mounted, so no file can be made on it: {error}") from error
    try:
        yield
    finally:
        process.output(["umount", str(where)])


@contextmanager
def _mounted(path: Path, size: int, files: Files) -> Iterator[Path]:
    """The file system of a block device, mounted where nobody else sees it; it is written after its room is known."""
    kind = filesystem.clean(path)
    _private_mounts()
    where = Path(tempfile.mkdtemp(prefix="fasttrack-storebench-"))
    try:
        with _mount(path, where, kind.name, kind.options):
            disk.below(files, where)
            _check_free(where, size, path)
        # Made writable, the first mount would go on without its journal.
        with _mount(path, where, kind.name, "rw"):
            yield where
    finally:
        # Never a whole tree: where the unmount failed, that would be the user's.
        with suppress(OSError):
            where.rmdir()


def _claim(path: Path) -> None:
    """Ask the kernel whether anybody has the device: mounts of other namespaces, RAID, device mapper."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
    except OSError as error:
        raise LabError(f"{path} is in use or cannot be opened: {error.strerror}") from error


@contextmanager
def _on_device(path: Path, size: int, files: Files) -> Iterator[Target]:
    number = path.stat().st_rdev
    name = disk.name_of(files, f"{os.major(number)}:{os.minor(number)}")
    if why := disk.objection(files, name, need_bytes(size)):
        raise LabError(f"{path}: {why}")
    if parts := disk.partitions(files, name):
        raise LabError(f"{path} has partitions; give one of them: {', '.join(f'/dev/{part}' for part in parts)}")
    _elevator(files, disk.backing(files, name))
    if os.geteuid():
        raise LabError(f"{path}: only root may mount its file system; run this as root, or give a directory on it")
    _claim(path)
    with (
        _mounted(path, size, files) as where,
        _in_directory(where, PREFIX + secrets.token_hex(4), size, files) as target,
    ):
        yield target


def _at(path: Path, size: int, files: Files) -> AbstractContextManager[Target]:
    """The way to a target that fits what PATH is."""
    beside = PREFIX + secrets.token_hex(4)
    if path.is_dir():
        return _in_directory(path, beside, size, files)
    if not path.exists():
        if not path.parent.is_dir():
            raise LabError(f"there is no directory {path.parent}")
        return _in_directory(path.parent, path.name, size, files)
    mode = path.stat().st_mode
    if stat.S_ISREG(mode):
        return _in_directory(path.parent, beside, size, files, user=path)
    if stat.S_ISBLK(mode):
        return _on_device(path, size, files)
    raise LabError(f"{path} is neither a directory, nor a file, nor a block device")


@contextmanager
def opened(path: Path, size: int, files: Files | None = None) -> Iterator[Target]:
    """A target at PATH with a file of SIZE bytes.

    PATH is a directory; the name of a new file; an existing file, which is only read, with a file to write beside it;
    or a block device that nobody uses, whose file system is clean and mounted for the time. Every check comes before
    anything is written. Raises LabError with the reason.
    """
    if size < SMALLEST:
        raise LabError(f"a size of {size >> 20} MiB is too small, at least {SMALLEST >> 20} are needed; see --size")
    try:
        way = _at(path.resolve(), size, files or Files())
    except (OSError, RuntimeError) as error:
        raise LabError(f"{path} cannot be looked at: {error}") from error
    with way as target:
        yield target
