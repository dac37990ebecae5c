# SPDX-License-Identifier: GPL-2.0-only
"""The page allocator, the page reclaimer and promotion on wait in a running kernel. Times are virtual."""

from __future__ import annotations

from typing import Any

import pytest
from guest_script import BEHIND, EXT4, FRONT, Data, look_at_files

from fasttrack_lab.runner import Tools
from fasttrack_lab.side_by_side import each

pytestmark = pytest.mark.guest

FASTTRACK = f"""
write(QUEUE + "scheduler", "fasttrack")
write(FT + "foreground_uids", "{FRONT}")
write(FT + "enabled", "1")
"""


def play(tools: Tools, script: str, data: Data = EXT4) -> dict[str, Any]:
    """What SCRIPT shows on a fresh file system under FastTrack; the kernel's log must be clean."""
    return look_at_files(tools, FASTTRACK + script, data)


SCROLLING = """
make("scroll", 64)
make("target", 64)
drop_caches()
front = start(10101, lambda: reads_for_ever("scroll"))
"""

PAUSED = (
    SCROLLING
    + """
def paused(counter):
    # A background writer that pauses, by its counter: it has stood still for 100 ms.
    behind = start(10102, lambda: writes_for_ever("target", counter))
    old = -1
    def still():
        nonlocal old
        old, was = SEEN[counter], old
        time.sleep(0.1)
        return old == was
    ms_until(still)
    return behind
"""
)


def test_background_pauses_and_is_bounded(tools: Tools) -> None:
    """A background writer stands still while the foreground works, for no longer than the bound at a time."""
    shown = play(
        tools,
        PAUSED
        + """
write(FT + "background_pause_ms", "300")
behind = start(10102, lambda: writes_for_ever("target", 0))
time.sleep(0.5)
before = SEEN[0]
time.sleep(3)
SHOWN["written"] = SEEN[0] - before
SHOWN["pauses"], SHOWN["pause_max_us"] = stat("pauses"), stat("pause_max_us")
end(front)
time.sleep(0.1)
before = SEEN[0]
time.sleep(3)
SHOWN["written_alone"] = SEEN[0] - before
end(behind)
""",
    )
    assert shown["pauses"] >= 9
    # The bound, and what a timer and the first slice may add.
    assert 300_000 <= shown["pause_max_us"] <= 310_000
    assert 1 <= shown["written"] < shown["written_alone"] / 10


WRITE_BACK = (
    SCROLLING
    + """
def pages_under_write_back(sync):
    # A background app has made 32 MiB dirty when the foreground comes; they are written back from then on. The most
    # pages under write-back at a time.
    write(FT + "foreground_uids", "\\n")
    write("/proc/sys/vm/dirty_writeback_centisecs", "0")
    SEEN[0] = 0
    def fill():
        handle = os.open("/run/data/target", os.O_WRONLY)
        for _ in range(32):
            os.write(handle, PATTERN)
        SEEN[0] = 1
        while SEEN[0] == 1:
            time.sleep(0.001)
        if sync:
            os.fsync(handle)
        time.sleep(1000)
    behind = start(10102, fill)
    ms_until(lambda: SEEN[0])
    write(FT + "foreground_uids", "10101")
    time.sleep(0.05)
    SEEN[0] = 2
    if not sync:
        write("/proc/sys/vm/dirty_writeback_centisecs", "500")
    most = 0
    for _ in range(50):
        time.sleep(0.01)
        most = max(most, int(read("/proc/vmstat").split("nr_writeback ")[1].split()[0]))
    return behind, most
for name, knob in ("free", "0"), ("held", "1"):
    for sync in False, True:
        write(FT + "page_allocator", knob)
        behind, SHOWN[f"{name} fsync" if sync else f"{name} flusher"] = pages_under_write_back(sync)
        if not sync:
            # Somebody waits: the flusher does not pause.
            began = time.monotonic()
            os.sync()
            SHOWN[f"{name} sync(2)"] = time.monotonic() - began
        end(behind)
        drop_caches()
end(front)
"""
)


@pytest.mark.parametrize("fs", ["ext4", "f2fs"])
def test_write_back_goes_on_a_segment_at_a_time(tools: Tools, fs: str) -> None:
    """The flusher and a background fsync send the next segment when the last is written; sync(2) takes no longer."""
    shown = play(tools, WRITE_BACK, Data(fs))
    segment = 512 // 4
    for who in "flusher", "fsync":
        assert shown[f"free {who}"] > 4 * segment
        assert 0 < shown[f"held {who}"] <= 2 * segment
    assert shown["held sync(2)"] < 1.1 * shown["free sync(2)"]


def test_paused_tasks_die_stop_and_freeze_at_once(tools: Tools) -> None:
    shown = play(
        tools,
        PAUSED
        + """
os.mkdir("/run/cgroup")
mount("cgroup2", "/run/cgroup")
os.mkdir("/run/cgroup/behind")
behind = paused(0)
os.kill(behind, signal.SIGKILL)
SHOWN["kill"] = ms_until(lambda: os.waitpid(behind, os.WNOHANG)[0])
behind = paused(1)
os.kill(behind, signal.SIGSTOP)
SHOWN["stop"] = ms_until(lambda: os.waitpid(behind, os.WNOHANG | os.WUNTRACED)[0])
os.kill(behind, signal.SIGCONT)
end(behind)
behind = paused(2)
write("/run/cgroup/behind/cgroup.procs", str(behind))
write("/run/cgroup/behind/cgroup.freeze", "1")
SHOWN["freeze"] = ms_until(lambda: "frozen 1" in read("/run/cgroup/behind/cgroup.events"))
write("/run/cgroup/behind/cgroup.freeze", "0")
end(behind)
behind, count = paused(3), SEEN[3]
write(FT + "enabled", "0")
SHOWN["off"] = ms_until(lambda: SEEN[3] > count)
write(FT + "enabled", "1")
end(behind)
behind, count = paused(4), SEEN[4]
write(FT + "foreground_uids", "10102")
SHOWN["to the front"] = ms_until(lambda: SEEN[4] > count)
end(behind, front)
""",
    )
    assert set(shown) == {"kill", "stop", "freeze", "off", "to the front"}
    for what, ms in shown.items():
        assert ms < 20, (what, ms)


@pytest.mark.parametrize("generations", ["0", "7"], ids=["classic", "mglru"])
def test_reclaim_takes_background_pages_first(tools: Tools, generations: str) -> None:
    """What the foreground has read stays while a background app reads three times what fits."""
    script = f"""
write("/sys/kernel/mm/lru_gen/enabled", "{generations}")
make("front", 64)
for index in range(6):
    make(f"behind{{index}}", 200)
drop_caches()
as_uid({FRONT}, lambda: reads_whole("front"))
SHOWN["read"] = resident("front")
for index in range(6):
    as_uid({BEHIND}, lambda: reads_whole(f"behind{{index}}"))
SHOWN["kept"] = resident("front")
SHOWN["protected"] = stat("reclaim_protected")
write(FT + "foreground_uids", "10103")
for index in range(6):
    as_uid({BEHIND}, lambda: reads_whole(f"behind{{index}}"))
SHOWN["left behind"] = resident("front")
SHOWN["protected later"] = stat("reclaim_protected") - SHOWN["protected"]
"""
    off = f'write(FT + "page_reclaimer", "0")\n{script}'
    stock, protects = each([off, script], lambda one: play(tools, one), "reclaimers")
    assert stock["read"] == protects["read"] == 1
    assert stock["kept"] < 0.1 and stock["protected"] == 0
    assert protects["kept"] > 0.95 and protects["protected"] > 0
    # Another app is in front: the old one's pages are like any other. MGLRU has made them young meanwhile.
    assert protects["protected later"] == 0
    if generations == "0":
        assert protects["left behind"] < 0.1


def test_a_foreground_that_streams_leaves_cache_to_others(tools: Tools) -> None:
    """A foreground that has read more than fits is protected up to its bound: the rest of the cache is for others."""
    script = f"""
make("behind", 120)
for index in range(6):
    make(f"front{{index}}", 200)
drop_caches()
for index in range(6):
    as_uid({FRONT}, lambda: reads_whole(f"front{{index}}"))
as_uid({BEHIND}, lambda: reads_whole("behind"))
SHOWN["kept"] = resident("behind")
"""
    percents = (30, 100)
    bounded, not_bounded = each(
        [f'write(FT + "foreground_cache_percent", "{percent}")\n{script}' for percent in percents],
        lambda one: play(tools, one),
        "bounds",
    )
    assert not_bounded["kept"] < 0.75
    assert bounded["kept"] > 0.9


def test_free_pages_are_kept_for_the_foreground(tools: Tools) -> None:
    script = f"""
for index in range(4):
    make(f"behind{{index}}", 200)
drop_caches()
def fill():
    for index in range(4):
        reads_whole(f"behind{{index}}")
        SEEN[0] += 1
behind = start({BEHIND}, fill)
low = 1 << 40
while SEEN[0] < 4:
    free = int(next(line for line in read("/proc/meminfo").splitlines() if line.startswith("MemFree")).split()[1])
    low = min(low, free)
    time.sleep(0.001)
SHOWN["low_kb"] = low
os.waitpid(behind, 0)
"""
    none, kept = each(
        [f'write(FT + "reserve_kb", "{kb}")\n{script}' for kb in (0, 24576)], lambda one: play(tools, one), "reserves"
    )
    assert none["low_kb"] < 20_000
    assert kept["low_kb"] > 24_000


def test_what_the_foreground_waits_for_is_promoted(tools: Tools) -> None:
    """The foreground asks for pages of a shared file while a background app's write-back of it is held."""
    script = f"""
make("scroll", 64)
drop_caches()
scroll = start({FRONT}, lambda: reads_for_ever("scroll"))
def fill(name):
    handle = os.open("/run/data/" + name, os.O_CREAT | os.O_WRONLY, 0o666)
    for index in range(48):
        os.pwrite(handle, PATTERN, index * MIB)
    os.fsync(handle)
write(FT + "page_allocator", "0")
behind = start({BEHIND}, lambda: fill("shared"))
time.sleep(0.3)
shown_read, shown_write = os.pipe()
def wait():
    # SYNC_FILE_RANGE_WAIT_BEFORE of a page in the queue.
    handle = os.open("/run/data/shared", os.O_RDWR)
    begin = time.monotonic_ns()
    LIBC.sync_file_range(handle, ctypes.c_long(16 * MIB), ctypes.c_long(4096), 1)
    os.write(shown_write, str(time.monotonic_ns() - begin).encode())
as_uid({FRONT}, wait)
SHOWN["ms"] = int(os.read(shown_read, 100)) / 1e6
SHOWN["promoted"] = stat("promoted")
end(scroll, behind)
"""
    held, promoted = each(
        [f'write(FT + "promotion", "0")\n{script}', script], lambda one: play(tools, one), "promotion"
    )
    assert held["promoted"] == 0 and promoted["promoted"] > 0
    assert promoted["ms"] * 5 < held["ms"]


def test_memory_that_is_all_the_foregrounds(tools: Tools) -> None:
    """Nine tenths of the memory are the foreground's own, and both read: nothing is killed, all get on."""
    shown = play(
        tools,
        f"""
make("front", 200)
make("behind", 200)
drop_caches()
free = int(next(line for line in read("/proc/meminfo").splitlines() if line.startswith("MemAvail")).split()[1])
def front():
    area = mmap.mmap(-1, free * 1024 * 9 // 10)
    for at in range(0, len(area), 4096):
        area[at] = 1
    for _ in range(2):
        reads_whole("front")
        SEEN[0] += 1
def behind():
    for _ in range(2):
        reads_whole("behind")
        SEEN[1] += 1
children = [start({FRONT}, front), start({BEHIND}, behind)]
SHOWN["status"] = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
SHOWN["done"] = [SEEN[0], SEEN[1]]
""",
    )
    assert shown["status"] == [0, 0]
    assert shown["done"] == [2, 2]
