# SPDX-License-Identifier: GPL-2.0-only
"""The judge, against saved logs."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from fasttrack_lab.commands import common
from fasttrack_lab.inputs.cell import Cell
from fasttrack_lab.run.bad_lines import BAD_LINES, BadLine
from fasttrack_lab.run.boot.backend import Outcome
from fasttrack_lab.run.result import (
    LogProblem,
    Result,
    Verdict,
    judge,
    judge_boot,
    judge_power_cut,
    log_problems,
    parse_guest,
    tail,
)

LOGS = Path(__file__).parent / "logs"
GOOD = {
    "version": 1,
    "ok": True,
    "error": None,
    "kernel": "6.12.117-fasttrack",
    "touch_ns": 2_000_000_000,
    "end_ns": 2_345_678_901,
    "apps": [
        {
            "name": "gallery",
            "uid": 10101,
            "role": "foreground",
            "bytes_read": 1000,
            "bytes_written": 24,
            "ops": 3,
            "io_ns": 5,
            "longest_call_ns": 250_000_000,
            "longest_call": "read a",
            "verify_errors": 0,
            "since_touch": {"bytes_read": 1000, "bytes_written": 24, "ops": 3},
        },
        {
            "name": "update",
            "uid": 10201,
            "role": "background",
            "bytes_read": 1,
            "bytes_written": 2,
            "ops": 7,
            "longest_call_ns": 1_500_000_000,
            "since_touch": {"bytes_read": 0, "bytes_written": 2, "ops": 4},
        },
    ],
    "counters": {"pauses": 4},
    "elevator": {"write_wait_ms": 100},
}


def log(name: str) -> str:
    return (LOGS / f"{name}.log").read_text()


def ended(console: str, status: int = 0, timed_out: bool = False) -> Outcome:
    return Outcome(status, console, 12.0, timed_out)


def test_clean_log_has_no_problem() -> None:
    assert log_problems(log("clean")) == []
    assert judge(ended(log("clean")), json.dumps(GOOD)).ok


@pytest.mark.parametrize(("name", "kind"), [("panic", "panic"), ("oom", "out of memory")])
def test_bad_log_fails_a_run_whose_result_is_good(name: str, kind: str) -> None:
    verdict = judge(ended(log(name)), json.dumps(GOOD))
    assert not verdict.ok
    assert kind in {problem.kind for problem in verdict.problems}
    assert verdict.error is not None and verdict.problems[0].text in verdict.error


def test_hang_is_told_from_a_failure() -> None:
    verdict = judge(ended(log("hang"), -9, timed_out=True), None)
    assert not verdict.ok
    assert verdict.error is not None and "did not end within 12 s" in verdict.error
    assert "signal 9" not in verdict.error


def test_truncated_console_fails() -> None:
    verdict = judge(ended(log("truncated")), json.dumps(GOOD))
    assert verdict.error == "the console ends without a power off: the log is cut short"


def test_truncated_result_fails() -> None:
    verdict = judge(ended(log("clean")), json.dumps(GOOD)[:-30])
    assert verdict.error is not None and "not whole" in verdict.error
    assert verdict.guest is None


def test_exit_status_fails() -> None:
    assert judge(ended(log("clean"), 134), json.dumps(GOOD)).error == "the guest's kernel ended with exit status 134"
    assert judge(ended(log("clean"), -6), json.dumps(GOOD)).error == "the guest's kernel ended with signal 6"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "no result.json"),
        ("[]", "no verdict"),
        ('{"ok": "yes"}', "no verdict"),
        ('{"ok": false, "error": "write /sys/x: EINVAL"}', "write /sys/x: EINVAL"),
        ('{"ok": false}', "an error without a text"),
    ],
)
def test_result_without_a_good_verdict(text: str | None, message: str) -> None:
    _, error = parse_guest(text)
    assert error is not None and message in error


PATTERNS = {
    "panic": 1,
    "oops": 4,
    "hung task": 1,
    "stall": 3,
    "out of memory": 3,
    "page allocation failure": 1,
    "I/O error": 3,
    "ext4 error": 6,
    "f2fs error": 1,
    "lock order": 5,
    "lock misuse": 4,
    "sanitizer report": 4,
    "error in the guest program": 1,
    "error in a script that is the guest's init": 1,
    "error in the emulated storage": 5,
    "guest process crashed": 2,
    "kernel bug": 2,
    "kernel warning": 1,
}
"""How many patterns each kind of bad line has: a row that is deleted takes its sample with it."""


def test_no_pattern_is_lacking() -> None:
    assert Counter(row.kind for row in BAD_LINES) == PATTERNS


@pytest.mark.parametrize("row", BAD_LINES, ids=lambda row: row.pattern)
def test_each_pattern_finds_its_sample(row: BadLine) -> None:
    first = next(other for other in BAD_LINES if other.matches(row.sample))
    assert first is row
    assert log_problems(f"good line\n{row.sample}\n") == [LogProblem(2, row.kind, row.sample.strip())]
    verdict = judge(ended(f"{row.sample}\n{log('clean')}"), json.dumps(GOOD))
    assert not verdict.ok and verdict.error is not None and row.kind in verdict.error


@pytest.mark.parametrize("row", BAD_LINES, ids=lambda row: row.pattern)
def test_no_pattern_is_idle(row: BadLine) -> None:
    others = [other.kind for other in BAD_LINES if other is not row and other.matches(row.sample)]
    assert row.kind not in others


@pytest.mark.parametrize(
    "line",
    [
        "F2FS-fs (sda): access invalid blkaddr:4294967295",
        "F2FS-fs (dm-0): recover_data: ino = 5 (i_size: keep) recovered = 0, err = -5",
        "F2FS-fs (sda): invalid crc_offset: 12, of the wrong block",
    ],
)
def test_what_f2fs_says_of_a_bad_mount_is_a_problem(line: str) -> None:
    assert [problem.kind for problem in log_problems(line)] == ["f2fs error"]


ATOMIC = (
    "shrink-0: page allocation failure: order:0, mode:0x40830(GFP_ATOMIC|__GFP_COMP|__GFP_RECLAIMABLE), nodemask=(null)"
)


def test_a_failed_atomic_allocation_is_noted_and_fails_a_boot_only() -> None:
    console = f"{ATOMIC}\n{log('clean')}"
    verdict = judge(ended(console), json.dumps(GOOD))
    assert verdict.ok and [problem.text for problem in verdict.problems] == [ATOMIC]
    assert judge_boot(ended(console)) == f"kernel log: page allocation failure (line 1): {ATOMIC}"
    assert judge_power_cut(ended(f"{ATOMIC}\nmflash: power cut at command 5\n", 3)) is not None


@pytest.mark.parametrize(
    "line", [ATOMIC.replace("order:0", "order:2"), ATOMIC.replace("GFP_ATOMIC", "GFP_KERNEL"), f"{ATOMIC}\nOops: 0002"]
)
def test_other_failed_allocations_fail_a_run(line: str) -> None:
    assert not judge(ended(f"{line}\n{log('clean')}"), json.dumps(GOOD)).ok


@pytest.mark.parametrize(
    "line",
    [
        "F2FS-fs (sda): Found nat_bits in checkpoint",
        "[    0.310000] F2FS-fs (dm-0): Mounted with checkpoint version = 34b1c0ff",
        "F2FS-fs (sda): checkpoint: version = 7",
        "F2FS-fs (sda): recover_data: ino = 5 (i_size: keep) recovered = 3, err = 0",
        "F2FS-fs (sda): recover_inode: ino = 5, name = fail, inline = 1",
        "F2FS-fs (sda): invalid crc_offset: 0",
        "F2FS-fs (sda): invalid crc value",
    ],
)
def test_what_f2fs_says_of_a_good_mount_is_no_problem(line: str) -> None:
    assert log_problems(line) == []


def test_boot_and_power_cut_have_judges_of_their_own() -> None:
    assert judge_boot(ended(log("clean"))) is None
    assert judge_boot(ended(log("panic"), 134)) is not None
    assert judge_power_cut(ended("booting\nmflash: power cut at command 5\n", 3)) is None
    assert judge_power_cut(ended(log("clean"))) == "the guest ended without the power cut"
    assert judge_power_cut(ended("EXT4-fs error (device sda)\nmflash: power cut\n", 3)) is not None


def test_result_has_the_keys_that_outside_scripts_rely_on() -> None:
    cell = Cell("gallery-launch", "s6", "stock", ("update",), 3, "ext4")
    shown = Result(cell, Verdict(True, None, (), GOOD), "6.12", 1.25).to_json()
    assert shown["response_s"] == 0.345678901
    assert shown["scenario"] == "gallery-launch" and shown["backgrounds"] == ["update"] and shown["seed"] == 3
    assert shown["foreground"]["uid"] == 10101 and shown["foreground"]["bytes_read"] == 1000
    assert shown["background"]["update"]["bytes_since_touch"] == 2
    assert shown["background"]["update"]["bytes"] == 3 and shown["background"]["update"]["ops"] == 7
    assert shown["background"]["update"]["longest_pause_s"] == 1.5
    assert shown["kernel"] == "6.12.117-fasttrack" and shown["log_problems"] == []
    assert shown["host"]["wall_s"] == 1.25


def test_every_app_in_front_has_its_own_response() -> None:
    gallery, update = GOOD["apps"]
    left = gallery | {"finished_ns": 2_200_000_000}
    right = gallery | {"name": "notes", "uid": 10105, "finished_ns": 2_345_678_901}
    guest = GOOD | {"apps": [left, right, update]}
    cell = Cell("split-screen", "s6", "stock", ("update",), 3, "ext4")
    shown = Result(cell, Verdict(True, None, (), guest), "6.12", 1.25).to_json()
    assert shown["foreground"]["uid"] == 10101 and list(shown["background"]) == ["update"]
    assert {name: app["response_s"] for name, app in shown["foregrounds"].items()} == {
        "gallery": 0.2,
        "notes": 0.345678901,
    }
    assert shown["response_s"] == max(app["response_s"] for app in shown["foregrounds"].values())
    failed = Result(cell, Verdict(False, "panic", (), guest), "6.12", 1.25).to_json()
    assert {app["response_s"] for app in failed["foregrounds"].values()} == {None}


def test_a_program_has_no_calls_that_anybody_counted() -> None:
    gallery, update = GOOD["apps"]
    cell = Cell("exec", "s6", "stock", ("update",), 3, "ext4")
    program = GOOD | {"apps": [gallery, update | {"ops": 0, "longest_call_ns": 0}]}
    shown, counted = (
        common.summary(Result(cell, Verdict(True, None, (), guest), "6.12", 1.25)) for guest in (program, GOOD)
    )
    assert shown.splitlines()[-1] == "  update: 0.0 MB"
    assert counted.splitlines()[-1] == "  update: 0.0 MB in 7 operations, longest call 1.500 s"


def test_failed_run_has_no_response_time() -> None:
    cell = Cell("gallery-launch", "s6", "stock", (), 3, "ext4")
    shown = Result(cell, Verdict(False, "panic", (), GOOD), "6.12", 1.25).to_json()
    assert shown["response_s"] is None and shown["ok"] is False and shown["error"] == "panic"


def test_response_of_a_recording_is_its_time_in_calls() -> None:
    front = GOOD["apps"][0] | {"io_ns": 250_000_000, "replay": {"calls": 3, "errors": {}, "skipped": 0}}
    guest = GOOD | {"apps": [front, *GOOD["apps"][1:]]}
    shown = Result(Cell("replay", "s6", "stock", (), 1), Verdict(True, None, (), guest), "6.12", 1.0).to_json()
    assert shown["response_s"] == 0.25
    assert shown["total_s"] == 0.345678901


def test_tail_is_the_end() -> None:
    assert tail("a\nb\nc", 2) == "b\nc"
