# SPDX-License-Identifier: GPL-2.0-only
"""Scripts of tests/guest as a guest's init: what they are asked, and what they show of the kernel."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from textwrap import indent
from typing import Any

from fasttrack_lab.host.paths import CHECKOUT, cache_dir, cache_root, digest, write_if_changed
from fasttrack_lab.host.rundir import run_dir
from fasttrack_lab.host.side_by_side import each
from fasttrack_lab.inputs import phone
from fasttrack_lab.run.boot.backend import BootSpec
from fasttrack_lab.run.image import ROOM_MIB, storage_params
from fasttrack_lab.run.result import judge_boot, tail
from fasttrack_lab.run.runner import Tools
from fasttrack_lab.run.script import init_script

MEMORY_MIB = 512
FRONT, BEHIND, SERVICE = 10101, 10102, 1000
"""UIDs of two apps and of a system service, as prologue.py has them."""

KEPT = [str(path) for path in (CHECKOUT, cache_root(), Path(sys.prefix)) if str(path).startswith(("/tmp/", "/run/"))]
"""What a script needs of the host's directories that it has for itself: the checkout's programs, and their Python."""

FT = "/sys/kernel/fasttrack/"
QUEUE = "/sys/block/sda/queue/"
Settings = Sequence[dict[str, str]]


def setting(path: str, value: object) -> dict[str, str]:
    return {"path": path, "value": str(value)}


ANDROID = setting(FT + "app_uids", "10000-19999 20000-29999 90000-99999")
"""Who is an app: Android's apps, isolated processes and SDK sandboxes."""

FASTTRACK: Settings = (
    setting(QUEUE + "scheduler", "fasttrack"),
    ANDROID,
    setting(FT + "foreground_uids", FRONT),
    setting(FT + "enabled", 1),
)
WITH_DEVICE: Settings = (*FASTTRACK, setting("/sys/module/mflash/parameters/scheduler", "foreground"))
STOCK: Settings = (setting(QUEUE + "scheduler", "mq-deadline"),)


@dataclass(frozen=True)
class Data:
    """The file system at /run/data."""

    kind: str = "ext4"
    features: str = ""
    options: str = ""


EXT4 = Data()


@cache
def scripts() -> Path:
    """The scripts as the guest sees them: until one mounts something, all is where the host has it.

    In the cache, at a path that is the same for all checkouts. It is in the guest's memory, and where that is short a
    byte more changes what happens.
    """
    texts = {path.name: path.read_bytes() for path in sorted((Path(__file__).parent / "guest").glob("*.py"))}
    where = cache_dir("scripts") / digest(part for text in texts.items() for part in text)[:16]
    for name, text in texts.items():
        write_if_changed(where / name, text, executable=True)
    return where


def script(name: str) -> Path:
    return scripts() / f"{name}.py"


def write_asked(
    where: Path, work: str, data: Data | None = None, settings: Settings = (), /, **parameters: object
) -> None:
    """What the script of a run's directory is asked to do."""
    asked = {
        "work": work,
        "data": asdict(data) if data else None,
        "settings": list(settings),
        "parameters": parameters,
    }
    (where / "asked.json").write_text(json.dumps(asked))


def ask(
    tools: Tools,
    what: str,
    *,
    data: Data | None = None,
    phone_name: str = "s6",
    settings: Settings = (),
    init: Path | None = None,
    **parameters: object,
) -> dict[str, Any]:
    """What SCRIPT.WORK shows, after the settings, on a fresh file system or none; the kernel's log must be clean.

    The script is one of tests/guest, or INIT.
    """
    name, _, work = what.partition(".")
    with run_dir(MEMORY_MIB + ROOM_MIB) as where:
        write_asked(where, work, data, settings, **parameters)
        return _shown(tools, init or script(name), where, phone_name)


def _shown(tools: Tools, init: Path, where: Path, phone_name: str) -> dict[str, Any]:
    params = storage_params(tools.backend, phone.load(phone_name))
    if KEPT:
        # What the kernel does not know is in the environment of init.
        params["FASTTRACK_KEPT"] = ":".join(KEPT)
    outcome = tools.backend.boot(BootSpec(tools.kernel.image, init, MEMORY_MIB, where, 120.0, 1, params))
    error = judge_boot(outcome)
    assert error is None, f"{error}\n{tail(outcome.console)}"
    shown: dict[str, Any] = json.loads((where / "shown.json").read_text())
    return shown


def both(tools: Tools, what: str, data: Data = EXT4, phone_name: str = "s6", **parameters: object) -> list[Any]:
    """What it shows under stock, and under FastTrack."""
    return under(tools, what, (STOCK, WITH_DEVICE), data, phone_name, **parameters)


def under(
    tools: Tools, what: str, kinds: Sequence[Settings], data: Data = EXT4, phone_name: str = "s6", **parameters: object
) -> list[Any]:
    """What SCRIPT.WORK shows with each of some settings."""

    def one(settings: Settings) -> Any:
        return ask(tools, what, data=data, phone_name=phone_name, settings=settings, **parameters)

    return each(kinds, one, "settings")


TEXT = """#!/usr/bin/python3 -ESsBu
import sys
sys.path.insert(0, {directory!r})
from prologue import read, run, tried as write
SHOWN = {{}}
def text():
{body}
    return SHOWN
run(text)
"""


def look(tools: Tools, text: str) -> dict[str, Any]:
    """What a few lines put into SHOWN; their write() gives what it said as a word. The kernel's log must be clean."""
    init = init_script(TEXT.format(directory=str(scripts()), body=indent(text, "    ")))
    with run_dir(MEMORY_MIB + ROOM_MIB) as where:
        write_asked(where, "text")
        return _shown(tools, init, where, "s6")
