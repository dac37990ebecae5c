# SPDX-License-Identifier: GPL-2.0-only
"""A Python program as the guest's init: it looks at the kernel from inside and prints JSON."""

from __future__ import annotations

import json
from typing import Any

from fasttrack_lab import phone
from fasttrack_lab.boot.base import BootSpec
from fasttrack_lab.image import ROOM_MIB, storage_params
from fasttrack_lab.result import judge_boot, tail
from fasttrack_lab.rundir import run_dir
from fasttrack_lab.runner import Tools
from fasttrack_lab.script import init_script

MEMORY_MIB = 512

PROLOGUE = """#!/usr/bin/python3 -ISu
import ctypes, json, os, subprocess, sys, time, traceback
LIBC = ctypes.CDLL(None, use_errno=True)

def failed(kind, error, where):
    # Init must not exit: say what went wrong, and switch off.
    traceback.print_exception(kind, error, where)
    print(f"fasttrack-guest: error: {kind.__name__}: {error}", flush=True)
    write("/proc/sysrq-trigger", "o")
    time.sleep(10)
sys.excepthook = failed

def mount(kind, target, source="none", options=""):
    if LIBC.mount(source.encode(), target.encode(), kind.encode(), 0, options.encode()):
        raise OSError(ctypes.get_errno(), f"mount {target}")

def read(path):
    with open(path) as handle:
        return handle.read().strip()

def write(path, value):
    # One write(2) of the whole value; what it said as a word.
    handle = os.open(path, os.O_WRONLY)
    try:
        os.write(handle, value.encode())
        return "ok"
    except OSError as error:
        return error.strerror
    finally:
        os.close(handle)

def as_uid(uid, work):
    # WORK in a process of its own UID; its exit status.
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setgid(uid)
            os.setuid(uid)
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

FT = "/sys/kernel/fasttrack/"
QUEUE = "/sys/block/sda/queue/"
SHOWN = {}
mount("proc", "/proc")
mount("sysfs", "/sys")
mount("tmpfs", "/tmp")
mount("tmpfs", "/run")
mount("tracefs", "/sys/kernel/tracing")
os.mkdir("/run/out")
mount("hostfs", "/run/out", options="/proc/self/cwd/.")
"""

EPILOGUE = """
with open("/run/out/shown.json", "w") as handle:
    json.dump(SHOWN, handle)
os.sync()
write("/proc/sysrq-trigger", "o")
time.sleep(10)
"""


def look(tools: Tools, script: str, phone_name: str = "s6") -> dict[str, Any]:
    """What SCRIPT put into SHOWN; the kernel's log must be clean."""
    one = phone.load(phone_name)
    with run_dir(MEMORY_MIB + ROOM_MIB) as where:
        init = init_script(PROLOGUE + script + EPILOGUE)
        params = storage_params(tools.backend, one)
        spec = BootSpec(tools.kernel.image, init, MEMORY_MIB, where, 120.0, 1, params)
        outcome = tools.backend.boot(spec)
        error = judge_boot(outcome)
        assert error is None, f"{error}\n{tail(outcome.console)}"
        shown: dict[str, Any] = json.loads((where / "shown.json").read_text())
        return shown
