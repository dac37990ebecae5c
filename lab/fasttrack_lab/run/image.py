# SPDX-License-Identifier: GPL-2.0-only
"""Prepared phones: formatted and filled once, then copied for every run."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fasttrack_lab.build.kernel.kbuild import Kernel
from fasttrack_lab.host import ui
from fasttrack_lab.host.errors import LabError
from fasttrack_lab.host.paths import cache_dir, digest, lock, mark_used, newest_first
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
        """Names the image: equal contents made by equal programs."""
        described = json.dumps(
            [self.phone.name, self.phone.fs, self.phone.format, self.phone.mount_options, self.apps, self.files],
            sort_keys=True,
        )
        return digest([described, kernel_key, guest_key])[:16]

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


def storage_params(backend: Backend, phone: Phone) -> dict[str, str]:
    """Kernel parameters of the emulated storage."""
    return {"mflash.phone": phone.name, "mflash.image": backend.run_path("phone.img")}


def prepared(contents: Contents, kernel: Kernel, guest: Path, guest_key: str, backend: Backend) -> Path:
    """The image with these contents, made now if it is not in the cache."""
    key = contents.key(kernel.key, guest_key)
    store = cache_dir("images")
    final = store / f"{key}.img"
    with lock(f"image-{key}"):
        if not final.is_file():
            _make(contents, kernel.image, guest, backend, final)
    mark_used(final)
    return final


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
        partial = final.with_suffix(f".{os.getpid()}.part")
        copy_sparse(where / "phone.img", partial)
        partial.replace(final)
    limit_store(final)


def limit_store(newest: Path) -> None:
    """Remove the least recently used images beside NEWEST that are more than STORE_MIB together."""
    total = 0
    with lock("images"):
        for path in newest_first(newest.parent.glob("*.img")):
            mib = held_mib(path)
            total += mib
            if total > STORE_MIB and path != newest:
                ui.say(f"removing the prepared image {path.name} ({mib} MiB): the store holds {STORE_MIB} MiB")
                path.unlink()
