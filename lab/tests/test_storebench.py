# SPDX-License-Identifier: GPL-2.0-only
"""storebench: the best concurrency, profiles, what is refused, what is written and what is not."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fasttrack_lab import fio, phone
from fasttrack_lab.errors import LabError, UsageProblem
from fasttrack_lab.paths import CHECKOUT, LAB
from fasttrack_lab.runner import Tools
from fasttrack_lab.storebench import apply, disk, host, measure, page, phones, plan, profile, target
from fasttrack_lab.storebench.disk import Device, Files
from fasttrack_lab.storebench.plan import BY_NAME, MIB, PATTERNS, Amount, Plan
from fasttrack_lab.storebench.profile import Depths, Point, Profile, Slowdown

SIZE = target.SMALLEST
SDA = Device("MFLASH", "s6", 16 << 30, 32)
READ, WRITE = BY_NAME["random_read"], BY_NAME["sequential_write"]
TINY = Amount(MIB, 64 << 10)
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


def names(steps: list[plan.Step]) -> list[str]:
    return [step[0].name for step in steps]


def test_every_part_begins_with_what_it_reads() -> None:
    wanted = plan.for_phone(32)
    parts = measure.parts(wanted, phones.files(wanted))
    assert [names(steps)[0] for steps in parts] == ["fill", "sequential_write-1", "random_write-1", "fill"]
    every = [name for steps in parts for name in names(steps) if name != plan.FILL]
    assert len(every) == len(set(every)) == 4 * len(wanted.depths) + len(plan.PAIRS)
    seeds = {option for step in parts[2] for option in step[0].options if "randseed" in option}
    assert len(seeds) == len(wanted.depths)
    (together,) = measure.parts(replace(wanted, fresh=False), phones.files(wanted))
    assert names(together) == ["fill", *every]


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
        (replace(SDA, vendor="ACME", queue_depth=1), "vendor is 'ACME', not 'MFLASH', queue depth is 1, not 32"),
    ],
)
def test_another_device_is_refused(other: Device, message: str) -> None:
    with pytest.raises(LabError, match=f"made for another device: .*{message}"):
        profile.check_device(made(), other, Path("x.json"))


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


# -- disks, by made-up sysfs and procfs


def put(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")


def link(root: Path, name: str, number: str, place: str) -> None:
    """The three links of a block device."""
    put(root, {f"{place}/dev": number})
    for where in (f"sys/class/block/{name}", f"sys/dev/block/{number}"):
        path = root / where
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(root / place)


SDA_AT = "sys/devices/sda"


@pytest.fixture
def fake(tmp_path: Path) -> Path:
    """A SCSI disk sda with a partition sda1, and dm-0 on that."""
    root = tmp_path / "root"
    put(
        root,
        {
            f"{SDA_AT}/size": str(SDA.size_bytes // 512),
            f"{SDA_AT}/ro": "0",
            f"{SDA_AT}/device/vendor": "MFLASH  ",
            f"{SDA_AT}/device/model": "s6              ",
            f"{SDA_AT}/device/queue_depth": "32",
            f"{SDA_AT}/queue/scheduler": "none mq-deadline [smartio]",
            f"{SDA_AT}/sda1/partition": "1",
            f"{SDA_AT}/sda1/size": str(SDA.size_bytes // 512 - 2048),
            f"{SDA_AT}/sda1/ro": "0",
            "sys/devices/dm-0/size": "4194304",
            "sys/devices/dm-0/ro": "0",
            "sys/devices/dm-0/slaves/sda1/partition": "1",
            "proc/self/mountinfo": "1 0 0:5 / / rw - ext4 /dev/vda rw",
            "proc/swaps": "Filename Type Size Used Priority",
        }
        | {f"{SDA_AT}/queue/iosched/{pattern.name}_depth": "0" for pattern in PATTERNS},
    )
    link(root, "sda", "8:0", SDA_AT)
    link(root, "sda1", "8:1", f"{SDA_AT}/sda1")
    link(root, "dm-0", "253:0", "sys/devices/dm-0")
    (root / "sys/block").mkdir()
    (root / "sys/block/sda").symlink_to(root / SDA_AT)
    return root


def test_the_disk_below(fake: Path) -> None:
    files = Files(fake)
    assert [disk.backing(files, name) for name in ("sda", "sda1", "dm-0")] == ["sda"] * 3
    assert disk.name_of(files, "8:1") == "sda1"
    assert disk.device(files, "sda") == SDA
    assert disk.elevator(files, "sda") == ("smartio", ("none", "mq-deadline", "smartio"))
    put(fake, {"sys/devices/dm-0/slaves/sdb/dev": "8:16"})
    assert disk.backing(files, "dm-0") == "dm-0", "two disks are below: which one cannot be said"


def test_a_disk_that_names_nothing_is_called_by_its_driver(fake: Path) -> None:
    put(fake, {"sys/block/vda/size": "2048", "sys/block/vda/mq/0/nr_tags": "128"})
    put(fake, {"sys/bus/drivers/virtio_blk/x": "", "sys/block/loop7/size": "2048"})
    (fake / "sys/block/vda/device").mkdir()
    (fake / "sys/block/vda/device/driver").symlink_to(fake / "sys/bus/drivers/virtio_blk")
    assert disk.device(Files(fake), "vda") == Device("", "virtio_blk", 1 << 20, 128)
    assert disk.device(Files(fake), "loop7") == Device("", "loop", 1 << 20, 0)
    with pytest.raises(LabError, match="sdz: sysfs does not say"):
        disk.device(Files(fake), "sdz")


MOUNTED = "2 1 8:1 / /mnt/my\\040data rw - ext4 /dev/sda1 rw"


@pytest.mark.parametrize(
    ("name", "files", "message"),
    [
        ("sda", {}, ""),
        ("sda", {f"{SDA_AT}/ro": "1"}, "sda is read-only"),
        ("sda", {f"{SDA_AT}/size": "2048"}, "sda is too small: 1 MiB, of which 70 MiB are needed; see --size"),
        ("sda1", {"proc/self/mountinfo": MOUNTED}, "sda1 is mounted at /mnt/my data; give a directory there"),
        ("sda", {"proc/self/mountinfo": MOUNTED}, "sda1 is mounted at /mnt/my data"),
        ("sda1", {"proc/self/mountinfo": "2 1 0:44 / /b rw - btrfs /dev/sda1 rw"}, "sda1 is mounted at /b"),
        ("sda", {"proc/swaps": "Filename\n/dev/sda1 partition 1 0 -2"}, "sda1 is swap space in use; swapoff"),
        ("sda", {f"{SDA_AT}/sda1/holders/dm-0/dev": "253:0"}, "sda1 is held by dm-0"),
        ("sda", {f"{SDA_AT}/holders/md0/dev": "9:0"}, "sda is held by md0"),
    ],
)
def test_a_device_that_is_used_or_does_not_fit(fake: Path, name: str, files: dict[str, str], message: str) -> None:
    put(fake, files)
    found = disk.objection(Files(fake), name, target.need_bytes(SIZE))
    assert found.startswith(message) if message else found == ""


# -- applying


class Recorded(Files):
    """Files that note what is written, and may refuse some."""

    def __init__(self, root: Path, refuse: str = "", error: OSError | None = None) -> None:
        super().__init__(root)
        self.refuse, self.error = refuse, error
        self.written: list[tuple[str, str]] = []

    def write(self, name: str, text: str) -> None:
        self.written.append((name, text))
        if self.refuse and name.endswith(self.refuse) and text != "0":
            if self.error:
                raise self.error
            text = "1"  # the kernel took another value
        super().write(name, text)


KNOBS = [f"sys/block/sda/queue/iosched/{pattern.name}_depth" for pattern in PATTERNS]
WANTED = list(zip(KNOBS, ["4", "4", "4", "8"], strict=True))


def test_the_elevator_has_the_knobs() -> None:
    """As the contract with the kernel names them; they take every depth that is measured."""
    found = tomllib.loads((CHECKOUT / "contract" / "sysfs.toml").read_text())["file"]
    knobs = {one["path"].lstrip("/"): one["range"] for one in found if one.get("elevator") == apply.ELEVATOR}
    for pattern in PATTERNS:
        lowest, highest = knobs[apply.knob("{disk}", pattern.name)]
        assert lowest == 0 and highest >= plan.MAX_DEPTH


def test_apply_writes_all_four_in_order(fake: Path) -> None:
    files = Recorded(fake)
    planned = apply.writes(made(), Path("s6.json"), files, "sda")
    assert planned == WANTED and files.written == []
    apply.put(files, planned)
    assert files.written == WANTED


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (PermissionError(13, "Permission denied"), "run this as root; the old values are back"),
        (OSError(22, "Invalid argument"), "4 was not taken: Invalid argument; the old values are back"),
        (None, "4 was written, 1 is there; the old values are back"),
    ],
)
def test_apply_is_all_or_none(fake: Path, error: OSError | None, message: str) -> None:
    files = Recorded(fake, "sequential_write_depth", error)
    with pytest.raises(LabError, match=message):
        apply.put(files, apply.writes(made(), Path("s6.json"), files, "sda"))
    assert [files.read(knob) for knob in KNOBS] == ["0"] * 4
    back = [(KNOBS[index], "0") for index in ((2, 1, 0) if error is None else (1, 0))]
    assert files.written == WANTED[:3] + back


def test_what_cannot_be_put_back_is_said(fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = Recorded(fake, "random_write_depth", OSError(22, "Invalid argument"))
    planned = apply.writes(made(), Path("s6.json"), files, "sda")
    put(fake, {KNOBS[0]: "7"})
    write = Recorded.write

    def gone(self: Recorded, name: str, text: str) -> None:
        if text == "7":
            raise OSError(5, "Input/output error")
        write(self, name, text)

    monkeypatch.setattr(Recorded, "write", gone)
    with pytest.raises(LabError, match=r"not everything could be put back: .*sequential_read_depth: 7 was not taken"):
        apply.put(files, planned)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("sdb", {}, "there is no disk 'sdb'; disks: sda"),
        ("../sda", {}, "there is no disk '../sda'"),
        ("sda1", {}, "sda1 is a partition, the elevator is its disk's: give sda"),
        ("sda", {f"{SDA_AT}/device/model": "n6"}, "made for another device: here, model is 'n6', not 's6'"),
        ("sda", {f"{SDA_AT}/queue/scheduler": "[none] smartio"}, r"echo smartio > /sys/block/sda/queue/scheduler"),
        ("sda", {f"{SDA_AT}/queue/scheduler": "[none] bfq"}, r"no elevator smartio for sda \(it has none, bfq\)"),
    ],
)
def test_apply_refuses(fake: Path, name: str, change: dict[str, str], message: str) -> None:
    put(fake, change)
    files = Recorded(fake)
    with pytest.raises(LabError, match=message):
        apply.writes(made(), Path("s6.json"), files, name)
    assert files.written == []


def test_an_elevator_without_the_knobs(fake: Path) -> None:
    files = Recorded(fake)
    planned = apply.writes(made(), Path("s6.json"), files, "sda")
    (fake / KNOBS[3]).unlink()
    with pytest.raises(LabError, match=r"the elevator lacks a knob: .*random_write_depth"):
        apply.put(files, planned)
    assert files.written == []


# -- pages


def test_tables_csv_and_a_self_contained_page(tmp_path: Path) -> None:
    one = made()
    page.make(tmp_path, {"s6": one})
    text = (tmp_path / page.PAGE).read_text()
    assert text.count("<svg") == 1 and not any(word in text for word in ("<script", "<link", "src=", "@import"))
    assert (tmp_path / page.CURVES_CSV).read_text().splitlines()[
        3
    ] == "s6,sequential_read,4,30.000,300.000,100.000,true"
    assert (tmp_path / page.SLOWDOWNS_CSV).read_text().endswith("100.000,726.000,626.000\n")
    assert list(page.slowdown_rows({"s6": one}))[1] == ("s6", "random read", "100", "726 (+626 %)", "-")
    assert list(page.depth_rows({"s6": one}))[3][-2:] == ("3.05x", "8")


# -- a real device: the one below the temporary directory


def needs_disk(directory: Path) -> None:
    if not shutil.which(fio.PROGRAM):
        pytest.skip("fio is not installed")
    try:
        with target.opened(directory, SIZE):
            pass
    except LabError as error:
        pytest.skip(f"the temporary directory cannot be measured: {error}")


def snapshot(directory: Path) -> dict[str, tuple[int, int, str]]:
    """Names, times and contents of all files, but for the time of the last read."""
    files = [path for path in directory.iterdir() if path.is_file()]
    return {
        path.name: (path.stat().st_mtime_ns, path.stat().st_ctime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in files
    }


def test_a_directory_is_as_it_was(tmp_path: Path) -> None:
    needs_disk(tmp_path)
    put(tmp_path, {"mine": "x"})
    before = snapshot(tmp_path)
    name, found = host.measure_at(tmp_path, SIZE, 0.2, "command", TINY_PLAN)
    assert snapshot(tmp_path) == before
    assert disk.whole(Files(), name) == name and found.device.size_bytes > SIZE
    assert all(point.mb_s > 0 for curve in found.curves.values() for point in curve)


def test_a_users_file_is_only_read(tmp_path: Path) -> None:
    needs_disk(tmp_path)
    mine = tmp_path / "my: file, 1"
    mine.write_bytes(os.urandom(SIZE))
    mine.chmod(0o400)
    before = snapshot(tmp_path)
    with target.opened(mine, SIZE) as on:
        assert Path(on.files.read).samefile(mine) and not Path(on.files.write).samefile(mine)
        assert os.fstat(on.descriptor).st_nlink == 0
        assert snapshot(tmp_path) == before, "the other file has no name"
        for step in (plan.fill(TINY_PLAN, on.files), plan.pair(WRITE, READ, TINY_PLAN, on.files)):
            subprocess.run(fio.argv(*step), stdout=subprocess.DEVNULL, check=True)
    assert snapshot(tmp_path) == before


def test_a_new_file_by_name_and_one_that_is_there(tmp_path: Path) -> None:
    needs_disk(tmp_path)
    with target.opened(tmp_path / "new", SIZE) as on:
        assert os.fstat(on.descriptor).st_size == SIZE and list(tmp_path.iterdir()) == []
    put(tmp_path, {"there": "x"})
    with pytest.raises(LabError, match="there cannot be made: File exists"), target.own_file(tmp_path / "there", SIZE):
        pass
    assert (tmp_path / "there").read_text() == "x\n"


def test_what_no_file_can_be_made_in(tmp_path: Path) -> None:
    needs_disk(tmp_path)
    (tmp_path / "small").write_bytes(b"x")
    with (tmp_path / "holes").open("wb") as handle:
        handle.truncate(SIZE)
    cases: list[tuple[Path, int, str]] = [
        (tmp_path, SIZE - MIB, "a size of 63 MiB is too small, at least 64 are needed"),
        (tmp_path, 1 << 60, "MiB free, a file of"),
        (tmp_path / "no" / "such", SIZE, "there is no directory"),
        (tmp_path / "small", SIZE, "small is too small: 0 MiB, at least 64"),
        (tmp_path / "holes", SIZE, "holes is sparse or compressed"),
        (Path("/dev/null"), SIZE, "neither a directory, nor a file, nor a block device"),
        (Path("/proc"), SIZE, "proc is on no block device"),
    ]
    before = snapshot(tmp_path)
    for path, size, message in cases:
        with pytest.raises(LabError, match=message), target.opened(path, size):
            raise AssertionError("must not be reached")
    assert snapshot(tmp_path) == before


def test_its_own_elevator_is_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_disk(tmp_path)
    monkeypatch.setattr(disk, "elevator", lambda files, name: ("smartio", ("none", "smartio")))
    with pytest.raises(LabError, match="would be measured too; choose another one"), target.opened(tmp_path, SIZE):
        raise AssertionError("must not be reached")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_when_it_is_ended(tmp_path: Path, number: signal.Signals) -> None:
    needs_disk(tmp_path)
    argv = [sys.executable, "-m", "fasttrack_lab", "storebench", "--on", str(tmp_path), "--size", "64 MiB"]
    env = os.environ | {"PYTHONPATH": str(LAB)}
    child = subprocess.Popen(
        [*argv, "--seconds", "60", "--out", str(tmp_path.parent)], env=env, stderr=subprocess.PIPE, text=True
    )
    try:
        assert child.stderr is not None
        assert any(line.startswith("measuring") for line in child.stderr)
        wait_until(lambda: bool(children(child.pid)), "fio does not start")
        running = children(child.pid)
        child.send_signal(number)
        said = child.stderr.read()
        status = child.wait(60)
    finally:
        child.kill()
    assert status == (-number if number == signal.SIGKILL else 130), said
    assert list(tmp_path.iterdir()) == []
    wait_until(lambda: all(ended(pid) for pid in running), "fio outlives its parent")


def wait_until(done: Callable[[], bool], problem: str) -> None:
    deadline = time.monotonic() + 60
    while not done():
        assert time.monotonic() < deadline, problem
        time.sleep(0.02)


def children(parent: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


def ended(pid: int) -> bool:
    """Gone, or nobody's to wait for yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


# -- block devices: loop devices of files


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Callable[..., tuple[Path, Path]]]:
    """Makes loop devices: the device and its file."""
    if os.geteuid() or not Path("/dev/loop-control").exists() or not shutil.which("losetup"):
        pytest.skip("loop devices need root, /dev/loop-control and losetup")
    made_here: list[str] = []

    def make(mib: int, *options: str, fs: bool = True) -> tuple[Path, Path]:
        image = tmp_path / f"{mib}.img"
        with image.open("wb") as handle:
            handle.truncate(mib * MIB)
        if fs:
            subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
        done = subprocess.run(
            ["losetup", "--find", "--show", *options, str(image)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            pytest.skip(f"no loop device: {done.stderr.strip()}")
        made_here.append(done.stdout.strip())
        return Path(made_here[-1]), image

    yield make
    for name in made_here:
        subprocess.run(["losetup", "--detach", name], check=False)


OPEN = """
    import os, sys
    from pathlib import Path
    from fasttrack_lab.errors import LabError
    from fasttrack_lab.storebench import target
    try:
        with target.opened(Path(sys.argv[1]), 64 << 20) as on:
            where = Path(f"/proc/self/fd/{on.descriptor}").readlink().parent
            print("opened", on.name, os.fstat(on.descriptor).st_size >> 20, sorted(p.name for p in where.iterdir()))
    except LabError as error:
        print("refused", error)
"""


def open_there(path: Path) -> str:
    """What opening a target at PATH says, in a process of its own: it takes a mount namespace."""
    env = os.environ | {"PYTHONPATH": str(LAB)}
    argv = [sys.executable, "-c", textwrap.dedent(OPEN), str(path)]
    return subprocess.run(argv, env=env, capture_output=True, text=True, check=True).stdout.strip()


def mounted_devices() -> str:
    return Path("/proc/self/mountinfo").read_text()


def test_a_block_device_is_mounted_for_us_alone(loop: Callable[..., tuple[Path, Path]]) -> None:
    device, image = loop(128)
    before = mounted_devices()
    assert open_there(device) == f"opened {device.name} 64 ['lost+found']"
    assert mounted_devices() == before
    subprocess.run(["e2fsck", "-fn", str(image)], stdout=subprocess.DEVNULL, check=True)


def test_block_devices_that_are_refused_are_untouched(loop: Callable[..., tuple[Path, Path]], tmp_path: Path) -> None:
    cases = [
        (loop(96, fs=False), "no file system that can be mounted"),
        (loop(48), "too small: 48 MiB, of which 70 MiB are needed"),
        (loop(128, "--read-only"), "is read-only"),
        (loop(72), "MiB free, a file of 64 MiB needs 70"),
    ]
    for (device, image), message in cases:
        before = hashlib.sha256(image.read_bytes()).hexdigest()
        said = open_there(device)
        assert said.startswith("refused") and message in said
        assert hashlib.sha256(image.read_bytes()).hexdigest() == before, message


def test_a_mounted_block_device_is_refused(loop: Callable[..., tuple[Path, Path]], tmp_path: Path) -> None:
    device, _ = loop(128)
    where = tmp_path / "mnt"
    where.mkdir()
    subprocess.run(["mount", str(device), str(where)], check=True)
    try:
        before = snapshot(where)
        assert f"{device.name} is mounted at {where}; give a directory there" in open_there(device)
        assert snapshot(where) == before
        assert open_there(where).startswith(f"opened {device.name} 64")
    finally:
        subprocess.run(["umount", str(where)], check=True)


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
    assert profile.for_phone("s6") is not None
