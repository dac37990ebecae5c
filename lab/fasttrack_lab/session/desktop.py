# SPDX-License-Identifier: GPL-2.0-only
"""A launch in a desktop's session, in several ways: alone, on stock, told by the lab, told by the daemon.

Each way is a boot. systemd is its first process, of the host's package; so are logind, the bus, the user's manager and
sway, which has no screen and no device. The phone's storage is emulated, and has the client that is launched.
"""

from __future__ import annotations

import json
import shutil
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fasttrack_lab.build import device_package, device_programs
from fasttrack_lab.host import side_by_side
from fasttrack_lab.host.errors import LabError, UsageProblem, unknown
from fasttrack_lab.host.paths import CHECKOUT, DEVICE
from fasttrack_lab.host.rundir import copy_sparse, run_dir
from fasttrack_lab.inputs import policy
from fasttrack_lab.inputs.phone import Phone
from fasttrack_lab.run import image
from fasttrack_lab.run.boot.backend import BootSpec
from fasttrack_lab.run.result import judge_boot, tail
from fasttrack_lab.run.runner import Tools
from fasttrack_lab.run.script import init_script
from fasttrack_lab.session import driver, packaged
from fasttrack_lab.workloads import behind
from fasttrack_lab.workloads.programs import BEHIND_FILES

PACKAGES = CHECKOUT / "scripts" / "packages-session.txt"
GUEST = Path(__file__).with_name("guest")
MODES: Mapping[str, tuple[str, str]] = {
    driver.MODE_ALONE: ("stock", "nothing behind"),
    driver.MODE_STOCK: ("stock", "apps behind, FastTrack off"),
    driver.MODE_FREEZE: ("freeze", "apps behind, FastTrack off; the agent and the daemon, which has the freezer alone"),
    driver.MODE_LAB: ("fasttrack", "apps behind, the lab tells the kernel as soon as the app has a control group"),
    driver.MODE_DAEMON: ("fasttrack", "apps behind, fasttrack-agent and fasttrackd find it out"),
}
"""The policy that each takes elevator and device from, and what it is."""
POLICIES = {mode: name for mode, (name, _) in MODES.items()} | {
    driver.MODE_PACKAGE: "fasttrack",
    driver.MODE_KILLED: "cgroup-freeze",
}
PARTS = ("__init__", "driver", "killed", "packaged", "start")
"""What of this package runs in the guest."""
BACKGROUNDS = ("write", "copy", "read", "untar", "fsyncs", "sqlite")
INSTALLED = {
    "fasttrackd.service": "system",
    "fasttrack-agent.service": "user",
}
DESKTOP_MIB = 256
"""Memory for the session itself, and for the root that is in memory."""


@dataclass(frozen=True)
class Asked:
    """What is measured."""

    phone: Phone
    backgrounds: tuple[str, ...] = BACKGROUNDS
    launches: int = 3
    seed: int = 1
    limit_s: float = 300.0
    watchdog: bool = False
    """Whether the daemon is looked at while nothing happens, and hangs in the end."""
    kills: int = 0
    """How often one of the three is killed at a random moment, in the mode killed."""


def missing() -> list[str]:
    """Packages that are not here, of those that scripts/packages-session.txt names."""
    lines = (line.split() for line in PACKAGES.read_text().splitlines() if line and not line.startswith("#"))
    return [package for package, shown in lines if not (Path(shown).exists() if "/" in shown else shutil.which(shown))]


def known_kinds(names: Sequence[str]) -> tuple[str, ...]:
    """Kinds of programs behind, some more than once; UsageProblem for an unknown one."""
    for name in names:
        if name not in behind.KINDS:
            raise UsageProblem(f"--behind: {unknown('kind', name, behind.KINDS)}")
    return tuple(names)


def contents(asked: Asked) -> image.Contents:
    """What is on the phone before the boot."""
    names = [f"background-{index + 1}" for index in range(len(asked.backgrounds))]
    files = [
        {"app": name, "path": path, "bytes": size, "kind": "data"}
        for name, kind in zip(names, asked.backgrounds, strict=True)
        for path, size in BEHIND_FILES.get(kind, ())
    ]
    return image.Contents(asked.phone, tuple((name, driver.USER) for name in names), tuple(files))


def lay_out(where: Path, mode: str, asked: Asked) -> None:
    """Put everything but the phone into the run's directory."""
    shutil.copytree(GUEST / "etc", where / "etc")
    if mode == driver.MODE_PACKAGE:
        shutil.copy2(device_package.build(), where / packaged.DEB.name)
    else:
        _install(where)
    shutil.copy2(behind.__file__, where)
    lab = Path(__file__).parents[1]
    for name in ("__init__.py", *(f"session/{part}.py" for part in PARTS)):
        (where / lab.name / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(lab / name, where / lab.name / name)
    # The user's programs, too, read this directory.
    where.chmod(0o755)
    rule = policy.load(POLICIES[mode])
    if rule.detector and mode != driver.MODE_PACKAGE:
        (where / "etc/fasttrack").mkdir()
        (where / "etc/fasttrack/fasttrackd.toml").write_text(rule.detector.config)
    config = {
        "mode": mode,
        "elevator": rule.elevator,
        "mount": ["-t", asked.phone.fs, "-o", asked.phone.mount_options or "defaults", "/dev/sda"],
        "backgrounds": asked.backgrounds,
        "launches": asked.launches,
        "seed": asked.seed,
        "watchdog": asked.watchdog,
        "kills": asked.kills,
    }
    (where / "config.json").write_text(json.dumps(config))


def _install(where: Path) -> None:
    """As the package does, but for what only packages can do."""
    for program in device_programs.build().iterdir():
        shutil.copy2(program, where / program.name)
    for name, manager in INSTALLED.items():
        shutil.copy2(DEVICE / "data" / name, where / "etc/systemd" / manager / name)
    bus = where / "etc/dbus-1/system.d"
    bus.mkdir(parents=True)
    shutil.copy2(DEVICE / "data/org.fasttrack1.conf", bus)


def boot(mode: str, asked: Asked, tools: Tools) -> dict[str, Any]:
    """Boot one of the POLICIES' modes; what the driver has found."""
    of_phone = image.prepared(contents(asked), tools.kernel, tools.guest, tools.guest_key, tools.backend)
    mib = asked.phone.guest_mib + DESKTOP_MIB
    with of_phone as prepared, run_dir(mib + image.ROOM_MIB) as where:
        copy_sparse(prepared, where / "phone.img")
        lay_out(where, mode, asked)
        params = image.storage_params(tools.backend, asked.phone)
        params["mflash.scheduler"] = policy.load(POLICIES[mode]).device_scheduler
        init = init_script((GUEST / "root.sh").read_text())
        spec = BootSpec(tools.kernel.image, init, mib, where, asked.limit_s, asked.seed, params)
        outcome = tools.backend.boot(spec)
        written = where / "facts.json"
        facts = json.loads(written.read_text()) if written.is_file() else {"error": "the driver has found nothing"}
        error = judge_boot(outcome) or facts.get("error")
        if error:
            said = [_end(where / name) for name in ("journal.log", "driver.log", "sway.log")]
            raise LabError(
                "\n".join([f"the session {mode!r} failed: {error}", tail(outcome.console), *filter(None, said)])
            )
    return {"wall_s": outcome.wall_s, **facts}


def _end(path: Path) -> str:
    return f"--- {path.name}\n{tail(path.read_text(errors='replace'))}" if path.is_file() else ""


def measure(asked: Asked, tools: Tools, modes: Sequence[str] = tuple(MODES), jobs: int | None = None) -> dict[str, Any]:
    """Boot all MODES, side by side; what was found, by mode."""
    if lacking := missing():
        raise LabError(f"missing: {', '.join(lacking)}; run scripts/setup.sh session")
    device_programs.build()
    found = side_by_side.each(modes, lambda mode: boot(mode, asked, tools), "sessions", None, jobs)
    return dict(zip(modes, found, strict=True))


def values_of(facts: Mapping[str, Any], what: str) -> list[float]:
    """Of a session's launches: response_s, scope_s or detected_s; those that have it."""
    return [one[what] for one in facts["launches"] if one[what] is not None]


def mean(facts: Mapping[str, Any], what: str) -> float | None:
    """Over the launches; None where none has it."""
    values = values_of(facts, what)
    return statistics.fmean(values) if values else None
