# SPDX-License-Identifier: GPL-2.0-only
"""The policies of lab/policies/: the elevator, the device's scheduler, the knobs, who is told of the app in front."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fasttrack_lab.host.errors import LabError, UsageProblem
from fasttrack_lab.host.paths import POLICIES
from fasttrack_lab.inputs import detector, placeholders
from fasttrack_lab.inputs.detector import Detector
from fasttrack_lab.inputs.placeholders import APPS, DEPTHS, UID, Values

ELEVATOR = "/sys/block/sda/queue/scheduler"
DEVICE_SCHEDULERS = ("fifo", "read-first", "foreground")
KEYS = {
    "description",
    "published",
    "elevator",
    "device_scheduler",
    "setting",
    "foreground",
    "ioprio",
    "cgroup",
    "detector",
}
PLACES = ("foreground", "background")
_IOPRIO = re.compile(r"idle|(realtime|best-effort) [0-7]")
_GROUP_FILE = re.compile(r"[a-z]+(\.[a-z_]+)+")


@dataclass(frozen=True)
class Setting:
    """A value for a file of the guest's sysfs, procfs or control groups; it may have placeholders."""

    path: str
    value: str

    def as_json(self, values: Values) -> dict[str, str]:
        """As job.json has it, with VALUES in the place of its placeholders."""
        return {"path": self.path, "value": placeholders.filled(self.value, values)}


@dataclass(frozen=True)
class ByPlace:
    """What an app is given while it is in front, and what while it is behind."""

    foreground: str
    background: str

    def of(self, in_front: bool) -> str:
        """One of the two."""
        return self.foreground if in_front else self.background


@dataclass(frozen=True)
class GroupFile:
    """A file of each app's own control group."""

    file: str
    value: ByPlace


@dataclass(frozen=True)
class Policy:
    """One way to run the phone."""

    name: str
    description: str
    elevator: str
    device_scheduler: str
    settings: tuple[Setting, ...]
    foreground: tuple[Setting, ...]
    ioprio: ByPlace | None = None
    """I/O priorities, as `job.json` names them."""
    cgroup: tuple[GroupFile, ...] = ()
    # Not in the text of a policy, which is a part of what a record is made from: a detector is in the run's job.
    detector: Detector | None = field(default=None, repr=False)
    """fasttrackd tells who is in front, in place of the lab."""
    published: bool = field(default=True, repr=False)
    """Whether docs/RESULTS.md has it; `compare --policies all` takes those."""

    def values(self, phone: str) -> Values:
        """What its placeholders become on a phone, but for {uid} and {apps}.

        LabError where the phone lacks what they need.
        """
        used = [name for setting in (*self.settings, *self.foreground) for name in placeholders.names(setting.value)]
        try:
            return placeholders.of_phone(used, phone)
        except LabError as error:
            raise LabError(f"policy {self.name}: {error}") from error

    def settings_json(self, values: Values) -> list[dict[str, str]]:
        """What is written before any app starts: the elevator first. VALUES are those of the run."""
        return [{"path": ELEVATOR, "value": self.elevator}, *(setting.as_json(values) for setting in self.settings)]

    def foreground_json(self, values: Values, *uids: int) -> list[dict[str, str]]:
        """What is written when the apps with these UIDs come to the front; nothing where none does."""
        with_uids = {**values, UID: " ".join(map(str, uids))}
        return [setting.as_json(with_uids) for setting in self.foreground] if uids else []


def _settings(raw: Any, where: str, known: Collection[str]) -> tuple[Setting, ...]:
    """Settings whose placeholders are all KNOWN."""
    try:
        found = tuple(Setting(str(entry["path"]), str(entry["value"])) for entry in raw)
    except (KeyError, TypeError) as error:
        raise UsageProblem(f"{where}: each needs a path and a value") from error
    for setting in found:
        for name in placeholders.names(setting.value):
            if name not in known:
                raise UsageProblem(
                    f"{where}: {setting.path}: unknown placeholder {{{name}}}; known: {', '.join(known)}"
                )
    return found


def _texts(raw: Any, keys: Sequence[str], where: str) -> list[str]:
    """The texts of a table that has just these keys, each a text or a whole number."""
    if not isinstance(raw, dict) or set(raw) != set(keys):
        raise UsageProblem(f"{where}: needs {', '.join(keys)}, and nothing else")
    for key in keys:
        if isinstance(raw[key], bool) or not isinstance(raw[key], str | int):
            raise UsageProblem(f"{where}: {key} is {raw[key]!r}, must be a text or a whole number")
    return [str(raw[key]) for key in keys]


def _ioprio(raw: Any, where: str) -> ByPlace:
    values = _texts(raw, PLACES, where)
    for key, value in zip(PLACES, values, strict=True):
        if not _IOPRIO.fullmatch(value):
            raise UsageProblem(f"{where}: {key} is {value!r}, must be idle, realtime 0 to 7 or best-effort 0 to 7")
    return ByPlace(*values)


def _group_files(raw: Any, where: str) -> tuple[GroupFile, ...]:
    if not isinstance(raw, list):
        raise UsageProblem(f"{where}: must be a list of tables")
    files = []
    for entry in raw:
        file, *values = _texts(entry, ("file", *PLACES), where)
        if not _GROUP_FILE.fullmatch(file):
            raise UsageProblem(f"{where}: file is {file!r}, must be a name such as io.weight")
        files.append(GroupFile(file, ByPlace(*values)))
    return tuple(files)


def _detector(raw: Any, where: str) -> Detector:
    keys = {"rung", "controllers", "effects"}
    if not isinstance(raw, dict) or set(raw) != keys:
        raise UsageProblem(f"{where}: needs {', '.join(sorted(keys))}, and nothing else")
    rung, controllers, effects = raw["rung"], raw["controllers"], raw["effects"]
    if rung not in detector.RUNGS:
        raise UsageProblem(f"{where}: rung is {rung!r}, must be one of {', '.join(detector.RUNGS)}")
    if not isinstance(controllers, list) or not all(name in detector.CONTROLLERS for name in controllers):
        raise UsageProblem(f"{where}: controllers must be a list of {', '.join(detector.CONTROLLERS)}")
    good = isinstance(effects, dict) and all(isinstance(value, bool) for value in effects.values())
    if not good or not set(effects) <= set(detector.SWITCHES):
        raise UsageProblem(f"{where}: effects: {', '.join(detector.SWITCHES)}, each true or false")
    return Detector(rung, tuple(controllers), tuple(effects.items()))


def parse(path: Path) -> Policy:
    """Read one policy file."""
    try:
        raw = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise UsageProblem(f"{path}: {error}") from error
    unknown = sorted(set(raw) - KEYS)
    if unknown:
        raise UsageProblem(f"{path}: unknown key {unknown[0]!r}; keys: {', '.join(sorted(KEYS))}")
    scheduler = raw.get("device_scheduler", "read-first")
    if scheduler not in DEVICE_SCHEDULERS:
        raise UsageProblem(f"{path}: device_scheduler is {scheduler!r}, must be one of {', '.join(DEVICE_SCHEDULERS)}")
    for key in ("description", "elevator"):
        if not isinstance(raw.get(key), str):
            raise UsageProblem(f"{path}: {key} is missing")
    published = raw.get("published", True)
    if not isinstance(published, bool):
        raise UsageProblem(f"{path}: published is {published!r}, must be true or false")
    if "detector" in raw and raw.keys() & {"foreground", "ioprio", "cgroup"}:
        raise UsageProblem(f"{path}: [detector] has fasttrackd set what foreground, ioprio and cgroup would set")
    return Policy(
        name=path.stem,
        description=raw["description"],
        elevator=raw["elevator"],
        device_scheduler=scheduler,
        settings=_settings(raw.get("setting", []), f"{path}: [[setting]]", (APPS, *DEPTHS)),
        foreground=_settings(raw.get("foreground", []), f"{path}: [[foreground]]", (UID, *DEPTHS)),
        ioprio=_ioprio(raw["ioprio"], f"{path}: [ioprio]") if "ioprio" in raw else None,
        cgroup=_group_files(raw.get("cgroup", []), f"{path}: [[cgroup]]"),
        detector=_detector(raw["detector"], f"{path}: [detector]") if "detector" in raw else None,
        published=published,
    )


def names(directory: Path = POLICIES) -> list[str]:
    """All policies, stock first."""
    return sorted((path.stem for path in directory.glob("*.toml")), key=lambda name: (name != "stock", name))


def published(directory: Path = POLICIES) -> list[str]:
    """Those that docs/RESULTS.md has, stock first."""
    return [name for name in names(directory) if parse(directory / f"{name}.toml").published]


def load(name: str, directory: Path = POLICIES) -> Policy:
    """The policy NAME; an unknown name is an error that names the known ones."""
    path = directory / f"{name}.toml"
    if name not in names(directory):
        raise UsageProblem(f"there is no policy {name!r}; policies: {', '.join(names(directory))}")
    return parse(path)
