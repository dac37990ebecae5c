# SPDX-License-Identifier: GPL-2.0-only
"""The elevator smartio at work: what goes first, how long writes wait, what the device is given. Times are virtual."""

from __future__ import annotations

from typing import Any

import pytest
from guest_script import QUEUE, Settings, ask, setting

from fasttrack_lab.figures.smartio_poster import BESIDE, PHONES
from fasttrack_lab.host.side_by_side import each
from fasttrack_lab.inputs import phone, policy, scenario
from fasttrack_lab.run import fio
from fasttrack_lab.run.runner import Tools, run_many
from fasttrack_lab.run.specs import spec_of

pytestmark = pytest.mark.guest

WRITE_WAIT_MS = 100
"""The knob's default."""


def job(name: str, rw: str, block: str, depth: int, offset_mib: int) -> list[str]:
    """fio for two seconds on 32 MiB of the device."""
    options = (f"--offset={offset_mib}m", "--time_based")
    return fio.argv(fio.Job(name, "/dev/sda", rw, block, depth, "32m", runtime_s=2, options=options))


READS, WRITES = job("reads", "randread", "64k", 64, 0), job("writes", "write", "512k", 32, 64)
"""More than the device can serve."""


def elevator(name: str, **knobs: int) -> Settings:
    return [
        setting(QUEUE + "scheduler", name),
        *(setting(f"{QUEUE}iosched/{knob}", value) for knob, value in knobs.items()),
    ]


def both(tools: Tools, phone_name: str, settings: Settings, read_depth: int) -> dict[str, Any]:
    """Random reads, so many at a time, beside a stream of writes."""
    jobs = {"reads": job("reads", "randread", "64k", read_depth, 0), "writes": WRITES}
    return ask(tools, "smartio.traced", settings=settings, phone_name=phone_name, jobs=jobs)


@pytest.mark.parametrize(("phone_name", "write_depth", "factor"), [("s6", 1, 3), ("n6", 0, 10)])
def test_reads_pass_writes(tools: Tools, phone_name: str, write_depth: int, factor: int) -> None:
    """One read at a time. A device with a queue must not be given all writes for that; it writes about as fast."""
    kinds = [elevator("mq-deadline"), elevator("smartio", sequential_write_depth=write_depth)]
    stock, smartio = each(kinds, lambda settings: both(tools, phone_name, settings, 1), "elevators")
    assert smartio["reads"]["mean_ms"] * factor < stock["reads"]["mean_ms"]
    assert smartio["writes"]["ios"] > 0.9 * stock["writes"]["ios"]


@pytest.mark.parametrize("bound_ms", [WRITE_WAIT_MS, 300])
def test_a_process_waits_for_reads_no_longer_than_the_bound(tools: Tools, bound_ms: int) -> None:
    """More reads than the device can serve, without a pause: a write goes each time the bound is over, no other."""
    shown = both(tools, "n6", elevator("smartio", write_wait_ms=bound_ms), 64)
    overdue = [one for one in shown["sent"] if one["turn"] == "overdue_write"]
    # In two seconds.
    assert 0.75 * 2000 / bound_ms <= len(overdue) <= 1.25 * 2000 / bound_ms
    assert shown["writes"]["ios"] > 0.75 * 2000 / bound_ms
    # A request of the device: 64 KiB read or 512 KiB written.
    assert bound_ms <= shown["wait_max_ms"] <= bound_ms + 8
    waited = [int(one["waited_ns"]) / 1e6 for one in shown["sent"] if "write" in one["turn"]]
    assert max(waited) == pytest.approx(shown["wait_max_ms"], abs=0.001)


def test_of_many_processes_none_waits_longer(tools: Tools) -> None:
    """Six that write, beside all the reads that the device can serve: each has one write in so much time of reads."""
    writers = {f"writes{index}": job(f"writes{index}", "write", "512k", 1, 64) for index in range(6)}

    def under(name: str) -> dict[str, Any]:
        return ask(tools, "smartio.at_once", settings=elevator(name), phone_name="n6", jobs={"reads": READS} | writers)

    shown = under("smartio")
    assert WRITE_WAIT_MS <= shown["wait_max_ms"] <= WRITE_WAIT_MS + 8
    # They are overdue at the same time: one waits for the reads, and for the others' writes of 6 ms each.
    assert max(shown[name]["max_ms"] for name in writers) < WRITE_WAIT_MS + 6 * 8 + 8
    assert min(shown[name]["ios"] for name in writers) >= 12
    # Reads have the rest of the time.
    stock = under("mq-deadline")
    assert shown["reads"]["ios"] > 1.2 * stock["reads"]["ios"]


@pytest.mark.parametrize("phone_name", PHONES)
def test_an_app_starts_sooner_beside_an_installation(tools: Tools, phone_name: str) -> None:
    front, behind = scenario.load("smartio-maps-launch"), scenario.load_background(BESIDE["launch"])
    policies = [policy.load(name) for name in ("stock", "smartio")]
    made = [spec_of(front, [behind], phone.load(phone_name), one, 1) for one in policies]
    stock, smartio = (result.to_json() for result in run_many(made, tools))
    assert stock["ok"] and smartio["ok"], (stock["error"], smartio["error"])
    assert smartio["response_s"] < 0.9 * stock["response_s"]


@pytest.mark.parametrize(("many", "one"), [("write", "randwrite"), ("read", "randread")], ids=["writes", "reads"])
def test_processes_take_turns(tools: Tools, many: str, one: str) -> None:
    """Who sends one request at a time waits for the one that is in the device, and one of the process with many."""

    jobs = {"many": job("many", many, "512k", 32, 64), "one": job("one", one, "4k", 1, 0)}

    def beside(name: str) -> dict[str, Any]:
        return ask(tools, "smartio.at_once", settings=elevator(name), phone_name="n6", jobs=jobs)

    stock, smartio = each(["mq-deadline", "smartio"], beside, "elevators")
    one_of_many_ms = smartio["many"]["mean_ms"] / 32
    assert smartio["one"]["mean_ms"] < 3 * one_of_many_ms
    assert stock["one"]["mean_ms"] > 8 * one_of_many_ms


def test_no_more_in_the_device_than_the_knobs_say(tools: Tools) -> None:
    none = dict.fromkeys(("sequential_read", "random_read", "sequential_write", "random_write"), 0)
    small = {"no limit": "randread", "four": "randread", "others'": "randread", "writes": "randwrite"}
    jobs = {name: job("one", rw, "4k", 32, 0) for name, rw in small.items()}
    jobs["sequential"] = job("one", "write", "512k", 32, 0)
    turns = {
        "no limit": none,
        "four": none | {"random_read": 4, "sequential_read": 4},
        "others'": none | {"sequential_read": 1, "sequential_write": 1, "random_write": 1},
        "writes": none | {"random_write": 2, "sequential_write": 2},
        "sequential": none | {"sequential_write": 2, "random_write": 32},
    }
    shown = ask(tools, "smartio.most", settings=elevator("smartio"), turns=turns, jobs=jobs)
    assert shown["no limit"][0] > 16
    assert shown["four"][0] == 4
    assert shown["others'"][0] == shown["no limit"][0]
    assert shown["writes"][0] == 2
    # Where a stream begins again at its start, that write goes on with nothing.
    assert shown["sequential"][0] <= 3
    # Whoever is held back goes on as soon as one has left the device: the queue is never run by a timer.
    assert shown["four"][1] > 1000


def test_priorities_come_before_reads_and_writes(tools: Tools) -> None:
    """Writes of class RT go before reads; reads of class idle wait for both, but are not starved."""
    jobs = {
        "rt": ["ionice", "-c", "1", *job("rt", "randwrite", "64k", 4, 0)],
        "reads": job("reads", "randread", "64k", 64, 32),
        "idle": ["ionice", "-c", "3", *job("idle", "randread", "64k", 4, 96)],
    }
    settings = elevator("smartio", prio_aging_ms=500)
    shown = ask(tools, "smartio.at_once", settings=settings, phone_name="n6", jobs=jobs)
    assert shown["rt"]["mean_ms"] < shown["reads"]["mean_ms"] / 4
    # A request of them a bound: four are queued at a time.
    assert 4 <= shown["idle"]["ios"] < shown["reads"]["ios"] / 10
    assert shown["idle"]["max_ms"] >= 500


def test_elevators_change_under_load(tools: Tools) -> None:
    jobs = {"reads": job("reads", "randread", "64k", 16, 0), "writes": WRITES}
    shown = ask(tools, "smartio.changes", jobs=jobs)
    assert shown["reads"]["ios"] > 0 and shown["writes"]["ios"] > 0
    assert [line.split()[0] for line in shown["state"]] == ["reads", "writes", "held"]
