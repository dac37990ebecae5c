# SPDX-License-Identifier: GPL-2.0-only
"""A desktop's session in a guest: the units under systemd, and a launch that the daemon finds out."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fasttrack_lab.commands import session as command
from fasttrack_lab.host.errors import UsageProblem
from fasttrack_lab.host.paths import version
from fasttrack_lab.inputs import phone
from fasttrack_lab.run.runner import Tools
from fasttrack_lab.session import desktop, driver
from fasttrack_lab.session import killed as killing

ASKED = desktop.Asked(phone.load("s6"), launches=3, limit_s=1800, watchdog=True)
"""Beside six apps."""

SOURCES = "sway, launch, exec, session-bus, portal, logind, inhibitors, daemon"
WITHIN_S = 1.0 + 2 * killing.LOOK_S
"""The guard lets nothing be frozen for more than a second, which began before the signal; and it is looked for that."""


@pytest.fixture(scope="module")
def daemon(tools: Tools) -> dict[str, Any]:
    """What one session has found in which the daemon does everything."""
    if lacking := desktop.missing():
        pytest.skip(f"missing: {', '.join(lacking)}; scripts/setup.sh session installs them")
    return desktop.boot(driver.MODE_DAEMON, ASKED, tools)


@pytest.mark.guest
def test_a_launch_is_found_out_before_the_app_reads(daemon: dict[str, Any]) -> None:
    """It takes at most 5 ms, the goal beside a saturated disk, more than the app's control group takes; mostly 1 ms."""
    for launch in daemon["launches"]:
        assert 0 < launch["scope_s"] <= launch["detected_s"] < launch["response_s"]
        assert launch["response_s"] < 0.4, "alone it takes 0.16 to 0.19 s, on stock more than a second"
    took_s = sorted(launch["detected_s"] - launch["scope_s"] for launch in daemon["launches"])
    assert took_s[-1] < 0.005 and took_s[len(took_s) // 2] < 0.001, took_s


@pytest.mark.guest
def test_a_launch_takes_at_most_a_twentieth_more_than_told_by_the_lab(daemon: dict[str, Any], tools: Tools) -> None:
    """The lab tells the kernel at the touch, as soon as the app has a control group."""
    lab = desktop.boot(driver.MODE_LAB, ASKED, tools)
    responses = [desktop.mean(facts, "response_s") for facts in (daemon, lab)]
    of_daemon, of_lab = responses
    assert of_daemon is not None and of_lab is not None
    assert of_daemon <= 1.05 * of_lab, responses


@pytest.mark.guest
def test_the_daemons_unit_is_ready_and_confined(daemon: dict[str, Any]) -> None:
    units = daemon["units"]
    assert units["daemon"] == {
        "ActiveState": "active",
        "Type": "notify",
        "WatchdogUSec": "1min",
        "NRestarts": "0",
        "ControlGroup": "/system.slice/fasttrackd.service",
    }
    # CAP_DAC_OVERRIDE, CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_SYS_NICE, CAP_SYS_RESOURCE: linux/capability.h.
    assert int(units["capabilities"], 16) == 1 << 1 | 1 << 19 | 1 << 21 | 1 << 23 | 1 << 24
    assert (units["no_new_privileges"], units["seccomp"]) == ("1", "2")
    assert {"/", "/data", "/home", "/root", "/run/user", "/usr/lib", "/sys", "/proc/sys"} <= set(units["read_only"])
    assert {"/sys/fs/cgroup", "/sys/kernel/fasttrack", "/run/fasttrack"} <= set(units["writable"])


@pytest.mark.guest
def test_the_agents_unit_runs_in_the_sessions_slice_and_is_believed(daemon: dict[str, Any]) -> None:
    agent, status = daemon["units"]["agent"], daemon["units"]["status"]
    assert agent["ActiveState"] == "active" and agent["NRestarts"] == "0"
    assert agent["ControlGroup"].endswith("/user@1000.service/session.slice/fasttrack-agent.service")
    (of_user,) = status["sessions"]
    assert (of_user["user"], of_user["seat"], of_user["active"]) == (driver.USER, "seat0", True)
    assert status["rung"] == "kernel" and status["errors"] == []
    assert of_user["sources"] == SOURCES.split(", ")
    assert daemon["units"]["daemon_says"] == ["rung: kernel"]
    (sources,) = daemon["units"]["agent_says"]
    assert sources == f"sources: {SOURCES}"


@pytest.mark.guest
def test_what_a_key_starts_has_a_scope_and_is_in_front_before_its_window(daemon: dict[str, Any]) -> None:
    """sway starts it in the session's own control group, where all apps of a plain window manager are."""
    by_key = daemon["by_key"]
    assert by_key["scope"].startswith("app-fasttrack-bound.sh-") and by_key["scope"].endswith(".scope")
    assert by_key["processes"] >= 1 and by_key["window_later"]


@pytest.mark.guest
def test_top_says_to_root_whom_the_kernel_has_paused(daemon: dict[str, Any]) -> None:
    """While a launch reads, those behind write; the tracepoint is followed in an instance that does not stay."""
    before, after = daemon["top"]["before"], daemon["top"]["after"]
    assert {row["pauses"] for row in before} == {0}
    # Nobody may be in front any more at the second look: who was behind is neutral then.
    paused = {row["name"]: row["pauses"] for row in after if row["class"] in ("background", "neutral")}
    assert sum(paused.values()) > 0, paused
    assert all(row["pauses"] == 0 for row in after if row["class"] == "foreground")
    assert daemon["top"]["instances"] == []


@pytest.mark.guest
def test_after_an_apps_end_the_agent_is_quiet(daemon: dict[str, Any]) -> None:
    """It has asked the user's manager without end once, for units that had ended."""
    assert daemon["quiet"]["s"] >= 1
    assert daemon["quiet"]["switches"] < 20


@pytest.mark.guest
def test_nobody_wakes_up_while_no_app_runs(daemon: dict[str, Any]) -> None:
    """But the daemon for systemd's watchdog, twice in its minute; the same beat renews the kernel's lease.

    For each it runs in three seconds at most: tokio looks at a timer of 30 s as its slot of 4 s begins, as its one of
    64 ms does, and when it is due.
    """
    beats = 2 * driver.IDLE_S / driver.WATCHDOG_S
    assert daemon["idle"]["daemon"] <= 3 * beats
    assert (daemon["idle"]["guard"], daemon["idle"]["agent"]) == (0, 0)


@pytest.mark.guest
def test_a_daemon_that_hangs_is_ended_and_there_is_another(daemon: dict[str, Any]) -> None:
    watchdog = daemon["watchdog"]
    # It had answered at some time within half of the watchdog's.
    assert driver.WATCHDOG_S / 2 <= watchdog["after_s"] <= driver.WATCHDOG_S + 5
    assert (watchdog["restarts"], watchdog["state"]) == (1, "active")


@pytest.fixture(scope="module")
def killed(tools: Tools, request: pytest.FixtureRequest) -> dict[str, Any]:
    """What one session has found in which the daemon, its guard and the agent are killed and stopped."""
    if lacking := desktop.missing():
        pytest.skip(f"missing: {', '.join(lacking)}; scripts/setup.sh session installs them")
    kills = int(request.config.getoption("--ends"))
    return desktop.boot(driver.MODE_KILLED, replace(ASKED, backgrounds=(), kills=kills), tools)


@pytest.mark.guest
@pytest.mark.parametrize("victim", ["daemon", "guard", "agent"])
@pytest.mark.parametrize("kind", ["SIGKILL", "SIGSTOP"])
def test_whoever_is_killed_or_stopped_all_is_thawed_within_a_second(
    killed: dict[str, Any], victim: str, kind: str
) -> None:
    assert killed["rung"] == "freezer", killed["notes"]
    assert killed[victim][kind]["thawed_s"] <= WITHIN_S


@pytest.mark.guest
@pytest.mark.parametrize("victim", ["daemon", "agent"])
@pytest.mark.parametrize("kind", ["SIGKILL", "SIGSTOP"])
def test_what_was_set_for_an_app_is_restored_within_a_second(killed: dict[str, Any], victim: str, kind: str) -> None:
    """memory.low and the attributes that remember what was there before."""
    assert killed["values_before"] == []
    assert killed[victim][kind]["restored_s"] <= WITHIN_S


@pytest.mark.guest
def test_whoever_is_killed_at_any_moment_of_a_launch_all_is_restored_within_a_second(killed: dict[str, Any]) -> None:
    """16 times, as often as --ends says. In the end of each nothing was set any more."""
    assert any(one["frozen"] for one in killed["kills"])
    assert {one["victim"] for one in killed["kills"]} == set(killing.VICTIMS)
    for one in killed["kills"]:
        assert max(one["thawed_s"], one.get("restored_s", 0.0)) <= WITHIN_S, one


@pytest.mark.guest
def test_the_kernels_lists_are_empty_within_a_second_of_the_daemons_end(killed: dict[str, Any]) -> None:
    assert killed["kernel"]["lists_s"] <= WITHIN_S
    assert killed["kernel"]["switched_off_s"] <= WITHIN_S


@pytest.mark.guest
def test_systemd_knows_what_is_set_on_units_of_its_own(killed: dict[str, Any]) -> None:
    """512 MiB, the default of memory_low_mib; the driver has waited until the values before were back."""
    told = killed["told"]
    assert set(told["before"].values()) == {"0"}
    assert set(told["in_front"].values()) == {str(512 << 20)}


@pytest.fixture(scope="module")
def package(tools: Tools) -> dict[str, Any]:
    """What one session has found in which the Debian package was installed, used, stopped and purged."""
    if lacking := desktop.missing():
        pytest.skip(f"missing: {', '.join(lacking)}; scripts/setup.sh session installs them")
    if not shutil.which("dh"):
        pytest.skip("missing: debhelper; scripts/setup.sh --dev deb installs it")
    return desktop.boot(driver.MODE_PACKAGE, ASKED, tools)


@pytest.mark.guest
def test_the_package_starts_both_units_and_has_them_start_again(package: dict[str, Any]) -> None:
    daemon, agent = package["installed"]["daemon"], package["installed"]["agent"]
    assert (daemon["ActiveState"], daemon["UnitFileState"]) == ("active", "enabled")
    assert (agent["ActiveState"], agent["UnitFileState"]) == ("active", "enabled")
    assert daemon["FragmentPath"].endswith("/lib/systemd/system/fasttrackd.service")
    assert agent["FragmentPath"] == "/usr/lib/systemd/user/fasttrack-agent.service"


@pytest.mark.guest
def test_the_package_works_confined_and_says_so(package: dict[str, Any]) -> None:
    units = package["units"]
    assert (units["daemon"]["Type"], units["daemon"]["WatchdogUSec"]) == ("notify", "1min")
    assert (units["no_new_privileges"], units["seccomp"]) == ("1", "2")
    assert "/" in units["read_only"] and "/sys/kernel/fasttrack" in units["writable"]
    assert units["agent"]["ControlGroup"].endswith("/session.slice/fasttrack-agent.service")
    (client,) = package["while_it_runs"]["foreground_cgroups"]
    assert client.endswith("/app.slice/app-lab-used-1.scope")
    first, *others = package["status"].splitlines()
    assert first == f"fasttrackd {version()}, rung: kernel" and any("app-lab-used-1" in line for line in others)


@pytest.mark.guest
def test_nothing_is_set_when_the_daemon_has_stopped(package: dict[str, Any]) -> None:
    stopped = package["stopped"]
    assert stopped["states"]["daemon"]["ActiveState"] == "inactive"
    assert stopped["lists"] == {"foreground_cgroups": [], "perceptible_cgroups": []}
    assert stopped["frozen"] == [] and stopped["marks"] == []
    # The agent has had something to say since.
    assert package["later"]["daemon"]["ActiveState"] == "inactive"
    assert package["later"]["agent"]["ActiveState"] == "active"


@pytest.mark.guest
def test_a_purge_thaws_what_is_frozen_and_leaves_nothing(package: dict[str, Any]) -> None:
    purged = package["purged"]
    assert [path.rsplit("/", 1)[1] for path in purged["frozen_before"]] == ["app-lab-write-1.scope"]
    assert purged["frozen"] == [] and purged["marks"] == [] and purged["left"] == []
    assert purged["lists"] == {"foreground_cgroups": [], "perceptible_cgroups": []}
    assert purged["behind"] is None, "the app behind runs on"
    for unit in purged["states"].values():
        assert (unit["ActiveState"], unit["UnitFileState"]) == ("inactive", "")


def launches(*times: tuple[float, float | None]) -> dict[str, Any]:
    return {"launches": [{"response_s": one, "scope_s": 0.001, "detected_s": told} for one, told in times]}


def test_the_table_has_what_was_found() -> None:
    found = {
        "alone": launches((0.1, None), (0.3, None)),
        "lab": launches((0.2, 0.001)),
        "daemon": launches((0.3, 0.002)) | {"watchdog": {"after_s": 31.0}},
    }
    found["daemon"]["units"] = {"status": {"rung": "kernel", "counters": {"reports": 7}, "errors": ["bad"]}}
    columns = {str(column.header): list(column.cells) for column in command.table(found).columns}
    assert columns["response"] == ["200.00", "200.00", "300.00"]
    assert columns["over alone"] == ["1.00x", "1.00x", "1.50x"] and columns["over the lab's"][2] == "1.50x"
    assert columns["told"] == ["-", "1.00", "2.00"] and columns["highest"][0] == "300.00"
    assert command.said(found) == [
        "daemon: fasttrackd's rung is kernel; 7 reports, 0 freezes",
        "daemon: error: bad",
        "daemon: another fasttrackd 31.0 s after it was stopped",
    ]
    assert command.said({"alone": found["alone"]}) == []


def test_unknown_programs_and_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert desktop.known_kinds(["write", "write"]) == ("write", "write")
    with pytest.raises(UsageProblem, match="unknown kind 'wrote'"):
        desktop.known_kinds(["wrote"])
    (tmp_path / "packages.txt").write_text("# a note\nshell sh\nnone no-such-program\nother /no/such/file\n")
    monkeypatch.setattr(desktop, "PACKAGES", tmp_path / "packages.txt")
    assert desktop.missing() == ["none", "other"]


def test_each_way_to_boot_has_its_policy_and_the_phone_what_readers_read() -> None:
    assert list(desktop.MODES) == ["alone", "stock", "freeze", "lab", "daemon"]
    files = desktop.contents(replace(ASKED, backgrounds=("write", "read"))).files
    assert [(one["app"], one["path"]) for one in files] == [("background-2", "large")]
