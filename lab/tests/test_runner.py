# SPDX-License-Identifier: GPL-2.0-only
"""What a run is made of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fasttrack_lab.build.kernel import kbuild
from fasttrack_lab.host.errors import LabError
from fasttrack_lab.host.rundir import held_mib
from fasttrack_lab.inputs import phone, policy
from fasttrack_lab.inputs.cell import Cell
from fasttrack_lab.inputs.exec_job import exec_job
from fasttrack_lab.run import image, runner
from fasttrack_lab.run.boot import job as boot_job
from fasttrack_lab.run.boot.backend import BootSpec
from fasttrack_lab.run.boot.uml import Uml, kernel_release
from fasttrack_lab.run.calibrate import figure_of, fio_argv
from fasttrack_lab.run.runner import RunSpec, full_job
from fasttrack_lab.run.script import init_script

JOB = {
    "mode": "play",
    "apps": [
        {"name": "front", "uid": 10101, "role": "foreground", "start_s": 0, "threads": []},
        {"name": "behind", "uid": 10201, "role": "background", "start_s": 0, "threads": []},
    ],
    "files": [{"app": "front", "path": "a", "bytes": 4096, "kind": "data"}],
    "touch_s": 2.0,
    "limit_s": 60.0,
}


def spec(policy_name: str = "fasttrack", phone_name: str = "s6") -> RunSpec:
    cell = Cell("x", phone_name, policy_name, ("behind",), 7)
    return RunSpec(cell, phone.load(phone_name), policy.load(policy_name), JOB)


def test_job_has_what_the_contract_asks() -> None:
    job = full_job(spec())
    assert job["version"] == 1 and job["mode"] == "play" and job["seed"] == 7
    assert job["device"] == "/dev/sda" and job["fs"] == "ext4" and job["format"] is None
    assert job["settings"][0] == {"path": "/sys/block/sda/queue/scheduler", "value": "fasttrack"}
    assert job["foreground"] == [{"path": "/sys/kernel/fasttrack/foreground_uids", "value": "10101"}]
    assert job["touch_s"] == 2.0 and job["limit_s"] == 60.0


def test_the_depths_of_the_phone_are_in_the_job() -> None:
    knob = "/sys/block/sda/queue/iosched/random_read_depth"
    found = {
        name: [one["value"] for one in full_job(spec("smartio", name))["settings"] if one["path"] == knob]
        for name in ("n6", "s6")
    }
    assert found == {"n6": ["1"], "s6": ["4"]}


def test_every_foreground_app_is_named_at_the_touch() -> None:
    made = spec()
    apps = [*JOB["apps"], {"name": "beside", "uid": 10105, "role": "foreground", "start_s": 0, "threads": []}]
    (setting,) = full_job(replace(made, job=JOB | {"apps": apps}))["foreground"]
    assert setting["value"] == "10101 10105"


def test_who_is_in_front_before_the_touch_is_the_last_setting() -> None:
    knob = "/sys/kernel/fasttrack/foreground_uids"
    job = full_job(replace(spec(), before_touch=(10107,)))
    assert job["settings"] == [*full_job(spec())["settings"], {"path": knob, "value": "10107"}]
    assert job["foreground"] == [{"path": knob, "value": "10101"}]
    assert full_job(replace(spec("stock"), before_touch=(10107,)))["settings"] == full_job(spec("stock"))["settings"]


def test_who_stays_in_front_is_named_once() -> None:
    knob = "/sys/kernel/fasttrack/foreground_uids"
    job = full_job(replace(spec(), before_touch=(10101,)))
    assert job["settings"][-1] == {"path": knob, "value": "10101"}
    assert job["foreground"] == []


SWITCH = {
    "apps": [
        {"name": "came", "uid": 10106, "role": "foreground", "start_s": 0, "threads": []},
        {"name": "left", "uid": 10107, "role": "background", "start_s": 0, "threads": []},
        {"name": "behind", "uid": 10201, "role": "background", "start_s": 0, "threads": []},
        {"name": "service", "uid": 1000, "role": "service", "start_s": 0, "threads": []},
    ]
}
"""At the touch, one app comes to the front and another leaves it."""


def switch(policy_name: str) -> dict[str, Any]:
    """The job of a switch."""
    return full_job(replace(spec(policy_name), job=JOB | SWITCH, before_touch=(10107,)))


def test_ioprio_goes_with_the_place_of_an_app() -> None:
    found = {app["name"]: (app.get("ioprio"), app.get("ioprio_touch")) for app in switch("ioprio-deadline")["apps"]}
    assert found == {
        "came": ("idle", "realtime 4"),
        "left": ("realtime 4", "idle"),
        "behind": ("idle", None),
        "service": (None, None),
    }
    assert switch("stock")["apps"] == SWITCH["apps"]


def test_the_files_of_an_apps_group_go_with_its_place() -> None:
    rule = policy.load("cgroup")
    job = switch("cgroup")

    def written(settings: list[dict[str, str]], file: str) -> dict[str, str]:
        ending = f"/{file}"
        return {
            one["path"].removeprefix("/sys/fs/cgroup/app-").removesuffix(ending): one["value"]
            for one in settings
            if one["path"].startswith("/sys/fs/cgroup/app-") and one["path"].endswith(ending)
        }

    for one in rule.cgroup:
        front, behind = one.value.foreground, one.value.background
        assert written(job["settings"], one.file) == {"came": behind, "left": front, "behind": behind}
        assert written(job["foreground"], one.file) == {"came": front, "left": behind}
    groups = [index for index, one in enumerate(job["settings"]) if "/app-" in one["path"]]
    enabled = [one["path"] for one in job["settings"]].index("/sys/fs/cgroup/cgroup.subtree_control")
    assert groups and enabled < min(groups)


def test_a_policy_can_name_all_apps_of_a_run() -> None:
    knob = "/sys/kernel/fasttrack/foreground_uids"
    job = switch("qasio")
    assert {"path": knob, "value": "10106 10107 10201 1000"} in job["settings"]
    assert job["foreground"] == []


def test_the_lru_is_a_setting_unless_it_is_the_kernels_own() -> None:
    made = spec()
    other = replace(made, cell=replace(made.cell, lru="mglru"))
    assert full_job(other)["settings"] == [
        *full_job(made)["settings"],
        {"path": "/sys/kernel/mm/lru_gen/enabled", "value": "y"},
    ]


def test_exec_gives_every_command_a_uid_of_its_own() -> None:
    job = exec_job("true", ("a", "b"), 3.0, 10.0)
    assert [(a["uid"], a["role"], a["argv"][-1]) for a in job["apps"]] == [
        (10101, "foreground", "true"),
        (10201, "background", "a"),
        (10202, "background", "b"),
    ]
    assert job["touch_s"] == 3.0 and job["limit_s"] == 13.0


def test_images_are_shared_by_what_is_in_them() -> None:
    contents = image.Contents.of_job(phone.load("s6"), JOB)
    other_times = image.Contents.of_job(phone.load("s6"), JOB | {"touch_s": 9.0})
    other_file = image.Contents.of_job(phone.load("s6"), JOB | {"files": []})
    other_phone = replace(contents, phone=phone.load("ufs31"))
    other_fs = replace(contents, phone=phone.load("s6").with_fs("f2fs"))
    assert contents.key("kernel", "guest") == other_times.key("kernel", "guest")
    keys = {one.key("kernel", "guest") for one in (contents, other_file, other_phone, other_fs)}
    assert len(keys | {contents.key("kernel", "other guest"), contents.key("other kernel", "guest")}) == 6
    prepare = contents.job()
    assert prepare["mode"] == "prepare" and prepare["format"][0] == "mkfs.ext4"
    assert [app["uid"] for app in prepare["apps"]] == [10101, 10201]


def test_command_line_does_not_depend_on_the_run_directory() -> None:
    one = BootSpec(Path("/k"), Path("/init"), 512, Path("/tmp/a"), 1.0, 3, {"mflash.phone": "s6"})
    lines = {" ".join(Uml().command_line(replace(one, run_dir=Path(p)))) for p in ("/tmp/a", "/dev/shm/longer")}
    assert len(lines) == 1
    line = lines.pop()
    assert "lab_seed=3" in line and "norandmaps" in line and "mflash.phone=s6" in line and "con0=null,fd:1" in line


def tools_at(place: Path) -> runner.Tools:
    place.mkdir(parents=True)
    (place / "linux").write_bytes(b"kernel")
    (place / "program").write_bytes(b"x" * (3 << 20))
    return runner.Tools(kbuild.Kernel(place / "linux", "0" * 16, "um"), place / "program", "1" * 16, Uml())


def test_need_counts_memory_program_and_phone(tmp_path: Path) -> None:
    tools = tools_at(tmp_path / "cache")
    room = phone.load("s6").guest_mib + image.ROOM_MIB + held_mib(tools.guest)
    assert held_mib(tools.guest) >= 3 and runner.need_mib(spec(), tools, None) == room
    assert runner.need_mib(spec(), tools, tools.guest) == room + held_mib(tools.guest)


def test_another_kernel_can_prepare_the_phone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = []

    def prepared(_: image.Contents, kernel: kbuild.Kernel, *__: object) -> None:
        asked.append(kernel.key)

    monkeypatch.setattr(image, "prepared", prepared)
    tools = tools_at(tmp_path / "cache")
    for one in (tools, replace(tools, preparer=replace(tools.kernel, key="other"))):
        runner.phone_image(spec(), one)
    assert asked == [tools.kernel.key, "other"]


def test_a_job_sees_neither_the_place_of_the_cache_nor_of_its_run(tmp_path: Path) -> None:
    lines, roots = [], []
    for name in ("a", "b/longer"):
        tools, where = tools_at(tmp_path / name / "cache"), tmp_path / name / "run"
        where.mkdir()
        lines.append(Uml().command_line(runner.laid_out(spec(), tools, where, None)))
        assert (where / "root" / "init").read_bytes() == tools.guest.read_bytes()
        roots.append(sorted(path.name for path in (where / "root").iterdir()))
    assert lines[0] == lines[1] and "init=/init" in lines[0]
    assert roots[0] == roots[1] == ["dev", "init", "proc", "tmp"]


def test_only_jobs_that_start_programs_see_the_host() -> None:
    command = exec_job("true", (), 0.0, 10.0)
    prepare = image.Contents.of_job(phone.load("s6"), JOB).job()
    shown = [boot_job.params(Uml(), job).get("fasttrack_host") for job in (JOB, command, prepare)]
    assert shown == [None, "/", "/"]


def test_a_script_below_dev_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FASTTRACK_CACHE", str(tmp_path))
    assert init_script("#!/bin/sh\n").read_text() == "#!/bin/sh\n"
    monkeypatch.setattr("fasttrack_lab.run.script.COVERED", tmp_path)
    with pytest.raises(LabError, match="set FASTTRACK_CACHE to another place"):
        init_script("#!/bin/sh\n")


def test_kernel_release() -> None:
    log = (Path(__file__).parent / "logs" / "clean.log").read_text()
    assert kernel_release(log).startswith("6.12.")
    assert kernel_release("") == ""


def test_fio_command_and_report() -> None:
    work = phone.load("s6").calibration[0]
    argv = fio_argv(work)
    assert f"--rw={work.rw}" in argv and f"--bs={work.block}" in argv and "--direct=1" in argv
    side = {"iops": 1900.0, "bw_bytes": 110_000_000}
    reported = f'{{"jobs": [{{"read": {side}, "write": {side}}}]}}'.replace("'", '"')
    figure = figure_of(reported, "s6", replace(work, unit="MB/s", published=100.0))
    assert figure.measured == 110.0 and round(figure.difference, 6) == 0.1 and not replace(figure, measured=111.0).ok
    assert figure_of(reported, "s6", replace(work, unit="IOPS", published=2000.0)).measured == 1900.0
