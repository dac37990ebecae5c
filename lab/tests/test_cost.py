# SPDX-License-Identifier: GPL-2.0-only
"""`./fasttrack cost`: what a guest has counted is believed only if its clock counts; medians, goals, table."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from fasttrack_lab.cost import costs, counting
from fasttrack_lab.cost.costs import BASE_STATE, Cost
from fasttrack_lab.cost.counts import Counts, Written, parse
from fasttrack_lab.host.errors import LabError
from fasttrack_lab.host.paths import LAB
from fasttrack_lab.run.boot.backend import BootSpec
from fasttrack_lab.run.boot.qemu import Qemu

CHECKED = "check 100 210 205 205\ncheck 1100 2205 7000\n"
"""A loop of 1000 turns more takes 2000 instructions more; one was interrupted."""


def counted(state: str, ticks: str = "1000 1010 9000", path: str = "fault", sleeps: int = 0) -> str:
    return f"count {state} {path} 10 {sleeps} {ticks}\n"


def test_an_operation_takes_the_median_batch_s_part() -> None:
    counts = parse(CHECKED + counted("off") + "done\n")
    counts.check()
    assert counts.by_state["off"]["fault"].instructions == 101.0


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "end of its counts"),
        (CHECKED + counted("off"), "end of its counts"),
        (CHECKED + "count off fault 10 0\ndone\n", "line 3 .*not a line"),
        (CHECKED + "count off fault 0 0 5\ndone\n", "line 3 .*not a line"),
        (CHECKED + "count off fault 10 0 x\ndone\n", "line 3"),
        ("check 100\ndone\n", "line 1"),
        (CHECKED + "write off direct-random 4096 0\ndone\n", "line 3 .*not a line"),
        ("nonsense\ndone\n", "line 1"),
    ],
)
def test_what_is_not_whole_is_an_error(text: str, error: str) -> None:
    with pytest.raises(LabError, match=error):
        parse(text)


@pytest.mark.parametrize(
    "checks",
    [
        "",
        "check 100 205\n",
        # A clock of real time, one at half the rate, and one that a tick has always been added to.
        "check 100 35\ncheck 1100 361\n",
        "check 100 205\ncheck 1100 1205\n",
        "check 100 205\ncheck 1100 2206\n",
    ],
)
def test_a_clock_that_does_not_count_instructions_is_an_error(checks: str) -> None:
    with pytest.raises(LabError, match="clock"):
        parse(checks + counted("off") + "done\n").check()


def test_sleep_and_loss_are_errors() -> None:
    with pytest.raises(LabError, match="fault in the state off: the program slept 2 times"):
        parse(CHECKED + counted("off", sleeps=2) + "done\n").check()
    with pytest.raises(LabError, match="trace-origin: the trace has lost 3 events"):
        parse(CHECKED + "lost trace-origin 3\ndone\n").check()
    parse(CHECKED + "lost trace-origin 0\ndone\n").check()


def boots(*instructions: dict[str, dict[str, int]]) -> list[Counts]:
    """Boots from instructions by state and path."""
    texts = [
        "".join(
            counted(state, str(number * 10), path) for state, paths in boot.items() for path, number in paths.items()
        )
        for boot in instructions
    ]
    return [parse(CHECKED + text + "done\n") for text in texts]


def test_costs_are_medians_of_boots_over_those_of_the_base() -> None:
    base = [{BASE_STATE: {"read-cached": number}} for number in (1000, 1002, 5000)]
    ours = [{"off": {"read-cached": number}, "uid-neutral": {"read-cached": 1032}} for number in (900, 1005, 1006)]
    found = costs.costs(boots(*base, *ours))
    assert [(cost.state, cost.instructions) for cost in found] == [
        (BASE_STATE, 1002),
        ("off", 1005),
        ("uid-neutral", 1032),
    ]
    off, on = found[1:]
    assert (off.more, off.percent) == (3, pytest.approx(0.2994, abs=1e-4))
    assert not off.missed and not on.missed
    assert off.spread_percent == pytest.approx(106 / 1005 * 100)


@pytest.mark.parametrize(
    ("state", "path", "instructions", "missed"),
    [
        ("off", "fault", 1003, False),
        ("off", "fault", 1004, True),
        ("cgroup-background", "direct-read-elevator", 1030, False),
        ("cgroup-background", "direct-read-elevator", 1031, True),
        ("uid-foreground", "write-cached", 1031, True),
        # Without a goal of their own.
        ("uid-foreground", "direct-write", 2000, False),
        ("trace-blktrace", "direct-read", 2000, False),
        (BASE_STATE, "fault", 1000, False),
    ],
)
def test_goals_are_of_the_first_paths_alone(state: str, path: str, instructions: float, missed: bool) -> None:
    assert Cost(state, path, (instructions,), 1000.0).missed == missed


def traced(origin: int) -> list[Cost]:
    states = {BASE_STATE: 0, "off": 10, "trace-origin": 10 + origin, "trace-block": 210, "trace-blktrace": 1510}
    paths = {state: dict.fromkeys(costs.TRACED_PATHS, 4000 + more) for state, more in states.items()}
    return costs.costs(boots(paths))


def test_traces_are_compared_with_untraced_in_the_same_boots() -> None:
    found = traced(500)
    assert costs.traced(found, "direct-write-file") == {
        "trace-origin": 500,
        "trace-block": 200,
        "trace-blktrace": 1500,
    }
    assert costs.missed(found) == []
    over = [line for line in costs.missed(traced(501)) if "trace-origin" in line]
    assert len(over) == len(costs.TRACED_PATHS) and "0.33 of blktrace" in over[0]
    assert not costs.has_traces(found[:3])


def text_of(found: list[Cost], states: tuple[str, ...]) -> str:
    shown = io.StringIO()
    Console(width=200, file=shown).print(costs.table(found, states, "title"))
    return shown.getvalue()


def test_the_table_marks_what_misses_its_goal() -> None:
    numbers = {BASE_STATE: 1000, "off": 1002, "cgroup-neutral": 1050}
    shown = text_of(costs.costs(boots({s: {"fault": n} for s, n in numbers.items()})), ("off", "cgroup-neutral"))
    assert re.search(r"fault +1000 +\+2 +\+50", shown)
    assert re.search(r"\+0\.20 % +\+5\.00 %!", shown)


def test_csv_and_json_have_every_path_and_state(tmp_path: Path) -> None:
    found = costs.costs(boots({BASE_STATE: {"fault": 1000}, "off": {"fault": 1004}}))
    costs.write_csv(tmp_path / "costs.csv", found)
    rows = list(csv.DictReader((tmp_path / "costs.csv").open()))
    assert [(row["state"], row["more"], row["goal_percent"]) for row in rows] == [
        (BASE_STATE, "0.0", ""),
        ("off", "4.0", "0.3"),
    ]
    written = costs.to_json(found, {"x86-cost": "key"})
    assert written["costs"][1]["boots"] == [1004.0]
    assert written["missed"] == ["fault, off: +4 instructions, +0.40 %, goal 0.3 %"]


def test_the_kernel_without_fasttrack_is_always_booted() -> None:
    planned = counting.planned(("off", "uid-neutral"), 2)
    assert [(boot.target, boot.states, boot.number) for boot in planned] == [
        ("x86-cost-base", (BASE_STATE,), 1),
        ("x86-cost", ("off", "uid-neutral"), 1),
        ("x86-cost-base", (BASE_STATE,), 2),
        ("x86-cost", ("off", "uid-neutral"), 2),
    ]


def test_a_file_that_is_written_is_one_of_the_emulated_phone_s(monkeypatch: pytest.MonkeyPatch) -> None:
    booted: list[counting.Boot] = []

    def boot_all(plan: list[counting.Boot], jobs: int | None) -> tuple[dict[str, str], list[Counts]]:
        assert jobs is None
        booted.extend(plan)
        return {}, [parse(CHECKED + f"write {one.states[0]} direct-random 8192 4000\ndone\n") for one in plan]

    monkeypatch.setattr(counting, "_boot_all", boot_all)
    written = counting.writes(("off", "trace-origin"))
    assert written["trace-origin"]["direct-random"] == Written(8192, 4000)
    # Each state has a phone as new.
    assert [(one.target, one.states, one.params()["mflash.phone"]) for one in booted] == [
        ("x86-cost-phone", ("off",), "s6"),
        ("x86-cost-phone", ("trace-origin",), "s6"),
    ]
    assert [one.machine.storage_mib > 64 and one.machine.counts for one in booted] == [True, True]
    assert booted[0].has(Counts(written=written)) == {"off", "trace-origin"}


def test_the_guest_knows_the_same_paths_and_states() -> None:
    source = LAB / "counter" / "src"
    paths = re.findall(r'^        name: "([a-z-]+)"', (source / "paths.rs").read_text(), re.MULTILINE)
    assert paths == list(costs.PATHS)
    states = re.findall(
        r'^            "([a-z-]+)"(?: \| "([a-z-]+)")? =>', (source / "state.rs").read_text(), re.MULTILINE
    )
    assert {name for pair in states for name in pair if name} == {BASE_STATE, *costs.STATES}


def test_a_guest_that_counts_has_one_processor_and_the_clock_of_instructions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []

    def start(argv: list[str], **kept: object) -> None:
        started.append(argv)
        raise LabError("enough")

    monkeypatch.setattr("fasttrack_lab.run.boot.qemu.available", lambda: True)
    monkeypatch.setattr("fasttrack_lab.run.boot.qemu.process.start", start)
    spec = BootSpec(Path("/k"), Path("/init"), 64, tmp_path, None)
    for counts in (True, False):
        with pytest.raises(LabError, match="enough"):
            Qemu(counts=counts).boot(spec)
    counting_words, ordinary = started
    assert counting_words[counting_words.index("-icount") + 1] == "shift=0,sleep=off"
    assert counting_words[counting_words.index("-smp") + 1] == "1"
    assert "-icount" not in ordinary and ordinary[ordinary.index("-smp") + 1].startswith("2,")
