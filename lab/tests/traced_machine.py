# SPDX-License-Identifier: GPL-2.0-only
"""Machines of QEMU's in which fasttrack-trace records, beside their disk's own log; and what its `top` shows."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import stock_crypt
import stock_disk
from guest_script import BEHIND, FRONT, KEPT, Data, Settings, write_asked
from origin_judge import Trace, judge

from fasttrack_lab.host import process
from fasttrack_lab.host.rundir import run_dir
from fasttrack_lab.run.boot.backend import BootSpec
from fasttrack_lab.run.boot.qemu import Qemu
from fasttrack_lab.run.result import judge_boot, tail

MEMORY_MIB = 768
DISK_MIB = 1024
"""What the apps and the log of their writes take."""

LIMIT_S = 900.0
"""Real time, on a busy host."""

SCRIPTS = Path(__file__).parent / "stock"
SDA = 8 << 20

IN_FLIGHT_KIB = 64
"""Metadata of apps that a bio has in one of the two alone: they begin and end one after the other."""

Record = dict[str, Any]


@dataclass(frozen=True)
class Machine:
    """A kernel for x86-64, its init of tests/stock, and what it starts with if its drivers are modules."""

    image: Path
    init: str
    initrd: Path | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    """Of the kernel."""


class Booted:
    """What a boot left: what its script has shown, what was recorded, and what the disk was given.

    `given` are bytes, `blocks` the begin of each of 4 KiB with its place.
    """

    def __init__(
        self,
        machine: Machine,
        program: str,
        fs: str | None,
        work: str,
        *,
        settings: Settings = (),
        counts: bool = False,
        **parameters: object,
    ) -> None:
        with run_dir(MEMORY_MIB + DISK_MIB) as where:
            write_asked(where, work, Data(fs) if fs else None, settings, program=program, **parameters)
            qemu = Qemu(counts=counts, initrd=machine.initrd, devices=stock_disk.arguments(where))
            params = {**machine.params, **({"FASTTRACK_KEPT": ":".join(KEPT)} if KEPT else {})}
            init = SCRIPTS / f"{machine.init}.py"
            outcome = qemu.boot(BootSpec(machine.image, init, MEMORY_MIB, where, LIMIT_S, params=params))
            error = judge_boot(outcome)
            assert error is None, f"{error}\n{tail(outcome.console)}"
            self.shown: dict[str, Any] = json.loads((where / "shown.json").read_text())
            log = stock_disk.read_log(where / "log")
            self.given = sum(len(write.content) for write in log)
            self.blocks = list(stock_disk.begins(log))
            if fs and work == "suite":
                self.shown |= stock_disk.shown(fs, where / "disk", stock_disk.words(self.blocks))
            self.records: list[Record] = []
            if (where / "trace").is_dir():
                lines = process.output([program, "cat", "--json", str(where / "trace")]).splitlines()
                self.records = [json.loads(line) for line in lines]

    @property
    def written(self) -> dict[int, list[int]]:
        """The words of each block of the disk."""
        return stock_disk.words(self.blocks)

    def of(self, kind: str) -> list[Record]:
        """The records of a kind."""
        return [one for one in self.records if one["record"] == kind]


def cells(text: str, title: str) -> dict[str, tuple[float, float, float]]:
    """Of a table of `top`: name -> the numbers."""
    lines = iter(text.splitlines())
    assert any(line.endswith(f"  {title}") for line in lines), (title, text)
    found: dict[str, tuple[float, float, float]] = {}
    for line in lines:
        if not line:
            break
        first, second, third, name = line.split(None, 3)
        found[name] = (float(first), float(second), float(third))
    return found


def pictures(text: str) -> list[str]:
    """What `top` has shown, one after the other."""
    return re.split(r"(?m)^(?=\d+\.\d+ s, \d+ requests)", text)[1:]


def lost(picture: str) -> int:
    """How many a picture says are missing."""
    return sum(map(int, re.findall(r"(?m)^LOST: (\d+) events", picture)))


def rows(text: str, title: str) -> dict[str, tuple[int, int]]:
    """Of a table of `top`: name -> the first two numbers, rounded down."""
    return {name: (int(first), int(second)) for name, (first, second, _) in cells(text, title).items()}


def top_paths(data: str) -> list[str]:
    """The files of the apps of `tops`, as tests/stock/suite.py has them."""
    return [f"{data}/top{number}" for number in range(3)]


def has_the_sums_of_the_records(booted: Booted, *, one_clock: bool) -> None:
    """What `top` has shown of the work `tops` is what the records of the same apps sum up to.

    ONE_CLOCK: both have a call's time from the same event.
    """
    status, text, errors = booted.shown["top"]
    assert (status, errors) == (0, ""), errors
    assert "LOST" not in text, text
    of_file: Counter[tuple[str, bool]] = Counter()
    of_app: Counter[tuple[int, bool]] = Counter()
    tasks = {one["task"]: one for one in booted.of("task")}
    files = {one["file"]: one for one in booted.of("file")}
    bios = {one["bio"]: one for one in booted.of("bio")}
    for one in booted.of("segment"):
        reads = bios[one["bio"]]["operation"] == "read"
        of_file[files.get(one.get("file"), {}).get("path", ""), reads] += one["bytes"]
        of_app[tasks.get(one.get("owner"), {}).get("uid", 0), reads] += one["bytes"]
    shown = rows(text, "by file")
    # The collector leaves out what it reads itself, the begin of files for their types; `top` does not.
    own = sum(one.get("read_bytes", 0) for one in booted.of("own")) >> 10
    for path in top_paths(booted.shown["data"]):
        read, written = (of_file[path, reads] >> 10 for reads in (True, False))
        assert shown[path][1] == written > 0, path
        assert 0 < read <= shown[path][0] <= read + own, path
    apps = rows(text, "by app")
    for uid in (FRONT, BEHIND):
        kib = [sum(counts[at] for name, counts in apps.items() if name.endswith(f"(uid {uid})")) for at in (0, 1)]
        for found, reads in zip(kib, (True, False), strict=True):
            assert abs(found - (of_app[uid, reads] >> 10)) <= IN_FLIGHT_KIB, (uid, reads, kib, of_app)
        assert kib[1] >= 1024
    has_the_calls_of_the_records(booted, text, one_clock)


def has_the_calls_of_the_records(booted: Booted, text: str, one_clock: bool) -> None:
    """How many of each app's, how long together, and the longest, which is known by a factor of two at least."""
    tasks = {one["task"]: one for one in booted.of("task")}
    took = defaultdict[str, list[float]](list)
    for one in booted.of("call"):
        task = tasks.get(one.get("task"), {})
        if task.get("uid") in (FRONT, BEHIND):
            took[f"{one['kind']}: {task['name']} (uid {task['uid']})"].append(one["duration_ns"] / 1e6)
    shown = {name: row for name, row in cells(text, "calls").items() if name.endswith((f"{FRONT})", f"{BEHIND})"))}
    assert shown.keys() == took.keys()
    for name, (count, total, longest) in shown.items():
        assert count == len(took[name]), name
        if not one_clock:
            continue
        assert abs(total - sum(took[name])) < 0.001 + 1e-6 * total, name
        assert max(took[name]) - 0.001 <= longest <= 2 * max(took[name]) + 0.001, name
    for kind, least in (("fsync", 2), ("fdatasync", 1)):
        assert sum(count for name, (count, *_) in shown.items() if name.startswith(kind + ":")) >= least


def _below(shown: dict[str, Any], blocks: int) -> dict[str, Any]:
    """What a suite shows, with places on the disk: the device above begins so many blocks after its begin."""

    def moved(places: list[int]) -> list[int]:
        return [place + blocks for place in places]

    databases = {
        path: [one | {"places": moved(one["places"])} for one in files] for path, files in shown["databases"].items()
    }
    return shown | {
        "databases": databases,
        "places": {path: moved(places) for path, places in shown["places"].items()},
    }


def judged_below(booted: Booted, target: str) -> dict[str, Counter[str]]:
    """Verdicts of each way of `stacked`, of blocks of the disk below the device of device-mapper."""
    start = booted.shown["start"]
    blocks = stock_crypt.decrypted(booted.blocks, start) if target == "crypt" else booted.blocks
    trace = Trace.of(booted.records, SDA)
    assert not trace.losses
    verdicts = judge(_below(booted.shown, start // stock_disk.BLOCK), trace, stock_disk.words(blocks))
    print(sum(verdicts.values(), Counter()), {way: dict(counts) for way, counts in verdicts.items()})
    return verdicts
