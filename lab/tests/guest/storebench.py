#!/usr/bin/python3 -ESsBu
# SPDX-License-Identifier: GPL-2.0-only
"""storebench and storebench-apply as somebody types them."""

from __future__ import annotations

import subprocess
from pathlib import Path

from prologue import QUEUE, Shown, read, run, write

PATTERNS = ("sequential_read", "random_read", "sequential_write", "random_write")


def depths() -> dict[str, int]:
    """What is in the elevator's knobs, if it has them."""
    knobs = {name: QUEUE / f"iosched/{name}_depth" for name in PATTERNS}
    return {name: int(read(knob)) for name, knob in knobs.items() if knob.exists()}


def remount(how: str) -> None:
    subprocess.run(["/usr/bin/mount", "-o", f"remount,{how}", "/run/data"], check=True)


def commands(python: str, lab: str, profiles: str) -> Shown:
    """Of each command: exit status, what was said, and what is in the knobs then."""
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8", "COLUMNS": "200"}
    environment |= {"PYTHONPATH": lab, "PYTHONDONTWRITEBYTECODE": "1"}

    def fasttrack(*arguments: str) -> list[object]:
        ended = subprocess.run(
            [python, "-m", "fasttrack_lab", *arguments],
            check=False,
            env=environment,
            cwd="/tmp",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return [ended.returncode, ended.stdout, depths()]

    def apply(profile: str, *more: str) -> list[object]:
        return fasttrack("storebench-apply", profile, "--disk", "sda", *more)

    shown: Shown = {"mounted": fasttrack("storebench", "--on", "/dev/sda")}
    remount("ro")
    shown["read-only"] = fasttrack("storebench", "--on", "/run/data")
    remount("rw")
    s6 = f"{profiles}/s6.json"
    shown["elevator"] = apply(s6)
    write(QUEUE / "scheduler", "smartio")
    for name in PATTERNS:
        write(QUEUE / f"iosched/{name}_depth", "7")
    shown["device"] = apply(f"{profiles}/n6.json")
    Path("/tmp/half.json").write_text(Path(s6).read_text()[:300])
    shown["damaged"] = apply("half.json")
    shown["dry"] = apply(s6, "--dry-run")
    shown["applied"] = apply(s6)
    return shown


if __name__ == "__main__":
    run(commands)
