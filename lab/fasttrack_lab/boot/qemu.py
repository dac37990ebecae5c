# SPDX-License-Identifier: GPL-2.0-only
"""QEMU without KVM: the same tree as a bzImage, with two processors and preemption, in real time.

It is for races between processors and for lockdep, not for response times. The host's file system is the guest's
read-only root by 9P; the run directory is the 9P tag "run".
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from fasttrack_lab import process
from fasttrack_lab.boot.base import BootSpec, Outcome
from fasttrack_lab.errors import LabError

PROGRAM = "qemu-system-x86_64"
PROCESSORS = 2


def available() -> bool:
    """Whether QEMU is installed."""
    return shutil.which(PROGRAM) is not None


class Qemu:
    """Boots a kernel built for x86-64."""

    name = "qemu"

    def run_path(self, name: str) -> str:
        """The path of a file of the run directory in the guest, which mounts the tag there."""
        return f"/run/fasttrack/{name}"

    def command_line(self, spec: BootSpec) -> list[str]:
        """The kernel's parameters."""
        return [
            "console=ttyS0",
            "root=root",
            "rootfstype=9p",
            "rootflags=trans=virtio,version=9p2000.L,msize=262144,cache=loose",
            "ro",
            f"init={spec.init}",
            "oops=panic",
            "panic=-1",
            *(f"{name}={value}" for name, value in spec.params.items()),
        ]

    def _share(self, tag: str, path: Path, read_only: bool) -> list[str]:
        mode = ",readonly=on" if read_only else ""
        return [
            "-fsdev",
            f"local,id={tag},path={path},security_model=none,multidevs=remap{mode}",
            "-device",
            f"virtio-9p-pci,fsdev={tag},mount_tag={tag}",
        ]

    def boot(self, spec: BootSpec) -> Outcome:
        """Boot and wait; the console is kept in console.log of the run directory."""
        if not available():
            raise LabError(f"{PROGRAM} is missing: apt-get install qemu-system-x86")
        if spec.interactive:
            raise LabError("QEMU guests have no shell yet: use the UML target")
        argv = [PROGRAM, "-accel", "tcg", "-cpu", "max", "-smp", str(PROCESSORS), "-m", str(spec.memory_mib)]
        argv += ["-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot", "-kernel", str(spec.kernel)]
        argv += ["-append", " ".join(self.command_line(spec))]
        argv += self._share("root", Path("/"), read_only=True) + self._share("run", spec.run_dir, read_only=False)
        log = spec.run_dir / "console.log"
        begin = time.monotonic()
        with log.open("wb") as handle:
            child = process.start(argv, cwd=spec.run_dir, stdout=handle)
            ended = process.finish(child, spec.limit_s)
        return Outcome(ended.status, log.read_text(errors="replace"), time.monotonic() - begin, ended.timed_out)
