# SPDX-License-Identifier: GPL-2.0-only
"""The daemon, its guard and the agent are killed and stopped while an app in front has others frozen.

Runs in the guest, as driver.py does, and with the standard library alone.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from fasttrack_lab.session import driver, packaged

BEHIND = "write"
WITHIN_S = 5.0
"""So long it is looked whether something is taken back, s. It should be within one."""
LOOK_S = 0.002
STOPPED_S = 2.0
"""Who is stopped runs again after this time, s: later than everything has to be taken back."""
TOUCHED_S = 0.4
"""Who is killed at a random moment is killed within this time after a touch, s: a launch is over then."""
VICTIMS = ("daemon", "guard", "agent")
KERNEL = "[effects]\nkernel = true\n"
OWN_FILE = Path("/etc/fasttrack/fasttrackd.toml.d/kernel.toml")
UNSET = {"io.bfq.weight": "default 100", "io.weight": "default 100", "memory.low": "0"}
"""What these files say where nobody has set them."""
UNITS = ("user.slice", f"user-{driver.USER}.slice", f"user@{driver.USER}.service")
"""Units of the system's manager that the values of a user's app reach up to."""
SIGNALS = {"SIGKILL": signal.SIGKILL, "SIGSTOP": signal.SIGSTOP}


def delegate() -> None:
    """Gives users' apps the io controller, which the daemon does not on a kernel with io.prio.class."""
    group = driver.CGROUPS
    for part in driver.SLICE.split("/"):
        group = group / part
        (group / "cgroup.subtree_control").write_text("+io +memory")


def values() -> list[str]:
    """Files of control groups that somebody has set."""
    files = [group / name for group in packaged.groups() for name in UNSET]
    return [str(file) for file in files if packaged.value(file) not in ("", UNSET[file.name])]


def memory_low() -> dict[str, str]:
    """What systemd has for the units above the user's apps."""
    return {unit: driver.show(unit)["MemoryLow"] for unit in UNITS}


def set_still() -> list[str]:
    """Values that somebody has set, and what remembers those before."""
    return values() + packaged.marks()


def set_in_files() -> list[str]:
    """The same without what only remembers what systemd had: a daemon that is stopped tells systemd nothing."""
    return values() + [mark for mark in packaged.marks() if "trusted.fasttrack.unit." not in mark]


def over_after(begin: float, found: Callable[[], Any]) -> float | None:
    """When nothing is found any more, s from BEGIN; None where it still is after WITHIN_S."""
    try:
        driver.until("the end", lambda: not found(), WITHIN_S, LOOK_S)
    except driver.Failed:
        return None
    return time.monotonic() - begin


def touched(name: str) -> subprocess.Popen[bytes]:
    """Launches the client with cold caches."""
    Path("/proc/sys/vm/drop_caches").write_text("3")
    return driver.scope(f"app-lab-{name}-1.scope", driver.client(name), driver.CLIENT)


def in_front(name: str) -> subprocess.Popen[bytes]:
    """Launches the client, and waits until others are frozen for it."""
    child = touched(name)
    try:
        driver.until("something that is frozen", packaged.frozen, packaged.FROZEN_WITHIN_S, packaged.LOOK_S)
    except driver.Failed as error:
        raise driver.Failed(f"{name}: {error}; {driver.output('fasttrackctl', '--json', 'status')}") from error
    return child


def hit(victim: str, kind: str) -> dict[str, Any]:
    """One of the three gets a signal while something is frozen; how long until all is taken back, s."""
    name = f"{victim}-{kind.lower()}"
    pid = driver.pids()[victim]
    before = memory_low()
    child = in_front(name)
    begin = time.monotonic()
    os.kill(pid, SIGNALS[kind])
    facts: dict[str, Any] = {"thawed_s": over_after(begin, packaged.frozen)}
    # Without a guard the daemon goes on, so what is set is right: of that nothing has to be taken back.
    if victim != "guard":
        found = set_in_files if (victim, kind) == ("daemon", "SIGSTOP") else set_still
        facts["restored_s"] = over_after(begin, found)
    if kind == "SIGSTOP":
        time.sleep(max(0.0, begin + STOPPED_S - time.monotonic()))
        if Path(f"/proc/{pid}").exists():
            os.kill(pid, signal.SIGCONT)
    driver.end_scope(f"app-lab-{name}-1.scope", child)
    driver.until("all three", all_there, driver.COME_UP_S, 0.1)
    # Whoever started meanwhile has taken it back from systemd, too.
    driver.until("systemd's values before", lambda: memory_low() == before, driver.COME_UP_S, 0.1)
    driver.note(f"{name}: {facts}")
    return facts


def all_there() -> bool:
    """Whether the daemon has heard the agent, and the guard is there."""
    try:
        return driver.heard() and all(driver.pids().values())
    except (driver.Failed, ValueError, OSError):
        return False


def kill(number: int, random: Random) -> dict[str, Any]:
    """One of the three is killed at some moment of a launch; how long until all is taken back, s."""
    name, victim, after_s = f"kill-{number}", random.choice(VICTIMS), random.uniform(0, TOUCHED_S)
    pid = driver.pids()[victim]
    child = touched(name)
    time.sleep(after_s)
    facts: dict[str, Any] = {"victim": victim, "after_s": after_s, "frozen": len(packaged.frozen())}
    begin = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    facts["thawed_s"] = over_after(begin, packaged.frozen)
    if victim != "guard":
        facts["restored_s"] = over_after(begin, set_still)
    driver.end_scope(f"app-lab-{name}-1.scope", child)
    driver.until("all three", all_there, driver.COME_UP_S, 0.5)
    driver.until("nothing that is set", lambda: not set_still(), driver.COME_UP_S, 0.1)
    driver.note(f"{name}: {facts}")
    return facts


def told() -> dict[str, dict[str, str]]:
    """What systemd has while an app is in front, and afterwards."""
    before = memory_low()
    child = in_front("told")
    driver.until("the values with systemd", lambda: memory_low() != before, driver.COME_UP_S, LOOK_S)
    time.sleep(0.1)
    found = memory_low()
    driver.end_scope("app-lab-told-1.scope", child)
    driver.until("the values before with systemd", lambda: memory_low() == before, driver.COME_UP_S, 0.1)
    return {"before": before, "in_front": found}


def of_kernel() -> dict[str, Any]:
    """The kernel's lists after the daemon was killed."""
    # Windows that have opened meanwhile are of no interest.
    opened = driver.windows(driver.until("sway", driver.connected))
    OWN_FILE.write_text(KERNEL)
    driver.output("systemctl", "reload", "fasttrackd.service")
    name, child = packaged.open_client("listed", opened)
    path = f"{driver.SLICE}/{name}"
    driver.until("the client in front", lambda: path in packaged.lists()["foreground_cgroups"])
    begin = time.monotonic()
    os.kill(driver.pids()["daemon"], signal.SIGKILL)
    facts = {"lists_s": over_after(begin, lambda: any(packaged.lists().values()))}
    facts["switched_off_s"] = over_after(begin, lambda: (driver.KNOBS / "enabled").read_text().strip() == "1")
    driver.end_scope(name, child)
    return facts


def measure(config: dict[str, Any]) -> dict[str, Any]:
    """All of it."""
    OWN_FILE.parent.mkdir(parents=True, exist_ok=True)
    driver.set_up(config["mode"], config["elevator"], config["mount"])
    delegate()
    driver.output("systemctl", "restart", "fasttrackd.service")
    driver.until("the agent's report", driver.heard)
    driver.note("the session is up")
    (behind,) = driver.start_backgrounds([BEHIND], config["seed"])
    time.sleep(driver.LAUNCHING_S)
    status = json.loads(driver.output("fasttrackctl", "--json", "status"))
    found: dict[str, Any] = {
        "rung": status["rung"],
        "notes": status["notes"],
        "values_before": values(),
        "told": told(),
    }
    for victim in VICTIMS:
        found[victim] = {kind: hit(victim, kind) for kind in SIGNALS}
    random = Random(config["seed"])
    found["kills"] = [kill(number, random) for number in range(config["kills"])]
    driver.end_scope(f"app-lab-{BEHIND}-1.scope", behind)
    found["kernel"] = of_kernel()
    return found
