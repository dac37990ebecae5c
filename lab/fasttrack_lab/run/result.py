# SPDX-License-Identifier: GPL-2.0-only
"""Judge a run: it failed unless its result, its exit status and its kernel log are clean.

What an unpatched kernel says under load, and goes on from, is noted in the result and fails no run of a comparison: the
time that the user waited is good. A boot that has no result must not say it either.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from fasttrack_lab.inputs.cell import Cell
from fasttrack_lab.run import why
from fasttrack_lab.run.bad_lines import kind_of
from fasttrack_lab.run.boot.backend import Outcome

ALLOWED_LINES = (re.compile(r"Failed to initialize ubd device"),)
"""What UML always prints and means nothing."""

NOTED_LINES = (re.compile(r"page allocation failure: order:0, mode:\S*GFP_ATOMIC"),)
"""Of what fails a boot, what fails no run. An allocation that may not sleep found no page: its callers expect that.
With one processor it happens while all free pages are in that processor's lists, which no watermark counts."""

POWER_OFF = re.compile(r"reboot: (Power down|System halted)|sysrq: Resetting")
POWER_CUT = re.compile(r"mflash: power cut")

TAIL_LINES = 40


@dataclass(frozen=True)
class LogProblem:
    """A line of the console that must not be there."""

    line: int
    kind: str
    text: str

    @property
    def fails(self) -> bool:
        """Whether a run with this line in its log failed."""
        return not any(pattern.search(self.text) for pattern in NOTED_LINES)

    def __str__(self) -> str:
        return f"{self.kind} (line {self.line}): {self.text}"


def log_problems(console: str) -> list[LogProblem]:
    """Everything in a console log that must not be there."""
    found = []
    for number, line in enumerate(console.splitlines(), 1):
        if any(pattern.search(line) for pattern in ALLOWED_LINES):
            continue
        kind = kind_of(line)
        if kind is not None:
            found.append(LogProblem(number, kind, line.strip()))
    return found


@dataclass(frozen=True)
class Verdict:
    """Whether a run counts, and why not."""

    ok: bool
    error: str | None
    problems: tuple[LogProblem, ...]
    guest: dict[str, Any] | None
    """result.json as the guest wrote it, if it can be read."""


def parse_guest(text: str | None) -> tuple[dict[str, Any] | None, str | None]:
    """The guest's result.json, or why it cannot be used."""
    if text is None:
        return None, "the guest wrote no result.json"
    try:
        raw = json.loads(text)
    except json.JSONDecodeError as error:
        return None, f"the guest's result.json is not whole: {error}"
    if not isinstance(raw, dict) or not isinstance(raw.get("ok"), bool):
        return None, "the guest's result.json has no verdict"
    if not raw["ok"]:
        return raw, f"the guest reports: {raw.get('error') or 'an error without a text'}"
    return raw, None


def judge(outcome: Outcome, result_text: str | None) -> Verdict:
    """All four judges: time, kernel log, exit status, result. Each that objects gives a part of the error."""
    problems = log_problems(outcome.console)
    guest, guest_error = parse_guest(result_text)
    reasons = []
    if outcome.timed_out:
        reasons.append(f"the guest did not end within {outcome.wall_s:.0f} s of real time and was killed")
    failing = [problem for problem in problems if problem.fails]
    if failing:
        reasons.append(f"kernel log: {_first(failing)}")
    if guest_error:
        reasons.append(guest_error)
    if not outcome.timed_out:
        if outcome.status:
            reasons.append(f"the guest's kernel ended with {_status_text(outcome.status)}")
        elif not POWER_OFF.search(outcome.console):
            reasons.append("the console ends without a power off: the log is cut short")
    return Verdict(not reasons, "; ".join(reasons) or None, tuple(problems), guest)


def judge_boot(outcome: Outcome) -> str | None:
    """For a boot without a result.json: why it failed, or None. Its log must be clean of what is only noted too."""
    verdict = judge(outcome, '{"ok": true}')
    return verdict.error or (f"kernel log: {_first(verdict.problems)}" if verdict.problems else None)


def judge_power_cut(outcome: Outcome) -> str | None:
    """For a boot that must end in a power cut: why it is not what was asked for."""
    if outcome.timed_out:
        return "the guest did not end"
    problems = log_problems(outcome.console.split("mflash: power cut", 1)[0])
    if problems:
        return f"kernel log before the power cut: {problems[0]}"
    if not POWER_CUT.search(outcome.console):
        return "the guest ended without the power cut"
    return None


def _first(problems: Sequence[LogProblem]) -> str:
    """The first problem, and how many more there are."""
    return f"{problems[0]} and {len(problems) - 1} more" if len(problems) > 1 else str(problems[0])


def _status_text(status: int) -> str:
    return f"signal {-status}" if status < 0 else f"exit status {status}"


def tail(console: str, lines: int = TAIL_LINES) -> str:
    """The end of a console log."""
    return "\n".join(console.splitlines()[-lines:])


NS_PER_S = 1e9


def _app_figures(app: dict[str, Any]) -> dict[str, Any]:
    since = app["since_touch"]
    return {
        "uid": app["uid"],
        "bytes": app["bytes_read"] + app["bytes_written"],
        "bytes_read": app["bytes_read"],
        "bytes_written": app["bytes_written"],
        "bytes_since_touch": since["bytes_read"] + since["bytes_written"],
        "ops": app["ops"],
        "io_s": app.get("io_ns", 0) / NS_PER_S,
        "think_s": app.get("think_ns", 0) / NS_PER_S,
        "longest_pause_s": app.get("longest_call_ns", 0) / NS_PER_S,
        "longest_pause_in": app.get("longest_call", ""),
        "verify_errors": app.get("verify_errors", 0),
        "error": app.get("error"),
        **({"replay": app["replay"]} if "replay" in app else {}),
    }


def _early_end(app: dict[str, Any]) -> dict[str, Any]:
    """The exit status of a command that ended by itself."""
    code = app.get("exit_code")
    return {} if code is None else {"exit_code": code}


def _app_response_s(app: dict[str, Any], touch_ns: int) -> float | None:
    """The part of the response that is one foreground app's, in s; see Result.response_s."""
    if "replay" in app:
        return float(app["io_ns"] / NS_PER_S)
    finished = app.get("finished_ns")
    return None if finished is None else float((finished - touch_ns) / NS_PER_S)


def _replayed(guest: dict[str, Any]) -> list[dict[str, Any]]:
    """Foreground apps that are recordings."""
    return [app for app in guest.get("apps", []) if app["role"] == "foreground" and "replay" in app]


@dataclass(frozen=True)
class Printed:
    """What a command printed: standard output and errors."""

    out: str
    err: str


@dataclass(frozen=True)
class Result:
    """One run's result, ready to be written as JSON."""

    cell: Cell
    """With the file system that it had."""
    verdict: Verdict
    kernel: str
    wall_s: float
    kept_log: str | None = None
    printed: Mapping[str, Printed] = field(default_factory=dict)
    """By app, where the run was to keep it."""

    @property
    def ok(self) -> bool:
        """Whether the run counts."""
        return self.verdict.ok

    @property
    def total_s(self) -> float | None:
        """Virtual time from the touch to the end of the foreground's last operation, in s."""
        guest = self.verdict.guest
        if not self.ok or guest is None:
            return None
        return float((guest["end_ns"] - guest["touch_ns"]) / NS_PER_S)

    @property
    def response_s(self) -> float | None:
        """Virtual time that the user waits, in s.

        Of a scenario, from the touch to the end of the interaction; of a command, from its start to its exit; of a
        recording, the time that its threads spend in their I/O calls, because its think times are the user's too.
        """
        guest = self.verdict.guest
        if not self.ok or guest is None:
            return None
        if guest.get("exec"):
            return float(guest["exec"]["response_ns"] / NS_PER_S)
        replayed = _replayed(guest)
        return sum(app["io_ns"] for app in replayed) / NS_PER_S if replayed else self.total_s

    def to_json(self) -> dict[str, Any]:
        """The object that --json writes. Only "host" differs between two equal runs."""
        guest = self.verdict.guest or {}
        apps = guest.get("apps", [])
        front = [a for a in apps if a["role"] == "foreground"]
        touch_ns = guest.get("touch_ns") or 0
        answer: dict[str, Any] = {
            "scenario": self.cell.scenario,
            "phone": self.cell.phone,
            "policy": self.cell.policy,
            "backgrounds": list(self.cell.backgrounds),
            "seed": self.cell.seed,
            "fs": self.cell.fs,
            "lru": self.cell.lru,
            "idle": self.cell.idle,
            "ok": self.ok,
            "error": self.verdict.error,
            "response_s": self.response_s,
            "total_s": self.total_s,
            "foreground": _app_figures(front[0]) if front else {},
            "foregrounds": {
                a["name"]: _app_figures(a) | {"response_s": _app_response_s(a, touch_ns) if self.ok else None}
                for a in front
            },
            "background": {a["name"]: _app_figures(a) | _early_end(a) for a in apps if a["role"] != "foreground"},
            "kernel": guest.get("kernel", self.kernel),
            "log_problems": [str(problem) for problem in self.verdict.problems],
            "memory": guest.get("memory", {}),
            "counters": guest.get("counters", {}),
            "elevator": guest.get("elevator", {}),
            "device": guest.get("device", {}),
        }
        if guest.get("why"):
            answer["why"] = why.digest(guest["why"], recording=bool(_replayed(guest)))
        if guest.get("exec"):
            answer["exit_code"] = guest["exec"]["exit_code"]
        if self.printed:
            answer["printed"] = {name: asdict(text) for name, text in self.printed.items()}
        answer["host"] = {"wall_s": round(self.wall_s, 3), "log": self.kept_log}
        return answer
