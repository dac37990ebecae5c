# SPDX-License-Identifier: GPL-2.0-only
"""Prepared phones: formatted and filled once, then copied for every run."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from fasttrack_lab.build.kernel.kbuild import Kernel
from fasttrack_lab.host import ui
from fasttrack_lab.host.errors import LabError
from fasttrack_lab.host.known import remembered
from fasttrack_lab.host.paths import cache_dir, digest, file_sha256, lock, mark_used, newest_first, try_lock
from fasttrack_lab.host.rundir import copy_sparse, held_mib, run_dir
from fasttrack_lab.inputs.phone import Phone
from fasttrack_lab.run.boot import job as boot_job
from fasttrack_lab.run.boot.backend import Backend, BootSpec
from fasttrack_lab.run.result import judge, tail

STORE_MIB = 8 * 1024
"""Room that prepared images may take; the least recently used go first."""

PREPARE_SEED = 1
PREPARE_MIB = 1024
PREPARE_LIMIT_S = 300.0
ROOM_MIB = 1024
"""Room for what a run writes to its phone; a page of one repeated word takes none."""

PARTIAL = ".part"

GUEST_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where the guest program looks for the host's programs, by lab/guest/src/exec.rs."""

MKE2FS_CONF = Path("/etc/mke2fs.conf")
"""Where mkfs.ext4 has its defaults from."""


@dataclass(frozen=True)
class Contents:
    """What is on a phone before a run."""

    phone: Phone
    apps: tuple[tuple[str, int], ...]
    files: tuple[dict[str, Any], ...]

    @classmethod
    def of_job(cls, phone: Phone, job: dict[str, Any]) -> Contents:
        """The contents that a job finds."""
        apps = tuple((app["name"], app["uid"]) for app in job["apps"])
        return cls(phone, apps, tuple(job.get("files", [])))

    def key(self, kernel_key: str, guest_key: str) -> str:
        """Names the image: equal contents made by equal programs, the host's mkfs among them."""
        described = json.dumps(
            [self.phone.name, self.phone.fs, self.phone.format, self.phone.mount_options, self.apps, self.files],
            sort_keys=True,
        )
        return digest([described, kernel_key, guest_key, mkfs_key(self.phone.format[0])])[:16]

    def job(self) -> dict[str, Any]:
        """The job that makes the image."""
        apps = [
            {"name": name, "uid": uid, "role": "foreground", "start_s": 0, "threads": []} for name, uid in self.apps
        ]
        return {
            "version": 1,
            "mode": "prepare",
            "seed": PREPARE_SEED,
            "device": "/dev/sda",
            "fs": self.phone.fs,
            "format": self.phone.format,
            "mount_options": self.phone.mount_options,
            "limit_s": 36_000,
            "settings": [],
            "foreground": [],
            "touch_s": 0,
            "files": list(self.files),
            "apps": apps,
            "verify": False,
        }


def mkfs_key(mkfs: str) -> str:
    """Hash of a program that makes file systems and of its settings; empty if it is not here."""
    found = shutil.which(mkfs, path=GUEST_PATH)
    files = [path for path in (Path(found), MKE2FS_CONF) if path.is_file()] if found else []
    return remembered("mkfs-keys", files, [], lambda: digest(file_sha256(path) for path in files)[:16]) if files else ""


def storage_params(backend: Backend, phone: Phone) -> dict[str, str]:
    """Kernel parameters of the emulated storage."""
    return {"mflash.phone": phone.name, "mflash.image": backend.run_path("phone.img")}


@contextmanager
def prepared(contents: Contents, kernel: Kernel, guest: Path, guest_key: str, backend: Backend) -> Iterator[Path]:
    """The image with these contents, made now if it is not in the cache; it stays there inside the with block."""
    key = contents.key(kernel.key, guest_key)
    final = cache_dir("images") / f"{key}.img"
    with lock(_being_made(final)):
        while not (handle := _held(final, fcntl.LOCK_SH)):
            _make(contents, kernel.image, guest, backend, final)
    with handle:
        mark_used(final)
        yield final


def _being_made(image: Path) -> str:
    """The lock of who makes an image."""
    return f"image-{image.stem}"


def _held(image: Path, how: int) -> IO[bytes] | None:
    """An image of the store, locked; None where it is not there any more, or somebody has it and HOW is not to wait."""
    try:
        handle = image.open("rb")
    except FileNotFoundError:
        return None
    with suppress(BlockingIOError):
        fcntl.flock(handle, how)
        if os.fstat(handle.fileno()).st_nlink:
            return handle
    handle.close()
    return None


def _make(contents: Contents, kernel: Path, guest: Path, backend: Backend, final: Path) -> None:
    ui.say(f"preparing a phone: {contents.phone.name}, {contents.phone.fs}, {len(contents.files)} files")
    with run_dir(PREPARE_MIB + ROOM_MIB + held_mib(guest)) as where:
        job = contents.job()
        boot_job.fill(where, guest, job)
        params = {**boot_job.params(backend, job), **storage_params(backend, contents.phone)}
        root = boot_job.root(backend)
        spec = BootSpec(kernel, boot_job.INIT, PREPARE_MIB, where, PREPARE_LIMIT_S, PREPARE_SEED, params, root=root)
        outcome = backend.boot(spec)
        written = where / "result.json"
        verdict = judge(outcome, written.read_text() if written.is_file() else None)
        if not verdict.ok:
            raise LabError(f"preparing the phone failed: {verdict.error}\n{tail(outcome.console)}")
        partial = final.with_suffix(PARTIAL)
        copy_sparse(where / "phone.img", partial)
        partial.replace(final)
    limit_store(final)


def limit_store(newest: Path) -> None:
    """Remove the least recently used images beside NEWEST that are more than STORE_MIB together; not those in use.

    What a process that was killed has left of an image goes, too.
    """
    total = 0
    with lock("images"):
        for path in newest_first(newest.parent.glob("*.img")):
            mib = held_mib(path)
            total += mib
            if total > STORE_MIB and path != newest and (handle := _held(path, fcntl.LOCK_EX | fcntl.LOCK_NB)):
                with handle:
                    ui.say(f"removing the prepared image {path.name} ({mib} MiB): the store holds {STORE_MIB} MiB")
                    path.unlink()
        for path in newest.parent.glob(f"*{PARTIAL}"):
            with try_lock(_being_made(path)) as nobody_makes_it:
                if nobody_makes_it:
                    path.unlink()
