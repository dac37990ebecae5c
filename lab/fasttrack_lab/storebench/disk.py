# SPDX-License-Identifier: GPL-2.0-only
"""Disks as sysfs and procfs show them: which one is below a file, what it is, and who uses it.

All files are read and written through `Files`, whose root a test puts elsewhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fasttrack_lab.host.errors import LabError
from fasttrack_lab.inputs.device import Device

SECTOR = 512
"""Bytes of a sector in sysfs, whatever the device's own."""

VIRTUAL_MAJOR = 0
"""Of the device numbers of file systems that are on no single block device."""


class Files:
    """The one seam to /sys and /proc."""

    def __init__(self, root: Path = Path("/")) -> None:
        self.root = root

    def path(self, name: str) -> Path:
        """Where NAME, such as sys/block/sda/size, is."""
        return self.root / name.lstrip("/")

    def read(self, name: str) -> str:
        """A file's text without blanks around it; a vendor's odd bytes are replaced. Raises OSError."""
        return self.path(name).read_text(encoding="utf-8", errors="replace").strip()

    def get(self, *names: str) -> str:
        """The text of the first of NAMES that can be read and is not empty, else an empty string."""
        for name in names:
            try:
                if text := self.read(name):
                    return text
            except OSError:
                continue
        return ""

    def write(self, name: str, text: str) -> None:
        """Write a value at once. Raises OSError."""
        self.path(name).write_text(text)

    def entries(self, name: str) -> list[str]:
        """Names in a directory, sorted; none where there is no directory."""
        path = self.path(name)
        return sorted(entry.name for entry in path.iterdir()) if path.is_dir() else []


def _directory(files: Files, number: str) -> Path:
    """The sysfs directory of a block device by its number, MAJOR:MINOR."""
    path = files.path(f"sys/dev/block/{number}")
    if not path.exists():
        raise LabError(f"there is no block device {number} in {path.parent}")
    return path.resolve()


def name_of(files: Files, number: str) -> str:
    """The kernel's name of a block device: sda, sda1, dm-0."""
    return _directory(files, number).name


def whole(files: Files, name: str) -> str:
    """The disk that a partition is on; of anything else its own name."""
    path = files.path(f"sys/class/block/{name}").resolve()
    return path.parent.name if (path / "partition").exists() else name


def backing(files: Files, name: str) -> str:
    """The disk below a partition or a device-mapper device, as far as there is one alone."""
    disk = whole(files, name)
    below = files.entries(f"sys/class/block/{disk}/slaves")
    return backing(files, below[0]) if len(below) == 1 else disk


MODELS = ("device/model", "device/name")
"""Of /sys/block/DISK, where a device says what it is."""

SERIALS = ("device/wwid", "wwid", "device/cid", "device/serial", "serial")
"""Of /sys/block/DISK, where a device says which one it is: SCSI, NVMe, eMMC, NVMe and eMMC in short, virtio."""


def says_its_model(files: Files, disk: str) -> bool:
    """Whether DISK names its model. If not, `device` has its driver's name there, which says little."""
    return bool(files.get(*(f"sys/block/{disk}/{name}" for name in MODELS)))


def device(files: Files, disk: str) -> Device:
    """What DISK is: SCSI and NVMe name vendor and model, eMMC a manufacturer's number, others their driver."""
    here = f"sys/block/{disk}"
    driver = files.path(f"{here}/device/driver")
    other = driver.resolve().name if driver.exists() else re.sub(r"\d+$", "", disk)
    try:
        size = int(files.read(f"{here}/size")) * SECTOR
        depth = int(files.get(f"{here}/device/queue_depth", f"{here}/mq/0/nr_tags") or 0)
    except (OSError, ValueError) as error:
        raise LabError(f"{disk}: sysfs does not say what it is: {error}") from error
    vendor = files.get(f"{here}/device/vendor", f"{here}/device/manfid")
    model = files.get(*(f"{here}/{name}" for name in MODELS)) or other
    return Device(vendor, model, size, depth, files.get(*(f"{here}/{name}" for name in SERIALS)))


def elevator(files: Files, disk: str) -> tuple[str, tuple[str, ...]]:
    """The elevator of a disk, and those that it can have; an empty string for a disk that has none."""
    words = files.get(f"sys/block/{disk}/queue/scheduler").split()
    chosen = [word.strip("[]") for word in words if word.startswith("[")]
    return (chosen[0] if chosen else "", tuple(word.strip("[]") for word in words))


def partitions(files: Files, name: str) -> list[str]:
    """The partitions of a disk."""
    here = f"sys/class/block/{name}"
    return [entry for entry in files.entries(here) if files.path(f"{here}/{entry}/partition").exists()]


@dataclass(frozen=True)
class Mount:
    """One line of mountinfo."""

    number: str
    source: str
    where: str
    kind: str

    @property
    def disk(self) -> str:
        """The kernel's name of its source, if that is a device."""
        return Path(self.source).resolve().name if self.source.startswith("/dev/") else ""


def mounts(files: Files) -> Iterator[Mount]:
    """What this process sees mounted."""
    for line in files.get("proc/self/mountinfo").splitlines():
        left, _, right = line.partition(" - ")
        fields, tail = left.split(), right.split()
        if len(fields) > 4 and len(tail) > 1:
            where = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), fields[4])
            yield Mount(fields[2], tail[1], where, tail[0])


def _mount_of(files: Files, path: Path) -> Mount | None:
    """The mount that PATH is in: the deepest, and of those the last. A subvolume's number is in no line."""
    there = path.resolve()
    found = [mount for mount in mounts(files) if there.is_relative_to(mount.where)]
    return max(reversed(found), key=lambda mount: len(Path(mount.where).parts), default=None)


def _btrfs_devices(files: Files, name: str) -> list[str]:
    """All devices of the mounted btrfs that the device NAME belongs to; none where there is no such."""
    every = (files.entries(f"sys/fs/btrfs/{entry}/devices") for entry in files.entries("sys/fs/btrfs"))
    return next((devices for devices in every if name in devices), [])


def below(files: Files, path: Path) -> str:
    """The disk below an existing file or directory."""
    number = path.stat().st_dev
    major, minor = os.major(number), os.minor(number)
    if major != VIRTUAL_MAJOR:
        return backing(files, name_of(files, f"{major}:{minor}"))
    # btrfs and some others have numbers of their own, but name the device.
    mount = _mount_of(files, path)
    if not mount or not mount.disk or not files.path(f"sys/class/block/{mount.disk}").exists():
        kind = mount.kind if mount else "its file system"
        raise LabError(f"{path}: {kind} is on no block device of this machine; give a directory of a disk's")
    devices = _btrfs_devices(files, mount.disk)
    if len(devices) > 1:
        raise LabError(f"{path}: {mount.kind} is on {', '.join(devices)}: what one of them does cannot be measured")
    return backing(files, mount.disk)


def _used(files: Files, name: str) -> str:
    """Who uses one disk or partition; an empty string for nobody."""
    number = files.get(f"sys/class/block/{name}/dev")
    for mount in mounts(files):
        if number == mount.number or name == mount.disk:
            return f"{name} is mounted at {mount.where}; give a directory there and only a file of its own is used"
    for line in files.get("proc/swaps").splitlines()[1:]:
        if Path(line.split()[0]).name == name:
            return f"{name} is swap space in use; swapoff /dev/{name} first, or give another device"
    if holders := files.entries(f"sys/class/block/{name}/holders"):
        return f"{name} is held by {', '.join(holders)}; give a directory of the file system that is on it"
    return ""


def objection(files: Files, name: str, need_bytes: int) -> str:
    """Why the block device NAME cannot be measured, or an empty string. Nothing is opened or touched."""
    here = f"sys/class/block/{name}"
    if files.get(f"{here}/ro") != "0":
        return f"{name} is read-only"
    size = int(files.get(f"{here}/size") or 0) * SECTOR
    if size < need_bytes:
        return f"{name} is too small: {size >> 20} MiB, of which {need_bytes >> 20} MiB are needed; see --size"
    for one in (name, *partitions(files, name)):
        if why := _used(files, one):
            return why
    return ""
