# SPDX-License-Identifier: GPL-2.0-only
"""The elevator smartio at work: what goes first, how long writes wait, what the device is given. Times are virtual."""

from __future__ import annotations

from typing import Any

import pytest
from guest_script import look

from fasttrack_lab.figures.smartio_poster import BESIDE, PHONES
from fasttrack_lab.host.side_by_side import each
from fasttrack_lab.inputs import phone, policy, scenario
from fasttrack_lab.run.runner import Tools, run_many
from fasttrack_lab.run.specs import spec_of

pytestmark = pytest.mark.guest

WRITE_WAIT_MS = 100
"""The knob's default."""

# Writers and readers that keep the device busy, and what the elevator sends meanwhile, in order.
LOAD = """
mount("debugfs", "/sys/kernel/debug")
fill_disk(128)

def fio(name, mode, size, depth, offset, more=""):
    return subprocess.Popen(
        f"exec {more} fio --name={name} --filename=/dev/sda --rw={mode} --bs={size} --offset={offset}m --size=32m "
        f"--direct=1 --ioengine=libaio --iodepth={depth} --time_based --runtime=2s --clocksource=clock_gettime "
        "--thread --output-format=json", shell=True, cwd="/tmp", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

def end(process):
    # Operations, and their mean and longest time in ms.
    job = fio_job(process)
    side = job["read"] if job["read"]["total_ios"] else job["write"]
    return {"ios": side["total_ios"], "mean_ms": side["clat_ns"]["mean"] / 1e6, "max_ms": side["clat_ns"]["max"] / 1e6}

def traced(*events):
    for event in events:
        write(TRACE + "events/" + event + "/enable", "1")
    write(TRACE + "buffer_size_kb", "16384")
"""

BOTH = """
write(QUEUE + "scheduler", "{elevator}")
if "{elevator}" == "smartio":
    write(QUEUE + "iosched/sequential_write_depth", "{write_depth}")
    write(QUEUE + "iosched/write_wait_ms", "{write_wait_ms}")
traced("smartio/smartio_dispatch")
def play():
    reads, writes = fio("reads", "randread", "64k", {read_depth}, 0), fio("writes", "write", "512k", 32, 64)
    SHOWN["reads"], SHOWN["writes"] = end(reads), end(writes)
SHOWN["sent"] = events_of("smartio_dispatch", play)
if "{elevator}" == "smartio":
    SHOWN["wait_max_ms"] = int(read(QUEUE + "iosched/write_wait_max_us")) / 1e3
"""


def both(
    tools: Tools,
    phone_name: str,
    elevator: str,
    read_depth: int,
    write_depth: int = 0,
    write_wait_ms: int = WRITE_WAIT_MS,
) -> dict[str, Any]:
    """Random reads, so many at a time, beside a stream of writes, of which the device is given so many."""
    load = BOTH.format(elevator=elevator, read_depth=read_depth, write_depth=write_depth, write_wait_ms=write_wait_ms)
    return look(tools, LOAD + load, phone_name)


@pytest.mark.parametrize(("phone_name", "write_depth", "factor"), [("s6", 1, 3), ("n6", 0, 10)])
def test_reads_pass_writes(tools: Tools, phone_name: str, write_depth: int, factor: int) -> None:
    """One read at a time. A device with a queue must not be given all writes for that; it writes about as fast."""
    stock, smartio = each(
        ["mq-deadline", "smartio"], lambda name: both(tools, phone_name, name, 1, write_depth), "elevators"
    )
    assert smartio["reads"]["mean_ms"] * factor < stock["reads"]["mean_ms"]
    assert smartio["writes"]["ios"] > 0.9 * stock["writes"]["ios"]


@pytest.mark.parametrize("bound_ms", [WRITE_WAIT_MS, 300])
def test_a_process_waits_for_reads_no_longer_than_the_bound(tools: Tools, bound_ms: int) -> None:
    """More reads than the device can serve, without a pause: a write goes each time the bound is over, no other."""
    shown = both(tools, "n6", "smartio", 64, write_wait_ms=bound_ms)
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
    load = """
write(QUEUE + "scheduler", "smartio")
reads = fio("reads", "randread", "64k", 64, 0)
writers = [fio(f"writes{index}", "write", "512k", 1, 64) for index in range(6)]
SHOWN["reads"], SHOWN["writes"] = end(reads), [end(one) for one in writers]
SHOWN["wait_max_ms"] = int(read(QUEUE + "iosched/write_wait_max_us")) / 1e3
"""
    shown = look(tools, LOAD + load, "n6")
    assert WRITE_WAIT_MS <= shown["wait_max_ms"] <= WRITE_WAIT_MS + 8
    # They are overdue at the same time: one waits for the reads, and for the others' writes of 6 ms each.
    assert max(one["max_ms"] for one in shown["writes"]) < WRITE_WAIT_MS + 6 * 8 + 8
    assert min(one["ios"] for one in shown["writes"]) >= 12
    # Reads have the rest of the time.
    stock = look(
        tools, LOAD + load.replace('"smartio"', '"mq-deadline"').replace("write_wait_max_us", "../nr_requests"), "n6"
    )
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

    def beside(elevator: str) -> dict[str, Any]:
        load = f"""
write(QUEUE + "scheduler", "{elevator}")
MANY, ONE = fio("many", "{many}", "512k", 32, 64), fio("one", "{one}", "4k", 1, 0)
SHOWN["many"], SHOWN["one"] = end(MANY), end(ONE)
"""
        return look(tools, LOAD + load, "n6")

    stock, smartio = each(["mq-deadline", "smartio"], beside, "elevators")
    one_of_many_ms = smartio["many"]["mean_ms"] / 32
    assert smartio["one"]["mean_ms"] < 3 * one_of_many_ms
    assert stock["one"]["mean_ms"] > 8 * one_of_many_ms


def test_no_more_in_the_device_than_the_knobs_say(tools: Tools) -> None:
    shown = look(
        tools,
        LOAD
        + """
write(QUEUE + "scheduler", "smartio")
traced("smartio/smartio_dispatch", "block/block_rq_complete")

def most(mode, size, **depths):
    # The most requests that were in the device at a time, and operations.
    for kind in ("sequential_read", "random_read", "sequential_write", "random_write"):
        write(QUEUE + f"iosched/{kind}_depth", str(depths.get(kind, 0)))
    open(TRACE + "trace", "w").close()
    done = end(fio("one", mode, size, 32, 0))
    inside, highest = 0, 0
    for line in read(TRACE + "trace").splitlines():
        inside += ("smartio_dispatch: " in line) - ("block_rq_complete: " in line)
        highest = max(highest, inside)
    return highest, done["ios"]
SHOWN["no limit"] = most("randread", "4k")
SHOWN["four"] = most("randread", "4k", random_read=4, sequential_read=4)
SHOWN["others'"] = most("randread", "4k", sequential_read=1, sequential_write=1, random_write=1)
SHOWN["writes"] = most("randwrite", "4k", random_write=2, sequential_write=2)
SHOWN["sequential"] = most("write", "512k", sequential_write=2, random_write=32)
""",
    )
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
    shown = look(
        tools,
        LOAD
        + """
write(QUEUE + "scheduler", "smartio")
write(QUEUE + "iosched/prio_aging_ms", "500")
RT, READ, IDLE = fio("rt", "randwrite", "64k", 4, 0, "ionice -c 1"), fio("reads", "randread", "64k", 64, 32), \
    fio("idle", "randread", "64k", 4, 96, "ionice -c 3")
SHOWN["rt"], SHOWN["reads"], SHOWN["idle"] = end(RT), end(READ), end(IDLE)
""",
        "n6",
    )
    assert shown["rt"]["mean_ms"] < shown["reads"]["mean_ms"] / 4
    # A request of them a bound: four are queued at a time.
    assert 4 <= shown["idle"]["ios"] < shown["reads"]["ios"] / 10
    assert shown["idle"]["max_ms"] >= 500


def test_elevators_change_under_load(tools: Tools) -> None:
    shown = look(
        tools,
        LOAD
        + """
READ, WRITE = fio("reads", "randread", "64k", 16, 0), fio("writes", "write", "512k", 32, 64)
SHOWN["said"] = []
for turn in range(20):
    time.sleep(0.05)
    SHOWN["said"].append(write(QUEUE + "scheduler", ("smartio", "none", "smartio", "fasttrack")[turn % 4]))
SHOWN["reads"], SHOWN["writes"] = end(READ), end(WRITE)
write(QUEUE + "scheduler", "smartio")
SHOWN["state"] = read("/sys/kernel/debug/block/sda/sched/state").splitlines()
""",
    )
    assert set(shown["said"]) == {"ok"}
    assert shown["reads"]["ios"] > 0 and shown["writes"]["ios"] > 0
    assert [line.split()[0] for line in shown["state"]] == ["reads", "writes", "held"]
