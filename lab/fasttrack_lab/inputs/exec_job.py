# SPDX-License-Identifier: GPL-2.0-only
"""Jobs whose apps are command lines of the host's programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

FOREGROUND = "foreground"
FOREGROUND_UID = 10101
SERVICE = "service"
SERVICE_UID = 1000
"""Android's system server has it: no app, and neither foreground nor background."""
BACKGROUND_UID = 10201


def background_name(index: int) -> str:
    """What the background app at INDEX is called."""
    return f"background-{index + 1}"


def command_app(name: str, uid: int, role: str, line: str) -> dict[str, Any]:
    """An app that is a shell command line."""
    argv = ["/bin/sh", "-c", line]
    return {"name": name, "uid": uid, "role": role, "start_s": 0.0, "threads": [], "argv": argv, "cwd": ".", "env": {}}


def exec_job(
    foreground: str, backgrounds: Sequence[str], warmup_s: float, limit_s: float, service: str | None = None
) -> dict[str, Any]:
    """The job of a foreground command that starts WARMUP_S after its background commands, and a service's with it."""
    apps = [command_app(FOREGROUND, FOREGROUND_UID, "foreground", foreground)]
    for index, line in enumerate(backgrounds):
        apps.append(command_app(background_name(index), BACKGROUND_UID + index, "background", line))
    if service is not None:
        apps.append(command_app(SERVICE, SERVICE_UID, "service", service))
    for app in apps:
        if app["role"] != "background":
            app["start_s"] = warmup_s
    return {"mode": "exec", "apps": apps, "files": [], "touch_s": warmup_s, "limit_s": limit_s + warmup_s}
