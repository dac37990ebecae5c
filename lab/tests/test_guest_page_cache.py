# SPDX-License-Identifier: GPL-2.0-only
"""The page allocator, the page reclaimer and promotion on wait in a running kernel. Times are virtual."""

from __future__ import annotations

from typing import Any

import pytest
from guest_script import BEHIND, EXT4, FRONT, Data, look_at_files

from fasttrack_lab.host.side_by_side import each
from fasttrack_lab.run.runner import Tools

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


def test_background_pauses_and_is_bounded(tools: Tools) -> None:
    """A background writer stands still while the foreground works, for no longer than the bound at a time."""
    shown = play(
        tools,
        SCROLLING
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


def test_background_pauses_while_the_foreground_has_been_idle_for_less_than_the_window(tools: Tools) -> None:
    """A block every 50 ms: with the default window of 20 ms background goes on in between, with 100 ms it does not."""
    shown = play(
        tools,
        """
make("scroll", 64)
make("target", 64)
drop_caches()
def now_and_then():
    handle = os.open("/run/data/scroll", os.O_RDONLY)
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_RANDOM)
    for block in range(0, 64 * 256, 16):
        os.pread(handle, 4096, block * 4096)
        time.sleep(0.05)
front = start(10101, now_and_then)
behind = start(10102, lambda: writes_for_ever("target", 0))
for window in 20000, 100000:
    write(FT + "idle_window_us", str(window))
    time.sleep(1)
    before = SEEN[0]
    time.sleep(3)
    SHOWN[f"written {window}"] = SEEN[0] - before
end(front)
end(behind)
""",
    )
    assert shown["written 20000"] > 3 * shown["written 100000"]


# Calls of 64 MiB to and from the cache, where nothing is waited for but pauses.
COPIES = """
make("cached", 64)
os.chmod("/run/data/cached", 0o666)
# Nobody writes back.
write("/proc/sys/vm/dirty_writeback_centisecs", "0")
write("/proc/sys/vm/dirty_ratio", "95")
write("/proc/sys/vm/dirty_background_ratio", "90")
write(FT + "background_pause_ms", "10")
def reads(handle):
    os.preadv(handle, [bytearray(64 * MIB)], 0)
def writes(handle):
    os.pwrite(handle, PATTERN * 64, 0)
def once(work):
    work(os.open("/run/data/cached", os.O_RDWR))
for name, work in ("reads", reads), ("writes", writes):
    for kb in 512, 4096:
        os.sync()
        write(FT + "segment_kb", str(kb))
        before, within = stat("pauses"), 0
        behind = start(10102, lambda: once(work))
        while not os.waitpid(behind, os.WNOHANG)[0]:
            stack = read(f"/proc/{behind}/stack")
            within += "ft_pause" in stack and ("filemap_read" in stack or "generic_perform_write" in stack)
            time.sleep(0.001)
        SHOWN[f"{name} {kb}"] = [stat("pauses") - before, within]
end(front)
"""


def test_a_long_copy_pauses_between_segments(tools: Tools) -> None:
    """One call that copies pages of the cache pauses inside it, once a segment, for as long as the bound."""
    shown = play(tools, SCROLLING + COPIES)
    for name, (pauses, within) in shown.items():
        # A page that is written counts twice, copied and made dirty. A read's segment ends with a batch of 31 pages.
        segments = (128 if "writes" in name else 64) * 1024 // int(name.split()[1])
        assert 0.8 * segments <= pauses <= segments + 2, (name, pauses)
        # 10 ms each, looked at every millisecond.
        assert within >= 7 * (pauses - 1), (name, within)


def test_a_task_that_reclaims_pauses(tools: Tools) -> None:
    """Anonymous memory, without a page of a file: background uses up its segments by reclaim."""
    script = f"""
write(FT + "foreground_uids", "\\n")
for index in range(2):
    make(f"cache{{index}}", 200)
drop_caches()
for index in range(2):
    as_uid(1000, lambda: reads_whole(f"cache{{index}}"))
write(FT + "foreground_uids", "{FRONT}")
write(FT + "background_pause_ms", "10")
time.sleep(0.05)
def fills():
    area = mmap.mmap(-1, 300 * MIB)
    for at in range(0, len(area), 4096):
        area[at] = 1
        SEEN[0] = at // MIB
before = [stat("pauses"), stat("reserve_spent"), stalls()]
behind = start(UID, fills)
while not os.waitpid(behind, os.WNOHANG)[0]:
    time.sleep(0.001)
after = [stat("pauses"), stat("reserve_spent"), stalls()]
SHOWN["pauses"], SHOWN["spent"], SHOWN["stalls"] = [new - old for old, new in zip(before, after)]
SHOWN["filled"] = SEEN[0]
end(front)
"""
    app, service = each([BEHIND, 1000], lambda uid: play(tools, SCROLLING + f"UID = {uid}\n" + script), "owners")
    assert app["filled"] == service["filled"] == 299
    assert app["stalls"] > 20
    # Four batches of reclaim are a segment.
    assert app["pauses"] >= app["stalls"] // 8 > app["spent"]
    assert service["pauses"] == 0


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


WORK = """
def mapped(name):
    handle = os.open("/run/data/" + name, os.O_RDWR)
    return mmap.mmap(handle, 0), handle

def reads(counter):
    handle = os.open("/run/data/target", os.O_RDONLY)
    while True:
        at = SEEN[counter] % 64 * MIB
        os.pread(handle, MIB, at)
        os.posix_fadvise(handle, at, MIB, os.POSIX_FADV_DONTNEED)
        SEEN[counter] += 1

def faults(counter):
    area, handle = mapped("target")
    while True:
        at = SEEN[counter] % 64 * MIB
        for page in range(at, at + MIB, 4096):
            area[page]
        area.madvise(mmap.MADV_DONTNEED)
        os.posix_fadvise(handle, at, MIB, os.POSIX_FADV_DONTNEED)
        SEEN[counter] += 1

def syncs(counter):
    # Others have made the file dirty.
    handle = os.open("/run/data/target", os.O_WRONLY)
    while True:
        os.fsync(handle)
        SEEN[counter] += 1
        time.sleep(0.01)

WORKS = {
    "writes": lambda counter: writes_for_ever("target", counter),
    "reads": reads,
    "faults": faults,
    "syncs": syncs,
}

def pauses(pid, where):
    # Is it in a pause now, and there?
    stack = read(f"/proc/{pid}/stack") if os.path.exists(f"/proc/{pid}/stack") else ""
    return "ft_pause" in stack and where in stack

os.mkdir("/run/cgroup")
mount("cgroup2", "/run/cgroup")
os.mkdir("/run/cgroup/behind")
"""

ENDS = """
target = os.open("/run/data/target", os.O_WRONLY)
def paused(counter):
    if WHAT == "syncs":
        os.pwrite(target, PATTERN * 8, 0)
    behind = start(10102, lambda: WORKS[WHAT](counter))
    ms_until(lambda: pauses(behind, WHERE))
    return behind
def ms_to(done, behind):
    # An fsync has only to leave its pause: it waits for what it has sent.
    return ms_until((lambda: not pauses(behind, WHERE)) if WHERE else done)

behind = paused(0)
os.kill(behind, signal.SIGKILL)
SHOWN["kill"] = ms_to(lambda: os.waitpid(behind, os.WNOHANG)[0], behind)
behind = paused(1)
os.kill(behind, signal.SIGSTOP)
SHOWN["stop"] = ms_to(lambda: os.waitpid(behind, os.WNOHANG | os.WUNTRACED)[0], behind)
os.kill(behind, signal.SIGCONT)
end(behind)
behind = paused(2)
write("/run/cgroup/behind/cgroup.procs", str(behind))
write("/run/cgroup/behind/cgroup.freeze", "1")
SHOWN["freeze"] = ms_to(lambda: "frozen 1" in read("/run/cgroup/behind/cgroup.events"), behind)
write("/run/cgroup/behind/cgroup.freeze", "0")
end(behind)
behind, count = paused(3), SEEN[3]
write(FT + "enabled", "0")
SHOWN["off"] = ms_to(lambda: SEEN[3] > count, behind)
write(FT + "enabled", "1")
end(behind)
behind, count = paused(4), SEEN[4]
write(FT + "foreground_uids", "10102")
SHOWN["to the front"] = ms_to(lambda: SEEN[4] > count, behind)
end(behind, front)
"""


@pytest.mark.parametrize(
    ("fs", "work", "where"),
    [
        ("ext4", "writes", ""),
        ("ext4", "reads", ""),
        ("ext4", "faults", ""),
        ("f2fs", "writes", ""),
        ("f2fs", "reads", ""),
        ("f2fs", "faults", ""),
        ("ext4", "syncs", "do_writepages"),
        ("f2fs", "syncs", "do_writepages"),
    ],
)
def test_paused_tasks_die_stop_and_freeze_at_once(tools: Tools, fs: str, work: str, where: str) -> None:
    """Whatever a background task pauses in. An fsync leaves its pause at once, and waits for what it has sent."""
    shown = play(tools, SCROLLING + WORK + f"WHAT, WHERE = {work!r}, {where!r}\n" + ENDS, Data(fs))
    assert set(shown) == {"kill", "stop", "freeze", "off", "to the front"}
    for what, ms in shown.items():
        assert ms < 20, (what, ms)


def test_neutral_tasks_do_not_pause(tools: Tools) -> None:
    """A service that writes, reads, faults and syncs beside a foreground that works; an app in its place pauses."""
    shown = play(
        tools,
        SCROLLING
        + WORK
        + """
for who, uid in ("service", 1000), ("app", 10102):
    before = stat("pauses")
    behind = [start(uid, lambda counter=counter, work=work: work(counter))
              for counter, work in enumerate(WORKS.values())]
    time.sleep(2)
    end(*behind)
    SHOWN[who] = stat("pauses") - before
    os.sync()
end(front)
""",
    )
    assert shown["service"] == 0
    assert shown["app"] > 4


@pytest.mark.parametrize("work", ["reads_whole(name)", "make(name, 200)"], ids=["clean", "dirty"])
@pytest.mark.parametrize("generations", ["0", "7"], ids=["classic", "mglru"])
def test_reclaim_takes_background_pages_first(tools: Tools, generations: str, work: str) -> None:
    """What the foreground has read stays while a background app reads, or writes, three times what fits."""
    script = f"""
write("/sys/kernel/mm/lru_gen/enabled", "{generations}")
make("front", 64)
NAMES = [f"behind{{index}}" for index in range(6)]
for name in NAMES:
    make(name, 200)
    os.chmod("/run/data/" + name, 0o666)
drop_caches()
as_uid({FRONT}, lambda: reads_whole("front"))
SHOWN["read"] = resident("front")
for name in NAMES:
    as_uid({BEHIND}, lambda: {work})
SHOWN["kept"] = resident("front")
SHOWN["protected"] = stat("reclaim_protected")
write(FT + "foreground_uids", "10103")
for name in NAMES:
    as_uid({BEHIND}, lambda: {work})
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


@pytest.mark.parametrize("generations", ["0", "7"], ids=["classic", "mglru"])
def test_reclaim_takes_dirty_background_pages_before_the_foregrounds(tools: Tools, generations: str) -> None:
    """The app in front fills the memory: background's clean pages go, then its dirty ones, then the foreground's."""
    script = f"""
write("/sys/kernel/mm/lru_gen/enabled", "{generations}")
write(FT + "foreground_cache_percent", "100")
# Nobody writes back but for reclaim.
write("/proc/sys/vm/dirty_writeback_centisecs", "0")
write("/proc/sys/vm/dirty_ratio", "95")
write("/proc/sys/vm/dirty_background_ratio", "90")
FILES = dict(front_clean={FRONT}, front_dirty={FRONT}, behind_clean={BEHIND}, behind_dirty={BEHIND})
for name in FILES:
    make(name, 60)
    os.chmod("/run/data/" + name, 0o666)
drop_caches()
def uses(name):
    if "clean" in name:
        return reads_whole(name)
    handle = os.open("/run/data/" + name, os.O_WRONLY)
    for index in range(60):
        os.pwrite(handle, PATTERN, index * MIB)
for name, uid in FILES.items():
    as_uid(uid, lambda: uses(name))
free = meminfo_kb("MemAvailable")
def fill():
    area = mmap.mmap(-1, free * 1024)
    for at in range(0, len(area), 4096):
        area[at] = 1
        SEEN[0] = at // MIB
        if at % (8 * MIB) == 0:
            time.sleep(0.2)
def kept():
    return dict((name, resident(name)) for name in FILES)
SHOWN["dirty_kb"] = meminfo_kb("Dirty")
SHOWN["kept"] = [kept()]
waited = stat("reclaim_waited")
child = start({FRONT}, fill)
last = 0
while not os.waitpid(child, os.WNOHANG)[0]:
    time.sleep(0.02)
    if SEEN[0] >= last + 8:
        last = SEEN[0]
        SHOWN["kept"].append(kept())
SHOWN["waited"] = stat("reclaim_waited") - waited
"""
    off = f'write(FT + "page_reclaimer", "0")\n{script}'
    stock, ordered = each([off, script], lambda one: play(tools, one), "orders")

    def first(shown: dict[str, Any], *names: str) -> dict[str, float]:
        """What was there when a tenth of one of NAMES was first seen gone."""
        return next(kept for kept in shown["kept"] if any(kept[name] < 0.9 for name in names))

    for shown in stock, ordered:
        assert shown["dirty_kb"] > 110_000
        assert set(shown["kept"][0].values()) == {1.0}
    assert stock["waited"] == 0 < ordered["waited"]
    assert first(stock, "front_clean")["behind_clean"] > 0.9
    assert first(ordered, "behind_dirty")["behind_clean"] < 0.1
    assert first(ordered, "front_clean", "front_dirty")["behind_dirty"] < 0.1


@pytest.mark.parametrize("generations", ["0", "7"], ids=["classic", "mglru"])
def test_a_foreground_that_streams_leaves_cache_to_others(tools: Tools, generations: str) -> None:
    """A foreground that has read more than fits is protected up to its bound: the rest of the cache is for others."""
    script = f"""
write("/sys/kernel/mm/lru_gen/enabled", "{generations}")
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
    free = meminfo_kb("MemFree")
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


@pytest.mark.parametrize("generations", ["0", "7"], ids=["classic", "mglru"])
def test_memory_that_is_all_the_foregrounds(tools: Tools, generations: str) -> None:
    """Nine tenths of the memory are the foreground's own, and both read: nothing is killed, all get on."""
    shown = play(
        tools,
        f"""
write("/sys/kernel/mm/lru_gen/enabled", "{generations}")
make("front", 200)
make("behind", 200)
drop_caches()
free = meminfo_kb("MemAvailable")
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


@pytest.mark.parametrize("use", ["mapped", "dirty"])
@pytest.mark.parametrize("generations", ["0", "7"], ids=["classic", "mglru"])
def test_protected_pages_are_no_reason_to_kill(tools: Tools, generations: str, use: str) -> None:
    """Nine tenths of the memory are pages of the foreground's files, all protected: others' allocations get them."""
    shown = play(
        tools,
        f"""
write("/sys/kernel/mm/lru_gen/enabled", "{generations}")
write(FT + "foreground_cache_percent", "100")
write(FT + "background_pause_ms", "10")
free = meminfo_kb("MemAvailable")
MOST = free // 1024 * 9 // 10
make("front", MOST)
make("behind", 20)
drop_caches()
def front():
    handle = os.open("/run/data/front", os.O_RDWR)
    area = mmap.mmap(handle, 0)
    while True:
        for at in range(0, MOST * MIB, 4096):
            if {use == "dirty"}:
                area[at] = 1
            else:
                area[at]
            if at % MIB == 0:
                SEEN[0] += 1
                # It has used all of them once, and goes on at an app's pace.
                if SEEN[0] > MOST:
                    time.sleep(0.002)
def behind():
    area = mmap.mmap(-1, 60 * MIB)
    for at in range(0, len(area), 4096):
        area[at] = 1
    SEEN[1] = 1
    reads_whole("behind")
ahead = start({FRONT}, front)
ms_until(lambda: SEEN[0] >= MOST, limit=100)
child = start({BEHIND}, behind)
SHOWN["status"] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
before = SEEN[0]
ms_until(lambda: SEEN[0] > before + 4, limit=100)
SHOWN["done"], SHOWN["protected"] = SEEN[1], stat("reclaim_protected")
SHOWN["killed"] = int(read("/proc/vmstat").split("oom_kill ")[1].split()[0])
end(ahead)
""",
    )
    assert (shown["status"], shown["done"], shown["killed"]) == (0, 1, 0)
    assert shown["protected"] > 0
