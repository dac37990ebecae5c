# SPDX-License-Identifier: GPL-2.0-only
"""Policies under which fasttrackd tells who is in front, in place of the lab.

A service of the run, fasttrack-standin, is what a session is to the daemon: each app has a control group as on a
desktop, and events of Android's activity manager go by the agent to the daemon. The touch writes these events where
under other policies it writes the kernel's knob.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SERVICE = "fasttrack-standin"
ROOM = "/run/fasttrack"
"""The run's directory in the guest, which has the programs."""
EVENTS = "/run/activity-events"
RUNGS = ("kernel", "freezer", "weights", "ioprio", "memory", "observe")
CONTROLLERS = ("cpu", "io", "memory")
SWITCHES = ("kernel", "weights", "memory", "freezer", "ioprio")
"""Of the section [effects] of fasttrackd's configuration."""


@dataclass(frozen=True)
class Detector:
    """How fasttrackd is configured, and what it must say that it does."""

    rung: str
    controllers: tuple[str, ...]
    """Of the apps' control groups."""
    effects: tuple[tuple[str, bool], ...]

    @property
    def config(self) -> str:
        """fasttrackd.toml."""
        lines = (f"{name} = {str(value).lower()}" for name, value in self.effects)
        return "\n".join(["[effects]", *lines, ""])

    def texts(self, apps: Sequence[Mapping[str, Any]], before: Sequence[int]) -> dict[str, str]:
        """Files of the run's directory: the configuration, and what has happened when the run begins."""
        return {"fasttrackd.toml": self.config, "begin.log": "".join(_begin(apps, before))}

    def service(self, apps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The service, as job.json has it, for these apps."""
        argv = [f"{ROOM}/{SERVICE}", "--rung", self.rung, "--controllers", " ".join(self.controllers)]
        argv += ["--events", EVENTS]
        for app in _placed(apps):
            argv += ["--app", f"{app['uid']}={app['name']}"]
        return {"name": SERVICE, "uid": 0, "role": "service", "start_s": 0.0, "argv": argv}

    def touch(self, apps: Sequence[Mapping[str, Any]], before: Sequence[int]) -> dict[str, str]:
        """What is written at the touch, as job.json has it."""
        placed = _placed(apps)
        lines = [_pause(app) for app in placed if app["uid"] in before]
        lines += [_resume(app) for app in placed if app["role"] == "foreground"]
        return {"path": EVENTS, "value": "".join(lines)}


def _placed(apps: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Those that can be in front: no services."""
    return [app for app in apps if app["role"] != "service"]


def _begin(apps: Sequence[Mapping[str, Any]], before: Sequence[int]) -> list[str]:
    """Every app's process has begun; each that is behind was in front once, and who is in front comes last."""
    placed = _placed(apps)
    lines = [f"I/am_proc_start: [0,{app['uid']},{app['uid']},{app['name']},service,{app['name']}]\n" for app in placed]
    for app in placed:
        if app["uid"] not in before and app["role"] == "background":
            lines += [_resume(app), _pause(app)]
    return [*lines, *(_resume(app) for app in placed if app["uid"] in before)]


def _resume(app: Mapping[str, Any]) -> str:
    return f"I/wm_resume_activity: [0,{app['uid']},1,{app['name']}/.Main]\n"


def _pause(app: Mapping[str, Any]) -> str:
    return f"I/wm_pause_activity: [0,{app['uid']},{app['name']}/.Main,userLeaving=true]\n"
