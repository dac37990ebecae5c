# SPDX-License-Identifier: GPL-2.0-only
"""FastTrack's core in a running kernel: its files, its classes, whose I/O is whose, and what the dispatcher sets."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
from guest_script import look

from fasttrack_lab.host.paths import CHECKOUT
from fasttrack_lab.run.runner import Tools

pytestmark = pytest.mark.guest

CONTRACT = CHECKOUT / "contract"
OVERLAY = CHECKOUT / "kernel" / "overlay"
FILES: list[dict[str, Any]] = tomllib.loads((CONTRACT / "sysfs.toml").read_text())["file"]
EVENTS: dict[str, dict[str, Any]] = tomllib.loads((CONTRACT / "tracepoints.toml").read_text())
ELEVATORS = sorted({one["elevator"] for one in FILES if "elevator" in one})


def test_files_and_events_are_the_contract(tools: Tools) -> None:
    shown = look(
        tools,
        f"""
def files(*roots):
    return {{root + name: [oct(os.stat(root + name).st_mode & 0o777), read(root + name)]
            for root in roots for name in os.listdir(root) if os.path.isfile(root + name)}}
SHOWN["files"] = files(FT, FT + "stats/")
for elevator in {ELEVATORS!r}:
    write(QUEUE + "scheduler", elevator)
    SHOWN["files"].update(files(QUEUE + "iosched/"))
def formats(root):
    return {{name: read(root + name + "/format") for name in os.listdir(root) if os.path.isdir(root + name)}}
SHOWN["events"] = {{system: formats(TRACE + "events/" + system + "/") for system in {list(EVENTS)!r}}}
""",
    )
    agreed = {one["path"].format(disk="sda"): one for one in FILES}
    assert sorted(shown["files"]) == sorted(agreed)
    for path, (mode, value) in shown["files"].items():
        assert mode == oct(int(agreed[path]["mode"], 8)), path
        assert value == agreed[path].get("default", "0"), path
    for system, formats in shown["events"].items():
        assert sorted(formats) == sorted(EVENTS[system])
        for name, text in formats.items():
            fields = [one for one in re.findall(r"field:.*?(\w+);", text) if not one.startswith("common_")]
            assert fields == EVENTS[system][name]["fields"], name


def test_every_file_is_documented() -> None:
    pages = (OVERLAY / "Documentation" / "ABI" / "testing").glob("sysfs-*")
    what = {line.split()[1] for page in pages for line in page.read_text().splitlines() if line.startswith("What:")}
    assert {one["path"].replace("{disk}", "<disk>") for one in FILES} == what


def wrong(one: dict[str, Any]) -> list[str]:
    """What a switch or a number of the contract does not take."""
    if one["type"] == "bool":
        return ["2", "x", "maybe", "\n"]
    low, high = one["range"]
    return [str(low - 1), str(high + 1), "1.5", "x", "\n"]


def test_the_ends_of_every_range_are_taken(tools: Tools) -> None:
    numbers = [one for one in FILES if one["mode"] == "0644" and one["type"] == "integer"]
    ends = {one["path"].format(disk="sda"): one["range"] for one in numbers}
    elevators = {one["path"].format(disk="sda"): one["elevator"] for one in numbers if "elevator" in one}
    assert len(ends) == 16
    shown = look(
        tools,
        f"ENDS, ELEVATORS = {ends!r}, {elevators!r}\n"
        """
for path, values in ENDS.items():
    if path in ELEVATORS:
        write(QUEUE + "scheduler", ELEVATORS[path])
    SHOWN[path] = [[write(path, str(value)), read(path)] for value in values]
""",
    )
    assert shown == {path: [["ok", str(end)] for end in both] for path, both in ends.items()}


def test_wrong_input_changes_nothing(tools: Tools) -> None:
    numbers = [one for one in FILES if one["mode"] == "0644" and one["type"] in ("bool", "integer")]
    knobs = {one["path"].format(disk="sda"): wrong(one) for one in numbers}
    elevators = {one["path"].format(disk="sda"): one["elevator"] for one in numbers if "elevator" in one}
    assert len(knobs) == 20
    shown = look(
        tools,
        f"KNOBS, ELEVATORS = {knobs!r}, {elevators!r}\n"
        """
write(FT + "foreground_uids", "10101 10102")
write(FT + "foreground_tgids", "1")
tries = {
    FT + "foreground_uids": ["10101 x", "-1", "4294967295", " ".join(["7"] * 33)],
    FT + "foreground_tgids": ["0", "-1", "1 zwei", "4194304"],
    FT + "app_uids": ["5-", "7-6", "1-100000", "a-b"],
    FT + "foreground_cgroups": ["/no/such/cgroup"],
    FT + "app_cgroups": ["/no/such/cgroup"],
    **KNOBS,
}
for path, values in tries.items():
    if path in ELEVATORS:
        write(QUEUE + "scheduler", ELEVATORS[path])
    before = read(path)
    SHOWN[path] = [[value, write(path, value), before, read(path)] for value in values]
""",
    )
    for path, tried in shown.items():
        for value, said, before, after in tried:
            assert said != "ok", (path, value)
            assert before == after, (path, value)
            assert said == {
                " ".join(["7"] * 33): "No space left on device",
                "4194304": "No such process",
                "/no/such/cgroup": "No such file or directory",
            }.get(value, "Invalid argument"), (path, value)
    for name in ("foreground_cgroups", "app_cgroups"):
        assert shown[f"/sys/kernel/fasttrack/{name}"][0][1] == "No such file or directory"


CLASSES = """
def classes(work):
    # How many bios of each class WORK sends.
    before = {name: int(read(FT + "stats/bios_" + name)) for name in ("neutral", "background", "foreground")}
    work()
    return {name: int(read(FT + "stats/bios_" + name)) - old for name, old in before.items()}

os.chmod("/dev/sda", 0o666)
def by(uid):
    return classes(lambda: as_uid(uid, direct_read))
"""


def test_class_by_uid_thread_group_and_cgroup(tools: Tools) -> None:
    shown = look(
        tools,
        CLASSES
        + """
SHOWN["off"] = by(10102)
write(FT + "enabled", "1")
SHOWN["app"] = by(10102)
SHOWN["service"] = by(1000)
write(FT + "foreground_uids", "10101 10102")
SHOWN["uid"] = by(10102)
write(FT + "foreground_uids", "10101")
SHOWN["uid removed"] = by(10102)

# A thread group, its child, and its grandchild whose parent is gone; then not any more.
go, gone = os.pipe(), os.pipe()
leader = os.fork()
if leader == 0:
    os.read(go[0], 1)
    if os.fork() == 0:
        if os.fork() == 0:
            for _ in range(2):
                os.read(go[0], 1)
                as_uid(10102, direct_read)
                os.write(gone[1], b"x")
        os._exit(0)
    os.wait()
    os.write(gone[1], b"x")
    os._exit(0)
def step():
    os.write(go[1], b"x")
    os.read(gone[0], 1)
SHOWN["tgid written"] = write(FT + "foreground_tgids", str(leader))
SHOWN["tgid shown"] = read(FT + "foreground_tgids") == str(leader)
SHOWN["leader forks"] = classes(step)
os.waitpid(leader, 0)
SHOWN["grandchild"] = classes(step)
SHOWN["tgid dead"] = read(FT + "foreground_tgids")
write(FT + "foreground_tgids", " ")
SHOWN["grandchild removed"] = classes(step)

os.mkdir("/run/cgroup")
mount("cgroup2", "/run/cgroup")
os.makedirs("/run/cgroup/app.slice/editor.scope")
os.makedirs("/run/cgroup/app.slice/other.scope")
def in_cgroup(path):
    def work():
        child = os.fork()
        if child == 0:
            write("/run/cgroup" + path + "/cgroup.procs", str(os.getpid()))
            as_uid(500, direct_read)
            os._exit(0)
        os.waitpid(child, 0)
    return classes(work)
write(FT + "app_cgroups", "/app.slice")
write(FT + "foreground_cgroups", "/app.slice/editor.scope")
SHOWN["cgroups"] = [read(FT + "app_cgroups"), read(FT + "foreground_cgroups")]
SHOWN["cgroup in front"] = in_cgroup("/app.slice/editor.scope")
SHOWN["cgroup behind"] = in_cgroup("/app.slice/other.scope")
SHOWN["no app's cgroup"] = in_cgroup("")
write(FT + "enabled", "0")
SHOWN["off again"] = by(10101)
""",
    )
    only = {
        name: {"neutral": int(name == "neutral"), "background": int(name == "background"), "foreground": 0}
        for name in ("none", "neutral", "background")
    }
    foreground = {"neutral": 0, "background": 0, "foreground": 1}
    assert shown["off"] == only["none"]
    assert shown["app"] == only["background"]
    assert shown["service"] == only["neutral"]
    assert shown["uid"] == foreground
    assert shown["uid removed"] == only["background"]
    assert shown["tgid written"] == "ok" and shown["tgid shown"]
    assert shown["leader forks"] == only["none"]
    assert shown["grandchild"] == foreground
    assert shown["tgid dead"] == ""
    assert shown["grandchild removed"] == only["background"]
    assert shown["cgroups"] == ["/app.slice", "/app.slice/editor.scope"]
    assert shown["cgroup in front"] == foreground
    assert shown["cgroup behind"] == only["background"]
    assert shown["no app's cgroup"] == only["neutral"]
    assert shown["off again"] == only["none"]


def test_whose_io_and_why(tools: Tools) -> None:
    shown = look(
        tools,
        """
subprocess.run(["/sbin/mkfs.ext4", "-q", "-F", "/dev/sda", "1G"], check=True)
os.mkdir("/run/data")
mount("ext4", "/run/data", "/dev/sda", "noinit_itable")
os.chmod("/run/data", 0o777)
write(QUEUE + "scheduler", "fasttrack")
write(FT + "foreground_uids", "10101")
write(FT + "enabled", "1")
write(TRACE + "events/fasttrack/fasttrack_bio/enable", "1")

def dirty(name):
    handle = os.open("/run/data/" + name, os.O_CREAT | os.O_WRONLY, 0o644)
    os.write(handle, os.urandom(1 << 20))
    return handle

def write_back(uid):
    as_uid(uid, lambda: dirty(f"behind{uid}"))
    os.sync()
SHOWN["write-back 10101"] = bios_of(lambda: write_back(10101))
SHOWN["write-back 10102"] = bios_of(lambda: write_back(10102))
SHOWN["fsync"] = bios_of(lambda: as_uid(10101, lambda: os.fsync(dirty("a"))))
SHOWN["fdatasync"] = bios_of(lambda: as_uid(10102, lambda: os.fdatasync(dirty("b"))))
def sync_write():
    handle = os.open("/run/data/c", os.O_CREAT | os.O_WRONLY | os.O_DSYNC, 0o644)
    os.write(handle, b"x" * 8192)
SHOWN["O_DSYNC"] = bios_of(lambda: as_uid(10102, sync_write))
write("/proc/sys/vm/drop_caches", "3")
def read_back():
    with open("/run/data/a", "rb") as handle:
        handle.read()
SHOWN["read"] = bios_of(lambda: as_uid(10101, read_back))
write(TRACE + "events/fasttrack/fasttrack_bio/enable", "0")
LIBC.umount(b"/run/data")
""",
    )

    def seen(name: str, cause: str) -> set[tuple[str, str]]:
        found = {(one["uid"], one["class"]) for one in shown[name] if one["cause"] == cause}
        assert found, f"{name}: no bio with cause={cause} in {shown[name]}"
        return found

    assert seen("write-back 10101", "writeback") == {("10101", "foreground")}
    assert seen("write-back 10102", "writeback") == {("10102", "background")}
    assert seen("fsync", "fsync") == {("10101", "foreground")}
    # The journal's thread works for the foreground that waits for it, else for nobody.
    assert seen("fsync", "journal") == {("0", "foreground")}
    assert seen("fdatasync", "fdatasync") == {("10102", "background")}
    assert seen("fdatasync", "journal") == {("0", "neutral")}
    assert seen("O_DSYNC", "sync_write") == {("10102", "background")}
    assert seen("read", "read") == {("10101", "foreground")}


def test_dispatcher_switches_write_back_throttling_off_and_back(tools: Tools) -> None:
    shown = look(
        tools,
        """
for name in ("mq-deadline", "fasttrack", "kyber", "fasttrack", "none", "fasttrack", "bfq", "mq-deadline"):
    write(QUEUE + "scheduler", name)
    SHOWN.setdefault(name, []).append(int(read(QUEUE + "wbt_lat_usec")))
SHOWN["state"] = []
write(QUEUE + "scheduler", "fasttrack")
mount("debugfs", "/sys/kernel/debug")
SHOWN["state"] = read("/sys/kernel/debug/block/sda/sched/state").splitlines()
""",
    )
    assert shown["fasttrack"] == [0, 0, 0]
    assert shown["bfq"] == [0]
    assert all(value > 0 for value in shown["mq-deadline"] + shown["kyber"])
    assert [line.split()[0] for line in shown["state"]] == [
        "neutral",
        "background",
        "foreground",
        "foreground_works",
    ]
