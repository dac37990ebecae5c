# SPDX-License-Identifier: GPL-2.0-only
"""The I/O dispatcher at work: tags, order, bounds, and what the device is told. Times are virtual."""

from __future__ import annotations

from typing import Any

import pytest
from guest_script import look

from fasttrack_lab.host.side_by_side import each
from fasttrack_lab.run.runner import Tools

pytestmark = pytest.mark.guest

FRONT, BEHIND = 10101, 10102

# A background app that keeps 256 requests queued, and a foreground app that reads a block every 5 ms.
LOAD = f"""
import mmap, random, threading
mount("debugfs", "/sys/kernel/debug")
os.chmod("/dev/sda", 0o666)
fill_disk(256)
BEHIND = subprocess.Popen(
    "exec fio --name=behind --filename=/dev/sda --rw=randrw --bs=128k --offset=64m --size=192m --direct=1 "
    "--ioengine=libaio --iodepth=256 --time_based --runtime=1500ms --buffer_pattern=7 --clocksource=clock_gettime "
    "--allow_file_create=0 --thread --output-format=json",
    shell=True, cwd="/tmp", user={BEHIND}, group={BEHIND}, stdout=subprocess.PIPE)
time.sleep(0.5)

def busy():
    # Scheduler tags in use, of how many.
    text = dict(line.split("=") for line in read("/sys/kernel/debug/block/sda/hctx0/sched_tags").splitlines()
                if line.count("=") == 1)
    return int(text["busy"]), int(text["depth"])
SHOWN["busy"] = max(busy() for _ in range(20) if not time.sleep(0.005))

def front(count, think):
    took = []
    shown_read, shown_write = os.pipe()
    def work():
        buffer = mmap.mmap(-1, 4096)
        handle = os.open("/dev/sda", os.O_RDONLY | os.O_DIRECT)
        draw = random.Random(1)
        for _ in range(count):
            begin = time.monotonic_ns()
            os.preadv(handle, [buffer], draw.randrange(16384) * 4096)
            took.append(time.monotonic_ns() - begin)
            if think:
                time.sleep(think)
        os.write(shown_write, json.dumps(took).encode())
    as_uid({FRONT}, work)
    return json.loads(os.read(shown_read, 1 << 20))
"""

FINISH = """
job = fio_job(BEHIND)
SHOWN["behind_max_s"] = max(job[side]["clat_ns"]["max"] for side in ("read", "write")) / 1e9
SHOWN["behind_ios"] = job["read"]["total_ios"] + job["write"]["total_ios"]
SHOWN["device"] = dict(line.split() for line in read("/sys/kernel/debug/mflash/stats").splitlines())
"""

FASTTRACK = f"""
write(QUEUE + "scheduler", "fasttrack")
write(FT + "foreground_uids", "{FRONT}")
write(FT + "enabled", "1")
"""
STOCK = 'write(QUEUE + "scheduler", "mq-deadline")\n'


def foreground_reads(tools: Tools, policy: str, phone_name: str = "s6") -> dict[str, Any]:
    reads = 'took = front(30, 0.005)\nSHOWN["mean_ms"] = sum(took) / len(took) / 1e6\n'
    return look(tools, policy + LOAD + reads + FINISH, phone_name)


@pytest.mark.parametrize("phone_name", ["s6", "n6"])
def test_foreground_reads_pass_a_full_queue(tools: Tools, phone_name: str) -> None:
    stock, fasttrack = each([STOCK, FASTTRACK], lambda one: foreground_reads(tools, one, phone_name), "policies")
    assert fasttrack["mean_ms"] * 5 < stock["mean_ms"]
    # The background queues more than there are tags. The foreground finds free ones.
    busy, depth = fasttrack["busy"]
    assert busy <= 0.75 * depth < stock["busy"][0]
    # The class arrives at the device.
    assert int(fasttrack["device"]["read_foreground"]) >= 30
    assert int(fasttrack["device"]["read_background"]) > 0
    assert int(stock["device"]["read_foreground"]) == int(stock["device"]["read_background"]) == 0


def test_background_is_not_starved(tools: Tools) -> None:
    """The foreground reads without a pause for longer than the bound; background goes on, one request at a time."""
    reads = 'front(8000, 0)\nSHOWN["expired"] = int(read(FT + "stats/dispatch_expired"))\n'
    nothing_else = 'write(QUEUE + "iosched/background_depth", "0")\n'
    shares, expires = each(
        [FASTTRACK, FASTTRACK + nothing_else], lambda one: look(tools, one + LOAD + reads + FINISH), "bounds"
    )
    assert shares["behind_ios"] > 100
    assert expires["expired"] > 0


def test_the_window_is_how_long_the_foreground_still_works(tools: Tools) -> None:
    """A block every 5 ms: with the default window of 20 ms background is held in between, with none it is not."""
    held, let = each(
        [FASTTRACK, FASTTRACK + 'write(QUEUE + "iosched/idle_window_us", "0")\n'],
        lambda one: look(tools, one + LOAD + "front(150, 0.005)\n" + FINISH),
        "windows",
    )
    assert let["behind_ios"] > 1.3 * held["behind_ios"]


def test_the_share_is_what_background_has_of_a_busy_device(tools: Tools) -> None:
    reads = """
def sent():
    counts = dict(line.split() for line in read("/sys/kernel/debug/mflash/stats").splitlines())
    return int(counts["read_background"]) + int(counts["write_background"])
before, begin = sent(), time.monotonic_ns()
took = front(4000, 0)
SHOWN["per_s"] = (sent() - before) * 1e9 / (time.monotonic_ns() - begin)
SHOWN["mean_ms"] = sum(took) / len(took) / 1e6
"""
    little, half = each(
        [FASTTRACK + f'write(QUEUE + "iosched/background_share", "{share}")\n' for share in (5, 50)],
        lambda one: look(tools, one + LOAD + reads + FINISH),
        "shares",
    )
    print(little["per_s"], half["per_s"], little["mean_ms"], half["mean_ms"])
    assert half["per_s"] > 3 * little["per_s"]
    assert half["mean_ms"] > 1.1 * little["mean_ms"]


def test_the_reserve_is_what_background_leaves_of_the_devices_queue(tools: Tools) -> None:
    """Once a foreground app has been seen, and while it is idle."""
    idle = """
front(1, 0)
time.sleep(0.1)
def in_device():
    tags = dict(line.split("=") for line in read("/sys/kernel/debug/block/sda/hctx0/tags").splitlines()
                if line.count("=") == 1)
    return int(tags["busy"]), int(tags["depth"])
found = [in_device() for _ in range(50) if not time.sleep(0.005)]
SHOWN["free"] = min(depth - busy for busy, depth in found)
"""
    least, default, more = each(
        [FASTTRACK + f'write(QUEUE + "iosched/foreground_reserve", "{entries}")\n' for entries in (0, 4, 12)],
        lambda one: look(tools, one + LOAD + idle + FINISH),
        "reserves",
    )
    assert [least["free"], default["free"], more["free"]] == [0, 4, 12]


def test_device_is_told_by_ioprio(tools: Tools) -> None:
    shown = look(
        tools,
        FASTTRACK
        + f"""
trace = "/sys/kernel/tracing/"
os.chmod("/dev/sda", 0o666)
def issued(uid):
    open(trace + "trace", "w").close()
    write(trace + "events/block/block_rq_issue/enable", "1")
    as_uid(uid, lambda: os.pread(os.open("/dev/sda", os.O_RDONLY), 4096, uid << 12))
    write(trace + "events/block/block_rq_issue/enable", "0")
    return [line.split("block_rq_issue: ")[1] for line in read(trace + "trace").splitlines()
            if "block_rq_issue: " in line]
SHOWN["front"] = issued({FRONT})
SHOWN["behind"] = issued({BEHIND})
""",
    )
    assert shown["front"] and all(" rt,0,0 " in line for line in shown["front"])
    assert shown["behind"] and not any(" rt," in line for line in shown["behind"])


def test_requests_merged_on_insertion_are_counted_once(tools: Tools) -> None:
    """A batch in which a block follows another, but not at once, merges when the batch is inserted."""
    shown = look(
        tools,
        f"""
import mmap, struct
mount("debugfs", "/sys/kernel/debug")
os.chmod("/dev/sda", 0o666)
write(QUEUE + "scheduler", "fasttrack")
write(FT + "enabled", "1")
SETUP, GETEVENTS, SUBMIT = 206, 208, 209

def batch(blocks):
    # One io_submit of direct writes of 4 KiB, and all its events.
    handle = os.open("/dev/sda", os.O_WRONLY | os.O_DIRECT)
    area = mmap.mmap(-1, 4096)
    address = ctypes.addressof(ctypes.c_char.from_buffer(area))
    context = ctypes.c_ulong(0)
    assert LIBC.syscall(SETUP, len(blocks), ctypes.byref(context)) == 0
    def call(block):
        return ctypes.create_string_buffer(
            struct.pack("<QIiHhIQQqQII", 0, 0, 0, 1, 0, handle, address, 4096, block * 4096, 0, 0, 0))
    calls = list(map(call, blocks))
    array = (ctypes.c_void_p * len(calls))(*map(ctypes.addressof, calls))
    assert LIBC.syscall(SUBMIT, context, ctypes.c_long(len(calls)), array) == len(calls)
    events = ctypes.create_string_buffer(32 * len(calls))
    count = ctypes.c_long(len(calls))
    assert LIBC.syscall(GETEVENTS, context, count, count, events, None) == len(calls)

merged = lambda: int(read("/sys/block/sda/stat").split()[5])
before = merged()
as_uid({BEHIND}, lambda: batch([10, 50, 11, 70, 12, 90, 13]))
SHOWN["merged"] = merged() - before
SHOWN["state"] = read("/sys/kernel/debug/block/sda/sched/state").splitlines()
# The scheduler checks its own books when it leaves; the log must stay clean.
write(QUEUE + "scheduler", "none")
""",
    )
    assert shown["merged"] >= 3
    assert [line.split()[2] for line in shown["state"][:3]] == ["0", "0", "0"]
