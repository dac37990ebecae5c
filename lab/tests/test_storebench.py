# SPDX-License-Identifier: GPL-2.0-only
"""storebench: the best concurrency, profiles and those of the phones, what is shown."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from fasttrack_lab.host.errors import LabError, UsageProblem
from fasttrack_lab.inputs import phone, phone_digest, placeholders, profile
from fasttrack_lab.inputs.device import Device
from fasttrack_lab.inputs.patterns import BY_NAME, PATTERNS
from fasttrack_lab.inputs.profile import Depths, Point, Profile, Slowdown
from fasttrack_lab.run import fio
from fasttrack_lab.run.runner import Tools
from fasttrack_lab.storebench import measure, phones, plan, poster, profile_page, target
from fasttrack_lab.storebench.plan import MIB, Amount, Plan

SIZE = target.SMALLEST
SDA = Device("MFLASH", "s6", 16 << 30, 32)
READ, WRITE = BY_NAME["random_read"], BY_NAME["sequential_write"]
TINY = Amount(MIB, 4 * MIB)
TINY_PLAN = Plan(SIZE, TINY, TINY, 0.2, (1, 2), pairs=((READ, WRITE),))
"""Of a few MiB: for what is written where, not for numbers."""


def curve(*rates: float) -> tuple[Point, ...]:
    """Points at depths 1, 2, 4, ... with these throughputs in MB/s."""
    return tuple(Point(1 << index, rate, rate * 10, 100.0) for index, rate in enumerate(rates))


def made(device: Device = SDA) -> Profile:
    curves = {pattern.name: curve(10, 20, 30, 30.5) for pattern in PATTERNS}
    slow = (Slowdown("random_read", "sequential_write", 100.0, 726.0),)
    return Profile(
        device, "none", Depths(4, 4, 4, 8), curves, slow, "./fasttrack storebench", "fasttrack-lab 0", "6.12"
    )


# -- the best concurrency, and the plan


@pytest.mark.parametrize(
    ("rates", "best"),
    [
        ((10,), 1),
        ((10, 10, 10), 1),
        ((10, 20, 40, 41), 4),
        ((94.9, 100), 2),
        ((95, 100), 1),
        ((10, 50, 30, 20), 2),  # too much at once may cost throughput
        ((1, 2, 4, 8, 16, 32), 32),
    ],
)
def test_best_is_the_smallest_depth_that_is_nearly_as_fast(rates: tuple[float, ...], best: int) -> None:
    assert plan.best_depth(curve(*rates)) == best


@pytest.mark.parametrize(
    ("queue_depth", "depths"),
    [(1, (1,)), (2, (1, 2)), (31, (1, 2, 4, 8, 16, 31)), (32, (1, 2, 4, 8, 16, 32)), (1023, (1, 2, 4, 8, 16, 32))],
)
def test_depths_end_at_the_devices(queue_depth: int, depths: tuple[int, ...]) -> None:
    assert plan.depths_to(queue_depth) == depths
    assert plan.depths_to(0) == (1, 2, 4, 8, 16, 32)


def first_jobs(steps: list[plan.Step]) -> list[str]:
    """The name of each step's first job: what is measured, or the fill."""
    return [step[0].name for step in steps]


PHONE_PLAN = plan.for_phone(32)
READS, SEQUENTIAL_WRITES, RANDOM_WRITES, MIXED = measure.parts(PHONE_PLAN, phones.files(PHONE_PLAN))
"""What is measured on each of four fresh devices."""
MEASURED = [
    job for part in (READS, SEQUENTIAL_WRITES, RANDOM_WRITES, MIXED) for job in first_jobs(part) if job != plan.FILL
]


def test_a_part_that_reads_begins_with_the_fill() -> None:
    assert first_jobs(READS)[:2] == [plan.FILL, "sequential_read-1"]
    assert first_jobs(SEQUENTIAL_WRITES)[0] == "sequential_write-1"
    assert first_jobs(RANDOM_WRITES)[0] == "random_write-1"
    assert first_jobs(MIXED)[:2] == [plan.FILL, "sequential_read-beside-sequential_write"]


def test_every_depth_of_every_pattern_and_every_pair_is_measured_once() -> None:
    points = {f"{pattern.name}-{depth}" for pattern in PATTERNS for depth in PHONE_PLAN.depths}
    pairs = {f"{subject.name}-beside-{stream.name}" for subject, stream in plan.PAIRS}
    assert sorted(MEASURED) == sorted(points | pairs)


def test_no_depth_writes_where_another_wrote() -> None:
    seeds = [option for step in RANDOM_WRITES for option in step[0].options if "randseed" in option]
    assert len(seeds) == len(set(seeds)) == len(PHONE_PLAN.depths)


def test_a_device_that_is_not_fresh_is_filled_once() -> None:
    (together,) = measure.parts(replace(PHONE_PLAN, fresh=False), phones.files(PHONE_PLAN))
    assert first_jobs(together) == [plan.FILL, *MEASURED]


def test_a_phones_steps_are_one_fio_and_one_after_the_other() -> None:
    wanted = plan.for_phone(2)
    *_, call = phones.lines(measure.parts(wanted, phones.files(wanted))[-1])
    jobs = call.split("--name=")[1:]
    assert [job.split()[0] for job in jobs[:3]] == [
        "fill",
        "sequential_read-beside-sequential_write",
        "sequential_read-beside-sequential_write-stream",
    ]
    assert ["--stonewall" in job for job in jobs[1:5]] == [True, False, True, False]


def test_a_pair_has_two_halves() -> None:
    subject, stream = plan.pair(READ, WRITE, TINY_PLAN, plan.Files("/r", "/w", SIZE, SIZE))
    assert (subject.file, subject.rw, subject.size, subject.depth) == ("/r", "randread", str(SIZE // 2), 1)
    assert (stream.file, stream.rw, stream.depth) == ("/w", "write", 1)
    assert f"--offset={SIZE // 2}" in stream.options and "--time_based=1" in stream.options
    assert "--exitall" in subject.options and not any("offset" in option for option in subject.options)


def test_fio_may_make_no_file() -> None:
    (steps,) = measure.parts(TINY_PLAN, plan.Files("/r", "/w", SIZE, SIZE))
    for step in steps:
        for job in step:
            assert "--allow_file_create=0" in job.options
            assert job.file == ("/r" if "read" in job.rw else "/w")


Reported = dict[str, dict[str, Any]]


def side(mb_s: float, iops: float, latency_us: float) -> dict[str, Any]:
    found = {"bw_bytes": mb_s * 1e6, "iops": iops, "lat_ns": {"mean": latency_us * 1e3}}
    return {"error": 0, "read": found, "write": found}


def fake_jobs(wanted: Plan) -> Reported:
    """A device whose reads double with the depth up to 4, and whose requests are 7 times as slow beside others."""
    found = {}
    for pattern in PATTERNS:
        for depth in wanted.depths:
            speed = min(depth, 4) if pattern.reads else 1
            found[plan.point_name(pattern, depth)] = side(10.0 * speed, 2500.0 * speed, 100.0)
    return found | {plan.pair_name(*pair): side(1, 1, 700) for pair in wanted.pairs}


def test_a_profile_from_what_fio_says() -> None:
    wanted = plan.for_phone(32)
    text = json.dumps({"jobs": [job | {"jobname": name} for name, job in fake_jobs(wanted).items()]})
    jobs = measure.by_name([f"fio: a warning\n{text}"])
    found = measure.profile(wanted, jobs, SDA, "none", "command", "6.12")
    assert found.depths == Depths(4, 4, 1, 1)
    assert found.curves["random_read"][2] == Point(4, 40.0, 10_000.0, 100.0)
    assert len(found.slowdowns) == 8 and round(found.slowdowns[0].percent) == 600
    assert found.phone == "s6"


@pytest.mark.parametrize(
    ("job", "message"),
    [
        ({}, "random_read-1: .*error 0"),
        ({"error": 5, "read": {}}, "random_read-1: .*error 5"),
        ({"read": {"iops": 1}}, "random_read-1: .*bw_bytes"),
        (side(0, 0, 0), "moved nothing"),
    ],
)
def test_a_job_that_says_nothing_is_an_error(job: dict[str, Any], message: str) -> None:
    with pytest.raises(LabError, match=message):
        measure.curves(TINY_PLAN, fake_jobs(TINY_PLAN) | {"random_read-1": job})


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"jobs": []}', '{"jobs": [1]}'])
def test_a_report_that_is_none(text: str) -> None:
    with pytest.raises(LabError, match="fio's report"):
        fio.jobs(text)


# -- profiles


def test_a_profile_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "new" / "s6.json"
    profile.save(made(), path)
    assert profile.load(path) == made()
    assert json.loads(path.read_text())["slowdowns"][0]["percent"] == 626.0


Change = Callable[[dict[str, Any]], object]

DAMAGES: list[tuple[str, Change, str]] = [
    ("depth", lambda body: body["depths"].update(random_read=3), "depths.random_read is 3, which is no depth of its"),
    ("zero depth", lambda body: body["depths"].update(random_read=0), "no depth of its curve"),
    ("depth as text", lambda body: body["depths"].update(random_read="4"), "depths.random_read is '4', must be int"),
    ("depth as truth", lambda body: body["depths"].update(random_read=True), "is True, must be int"),
    ("no depth", lambda body: body["depths"].pop("random_read"), "depths lacks random_read"),
    ("more depths", lambda body: body["depths"].update(erase=1), "depths has the unknown erase"),
    ("no depths", lambda body: body.update(depths=[]), "depths is no object"),
    ("key gone", lambda body: body.pop("elevator"), "it lacks elevator"),
    ("key added", lambda body: body.update(colour="red"), "it has the unknown colour"),
    ("no curve", lambda body: body["curves"].pop("random_write"), "curves lacks random_write"),
    ("empty curve", lambda body: body["curves"].update(random_write=[]), "curves.random_write has no points"),
    ("order", lambda body: body["curves"]["random_write"].reverse(), "must rise from 1 to 32"),
    ("negative", lambda body: body["curves"]["random_write"][0].update(mb_s=-1.0), "has -1.0, must be above 0"),
    ("no number", lambda body: body["curves"]["random_write"][0].update(iops=None), "iops is None, must be float"),
    ("nan", lambda body: body["curves"]["random_write"][0].update(iops=float("nan")), "has nan, must be above 0"),
    ("device", lambda body: body["device"].update(size_bytes=0), "device has 0, must be above 0"),
    ("model", lambda body: body["device"].update(model=6), "device.model is 6, must be str"),
    ("serial", lambda body: body["device"].update(serial=None), "device.serial is None, must be str"),
    ("parameters", lambda body: body.update(parameters=1), "parameters is 1, must be str"),
    ("pattern", lambda body: body["slowdowns"][0].update(beside="erase"), "names random_read beside erase"),
    ("slowdowns", lambda body: body.update(slowdowns={}), "slowdowns is {}, must be list"),
]


def saved(tmp_path: Path, change: Change, sealed: bool) -> Path:
    """A profile that was changed, with a checksum that fits or the old one."""
    path = tmp_path / "s6.json"
    profile.save(made(), path)
    body = json.loads(path.read_text())
    change(body)
    if sealed:
        body[profile.CHECKSUM] = profile.checksum(body)
    path.write_text(json.dumps(body))
    return path


@pytest.mark.parametrize(("change", "message"), [pytest.param(*case[1:], id=case[0]) for case in DAMAGES])
def test_damage_is_refused_with_its_reason(tmp_path: Path, change: Change, message: str) -> None:
    with pytest.raises(LabError) as caught:
        profile.load(saved(tmp_path, change, sealed=True))
    assert "s6.json: the profile is damaged: " in str(caught.value) and message in str(caught.value)
    assert "measure again" in str(caught.value)


def test_a_changed_number_does_not_fit_the_checksum(tmp_path: Path) -> None:
    path = saved(tmp_path, lambda body: body["depths"].update(random_read=8), sealed=False)
    with pytest.raises(LabError, match="damaged: its checksum does not fit"):
        profile.load(path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "it is no JSON"),
        (b'{"format": 1, "depths"', "it is no JSON"),
        (b"[" * 100_000, "it is no JSON"),
        (b"[]", "it has no format"),
        (b'{"format": 2}', r"cannot be used: its format is 2, this program reads 1; measure again"),
        (b"\xff\xfe", "cannot be read"),
    ],
)
def test_what_is_no_profile_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(data)
    with pytest.raises(LabError, match=message):
        profile.load(path)
    with pytest.raises(LabError, match="cannot be read"):
        profile.load(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (replace(SDA, model="n6"), "here, model is 'n6', not 's6'"),
        (replace(SDA, size_bytes=1 << 30), "size bytes is 1073741824, not 17179869184"),
        (replace(SDA, vendor="ACME", queue_depth=1), "here, vendor is 'ACME', not 'MFLASH'; measure again"),
        (replace(SDA, serial="naa.2"), "here, serial is 'naa.2', not 'naa.1'"),
    ],
)
def test_another_device_is_refused(other: Device, message: str) -> None:
    with pytest.raises(LabError, match=f"made for another device: .*{message}"):
        profile.check_device(made(replace(SDA, serial="naa.1")), other, Path("x.json"))


@pytest.mark.parametrize(("measured", "here"), [("", ""), ("naa.1", ""), ("", "naa.1"), ("naa.1", "naa.1")])
def test_the_same_device_is_known_at_any_queue_depth(measured: str, here: str) -> None:
    """A user may have set another one; a serial number that only one side knows says nothing."""
    one = made(replace(SDA, serial=measured))
    profile.check_device(one, replace(SDA, serial=here, queue_depth=7), Path("x.json"))


def test_a_file_has_what_is_known_and_no_more(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    for one in (made(), replace(made(replace(SDA, serial="naa.1 \ufffd")), parameters="abc")):
        profile.save(one, path)
        assert profile.load(path) == one
        body = json.loads(path.read_text())
        assert ("serial" in body["device"], "parameters" in body) == (bool(one.device.serial), bool(one.parameters))


def test_every_phone_of_the_lab_has_its_profile() -> None:
    for name, one in phone.phones().items():
        found = profile.for_phone(name)
        assert found is not None and found.phone == name and found.command == phones.command_line(name)
        assert [point.depth for point in found.curves["random_read"]] == list(plan.depths_to(one.queue_depth))
        assert {name: plan.best_depth(curve) for name, curve in found.curves.items()} == dict(found.depths.items())
        assert len(found.slowdowns) == len(plan.PAIRS)


def test_a_phone_without_a_profile_and_with_anothers(tmp_path: Path) -> None:
    assert profile.for_phone("s6", tmp_path) is None
    profile.save(made(), tmp_path / "p1.json")
    with pytest.raises(LabError, match="another device: here, model is 'p1', not 's6'"):
        profile.for_phone("p1", tmp_path)
    with pytest.raises(UsageProblem, match="no phone 's7'"):
        profile.for_phone("s7", tmp_path)


# -- the parameters of the emulated phones


def changed_source(tmp_path: Path, *changes: tuple[str, str]) -> Path:
    """The phones' source with changes, each of which is at its first place."""
    text = phone_digest.SOURCE.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    path = tmp_path / "phones.c"
    path.write_text(text)
    return path


def test_the_parameters_of_every_phone_are_read() -> None:
    every = {name: phone_digest.parameters(name) for name in phone.phones()}
    assert {name: int(found["queue_depth"]) for name, found in every.items()} == {
        name: one.queue_depth for name, one in phone.phones().items()
    }
    assert every["n5"]["half_duplex"] == "true" and every["s6"]["t_read_ns"] == "50000"
    assert {found["t_erase_ns"] for found in every.values()} == {"3500000"}, "a macro of all has it"
    assert len({phone_digest.digest(name) for name in every}) == len(every)


N5_PROGRAM = (".t_prog_ns = 1850 * US", ".t_prog_ns = 1851 * US")


def test_a_stale_profile_of_a_phone_is_refused(tmp_path: Path) -> None:
    source = changed_source(tmp_path, N5_PROGRAM)
    with pytest.raises(LabError, match=r"n5.json: the profile is stale: .*phones\.c.*storebench --phone n5$"):
        profile.for_phone("n5", source=source)
    assert profile.for_phone("n6", source=source) is not None, "its parameters are as they were"
    everyones = changed_source(tmp_path, ("#define US\t1000", "#define US\t1001"))
    for name in phone.phones():
        with pytest.raises(LabError, match="stale"):
            profile.for_phone(name, source=everyones)


def test_layout_and_comments_are_no_parameters(tmp_path: Path) -> None:
    same = ((".t_prog_ns = 1850 * US", ".t_prog_ns\t= 1850000"), ("/* UFS 2.0, MLC */", "/* .rows = 1, { */\n"))
    source = changed_source(tmp_path, *same, (".bits = 1, .rows = 256,", ".rows = 256,\n.bits = 1,"))
    assert [phone_digest.digest(name, source) for name in phone.phones()] == [
        phone_digest.digest(name) for name in phone.phones()
    ]


def test_a_policy_takes_no_stale_profile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The way by which the elevator smartio gets its numbers."""
    source = changed_source(tmp_path, N5_PROGRAM)
    digest = phone_digest.digest
    monkeypatch.setattr(phone_digest, "digest", lambda name, _: digest(name, source))
    assert placeholders.of_phone(["profile.random_read_depth"], "n6")
    with pytest.raises(LabError, match="stale"):
        placeholders.of_phone(["profile.random_read_depth"], "n5")


@pytest.mark.parametrize(
    "one",
    [replace(made(), parameters=""), replace(made(replace(SDA, queue_depth=31)), parameters=phone_digest.digest("s6"))],
    ids=["of unknown parameters", "of another queue"],
)
def test_a_phones_profile_says_of_what_it_is(tmp_path: Path, one: Profile) -> None:
    profile.save(one, tmp_path / "s6.json")
    with pytest.raises(LabError, match="stale"):
        profile.for_phone("s6", tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('.name = "n5"', '.name = "n7"'), "has no parameters of the phone n5"),
        (("phones[] =", "table[] ="), "has no parameters of the phone n5"),
        ((".queue_depth = 1,", "1,"), "cannot be read: '1' is no field with a value"),
        (("#define US\t1000", "#define US\t(1000 * US)"), "cannot be read: a macro names itself"),
    ],
)
def test_parameters_that_cannot_be_read(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    with pytest.raises(LabError, match=message):
        phone_digest.digest("n5", changed_source(tmp_path, change))
    with pytest.raises(LabError, match="cannot be read"):
        phone_digest.digest("n5", tmp_path / "none.c")


def test_a_new_profile_of_a_phone_is_not_stale(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wanted = plan.for_phone(32)
    report = json.dumps({"jobs": [job | {"jobname": name} for name, job in fake_jobs(wanted).items()]})

    def boots(jobs: list[object], *_: object) -> list[phones.Part]:
        return [phones.Part(report, SDA, "6.12")] * len(jobs)

    monkeypatch.setattr(phones.side_by_side, "each", boots)
    found = phones.measure_all([phone.load("s6")], None)["s6"]  # type: ignore[arg-type]
    profile.save(found, tmp_path / "s6.json")
    assert profile.for_phone("s6", tmp_path) == found


# -- pages


def test_tables_csv_and_a_self_contained_page(tmp_path: Path) -> None:
    one = made()
    profile_page.make(tmp_path, {"s6": one})
    text = (tmp_path / profile_page.PAGE).read_text()
    assert text.count("<svg") == 1 and not any(word in text for word in ("<script", "<link", "src=", "@import"))
    assert (tmp_path / profile_page.CURVES_CSV).read_text().splitlines()[
        3
    ] == "s6,sequential_read,4,30.000,300.000,100.000,true"
    assert (tmp_path / profile_page.SLOWDOWNS_CSV).read_text().endswith("100.000,726.000,626.000\n")
    assert list(profile_page.slowdown_rows({"s6": one}))[1] == ("s6", "random read", "100", "726 (+626 %)", "-")
    assert list(profile_page.depth_rows({"s6": one}))[3][-2:] == ("3.05x", "8")


def slowed(percent: float, subject: str = "random_read", beside: str = "random_write") -> Slowdown:
    return Slowdown(subject, beside, 100.0, 100.0 + percent)


def test_the_largest_slowdown_of_a_read() -> None:
    slow = (slowed(50), slowed(70, "sequential_read"), slowed(9000, "random_write", "random_read"))
    worst = poster.worst_read(replace(made(), slowdowns=slow))
    assert worst is not None and round(worst.percent) == 70
    assert poster.worst_read(replace(made(), slowdowns=slow[2:])) is None


@pytest.mark.parametrize(
    ("percent", "verdict"),
    [(9140, "reached"), (626, "reached"), (625, "as times only"), (526, "as times only"), (525, "not reached")],
)
def test_the_posters_slowdown_in_both_meanings(percent: float, verdict: str) -> None:
    assert poster.verdict(slowed(percent)) == verdict


def test_the_poster_is_on_the_page_and_in_the_terminal(tmp_path: Path) -> None:
    found = {"s6": made(), "none": replace(made(), slowdowns=())}
    rows = list(profile_page.poster_rows(found))
    assert rows[0] == ("s6", "random read", "sequential write", "626 %", "626 %", "reached")
    assert rows[1] == ("none", "-", "-", "-", "626 %", "not measured")
    profile_page.make(tmp_path, found)
    text = (tmp_path / profile_page.PAGE).read_text()
    assert "<td>626 %</td><td>626 %</td><td>reached</td>" in text and "<td>not measured</td>" in text
    console = Console(file=io.StringIO(), width=80)
    console.print(profile_page.terminal(found))
    shown = " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]
    assert "s6 random read sequential write 626 % 626 % reached" in shown
    for said in (text, shown):
        assert "MobiSys 2014 poster" in said and "7.26 times the latency alone, or 6.26 times" in said


# -- a phone


@pytest.mark.guest
def test_two_phones(tools: Tools) -> None:
    """In short: the directions, not the figures."""
    short = Plan(
        128 * MIB,
        Amount(16 * MIB, MIB),
        Amount(16 * MIB, MIB),
        10.0,
        (1, 8),
        pairs=((READ, WRITE), (BY_NAME["random_write"], BY_NAME["random_read"])),
        options=("--zero_buffers",),
    )
    found = phones.measure_all([phone.load("s6"), phone.load("n6")], tools, short)
    s6, n6 = found["s6"], found["n6"]
    assert s6.device == Device("MFLASH", "s6", 16 << 30, 32) and n6.device.queue_depth == 1
    assert s6.depths.random_read == 8, "requests at once use dies at once"
    assert n6.depths.random_read == 1, "eMMC takes one at a time"
    for one in (s6, n6):
        read, write = one.slowdowns
        assert read.percent > 50, "a read waits for the write before it"
        assert write.percent > 0
    assert s6.parameters == phone_digest.digest("s6") != n6.parameters
