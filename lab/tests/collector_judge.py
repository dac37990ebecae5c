# SPDX-License-Identifier: GPL-2.0-only
"""What is so of each recording of fasttrack-trace, whatever its source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

DAC_READ_SEARCH, FOWNER, PERFMON, BPF = (1 << number for number in (2, 3, 38, 39))
"""Capabilities, as /proc/PID/status has them."""

Record = dict[str, Any]


def covers_its_bios(records: Iterable[Record]) -> None:
    """Segments cover their bios."""
    covered: Counter[int] = Counter()
    bios: dict[int, Record] = {}
    for one in records:
        if one["record"] == "bio":
            bios[one["bio"]] = one
        elif one["record"] == "segment":
            assert one["offset"] == covered[one["bio"]]
            covered[one["bio"]] += one["bytes"]
    for bio in bios.values():
        if bio["operation"] in ("read", "write"):
            assert covered[bio["bio"]] == bio["bytes"], bio


def has_given_up(status: Mapping[str, str], kept: int) -> None:
    """What a process that root has started does not need: capabilities but those, and system calls."""
    assert {int(status[name], 16) for name in ("CapPrm", "CapEff")} == {kept}
    assert int(status["CapInh"], 16) == int(status["CapAmb"], 16) == 0
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")


def leaves_itself_out(records: Iterable[Record]) -> None:
    """What it writes to its log files, which are made, written and made durable, is counted alone."""
    logs: set[int] = set()
    own: Counter[str] = Counter()
    for one in records:
        if one["record"] == "file" and "/logs/" in one.get("path", ""):
            logs.add(one["file"])
        elif one["record"] == "own":
            own.update({name: one.get(name, 0) for name in ("bios", "written_bytes", "events")})
        # Another task may wait for its write-back.
        assert one["record"] not in ("segment", "call") or one.get("file") not in logs, one
    assert own["bios"] > 0 and own["written_bytes"] > 0 and own["events"] > 0, own
