# SPDX-License-Identifier: GPL-2.0-only
"""The phones of lab/phones/phones.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fasttrack_lab.host.errors import LabError, UsageProblem
from fasttrack_lab.host.paths import PHONES
from fasttrack_lab.inputs import phone_digest

GUEST_MIB = 1024
"""Default memory of a guest, in MiB, where a phone has more.

A phone's RAM is not the page cache's to use: Android's services, the graphics stack and kept apps hold most of it, and
the lab does not emulate them. The guest gets about what they leave; a phone's own guest_mib says otherwise."""

FILE_SYSTEMS = ("ext4", "f2fs")

# Fixed, so that two formats of one device are equal.
FS_UUID = "6f5e9a52-3c1d-4b7e-9d0a-fa577ac00001"
FORMATS = {
    "ext4": [
        "mkfs.ext4",
        "-q",
        "-F",
        "-U",
        FS_UUID,
        "-E",
        f"hash_seed={FS_UUID},lazy_itable_init=0,nodiscard",
        "/dev/sda",
    ],
    # -r: the checkpoint's version begins at a fixed number.
    "f2fs": ["mkfs.f2fs", "-q", "-f", "-t", "0", "-r", "-U", FS_UUID, "/dev/sda"],
}
MOUNT_OPTIONS = {
    "ext4": "noatime,data=ordered",
    # Android adds inlinecrypt, quota and a reserve for root, which cost no I/O here, and fsync_mode=nobarrier, which is
    # left out: without the device's flush a power cut takes what was fsynced.
    "f2fs": "noatime,discard",
}


@dataclass(frozen=True)
class Calibration:
    """One published figure and the fio work load that it stands for."""

    name: str
    rw: str
    block: str
    depth: int
    sync: bool
    size: str
    runtime_s: float
    published: float
    unit: str
    source: str


@dataclass(frozen=True)
class Phone:
    """One emulated phone."""

    name: str
    ram_mib: int
    guest_mib: int
    fs: str
    queue_depth: int
    note: str
    calibration: tuple[Calibration, ...]

    @property
    def storage(self) -> str:
        """eMMC, which takes one command at a time, or UFS."""
        return "eMMC" if self.queue_depth == 1 else "UFS"

    @property
    def longest_request_s(self) -> float:
        """What the device takes for one request at most: its largest, at its published rate of sequential writes."""
        rate = next(entry.published for entry in self.calibration if entry.name == "seq-write")
        return int(phone_digest.parameters(self.name)["max_kib"]) * 1024 / 1e6 / rate

    @property
    def format(self) -> list[str]:
        """argv of mkfs for its file system."""
        return FORMATS[self.fs]

    @property
    def mount_options(self) -> str:
        """Options of the mount of /data."""
        return MOUNT_OPTIONS[self.fs]

    def with_fs(self, fs: str | None) -> Phone:
        """The same phone with another file system; None is its own."""
        if fs is not None and fs not in FILE_SYSTEMS:
            raise UsageProblem(f"there is no file system {fs!r}; file systems: {', '.join(FILE_SYSTEMS)}")
        return self if fs is None else replace(self, fs=fs)


def _calibration(raw: dict[str, Any]) -> Calibration:
    return Calibration(
        name=raw["name"],
        rw=raw["rw"],
        block=str(raw["block"]),
        depth=int(raw["depth"]),
        sync=bool(raw.get("sync", False)),
        size=str(raw["size"]),
        runtime_s=float(raw.get("runtime", 0)),
        published=float(raw["published"]),
        unit=raw["unit"],
        source=raw.get("source", ""),
    )


def _phone(name: str, raw: dict[str, Any]) -> Phone:
    ram = int(raw["ram_mib"])
    fs = raw.get("fs", "ext4")
    if fs not in FILE_SYSTEMS:
        raise UsageProblem(f"phones.toml, {name}: fs is {fs!r}, must be one of {', '.join(FILE_SYSTEMS)}")
    return Phone(
        name=name,
        ram_mib=ram,
        guest_mib=int(raw.get("guest_mib", min(ram, GUEST_MIB))),
        fs=fs,
        queue_depth=int(raw.get("queue_depth", 1)),
        note=raw.get("note", ""),
        calibration=tuple(_calibration(entry) for entry in raw.get("calibration", [])),
    )


def phones(path: Path = PHONES / "phones.toml") -> dict[str, Phone]:
    """All phones by name."""
    if not path.is_file():
        raise LabError(f"{path} is missing: it describes the phones")
    try:
        raw = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise UsageProblem(f"{path}: {error}") from error
    try:
        return {name: _phone(name, table) for name, table in raw.items() if isinstance(table, dict)}
    except KeyError as error:
        raise UsageProblem(f"{path}: the key {error} is missing") from error


def load(name: str) -> Phone:
    """The phone NAME; an unknown name is an error that names the known ones."""
    known = phones()
    if name not in known:
        raise UsageProblem(f"there is no phone {name!r}; phones: {', '.join(known)}")
    return known[name]
