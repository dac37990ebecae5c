# SPDX-License-Identifier: GPL-2.0-only
"""Policies and phones, as they are checked in and as they can be wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from test_guest_background import NOBODY

from fasttrack_lab.host.errors import LabError, UsageProblem
from fasttrack_lab.host.paths import POLICIES
from fasttrack_lab.inputs import phone, placeholders, policy, profile
from fasttrack_lab.storebench import apply

PEERS = {
    *("qasio", "rcp", "faio", "acclaim-fae", "smartio"),
    *("ioprio-bfq", "ioprio-deadline", "cgroup", "cgroup-prio", "cgroup-iocost", "cgroup-iolatency"),
}
"""Other systems, and what a user of today's Linux would set."""


def test_the_promised_policies_are_there() -> None:
    assert policy.names()[0] == "stock"
    assert {"stock", "none", "kyber", "bfq", "fasttrack", *PEERS} <= set(policy.names())
    assert {policy.load(name).name for name in policy.names()} == set(policy.names())


@pytest.mark.parametrize(("name", "kib"), [("n5", 512), ("n6", 512), ("s6", 1024), ("ufs31", 1024)])
def test_the_longest_request_is_as_large_as_the_device_takes(name: str, kib: int) -> None:
    found = phone.load(name)
    (rate,) = [entry.published for entry in found.calibration if entry.name == "seq-write"]
    assert found.longest_request_s == pytest.approx(kib * 1024 / (rate * 1e6))


def test_stock_is_mq_deadline_and_read_first() -> None:
    stock = policy.load("stock")
    assert stock.settings_json({}) == [{"path": "/sys/block/sda/queue/scheduler", "value": "mq-deadline"}]
    assert stock.device_scheduler == "read-first"
    assert stock.foreground_json({}, 10101) == []


def test_fasttrack_tells_who_is_in_front() -> None:
    found = policy.load("fasttrack")
    assert found.device_scheduler == "foreground"
    assert {"path": "/sys/kernel/fasttrack/enabled", "value": "1"} in found.settings_json({})
    assert found.foreground_json({}, 10101) == [{"path": "/sys/kernel/fasttrack/foreground_uids", "value": "10101"}]


def test_all_apps_in_front_are_named() -> None:
    (setting,) = policy.load("fasttrack").foreground_json({}, 10104, 10105)
    assert setting == {"path": "/sys/kernel/fasttrack/foreground_uids", "value": "10104 10105"}
    assert policy.load("fasttrack").foreground_json({}) == []


@pytest.mark.parametrize("name", list(phone.phones()))
def test_smartio_has_the_depths_of_the_phone(name: str) -> None:
    """Every knob of a profile, and nothing else; the elevator is there before them."""
    found = policy.load("smartio")
    saved = profile.for_phone(name)
    assert saved is not None
    depths = [{"path": f"/{apply.knob('sda', one)}", "value": str(depth)} for one, depth in saved.depths.items()]
    assert found.settings_json(found.values(name)) == [{"path": policy.ELEVATOR, "value": apply.ELEVATOR}, *depths]


def test_a_phone_without_a_profile_and_with_a_damaged_one(tmp_path: Path) -> None:
    with pytest.raises(LabError) as caught:
        placeholders.of_phone(["profile.random_read_depth"], "s6", tmp_path)
    assert "{profile.random_read_depth}: the phone s6 has no profile" in str(caught.value)
    assert str(caught.value).endswith("measure it first: ./fasttrack storebench --phone s6")
    (tmp_path / "s6.json").write_text("{")
    with pytest.raises(UsageProblem, match=r"s6.json: the profile is damaged: .*; measure again"):
        placeholders.of_phone(["profile.random_read_depth"], "s6", tmp_path)
    assert placeholders.of_phone(["uid"], "s6", tmp_path) == {}, "nobody asks for it"


def test_a_policy_says_that_a_phone_lacks_its_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile, "for_phone", lambda *_: None)
    with pytest.raises(LabError, match=r"^policy smartio: \{profile.sequential_read_depth\}: the phone n6 has no"):
        policy.load("smartio").values("n6")
    for name in ("stock", "fasttrack"):
        assert policy.load(name).values("n6") == {}


def test_placeholders_are_filled() -> None:
    text = "a {uid} {profile.random_read_depth} b{uid}"
    assert placeholders.names(text) == ["uid", "profile.random_read_depth", "uid"]
    assert placeholders.filled(text, {"uid": "1 2", "profile.random_read_depth": "4"}) == "a 1 2 4 b1 2"


KNOBS = ("page_allocator", "page_reclaimer", "promotion")


@pytest.mark.parametrize(
    ("name", "elevator", "device", "knobs"),
    [
        ("pa", "mq-deadline", "read-first", ("1", "0", "0")),
        ("pr", "mq-deadline", "read-first", ("0", "1", "0")),
        ("id", "fasttrack", "read-first", ("0", "0", "1")),
        ("rcp", "fasttrack", "read-first", ("0", "0", "1")),
        ("faio", "mq-deadline", "read-first", ("1", "0", "0")),
        ("acclaim-fae", "mq-deadline", "read-first", ("0", "1", "0")),
        ("fasttrack-minus", "fasttrack", "read-first", (None, None, None)),
        ("fasttrack", "fasttrack", "foreground", (None, None, None)),
    ],
)
def test_ablation_policies(name: str, elevator: str, device: str, knobs: tuple[str | None, ...]) -> None:
    """What is not set keeps the kernel's default: on."""
    found = policy.load(name)
    written = {setting.path.removeprefix("/sys/kernel/fasttrack/"): setting.value for setting in found.settings}
    assert (found.elevator, found.device_scheduler) == (elevator, device)
    assert tuple(written.get(knob) for knob in KNOBS) == knobs
    assert list(written)[-1] == "enabled" and written["enabled"] == "1"
    assert [setting.path for setting in found.foreground] == ["/sys/kernel/fasttrack/foreground_uids"]


def test_who_is_an_app_is_said_wherever_fasttrack_is_on() -> None:
    """The kernel knows none by itself; every policy names the same."""
    found = [{one.path: one.value for one in policy.load(name).settings} for name in policy.names()]
    apps = {one.get("/sys/kernel/fasttrack/app_uids") for one in found if "/sys/kernel/fasttrack/enabled" in one}
    assert apps == {"10000-19999 20000-29999 90000-99999"}


def test_qasio_prefers_no_app() -> None:
    found = policy.load("qasio")
    (front,) = (one for one in found.settings_json({"apps": "10101 1000"}) if one["path"].endswith("/foreground_uids"))
    assert front["value"] == "10101 1000"
    assert found.foreground_json({}, 10101) == []


@pytest.mark.parametrize("name", policy.names())
def test_a_policy_is_documented(name: str) -> None:
    """In the folder's table; and what it sets can be filled for a phone."""
    assert f"| [`{name}`]({name}.toml) |" in (POLICIES / "README.md").read_text()
    found = policy.load(name)
    values = {**found.values("s6"), placeholders.APPS: "1"}
    assert found.published or found.detector or name in NOBODY, "whoever adds a policy has it measured"
    for one in [*found.settings_json(values), *found.foreground_json(values, 1)]:
        assert one["path"].startswith("/sys/") and "{" not in one["value"]


@pytest.mark.parametrize("name", ["ioprio-bfq", "ioprio-deadline"])
def test_ioprio_policies(name: str) -> None:
    found = policy.load(name)
    assert found.ioprio == policy.ByPlace("realtime 4", "idle")
    assert found.elevator == {"bfq": "bfq", "deadline": "mq-deadline"}[name.removeprefix("ioprio-")]
    assert not found.settings and not found.foreground and not found.cgroup


def test_unknown_names_name_the_known_ones() -> None:
    with pytest.raises(UsageProblem, match=r"no policy 'fast'; policies: stock, .*fasttrack"):
        policy.load("fast")
    with pytest.raises(UsageProblem, match=r"no phone 's7'; phones: n5, n6, s6, p1, ufs31, ufs40"):
        phone.load("s7")


GOOD = 'description = "x"\nelevator = "none"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('elevator = "none"', "description is missing"),
        ('description = "x"', "elevator is missing"),
        (GOOD + "colour = 1", "unknown key 'colour'"),
        (GOOD + 'device_scheduler = "best"', "must be one of fifo, read-first, foreground"),
        (GOOD + '[[setting]]\npath = "/a"', "needs a path and a value"),
        (
            GOOD + '[[setting]]\npath = "/a"\nvalue = "{uid}"',
            "[[setting]]: /a: unknown placeholder {uid}; known: apps, profile.sequential_read_depth, ",
        ),
        (
            GOOD + '[[foreground]]\npath = "/a"\nvalue = "{profile.speed}"',
            "unknown placeholder {profile.speed}; known: uid, profile",
        ),
        ("description = ", "x.toml"),
        (GOOD + '[ioprio]\nforeground = "idle"', "[ioprio]: needs foreground, background, and nothing else"),
        (GOOD + '[ioprio]\nforeground = "idle"\nbackground = "idle"\nservice = "idle"', "and nothing else"),
        (
            GOOD + '[ioprio]\nforeground = "realtime 8"\nbackground = "idle"',
            "foreground is 'realtime 8', must be idle, realtime 0 to 7 or best-effort 0 to 7",
        ),
        (GOOD + '[ioprio]\nforeground = "realtime 4"\nbackground = "idle 3"', "background is 'idle 3'"),
        (GOOD + "ioprio = 3", "needs foreground, background"),
        (GOOD + '[[cgroup]]\nfile = "io.weight"\nforeground = 100', "needs file, foreground, background"),
        (GOOD + '[[cgroup]]\nfile = "../x"\nforeground = 1\nbackground = 1', "a name such as io.weight"),
        (
            GOOD + '[[cgroup]]\nfile = "io.weight"\nforeground = [1]\nbackground = 1',
            "foreground is [1], must be a text",
        ),
        (GOOD + '[cgroup]\nfile = "io.weight"', "must be a list of tables"),
    ],
)
def test_wrong_policy_files(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "x.toml"
    path.write_text(text)
    with pytest.raises(LabError, match=re.escape(message)):
        policy.parse(path)


def test_phones_have_what_their_figures_need() -> None:
    known = phone.phones()
    assert list(known) == ["n5", "n6", "s6", "p1", "ufs31", "ufs40"]
    for one in known.values():
        assert one.guest_mib <= one.ram_mib
        assert one.format[0] == f"mkfs.{one.fs}" and one.format[-1] == "/dev/sda"
        assert {work.unit for work in one.calibration} == {"MB/s", "IOPS"}


def test_a_phone_has_its_own_file_system_or_another() -> None:
    s6 = phone.load("s6")
    assert s6.with_fs(None) == s6 and s6.fs == "ext4"
    other = s6.with_fs("f2fs")
    assert (other.name, other.format[0], other.mount_options) == ("s6", "mkfs.f2fs", "noatime,discard")
    with pytest.raises(UsageProblem, match="no file system 'xfs'; file systems: ext4, f2fs"):
        s6.with_fs("xfs")


@pytest.mark.parametrize("fs", phone.FILE_SYSTEMS)
def test_nothing_random_is_in_a_format(fs: str) -> None:
    argv = phone.FORMATS[fs]
    assert argv[argv.index("-U") + 1] == phone.FS_UUID


def test_wrong_phone_files(tmp_path: Path) -> None:
    path = tmp_path / "phones.toml"
    with pytest.raises(LabError, match="is missing"):
        phone.phones(path)
    path.write_text("[x]\nqueue_depth = 1\n")
    with pytest.raises(LabError, match="the key 'ram_mib' is missing"):
        phone.phones(path)
    path.write_text('[x]\nram_mib = 1\nfs = "btrfs"\n')
    with pytest.raises(LabError, match="fs is 'btrfs'"):
        phone.phones(path)


APPS = [
    {"name": "gallery", "uid": 10101, "role": "foreground"},
    {"name": "left", "uid": 10107, "role": "background"},
    {"name": "backup", "uid": 10201, "role": "background"},
    {"name": "logger", "uid": 1000, "role": "service"},
]


def test_the_touch_is_an_event_where_the_daemon_tells() -> None:
    found = policy.load("freeze").detector
    assert found is not None
    assert found.config == "[effects]\nkernel = false\nweights = false\nfreezer = true\nioprio = false\n"
    begin = found.texts(APPS, [10107])["begin.log"].splitlines()
    assert [line.split(": ")[0] for line in begin] == [
        *["I/am_proc_start"] * 3,
        "I/wm_resume_activity",
        "I/wm_pause_activity",
        "I/wm_resume_activity",
    ]
    assert "10201" in begin[3] and "10107" in begin[5]
    touch = found.touch(APPS, [10107])["value"].splitlines()
    assert touch == ["I/wm_pause_activity: [0,10107,left/.Main,userLeaving=true]", *touch[1:]]
    assert touch[1:] == ["I/wm_resume_activity: [0,10101,1,gallery/.Main]"]
    assert "1000=logger" not in found.service(APPS)["argv"] and "10201=backup" in found.service(APPS)["argv"]


def test_a_detector_that_cannot_be_is_an_error(tmp_path: Path) -> None:
    good = (POLICIES / "fasttrackd.toml").read_text()
    for before, after, said in (
        ('rung = "kernel"', 'rung = "fastest"', "rung is 'fastest'"),
        ('["memory"]', '["pids"]', "controllers must be a list of cpu, io, memory"),
        ("kernel = true", "kernel = 1", "each true or false"),
        ("published = false", 'published = "no"', "published is 'no'"),
        ("[detector]", "[ioprio]\n[detector]", r"\[detector\] has fasttrackd set"),
        ("[detector]", "[detector]\nsource = 1", "needs controllers, effects, rung, and nothing else"),
    ):
        assert before in good
        path = tmp_path / "own.toml"
        path.write_text(good.replace(before, after))
        with pytest.raises(LabError, match=said):
            policy.parse(path)


def test_policies_that_are_not_published_are_run_by_name_alone() -> None:
    left_out = set(policy.names()) - set(policy.published())
    assert left_out == {"fasttrackd", *NOBODY}
