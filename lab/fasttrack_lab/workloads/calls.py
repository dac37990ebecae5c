# SPDX-License-Identifier: GPL-2.0-only
"""What a run of programs says: the time in the calls of the one in front, the bytes of those behind."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from fasttrack_lab.compare.records import Record
from fasttrack_lab.inputs.exec_job import FOREGROUND, SERVICE

SAID = 160
"""Characters of a program's error that are shown."""


@dataclass(frozen=True)
class Calls:
    """Times in the calls of a program in front, or of a service, in virtual s.

    Of a program that prints none: its whole time alone.
    """

    sum_s: float
    p50_s: float | None = None
    p99_s: float | None = None
    longest_s: float | None = None
    calls: int = 0
    begin_s: float = 0.0
    end_s: float = 0.0


def ratio_text(value: float | None) -> str:
    """A ratio, in three digits or so."""
    return "-" if value is None else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def parse(printed: str) -> Calls | None:
    """What our programs print last; None where it is something else."""
    lines = printed.strip().splitlines()
    try:
        raw = json.loads(lines[-1]) if lines else None
        return Calls(**raw) if isinstance(raw, dict) else None
    except (json.JSONDecodeError, TypeError):
        return None


def problem(record: Record) -> str | None:
    """Why a run has no times: it failed, or its program in front did, or one behind ended before it was to."""
    if record.error is not None or record.result is None:
        return record.error or "no result"
    if code := record.result.get("exit_code"):
        timed = _timed(record.result)
        what = "the service" if timed == SERVICE else "the program in front"
        return f"{what} ended with status {code}{_last_words(record.result, timed)}"
    for name, app in record.result["background"].items():
        if "exit_code" in app:
            return f"{name} ended before it was to, with status {app['exit_code']}{_last_words(record.result, name)}"
    return None


def _timed(result: dict[str, Any]) -> str:
    """The app whose calls are timed: the service where there is one."""
    return SERVICE if SERVICE in result.get("printed", {}) else FOREGROUND


def _last_words(result: dict[str, Any], app: str) -> str:
    """The last line of an app's errors."""
    lines = result.get("printed", {}).get(app, {}).get("err", "").strip().splitlines()
    return f": {lines[-1][:SAID]}" if lines else ""


def calls_of(record: Record) -> Calls | None:
    """The times of a run, or None where it failed."""
    if problem(record) is not None or record.result is None:
        return None
    printed = record.result.get("printed", {}).get(_timed(record.result), {}).get("out", "")
    return parse(printed) or Calls(sum_s=float(record.result["response_s"]))


def failures(records: Iterable[Record]) -> list[str]:
    """Runs that have no times, a line each."""
    return [f"failed: {record.cell.text()}: {why}" for record in records if (why := problem(record))]


def bytes_between(printed: str, begin_s: float, end_s: float) -> float:
    """Bytes of a program behind between two times of CLOCK_MONOTONIC, from its lines of time in ns and bytes.

    Between two lines they come evenly; before the first and after the last there are none.
    """
    lines = [line.split() for line in printed.splitlines()]
    points = [(int(line[0]) / 1e9, int(line[1])) for line in lines if len(line) == 2 and all(map(str.isdigit, line))]
    total = 0.0
    for (from_s, before), (to_s, after) in pairwise(points):
        inside_s = min(to_s, end_s) - max(from_s, begin_s)
        if inside_s > 0:
            total += (after - before) * inside_s / (to_s - from_s)
    return total
