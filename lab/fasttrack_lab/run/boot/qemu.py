# SPDX-License-Identifier: GPL-2.0-only
"""QEMU without KVM: the same tree as a bzImage, with two processors and preemption, in real time.

It is for races between processors and for lockdep, not for response times. The host's file system is the guest's
read-only root by 9P; the run directory is the 9P tag "run". The kernel has no ACPI: a guest ends by a reset.

With STORAGE_MIB the phone's storage is memory that the kernel leaves alone. The machine's memory is then a file of the
run directory, so that a second boot from there finds the storage as the first one left it.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from fasttrack_lab.host import process
from fasttrack_lab.host.errors import LabError
from fasttrack_lab.run.boot.backend import BootSpec, Outcome

PROGRAM = "qemu-system-x86_64"
PROCESSORS = 2
TOPOLOGY = ("-smp", f"{PROCESSORS},sockets={PROCESSORS},cores=1,threads=1")
"""The firmware's MP table names one processor a socket."""

COUNTED = ("-icount", "shift=0,sleep=off", "-cpu", "max,-erms,-fsrm", "-smp", "1")
"""An instruction is a nanosecond of the guest's time and a tick of its time stamp counter. Without fast string
instructions, whose every byte QEMU would count as one, the kernel copies in loops, as on phones. One processor: QEMU
runs them in turns, and one that waits for another would be counted for as long as its turn is."""

FIRMWARE_MIB = 16
"""The firmware puts its tables at the end of memory: the storage ends before."""


def available() -> bool:
    """Whether QEMU is installed."""
    return shutil.which(PROGRAM) is not None


@dataclass(frozen=True)
class Qemu:
    """Boots a kernel built for x86-64."""

    storage_mib: int = 0
    """Memory for the emulated storage, kept in the run directory; 0: none, and nothing is kept."""
    counts: bool = False
    """The guest's clock counts its instructions; it has one processor."""
    name: str = "qemu"
    initrd: Path | None = None
    """What the kernel starts with, if its drivers are modules; it finds the root and init by itself."""
    devices: tuple[str, ...] = ()
    """More arguments of QEMU's, as for disks; paths are in the run directory."""

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
            # Both processors have the host's time stamps; a slow host must not make the kernel doubt them.
            "tsc=reliable",
            *self._storage(spec),
            *(f"{name}={value}" for name, value in spec.params.items()),
        ]

    def _storage(self, spec: BootSpec) -> list[str]:
        size, place = f"{self.storage_mib}M", f"{spec.memory_mib}M"
        return [f"memmap={size}${place}", f"mflash.mem={size}@{place}"] if self.storage_mib else []

    def memory_arguments(self, spec: BootSpec) -> list[str]:
        """How much memory QEMU gives the machine, and from where."""
        if not self.storage_mib:
            return ["-m", str(spec.memory_mib)]
        whole = spec.memory_mib + self.storage_mib + FIRMWARE_MIB
        backend = f"memory-backend-file,id=memory,size={whole}M,mem-path={spec.run_dir / 'memory'},share=on"
        return ["-m", str(whole), "-object", backend, "-machine", "pc,memory-backend=memory"]

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
            raise LabError(f"{PROGRAM} is missing; run scripts/setup.sh x86")
        if spec.interactive:
            raise LabError("QEMU guests have no shell yet: use the UML target")
        machine = COUNTED if self.counts else ("-cpu", "max", *TOPOLOGY)
        argv = [PROGRAM, "-accel", "tcg", *machine, *self.memory_arguments(spec)]
        argv += ["-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot", "-kernel", str(spec.kernel)]
        argv += ["-append", " ".join(self.command_line(spec)), *self.devices]
        argv += ["-initrd", str(self.initrd)] if self.initrd else []
        argv += self._share("root", Path("/"), read_only=True) + self._share("run", spec.run_dir, read_only=False)
        log = spec.run_dir / "console.log"
        begin = time.monotonic()
        with log.open("wb") as handle:
            child = process.start(argv, cwd=spec.run_dir, stdout=handle)
            ended = process.finish(child, spec.limit_s)
        return Outcome(ended.status, log.read_text(errors="replace"), time.monotonic() - begin, ended.timed_out)
