# SPDX-License-Identifier: GPL-2.0-only
"""The Debian package of the device's programs, by its files alone. make test-deb installs it."""

from __future__ import annotations

import configparser
import fnmatch
import re
import shutil
from pathlib import Path

import pytest

from fasttrack_lab.build import device_package
from fasttrack_lab.host import process
from fasttrack_lab.host.paths import CHECKOUT, DEVICE

DEBIAN = CHECKOUT / "debian"
DAEMON_UNIT = "fasttrackd.service"
AGENT_UNIT = "fasttrack-agent.service"
TRACE_UNIT = "fasttrack-trace.service"
# What giving up what it does not need calls, before its own filter is there.
TRACE_GIVES_UP = {"capget", "capset", "prctl", "seccomp"}
# What its sources need: BPF programs; files by inode, without a time of access. Tracefs is root's.
TRACE_MAY = {"CAP_BPF", "CAP_PERFMON", "CAP_DAC_READ_SEARCH", "CAP_FOWNER"}


def rule(name: str) -> list[str]:
    """The words of a variable of debian/rules."""
    found = re.search(rf"^{name} = (.*)$", (DEBIAN / "rules").read_text(encoding="utf-8"), re.MULTILINE)
    assert found
    return found[1].split()


def installed() -> dict[str, str]:
    """What is installed: its path in the package's tree, and where it goes."""
    lines = (DEBIAN / "fasttrack.install").read_text(encoding="utf-8").splitlines()
    return dict(line.split() for line in lines)


def settings(unit: str) -> dict[str, list[str]]:
    """The settings of a unit's file, each with its values in their order."""
    found: dict[str, list[str]] = {}
    for line in (DEVICE / "data" / unit).read_text(encoding="utf-8").splitlines():
        if line and line[0] not in "#[":
            name, value = line.split("=", 1)
            found.setdefault(name, []).append(value)
    return found


def test_every_program_is_installed_with_what_belongs_to_it() -> None:
    places = installed()
    for program in rule("PROGRAMS"):
        assert f"debian/made/programs/{program}" in places
    for command in [*rule("COMMANDS"), "fasttrack-agent"]:
        assert places[f"debian/made/bash/{command}"].endswith("bash-completion/completions")
        assert places[f"debian/made/{command}.fish"].endswith("fish/vendor_completions.d")
        assert places[f"debian/made/_{command}"].endswith("zsh/vendor-completions")
    assert rule("COMPLETED") == ["$(COMMANDS)", "fasttrack-agent"]
    assert [path for path in places if path.startswith("device/") and not (CHECKOUT / path).is_file()] == []


@pytest.mark.parametrize(
    "unit", sorted(path.name for path in (DEVICE / "data").glob("*.service") if "." not in path.stem)
)
def test_units_run_what_is_installed(unit: str) -> None:
    links = {path.resolve() for path in DEBIAN.glob("fasttrack.*.service")}
    assert DEVICE / "data" / unit in links
    program = Path(settings(unit)["ExecStart"][0].split()[0])
    assert installed()[f"debian/made/programs/{program.name}"] == str(program.parent).lstrip("/")


def test_the_daemon_sees_sockets_of_the_network_namespace_of_users_and_has_no_network() -> None:
    """The kernel's list of UNIX sockets, by which peers of the app in front are not frozen, is of one namespace."""
    unit = settings(DAEMON_UNIT)
    assert not {"PrivateNetwork", "NetworkNamespacePath", "JoinsNamespaceOf"} & set(unit)
    assert unit["RestrictAddressFamilies"] == ["AF_UNIX AF_NETLINK"]
    assert unit["IPAddressDeny"] == ["any"]


def test_what_the_doctor_misses_is_recommended() -> None:
    """pw-dump, by which the agent knows who plays, records or uses the camera."""
    doctor = (DEVICE / "ctl" / "src" / "doctor.rs").read_text(encoding="utf-8")
    recommended = re.search(r"^Recommends: (.*)$", (DEBIAN / "control").read_text(encoding="utf-8"), re.MULTILINE)
    assert recommended
    assert "pipewire-bin" in doctor
    assert "pipewire-bin" in recommended[1].split(", ")


@pytest.mark.parametrize("unit", [DAEMON_UNIT, AGENT_UNIT])
def test_who_is_killed_comes_back_however_often_and_a_bad_command_line_does_not(unit: str) -> None:
    text = (DEVICE / "data" / unit).read_text(encoding="utf-8")
    found = settings(unit)
    # Else systemd gives up after the fifth start in ten seconds. It is a setting of [Unit], and unknown in [Service].
    assert "\nStartLimitIntervalSec=0\n" in text.split("[Service]")[0]
    assert found["Restart"] == ["on-failure"]
    assert int(found["RestartSec"][0]) >= 1
    assert found["RestartPreventExitStatus"] == ["2"]


def test_the_agent_starts_in_sessions_with_and_without_the_target() -> None:
    unit = settings(AGENT_UNIT)
    assert unit["WantedBy"] == unit["PartOf"] == ["graphical-session.target"]
    assert not {"Requisite", "Requires", "BindsTo"} & set(unit)
    assert {"|WAYLAND_DISPLAY", "|DISPLAY"} <= set(unit["ConditionEnvironment"])
    assert installed()["device/data/fasttrack-agent.desktop"] == "etc/xdg/autostart"
    entry = configparser.ConfigParser(interpolation=None)
    entry.read(DEVICE / "data" / "fasttrack-agent.desktop", encoding="utf-8")
    assert entry["Desktop Entry"]["Exec"] == "fasttrack-agent --start"
    # There the target starts it.
    assert entry["Desktop Entry"]["X-systemd-skip"] == "true"


@pytest.mark.parametrize(
    ("device", "schedulers", "chosen"),
    [
        ("sda", "none [mq-deadline] fasttrack bfq", True),
        ("nvme0n1", "[none] mq-deadline fasttrack", True),
        ("sda", "none [mq-deadline] bfq", False),
        ("dm-0", "none", False),
        ("zram0", "[none]", False),
        ("loop0", "[none] mq-deadline fasttrack", False),
        ("md127", "[none] mq-deadline fasttrack", False),
    ],
)
def test_disks_begin_with_the_scheduler_where_the_kernel_has_it(device: str, schedulers: str, chosen: bool) -> None:
    name = "60-fasttrack.rules"
    assert installed()[f"device/data/{name}"] == "usr/lib/udev/rules.d"
    lines = (DEVICE / "data" / name).read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    (rule_,) = [line for line in lines if line and line[0] != "#"]
    is_so = {
        "ACTION": "add",
        "SUBSYSTEM": "block",
        "ENV{DEVTYPE}": "disk",
        "KERNEL": device,
        "ATTR{queue/scheduler}": schedulers,
    }
    words = re.findall(r'([\w{}/]+)(==|!=|=)"([^"]*)"', rule_)
    assert len(words) == len(rule_.split(","))
    *matches, what = words
    assert what == ("ATTR{queue/scheduler}", "=", "fasttrack")
    fits = [
        any(fnmatch.fnmatchcase(is_so[key], one) for one in value.split("|")) == (operator == "==")
        for key, operator, value in matches
    ]
    assert all(fits) == chosen
    # Not on "change": what was chosen by hand would not stay.
    assert ("ACTION", "==", "add") in matches


def test_the_recorder_is_off_and_confined() -> None:
    rules = (DEBIAN / "rules").read_text(encoding="utf-8")
    assert re.search(r"dh_installsystemd --name=fasttrack-trace .*--no-enable .*--no-start", rules)
    unit = settings(TRACE_UNIT)
    assert set(unit["CapabilityBoundingSet"][0].split()) == TRACE_MAY
    assert unit["SystemCallFilter"][0].split() == ["@system-service", "bpf", "open_by_handle_at", "seccomp"]
    assert unit["SystemCallFilter"][1].startswith("~")
    for name, value in {
        "NoNewPrivileges": "yes",
        "PrivateNetwork": "yes",
        "RestrictAddressFamilies": "none",
        "ProtectSystem": "strict",
        "UMask": "0077",
        "LogsDirectoryMode": "0700",
        "StateDirectoryMode": "0700",
    }.items():
        assert unit[name] == [value], name


def test_a_recorder_that_runs_is_stopped_and_renewed() -> None:
    """It is not debhelper that starts it, so debhelper does not stop it."""
    for script, action in (("prerm", "stop"), ("postinst", "try-restart")):
        said = (DEBIAN / f"fasttrack.{script}").read_text(encoding="utf-8")
        assert f"deb-systemd-invoke {action} {TRACE_UNIT}" in said


def test_purging_removes_what_the_unit_has_written_and_no_more() -> None:
    unit = settings(TRACE_UNIT)
    purge = (DEBIAN / "fasttrack.postrm").read_text(encoding="utf-8")
    removed = {word for line in re.findall(r"^\s*rm -rf (.*)$", purge, re.MULTILINE) for word in line.split()}
    written = {f"/var/log/{unit['LogsDirectory'][0]}", f"/var/lib/{unit['StateDirectory'][0]}"}
    assert removed == {"/etc/fasttrack", *written}


def test_the_package_is_made_anew_when_its_unit_changes() -> None:
    """The unit in debian/ is a link: the key has what it leads to."""
    assert DEVICE in device_package.PARTS
    assert (DEBIAN / f"fasttrack.{TRACE_UNIT}").resolve() == DEVICE / "data" / TRACE_UNIT


def test_the_package_is_made_of_all_documents_that_it_has() -> None:
    """The script copies them, and the key has them."""
    listed = (DEBIAN / "fasttrack.docs").read_text(encoding="utf-8").split()
    parts = re.findall(r'^parts="(.*)"$', device_package.SCRIPT.read_text(encoding="utf-8"), re.MULTILINE)[0].split()
    known = {str(path.relative_to(CHECKOUT)) for path in device_package.FILES}
    for name in listed:
        assert name.startswith("device/") or (name in parts and name in known)


def members(sets: dict[str, set[str]], name: str) -> set[str]:
    """The system calls of a set of systemd's, with those of the sets in it; a call is itself."""
    return set().union(*(members(sets, one) for one in sets[name])) if name.startswith("@") else {name}


def test_the_recorder_s_own_filter_fits_into_its_unit_s() -> None:
    """A call that the unit refuses fails in the service alone, where no other test runs."""
    program = shutil.which("systemd-analyze") or pytest.skip("systemd-analyze is not installed (package systemd)")
    sets: dict[str, set[str]] = {}
    for line in process.output([program, "syscall-filter", "--no-pager"]).splitlines():
        word = line.strip()
        if line.startswith("@"):
            found = sets.setdefault(word, set())
        elif word and word[0] != "#":
            found.add(word)
    allowed = members(sets, "@default")
    for value in settings(TRACE_UNIT)["SystemCallFilter"]:
        named = set().union(*(members(sets, name) for name in value.lstrip("~").split()))
        allowed = allowed - named if value.startswith("~") else allowed | named
    source = (DEVICE / "trace" / "src" / "confine.rs").read_text(encoding="utf-8")
    calls = set(re.findall(r"libc::SYS_(\w+)", source))
    assert {"openat", "bpf"} <= calls
    assert (calls | TRACE_GIVES_UP) - allowed == set()
