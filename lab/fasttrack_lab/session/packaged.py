# SPDX-License-Identifier: GPL-2.0-only
"""The Debian package on a booted systemd: installed, used, stopped, and purged while it has apps frozen.

Runs in the guest, as driver.py does, and with the standard library alone.
"""

from __future__ import annotations

import errno
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from fasttrack_lab.session import driver

Found = TypeVar("Found")

NAME = "fasttrack"
DEB = driver.LAB / f"{NAME}.deb"
BEHIND = "write"
LISTS = ("foreground_cgroups", "perceptible_cgroups")
FREEZER = """\
[effects]
kernel = false
weights = false
ioprio = false
freezer = true
"""
"""What an administrator writes who wants the freezer and nothing else."""
OWN_FILE = Path("/etc/fasttrack/fasttrackd.toml.d/freezer.toml")
FROZEN_WITHIN_S = 1.0
"""The client reads for a fifth of that, s, while others write."""
LOOK_S = 0.001
"""How often it is looked whether something is frozen, s: it is for 50 ms at least."""


def dpkg(*argv: str) -> None:
    """Runs dpkg, for which no other package is installed here."""
    driver.output("dpkg", "--force-depends", *argv)


def state(unit: str, *user: str) -> dict[str, str]:
    """Whether a unit runs, and whether it does so at each start."""
    show = driver.as_user("systemctl", "--user") if user else ["systemctl"]
    found = driver.properties(*show, "show", "--property=ActiveState,UnitFileState,FragmentPath", unit)
    return {name: found.get(name, "") for name in ("ActiveState", "UnitFileState", "FragmentPath")}


def states() -> dict[str, dict[str, str]]:
    """Of both units."""
    return {"daemon": state("fasttrackd.service"), "agent": state("fasttrack-agent.service", "user")}


def lists() -> dict[str, list[str]]:
    """What the kernel has been told."""
    return {name: (driver.KNOBS / name).read_text().split() for name in LISTS}


def groups() -> Iterator[Path]:
    """All control groups; one that ends meanwhile is passed over."""
    return (Path(path) for path, _, files in os.walk(driver.CGROUPS) if "cgroup.freeze" in files)


def if_there(look: Callable[[Path], Found], at: Path, gone: Found) -> Found:
    """What a look at a control group or a file of its finds, which may go meanwhile."""
    try:
        return look(at)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENODEV):
            raise
        return gone


def value(file: Path) -> str:
    """Of a file of a control group; empty where that is gone."""
    return if_there(Path.read_text, file, "").strip()


def attributes(group: Path) -> list[str]:
    """Names of a control group's; none where that is gone."""
    none: list[str] = []
    return if_there(os.listxattr, group, none)


def frozen() -> list[str]:
    """Control groups that are frozen."""
    return [str(group) for group in groups() if value(group / "cgroup.freeze") == "1"]


def marks() -> list[str]:
    """Attributes of ours on control groups."""
    named = ((group, name) for group in groups() for name in attributes(group))
    return [f"{group}: {name}" for group, name in named if name.startswith("trusted.fast")]


def left() -> list[str]:
    """Files with our name, outside of what is the host's or the lab's."""
    found = subprocess.run(
        ["find", "/usr", "/etc", "/var", "/run", "-xdev", "-name", f"*{NAME}*"],
        capture_output=True,
        text=True,
        check=False,
    )
    # The user's manager of a control group, and the kernel's own, are no files of the package.
    return [path for path in found.stdout.splitlines() if not path.startswith("/run/systemd/")]


def open_client(app_id: str, opened: Iterator[str]) -> tuple[str, subprocess.Popen[bytes]]:
    """Launches the client with cold caches, and leaves it in front."""
    name = f"app-lab-{app_id}-1.scope"
    Path("/proc/sys/vm/drop_caches").write_text("3")
    child = driver.scope(name, driver.client(app_id), driver.CLIENT)
    found = next(opened)
    if found != app_id:
        raise driver.Failed(f"the window of {found} has opened in place of that of {app_id}")
    return name, child


def used(opened: Iterator[str]) -> dict[str, Any]:
    """The kernel follows the daemon while it runs, and nothing is left when it is stopped."""
    name, child = open_client("used", opened)
    path = f"{driver.SLICE}/{name}"
    driver.until("the client in front", lambda: path in lists()["foreground_cgroups"])
    status = driver.output("fasttrackctl", "status")
    facts = {"while_it_runs": lists(), "status": status, "units": driver.unit_facts()}
    driver.output("systemctl", "stop", "fasttrackd.service")
    facts["stopped"] = {"lists": lists(), "frozen": frozen(), "marks": marks(), "states": states()}
    driver.end_scope(name, child)
    time.sleep(driver.QUIET_S)
    facts["later"] = states()
    return facts


def purged(opened: Iterator[str], seed: int) -> dict[str, Any]:
    """Purged while an app behind is frozen."""
    OWN_FILE.write_text(FREEZER)
    driver.output("systemctl", "start", "fasttrackd.service")
    driver.until("the agent's report", driver.heard)
    (behind,) = driver.start_backgrounds([BEHIND], seed)
    time.sleep(driver.LAUNCHING_S)
    Path("/proc/sys/vm/drop_caches").write_text("3")
    child = driver.scope("app-lab-purged-1.scope", driver.client("purged"), driver.CLIENT)
    try:
        before = driver.until("something that is frozen", frozen, FROZEN_WITHIN_S, LOOK_S)
    except driver.Failed as error:
        raise driver.Failed(f"{error}; {driver.output('fasttrackctl', '--json', 'status')}") from error
    dpkg("--purge", NAME)
    facts: dict[str, Any] = {"frozen_before": before, "lists": lists(), "frozen": frozen()}
    if next(opened) != "purged":
        raise driver.Failed("another window has opened")
    facts |= {"marks": marks(), "left": left(), "states": states(), "behind": behind.poll()}
    driver.end_scope("app-lab-purged-1.scope", child)
    driver.end_scope(f"app-lab-{BEHIND}-1.scope", behind)
    return facts


def measure(config: dict[str, Any]) -> dict[str, Any]:
    """All of it."""
    opened = driver.windows(driver.set_up(config["mode"], config["elevator"], config["mount"]))
    driver.note("the session is up, without the package")
    dpkg("--install", str(DEB))
    driver.until("the agent's first report", driver.heard)
    driver.note("it is installed")
    facts: dict[str, Any] = {"installed": states(), **used(opened)}
    driver.note("it has been used and stopped")
    facts["purged"] = purged(opened, config["seed"])
    return facts
