# SPDX-License-Identifier: GPL-2.0-only
"""User-Mode Linux in virtual time, with everything pinned that the host could leak into a run.

Two runs of one guest are equal to the nanosecond when the program break (ADDR_NO_RANDOMIZE), the environment,
the command line, the random generator, the start of time and the console's input are equal. The guest therefore
knows its run directory by the name /proc/self/cwd/. alone, whatever directory that is.
"""

from __future__ import annotations

import os
import subprocess
import sys
import termios
import time

from fasttrack_lab.host import cores, process
from fasttrack_lab.host.errors import LabError
from fasttrack_lab.run.boot.backend import BootSpec, Outcome

RUN_DIR = "/proc/self/cwd/."
START_NS = 1_700_000_000_000_000_000
"""Where virtual time begins, in ns since 1970."""

ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/", "TMPDIR": "/proc/self/cwd"}


class Uml:
    """Boots a kernel built for ARCH=um."""

    name = "uml"

    def __init__(self, checks_mib: int = 0) -> None:
        """CHECKS_MIB: what the kernel's own checks take, beside the memory that is asked for."""
        self.checks_mib = checks_mib

    def run_path(self, name: str) -> str:
        """The path of a file of the run directory, as kernel parameters name it."""
        return f"{RUN_DIR}/{name}"

    def command_line(self, spec: BootSpec) -> list[str]:
        """The kernel's parameters."""
        console = ["con0=fd:0,fd:1"] if spec.interactive else ["con0=null,fd:1"]
        return [
            f"mem={spec.memory_mib + self.checks_mib}M",
            "root=/dev/root",
            "rootfstype=hostfs",
            f"rootflags={spec.root}",
            "ro",
            f"init={spec.init}",
            "time-travel" if spec.computing_takes_time else "time-travel=inf-cpu",
            f"time-travel-start={START_NS}",
            "norandmaps",
            "oops=panic",
            *console,
            "con=null",
            f"uml_dir={RUN_DIR}/",
            "umid=guest",
            f"lab_seed={spec.seed}",
            *(f"{name}={value}" for name, value in spec.params.items()),
        ]

    def argv(self, spec: BootSpec, kernel: str) -> list[str]:
        """The command that boots, to be run in the run directory with ENVIRONMENT."""
        return ["setarch", os.uname().machine, "-R", kernel, *self.command_line(spec)]

    def boot(self, spec: BootSpec) -> Outcome:
        """Boot and wait; the console is kept in console.log of the run directory."""
        kernel = spec.run_dir / "linux"
        if not kernel.exists():
            # The kernel's own path is on its stack: the same short name for all.
            kernel.symlink_to(spec.kernel)
        argv = self.argv(spec, "./linux")
        log = spec.run_dir / "console.log"
        if spec.interactive:
            return self._interactive(spec, argv)
        with cores.hold() as core, log.open("wb") as handle:
            begin = time.monotonic()
            pinned = ["taskset", "--cpu-list", str(core), *argv]
            child = process.start(pinned, cwd=spec.run_dir, env=ENVIRONMENT, stdout=handle)
            ended = process.finish(child, spec.limit_s)
            wall_s = time.monotonic() - begin
        return Outcome(ended.status, log.read_text(errors="replace"), wall_s, ended.timed_out)

    def _interactive(self, spec: BootSpec, argv: list[str]) -> Outcome:
        # Not on a core of its own: a person may leave it open for hours.
        # In this process's own group, or the terminal would stop it when it reads.
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise LabError("a shell needs a terminal: standard input and output must be one; see ./fasttrack exec")
        saved = termios.tcgetattr(sys.stdin)
        begin = time.monotonic()
        try:
            status = subprocess.call([*process.LEASH, *argv], cwd=spec.run_dir, env=ENVIRONMENT)
        finally:
            # A guest that is killed leaves the terminal raw.
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, saved)
        return Outcome(status, "", time.monotonic() - begin, False)


def kernel_release(console: str) -> str:
    """The version that a console log shows, or an empty string."""
    for line in console.splitlines():
        _, found, rest = line.partition("Linux version ")
        if found:
            return rest.split(" ", 1)[0]
    return ""
