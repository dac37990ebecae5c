# SPDX-License-Identifier: GPL-2.0-only
"""Programs in front of programs: what they print, the matrix and the frontier that come of it, with made-up records."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from rich.console import Console

from fasttrack_lab.compare.comparison import inputs_key
from fasttrack_lab.compare.records import Record
from fasttrack_lab.host.errors import UsageProblem
from fasttrack_lab.host.paths import CHECKOUT
from fasttrack_lab.inputs import phone
from fasttrack_lab.inputs.cell import Cell
from fasttrack_lab.run.runner import RunSpec
from fasttrack_lab.workloads import behind, calls, front, frontier, frontier_plot, matrix, matrix_page, programs


def said(sum_s: float, longest_s: float = 0.01, end_s: float = 5.0) -> str:
    times = {"sum_s": sum_s, "p50_s": sum_s / 100, "p99_s": longest_s, "longest_s": longest_s}
    return json.dumps({"calls": 100, **times, "begin_s": 4.0, "end_s": end_s}) + "\n"


def record(cell: Cell, out: str, error: str | None = None, behind_out: str = "", **more: Any) -> Record:
    """A run whose programs have printed."""
    names = [f"background-{index + 1}" for index in range(len(cell.backgrounds))]
    printed = {"foreground": {"out": out, "err": "x\nno such file\n"}}
    printed |= {name: {"out": behind_out, "err": ""} for name in names}
    background: dict[str, Any] = {name: {"bytes": 5} for name in names}
    result = {"response_s": 7.0, "exit_code": 0, "printed": printed, "kernel": "6.12-test", "background": background}
    return Record(cell, "i", "k", None if error else result | more, error)


# What the programs do.


def test_every_kind_says_what_it_does() -> None:
    for kind in (*front.KINDS.values(), *behind.KINDS.values()):
        assert (kind.__doc__ or "").endswith((".", ".\n"))
    assert {one.name for one in programs.fronts((), 1)} == set(front.KINDS)
    assert all(one.purpose for one in (*programs.fronts((), 1), *programs.behinds(())))


def test_a_call_that_waits_for_nothing_counts_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0, 100, 900, 1000, 6000, 10_000, 12_000, 20_000])
    monkeypatch.setattr(front.time, "monotonic_ns", lambda: next(clock))
    call = front.Calls()
    for _ in range(3):
        call(lambda: None)
    report = call.report()
    assert call.took_ns == [0, 5000, 2000]
    assert (report["calls"], report["sum_s"], report["longest_s"], report["p50_s"]) == (3, 7e-6, 5e-6, 2e-6)
    assert (report["begin_s"], report["end_s"]) == (0.0, 2e-5)


SMALL = ("create", "save", "unlink", "wal", "rollback", "fsyncdir", "osync", "coldread")


@pytest.mark.parametrize("kind", SMALL)
def test_a_program_in_front_prints_its_calls(
    kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(front.time, "sleep", lambda _: None)
    for path, _ in programs.FRONT_FILES[:3]:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(b"x")
    front.main([kind, "1"])
    found = calls.parse(capsys.readouterr().out)
    assert found is not None and found.calls >= 3 and found.longest_s is not None
    assert found.sum_s >= found.longest_s


def test_a_cold_reader_reads_each_part_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    Path(front.DATA).write_bytes(b"d" * front.READ_BYTES * 5)
    places: list[int] = []
    monkeypatch.setattr(front.os, "pread", lambda handle, size, at: places.append(at // size))
    one = front.reader(Random(1))
    for _ in range(10):
        one()
    assert sorted(places[:5]) == sorted(places[5:]) == [0, 1, 2, 3, 4]


def test_calls_that_wait_for_nothing_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s, slept = [0.0], []

    def sleep(pause_s: float) -> None:
        slept.append(pause_s)
        now_s[0] += pause_s

    monkeypatch.setattr(front.time, "monotonic_ns", lambda: round(now_s[0] * 1e9))
    monkeypatch.setattr(front.time, "sleep", sleep)
    for one, think_s, pauses in ((lambda: None, 0.0, 10), (lambda: sleep(0.002), 0.0, 5), (lambda: None, 0.005, 2)):
        call = front.Calls()
        slept.clear()
        front.pace(call, one, think_s, 0.01)
        assert len(slept) == pauses


def test_bytes_are_shown_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[bytes] = []
    clock = iter([1_000_000_000, 1_100_000_000, 1_300_000_000])
    monkeypatch.setattr(behind.time, "monotonic_ns", lambda: next(clock))
    monkeypatch.setattr(behind.os, "write", lambda handle, text: lines.append(text))
    count = behind.Count()
    for _ in range(3):
        count.add(10)
    assert lines == [b"1000000000 10\n", b"1300000000 30\n"]


def test_a_round_without_a_wait_takes_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(behind.time, "sleep", slept.append)
    monkeypatch.setattr(behind.time, "monotonic", lambda: 1.0)
    numbers = behind.rounds()
    assert [next(numbers) for _ in range(3)] == [0, 1, 2] and slept == [behind.BREATH_S] * 2


# What they print.


def test_other_output_is_no_time_of_ours() -> None:
    assert calls.parse("hello\n" + said(1.5)) == calls.parse(said(1.5))
    for text in ("", "hello", "3", '{"a": 1}', said(1.0) + "bye"):
        assert calls.parse(text) is None


def test_a_program_of_the_users_counts_as_a_whole() -> None:
    found = calls.calls_of(record(Cell("mine", "s6", "stock", (), 1), "done\n"))
    assert found == calls.Calls(sum_s=7.0)


def test_a_run_that_is_no_measurement_says_why() -> None:
    cell = Cell("save", "s6", "stock", ("write", "write"), 1)
    good = record(cell, said(1.0))
    failed = record(cell, said(1.0), error="the guest did not end")
    broken = record(cell, said(1.0), exit_code=2)
    early = record(cell, said(1.0), background={"background-1": {}, "background-2": {"exit_code": 127}})
    assert [calls.calls_of(one) is None for one in (good, failed, broken, early)] == [False, True, True, True]
    lines = calls.failures([good, failed, broken, early])
    assert len(lines) == 3 and all("save on s6, stock, background write+write" in line for line in lines)
    assert "the guest did not end" in lines[0] and "status 2: no such file" in lines[1]
    assert "background-2 ended before it was to, with status 127" in lines[2]


def test_bytes_of_a_window_come_evenly_between_two_lines() -> None:
    printed = "0 0\n1000000000 100\nnoise\n3000000000 500\n"
    assert calls.bytes_between(printed, 0.0, 3.0) == 500
    assert calls.bytes_between(printed, 0.5, 2.0) == 50 + 200
    assert calls.bytes_between(printed, 2.0, 9.0) == 200
    assert calls.bytes_between("", 0.0, 1.0) == 0


# The runs.


def matrix_asked(**more: Any) -> matrix.Asked:
    values: dict[str, Any] = {
        "fronts": tuple(programs.fronts(("save", "coldexec"), 1)),
        "behinds": tuple(programs.behinds(("write", "read"))),
        "places": (("s6", "ext4"),),
        "policies": ("stock", "bfq", "fasttrack"),
        "seed": 1,
        "warmups_s": (4.0,),
        "limits_s": (300.0, 60.0),
    }
    return matrix.Asked(**values | more)


def test_a_matrix_has_the_programs_alone_and_every_pair() -> None:
    runs = dict(matrix_asked().runs())
    alone = [cell for cell in runs if not cell.backgrounds]
    assert [(cell.scenario, cell.policy) for cell in alone] == [("save", "stock"), ("coldexec", "stock")]
    assert len(runs) == 2 + 2 * 2 * 3
    cell = Cell("save", "s6", "bfq", ("read", "read"), 1, "ext4", start_s=4.0)
    spec = runs[cell]
    assert [app["argv"][-1] for app in spec.job["apps"]] == [
        "exec python3 /run/fasttrack/front.py save 1",
        "exec python3 /run/fasttrack/behind.py read 100",
        "exec python3 /run/fasttrack/behind.py read 101",
    ]
    assert (spec.job["touch_s"], spec.job["limit_s"], spec.limit_s) == (4.0, 304.0, 60.0)
    assert spec.files_from is None and spec.printed and set(spec.traces) == {"front.py", "behind.py"}
    large = [file for file in spec.job["files"] if file["path"] == behind.LARGE]
    assert [file["app"] for file in large] == ["background-1", "background-2"]
    started = runs[replace(cell, scenario="coldexec")].files_from
    assert started is not None and any((started / front.PROGRAMS).iterdir())


def test_every_pair_starts_at_every_moment() -> None:
    runs = dict(matrix_asked(warmups_s=(4.0, 5.5)).runs())
    assert len(runs) == 2 + 2 * 2 * 3 * 2
    late = Cell("save", "s6", "bfq", ("read", "read"), 1, "ext4", start_s=5.5)
    assert runs[late].job["touch_s"] == 5.5 and "start 5.5 s" in late.text()
    assert {cell.start_s for cell in runs if not cell.backgrounds} == {4.0}


def test_a_service_is_timed_beside_somebody_in_front() -> None:
    runs = dict(matrix_asked(fronts=tuple(programs.fronts(("save",), 1)), service=True).runs())
    alone, *_ = runs.values()
    spec = runs[Cell("service-save", "s6", "bfq", ("read", "read"), 1, "ext4", start_s=4.0)]
    for one, kind, count in ((alone, "nothing", 2), (spec, "read", 4)):
        looks, *_, service = one.job["apps"]
        assert len(one.job["apps"]) == count
        assert looks["argv"][-1] == f"exec python3 /run/fasttrack/front.py {kind} 1 10 300 /tmp/ended"
        assert (service["uid"], service["role"], service["start_s"]) == (1000, "service", looks["start_s"])
        assert "( exec python3 /run/fasttrack/front.py save 1 ); echo $? > /tmp/ended.new" in service["argv"][-1]
    assert {file["app"] for file in spec.job["files"] if file["path"] == front.FILM} == {"service"}


def test_the_service_is_what_is_timed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cell = Cell("service-save", "s6", "stock", ("write", "write"), 1)
    good, failed = record(cell, said(9.0)), record(cell, said(9.0), exit_code=3)
    for one in (good, failed):
        assert one.result is not None
        one.result["printed"]["service"] = {"out": said(1.5), "err": "no room\n"}
    assert calls.calls_of(good) == calls.parse(said(1.5))
    assert (calls.problem(failed) or "").startswith("the service ended with status 3: no room")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ended").write_text("3\n")
    with pytest.raises(SystemExit) as ended:
        front.main(["nothing", "1", "10", "60", str(tmp_path / "ended")])
    assert ended.value.code == 3


def test_one_cell_is_looked_into(tmp_path: Path) -> None:
    one = {"fronts": tuple(programs.fronts(("save",), 1)), "behinds": tuple(programs.behinds(("write",)))}
    asked = matrix_asked(**one, policies=("bfq",))
    spec = asked.looked_into(1000, tmp_path)
    plain = dict(asked.runs())[spec.cell]
    assert spec == replace(plain, job={**plain.job, "why_interval_ns": 1000}, trace_to=tmp_path)
    assert spec.cell.backgrounds == ("write", "write") and asked.looked_into(0, None) == plain
    several: tuple[dict[str, Any], ...] = (
        {"policies": ("stock", "bfq")},
        {"places": (("s6", "ext4"), ("n6", "ext4"))},
        {"behinds": ()},
        {"warmups_s": (4.0, 5.0)},
    )
    for many in several:
        with pytest.raises(UsageProblem, match="look into one cell"):
            matrix_asked(**(one | {"policies": ("bfq",)} | many)).looked_into(1000, None)


def test_what_a_run_is_made_of_is_in_its_key(tmp_path: Path) -> None:
    spec = next(iter(dict(matrix_asked().runs()).values()))
    other_text = replace(spec, traces={**spec.traces, "front.py": "pass"})
    (tmp_path / "file").write_text("1")
    files = replace(spec, files_from=tmp_path)
    keys = [inputs_key(one) for one in (spec, other_text, files)]
    (tmp_path / "file").write_text("2")
    assert len({*keys, inputs_key(files)}) == 4


def test_programs_of_the_users() -> None:
    (mine,) = programs.own(["my-app=make -j2 A=b"], "--front-program", front.KINDS, programs.FRONT_FILES)
    assert (mine.name, mine.line, mine.files) == ("my-app", "make -j2 A=b", programs.FRONT_FILES)
    for wrong, why in (
        (["x"], "must be NAME=CMD"),
        (["=y"], "must be NAME=CMD"),
        (["a b=y"], "must be NAME=CMD"),
        (["a= "], "must be NAME=CMD"),
        (["save=y"], "'save' is there already"),
        (["a=x", "a=y"], "'a' is there already"),
    ):
        with pytest.raises(UsageProblem, match=why):
            programs.own(wrong, "--front-program", front.KINDS)
    with pytest.raises(UsageProblem, match="--front: unknown kind 'sav' .did you mean 'save'"):
        programs.fronts(("sav",), 1)


# The matrix.

SUMS = {
    ("save", "write"): {"stock": 10.0, "bfq": 4.0, "fasttrack": 1.0},
    ("save", "read"): {"stock": 2.0, "bfq": 1.0, "fasttrack": 1.5},
    ("create", "write"): {"stock": 0.0, "bfq": 0.4, "fasttrack": 0.0005},
}


def matrix_records() -> list[Record]:
    alone = [
        record(Cell(name, "s6", "stock", (), 1, "ext4"), said(sum_s))
        for name, sum_s in (("save", 0.5), ("create", 0.0))
    ]
    beside = [
        record(Cell(name, "s6", rule, (other, other), 1, "ext4"), said(sum_s, longest_s=sum_s / 2))
        for (name, other), by_policy in SUMS.items()
        for rule, sum_s in by_policy.items()
    ]
    lost = [
        record(Cell("create", "s6", rule, ("read", "read"), 1, "ext4"), "", error="lost")
        for rule in SUMS["save", "read"]
    ]
    return [*alone, *beside, *lost]


POLICIES = ("stock", "bfq", "fasttrack")


def test_cells_are_over_alone_and_over_the_best_other() -> None:
    write, read, create, lost = matrix.rows(matrix_records(), POLICIES)
    assert [write.over_alone(rule) for rule in POLICIES] == [20.0, 8.0, 2.0]
    assert (write.best(), write.over_best, write.worse, matrix.mark(write)) == ("bfq", 0.25, False, "")
    assert (read.over_best, read.worse, matrix.mark(read)) == (1.5, True, "1.50x bfq")
    # Less than a millisecond is no time that anybody waits.
    assert create.over_alone("bfq") == pytest.approx(400) and create.over_alone("fasttrack") == 1.0
    assert create.best() == "stock" and not create.worse
    assert (lost.front, lost.over_alone("stock"), lost.best(), lost.over_best, lost.worse) == (
        "create",
        None,
        None,
        None,
        False,
    )


def test_several_moments_have_a_mean_and_a_worst() -> None:
    """A longest call is that of all; a moment that has no times leaves none for the cell."""
    read, alone = ("read", "read"), record(Cell("save", "s6", "stock", (), 1, "ext4"), said(0.5))
    moments = [
        record(Cell("save", "s6", "stock", read, 1, "ext4", start_s=start_s), said(sum_s, longest_s))
        for start_s, sum_s, longest_s in ((4.0, 1.0, 0.4), (5.0, 2.0, 0.1), (6.0, 6.0, 0.2))
    ]
    (row,) = found = matrix.rows([alone, *moments], ("stock",))
    mean = row.by_policy["stock"]
    assert mean is not None and (mean.sum_s, mean.p50_s, mean.longest_s, mean.calls) == (3.0, 0.03, 0.4, 100)
    assert (row.over_alone("stock"), row.worst_over_alone("stock")) == (6.0, 12.0)
    (total,) = matrix.sums(found, ("stock",))
    assert (total.mean, total.worst) == (pytest.approx(6.0), 12.0)
    console = Console(width=140, record=True)
    console.print(matrix.table(found, ("stock",)))
    assert "6.00, 12 (400)" in console.export_text()
    lost = record(Cell("save", "s6", "stock", read, 1, "ext4", start_s=7.0), "", error="lost")
    (row,) = matrix.rows([alone, *moments, lost], ("stock",))
    assert row.by_policy["stock"] is None and row.worst_over_alone("stock") is None


def test_the_sum_of_a_matrix() -> None:
    found = matrix.rows(matrix_records(), POLICIES)
    text = matrix.summary(found, POLICIES)
    assert "fasttrack 1.82* in 3 of 4 cells, worst 3.00 (save beside read)" in text
    assert "stock, bfq, or failed, in 1 of the 3 cells where one of them has a result" in text
    whole = [row for row in found if row.front == "save"]
    assert "fasttrack 2.45 in 2 of 2 cells" in matrix.summary(whole, POLICIES) and "*" not in matrix.summary(
        whole, POLICIES
    )
    assert "is worse" not in matrix.summary(matrix.rows(matrix_records(), POLICIES[:2]), POLICIES[:2])
    assert matrix.summary([], POLICIES).endswith("no cell has a result")


def failed_at(records: list[Record], rule: str, scenario: str) -> list[Record]:
    """The same records, where a policy's runs of a program in front have failed."""
    mine = [one.cell.policy == rule and one.cell.scenario == scenario and bool(one.cell.backgrounds) for one in records]
    return [
        replace(one, result=None, error="lost") if failed else one for one, failed in zip(records, mine, strict=True)
    ]


def test_a_failed_run_makes_no_number_better() -> None:
    whole = [one for one in matrix_records() if (one.cell.scenario, *one.cell.backgrounds[:1]) != ("create", "read")]
    assert matrix.counted(matrix.rows(whole, POLICIES)) == (1, 3)
    found = matrix.rows(failed_at(whole, "fasttrack", "create"), POLICIES)
    assert matrix.counted(found) == (2, 3)
    text = matrix.summary(found, POLICIES)
    assert "fasttrack 2.45* in 2 of 3 cells" in text and "in 2 of the 3 cells" in text
    (lost,) = [row for row in found if row.front == "create"]
    assert (lost.worse, lost.over_best, matrix.mark(lost)) == (True, None, "failed, stock")
    # Nobody asked for ours.
    assert not any(row.worse for row in matrix.rows(whole, POLICIES[:2]))
    none = matrix.rows(failed_at(failed_at(whole, "fasttrack", "create"), "fasttrack", "save"), POLICIES)
    assert "fasttrack -* in 0 of 3 cells" in matrix.summary(none, POLICIES)


def test_the_table_of_a_matrix() -> None:
    console = Console(width=140, record=True)
    console.print(matrix.table(matrix.rows(matrix_records(), POLICIES), POLICIES))
    lines = console.export_text().splitlines()
    (read,) = [line.split() for line in lines if line.split()[:2] == ["save", "read"]]
    assert read == [
        "save",
        "read",
        "0.500",
        "(10.0)",
        "4.00",
        "(1000)",
        "2.00",
        "(500)",
        "3.00",
        "(750)",
        "1.50x",
        "bfq",
    ]
    assert sum(line.count("failed") for line in lines) == 3


def test_the_numbers_of_a_matrix(tmp_path: Path) -> None:
    matrix.write_csv(tmp_path / "cells.csv", matrix.rows(matrix_records(), POLICIES))
    with (tmp_path / "cells.csv").open() as lines:
        found = list(csv.DictReader(lines))
    assert len(found) == 4 * (1 + len(POLICIES))
    (mine,) = [one for one in found if (one["front"], one["behind"], one["policy"]) == ("save", "read", "fasttrack")]
    assert (mine["sum_s"], mine["longest_s"], mine["over_alone"], mine["over_best_other"]) == (
        "1.5",
        "0.75",
        "3.0",
        "1.5",
    )


def test_the_page_of_a_matrix() -> None:
    records = matrix_records()
    asked = matrix_asked(policies=POLICIES)
    failed = calls.failures(records)
    html = matrix_page.page(matrix.rows(records, POLICIES), asked, records, failed, "./fasttrack matrix")
    assert html.count("<svg") == len(POLICIES) + 1 and 'src="' not in html
    assert "1.50x bfq" in html and ": lost" in html and "6.12-test" in html and "An editor saves 30 times" in html


# The frontier.


def frontier_asked(**more: Any) -> frontier.Asked:
    values: dict[str, Any] = {
        "kinds": ("read",),
        "thinks_ms": (0.0, 100.0),
        "behinds": ("write",),
        "apps": (2,),
        "places": (("s6", "ext4"),),
        "policies": ("stock", "fasttrack"),
        "seed": 1,
        "times_s": (3.0, 8.0, 60.0),
    }
    return frontier.Asked(**values | more)


def test_a_frontier_has_its_baselines() -> None:
    runs: dict[Cell, RunSpec] = dict(frontier_asked(policies=("bfq",)).runs())
    names = [(cell.scenario, cell.policy, len(cell.backgrounds)) for cell in runs]
    assert names == [
        ("read-0ms", "stock", 0),
        ("read-100ms", "stock", 0),
        ("nothing", "stock", 2),
        ("read-0ms", "stock", 2),
        ("read-0ms", "bfq", 2),
        ("read-100ms", "stock", 2),
        ("read-100ms", "bfq", 2),
    ]
    job = list(runs.values())[1].job
    assert job["apps"][0]["argv"][-1] == "exec python3 /run/fasttrack/front.py read 1 100 8"


def test_the_page_of_commands_has_the_numbers_of_runs() -> None:
    text = (CHECKOUT / "docs" / "COMMANDS.md").read_text()
    every = matrix_asked(
        fronts=tuple(programs.fronts((), 1)),
        behinds=tuple(programs.behinds(())),
        policies=("stock", "bfq", "cgroup", "fasttrack"),
    )
    whole = frontier_asked(
        kinds=frontier.KINDS,
        thinks_ms=frontier.THINKS_MS,
        behinds=frontier.BEHIND,
        apps=frontier.APPS,
        places=(("s6", "ext4"), ("n6", "ext4"), ("ufs31", "f2fs")),
        policies=("stock", "bfq", "cgroup", "fasttrack-minus", "fasttrack"),
    )
    quick = frontier_asked(kinds=frontier.KINDS, thinks_ms=(0.0, 10.0, 100.0), behinds=frontier.BEHIND)
    numbers = [len(dict(asked.runs())) for asked in (every, whole, quick)]
    assert all(f" {number}" in text for number in numbers), numbers
    assert f"{len(every.fronts)} kinds" in text and f"each of {len(every.behinds)} kinds" in text.replace("\n", " ")


def test_readers_read_as_much_however_many_they_are() -> None:
    sizes = [(apps, frontier.program_behind("read", apps).files[0][1]) for apps in frontier.APPS]
    assert all(apps * size == 1800 << 20 for apps, size in sizes)
    assert frontier.program_behind("write", 2).files == ()


def frontier_records() -> list[Record]:
    def one(scenario: str, rule: str, beside: int, sum_s: float, mb: int) -> Record:
        cell = Cell(scenario, "s6", rule, ("write",) * beside, 1, "ext4")
        return record(cell, said(sum_s, end_s=12.0), behind_out=f"4000000000 0\n12000000000 {mb * 1_000_000}\n")

    return [
        one("read-0ms", "stock", 0, 8.0, 0),
        one("read-100ms", "stock", 0, 0.4, 0),
        one("nothing", "stock", 2, 0.0, 800),
        one("read-0ms", "stock", 2, 24.0, 400),
        one("read-0ms", "fasttrack", 2, 8.8, 80),
        one("read-100ms", "stock", 2, 4.0, 720),
        one("read-100ms", "fasttrack", 2, 0.8, 576),
    ]


def test_points_are_over_alone_and_over_stock() -> None:
    found = frontier.rows(frontier_records(), frontier_asked())
    busy, light = found[1], found[3]
    assert (busy.policy, busy.p50, busy.behind_mb_s) == ("fasttrack", pytest.approx(1.1), 20.0)
    assert (busy.behind_to_idle, busy.behind_to_stock, busy.share, busy.behind_met) == (0.1, 0.2, 1.0, None)
    assert light.share == pytest.approx(0.05)
    assert (light.p50, light.behind_to_idle, light.behind_to_stock) == (pytest.approx(2.0), 0.72, 0.8)
    where = "(read-100ms beside 2 write on s6-ext4)"
    background, calls_in_front = frontier.summary(found)[1:]
    assert background.endswith(f": fasttrack 0 of 1, worst 0.80 {where}")
    assert calls_in_front.endswith(f": fasttrack 1 of 1, worst 1.00 {where}")


def test_a_frontiers_goals_are_of_the_storage() -> None:
    light = frontier.rows(frontier_records(), frontier_asked())[3]
    on_emmc = replace(light, point=replace(light.point, place=("n6", "ext4")))
    assert (light.behind_met, replace(light, behind_to_stock=0.85).behind_met) == (False, True)
    assert (on_emmc.behind_met, replace(on_emmc, behind_to_stock=0.74).behind_met) == (True, False)
    assert [replace(light, p99=p99).front_met for p99 in (1.25, 1.26)] == [True, False]
    request_s = phone.load("n6").longest_request_s
    late = [replace(on_emmc, calls=calls.Calls(1.0, p99_s=2 * late_s), p99=2.0) for late_s in (request_s, 0.1)]
    assert [row.front_met for row in late] == [True, False] and request_s < 0.1
    busy = replace(light, share=0.11)
    assert (busy.behind_met, busy.front_met) == (None, None)


def test_a_failed_run_meets_no_goal_of_a_frontier() -> None:
    records = failed_at(frontier_records(), "fasttrack", "read-100ms")
    found = frontier.rows(records, frontier_asked())
    assert (found[3].behind_met, found[3].front_met) == (False, False)
    assert [line.split(": ", 1)[1] for line in frontier.summary(found)[1:]] == ["fasttrack 0 of 1, 1 failed"] * 2
    # Beside one that has a number, the worst is of those that have one.
    other = replace(frontier.rows(frontier_records(), frontier_asked())[3], behind_to_stock=0.9)
    assert "fasttrack 1 of 2, 1 failed, worst 0.90 (read-100ms" in frontier.summary([*found, other])[1]
    # A busy front has no goal, and a missing baseline is no failure of ours.
    busy = frontier.rows(failed_at(frontier_records(), "fasttrack", "read-0ms"), frontier_asked())[1]
    assert busy.calls is None and busy.behind_met is None
    stock = frontier.rows(failed_at(frontier_records(), "stock", "read-100ms"), frontier_asked())[3]
    assert (stock.behind_met, stock.front_met) == (None, True)


def test_a_point_without_a_run_has_no_number() -> None:
    without: Callable[[str], list[frontier.Row]] = lambda name: frontier.rows(  # noqa: E731
        [one for one in frontier_records() if one.cell.scenario != name], frontier_asked()
    )
    assert [row.behind_to_idle for row in without("nothing")] == [None] * 4
    assert [row.p99 is None for row in without("read-0ms")] == [True, True, False, False]
    assert all(line.endswith(": no such point") for line in frontier.summary([])[1:])


def test_the_table_the_numbers_and_the_plot_of_a_frontier(tmp_path: Path) -> None:
    asked = frontier_asked()
    found = frontier.rows(frontier_records(), asked)
    console = Console(width=140, record=True)
    console.print(frontier.table(found, asked.policies))
    (light,) = [line.split() for line in console.export_text().splitlines() if "read-100ms" in line]
    assert light[:5] == ["s6-ext4", "read-100ms", "2", "write", "5%"] and light[-2:] == ["2.00/1.00", "0.80"]
    frontier.write_csv(tmp_path / frontier.CSV, found)
    with (tmp_path / frontier.CSV).open() as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == 4 and float(rows[3]["throughput_over_stock"]) == 0.8 and rows[3]["think_ms"] == "100.0"
    ((name, drawn),) = frontier_plot.draw(found, asked.policies)
    assert name == "frontier-s6-ext4-write.svg" and drawn.startswith("<svg") and "fasttrack" in drawn


def test_what_a_point_is_called() -> None:
    point = frontier.Point("read", 3.0, "write", 2, ("s6", "ext4"))
    assert point.scenario == "read-3ms" and frontier.scenario("nothing", 0.0) == "nothing"
    assert asdict(point)["apps"] == 2
