# SPDX-License-Identifier: GPL-2.0-only
"""Where the foreground waits for the background on stock, and does not under FastTrack. Times are virtual."""

from __future__ import annotations

import json
from dataclasses import dataclass
from statistics import median
from typing import Any

import pytest
from guest_script import BEHIND, EXT4, FRONT, Data, look_at_files

from fasttrack_lab.host.side_by_side import each
from fasttrack_lab.inputs import policy
from fasttrack_lab.run.runner import Tools

pytestmark = pytest.mark.guest

# The same work of the foreground twice: alone, and beside the background. A script defines front(call, turn), which
# gives each call to be timed to CALL, and behind(), which returns the processes that it has started.
PLAY = f"""
import struct
def timed(turn):
    # Milliseconds of each call of the foreground.
    took = []
    shown_read, shown_write = os.pipe()
    def call(one, *arguments):
        begin = time.monotonic_ns()
        one(*arguments)
        took.append((time.monotonic_ns() - begin) / 1e6)
    def run():
        front(call, turn)
        os.write(shown_write, json.dumps(took).encode())
    if as_uid({FRONT}, run):
        raise RuntimeError("the foreground has failed")
    return json.loads(os.read(shown_read, 1 << 16))

def play():
    SHOWN["alone"] = timed(0)
    children = behind()
    SHOWN["beside"] = timed(1)
    end(*children)

def start_behind(work, count=1):
    return [start({BEHIND}, lambda: work(index)) for index in range(count)]

def aligned(size):
    # Memory that a direct write takes.
    area = mmap.mmap(-1, size)
    area[:] = PATTERN[:size]
    return area

class Queue:
    # Direct reads or writes of SIZE bytes of a file that is there, DEPTH at a time.
    def __init__(self, name, size, depth, reads=False):
        self.handle = os.open("/run/data/" + name, os.O_RDWR | os.O_DIRECT)
        self.operation = 0 if reads else 1
        self.area, self.size, self.depth = aligned(size), size, depth
        self.places = os.fstat(self.handle).st_size // size
        self.draw = random.Random(1)
        self.context = ctypes.c_ulong(0)
        assert LIBC.syscall(206, depth, ctypes.byref(self.context)) == 0
    def submit(self, count):
        address = ctypes.addressof(ctypes.c_char.from_buffer(self.area))
        def block(at):
            return ctypes.create_string_buffer(struct.pack(
                "<QIiHhIQQqQII", 0, 0, 0, self.operation, 0, self.handle, address, self.size, at * self.size, 0, 0, 0))
        calls = [block(self.draw.randrange(self.places)) for _ in range(count)]
        array = (ctypes.c_void_p * count)(*map(ctypes.addressof, calls))
        assert LIBC.syscall(209, self.context, ctypes.c_long(count), array) == count
    def wait(self, least):
        events = ctypes.create_string_buffer(32 * self.depth)
        return LIBC.syscall(208, self.context, ctypes.c_long(least), ctypes.c_long(self.depth), events, None)
    def keep_full(self):
        self.submit(self.depth)
        while True:
            self.submit(self.wait(1))

def direct_writes_for_ever(name, size, think=0.0):
    # Over a file that is there, at random places.
    handle = os.open("/run/data/" + name, os.O_WRONLY | os.O_DIRECT)
    places = os.fstat(handle).st_size // size
    area = aligned(size)
    draw = random.Random(os.getpid())
    while True:
        os.pwritev(handle, [area], draw.randrange(places) * size)
        if think:
            time.sleep(think)

def reads_at_random(call, name, count, think=0.0):
    # Blocks of a file that are not in the page cache.
    handle = os.open("/run/data/" + name, os.O_RDONLY)
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_RANDOM)
    for page in random.Random(1).sample(range(os.fstat(handle).st_size // 4096), count):
        call(os.pread, handle, 4096, page * 4096)
        os.posix_fadvise(handle, page * 4096, 4096, os.POSIX_FADV_DONTNEED)
        time.sleep(think)

def appends_and_syncs(call, name, count, think=0.0):
    handle = os.open("/run/data/" + name, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o666)
    def once():
        os.write(handle, PATTERN[:4096])
        os.fsync(handle)
    for _ in range(count):
        call(once)
        time.sleep(think)
"""


@dataclass(frozen=True)
class Times:
    """What the foreground's calls took under one policy, in milliseconds, and what else the script has shown."""

    alone: list[float]
    beside: list[float]
    shown: dict[str, Any]

    def __str__(self) -> str:
        worst = f"worst {max(self.alone):.2f} -> {max(self.beside):.2f} ms"
        return f"{worst}, sum {sum(self.alone):.2f} -> {sum(self.beside):.2f} ms"


def settings(name: str) -> str:
    """The policy NAME as a script for s6."""
    one = policy.load(name)
    values = one.values("s6")
    device = {"path": "/sys/module/mflash/parameters/scheduler", "value": one.device_scheduler}
    written = [*one.settings_json(values), device, *one.foreground_json(values, FRONT)]
    return f"for one in {json.dumps(written)}:\n    write(one['path'], one['value'])\n"


def play(tools: Tools, script: str, data: Data, *policies: str) -> list[Times]:
    """The script under each of the policies; a policy is a name and what else is set, after a blank."""

    def one(chosen: str) -> Times:
        name, _, more = chosen.partition(" ")
        shown = look_at_files(tools, PLAY + settings(name) + more + "\n" + script, data)
        return Times(shown.pop("alone"), shown.pop("beside"), shown)

    found = each(policies, one, "policies")
    for chosen, times in zip(policies, found, strict=True):
        print(f"{chosen}: {times}")
    return found


def on_both(tools: Tools, script: str, data: Data = EXT4) -> list[Times]:
    """The script under stock and under FastTrack."""
    return play(tools, script, data, "stock", "fasttrack")


DIRECT_RECLAIM = """
write("/proc/sys/vm/dirty_background_ratio", "40")
write("/proc/sys/vm/dirty_ratio", "60")
def touch(size):
    area = mmap.mmap(-1, size)
    for at in range(0, size, 4096):
        area[at] = 1
    return area
def front(call, turn):
    for _ in range(6):
        # It does not sleep meanwhile: what is counted is its own.
        before = stalls()
        call(touch, 48 * MIB)
        SEEN[8 + turn] += stalls() - before
        time.sleep(0.05)
def fills(index):
    # Somewhat faster than the device writes.
    handle = os.open(f"/run/data/behind{index}", os.O_CREAT | os.O_WRONLY, 0o644)
    while True:
        for at in range(256):
            os.pwrite(handle, PATTERN, at * MIB)
            time.sleep(0.004)
def holds(index):
    area = touch(64 * MIB)
    time.sleep(1000)
def behind():
    children = start_behind(holds) + start_behind(fills, 2)
    time.sleep(1.0)
    return children
play()
SHOWN["stalls"] = [SEEN[8], SEEN[9]]
"""


def test_direct_reclaim(tools: Tools) -> None:
    """Inversion 1: the background's pages fill the memory, and the foreground reclaims before it gets some.

    Counted, not timed: reclaim itself takes no virtual time. The reserve has its test in test_guest_page_cache.py.
    """
    stock, fasttrack = on_both(tools, DIRECT_RECLAIM)
    print(stock.shown, fasttrack.shown)
    assert stock.shown["stalls"][0] == fasttrack.shown["stalls"][0] == 0
    assert fasttrack.shown["stalls"][1] * 4 < stock.shown["stalls"][1]
    assert max(fasttrack.beside) < 1


DIRTY_LIMIT = """
write("/proc/sys/vm/dirty_bytes", str(32 * MIB))
def front(call, turn):
    handle = os.open("/run/data/front", os.O_CREAT | os.O_WRONLY, 0o644)
    for index in range(64):
        call(os.pwrite, handle, PATTERN[:65536], index * 65536)
        time.sleep(0.001)
def behind():
    children = start_behind(lambda index: writes_for_ever(f"behind{index}", index, 4), 3)
    time.sleep(2)
    return children
play()
SHOWN["exempt"] = stat("dirty_exempt")
"""


def test_dirty_limit(tools: Tools) -> None:
    """Inversion 2: the background has made so many pages dirty that whoever writes sleeps in balance_dirty_pages()."""
    stock, fasttrack = on_both(tools, DIRTY_LIMIT)
    assert max(stock.beside) > 20 > 20 * max(fasttrack.beside)
    assert stock.shown["exempt"] == 0 < fasttrack.shown["exempt"]


REQUEST_TAGS = """
mount("debugfs", "/sys/kernel/debug")
make("scroll", 64)
make("target", 64)
drop_caches()
def tags():
    # Scheduler tags in use, of how many.
    text = read("/sys/kernel/debug/block/sda/hctx0/sched_tags").splitlines()
    said = dict(line.split("=") for line in text if line.count("=") == 1)
    return int(said["busy"]), int(said["depth"])
def front(call, turn):
    reads_at_random(call, "scroll", 30, 0.005)
def behind():
    children = start_behind(lambda index: Queue("target", 131072, 256).keep_full())
    time.sleep(0.5)
    SHOWN["tags"] = max(tags() for _ in range(20) if not time.sleep(0.005))
    return children
play()
"""


def test_request_tags(tools: Tools) -> None:
    """Inversion 3: the background's requests have all of the I/O scheduler's tags."""
    stock, fasttrack = on_both(tools, REQUEST_TAGS)
    (taken, depth), (behind, _) = stock.shown["tags"], fasttrack.shown["tags"]
    assert taken == depth >= 2 * behind > 0
    assert sum(stock.beside) > 10 * sum(stock.alone)
    assert sum(fasttrack.beside) < 1.3 * sum(fasttrack.alone)


SENT_BEFORE = """
go = os.pipe()
make("scroll", 64)
make("target", 64)
drop_caches()
def front(call, turn):
    handle = os.open("/run/data/scroll", os.O_RDONLY)
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_RANDOM)
    for index in range(8):
        # The background's burst, and the first block after the foreground has been idle.
        time.sleep(0.5)
        os.write(go[1], b"x")
        time.sleep(0.001)
        call(os.pread, handle, 4096, (turn * 8 + index) * 4096 * 37)
def bursts(index):
    queue = Queue("target", 524288, 32, READS)
    while os.read(go[0], 1):
        queue.submit(32)
        queue.wait(32)
def behind():
    children = start_behind(bursts)
    time.sleep(0.1)
    return children
play()
"""


@pytest.mark.parametrize("what", ["reads", "writes"])
def test_requests_sent_just_before(tools: Tools, what: str) -> None:
    """Inversion 4: the device is full of the background's requests when the foreground reads."""
    stock, fasttrack = on_both(tools, f"READS = {what == 'reads'}\n{SENT_BEFORE}")
    assert sum(stock.beside) > 5 * sum(stock.alone)
    assert sum(stock.beside) > 2 * sum(fasttrack.beside)
    # One transfer on the link, or a program to suspend.
    assert max(fasttrack.beside) < 1


JOURNAL = """
FILE = "front"
def front(call, turn):
    appends_and_syncs(call, FILE, 8, 0.01)
def files(index):
    # Handles: new files, renamed and unlinked.
    at = f"/run/data/dir{index}/"
    os.mkdir(at)
    for number in range(1 << 30):
        with open(at + "new", "wb", buffering=0) as handle:
            handle.write(PATTERN[:65536])
        os.rename(at + "new", at + str(number % 64))
        time.sleep(0.0005)
def syncs(index):
    appends_and_syncs(lambda one: one(), f"synced{index}", 1 << 30, 0.001)
def appends(index):
    # Data that the journal orders.
    handle = os.open(f"/run/data/appended{index}", os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644)
    while True:
        for _ in range(64):
            os.write(handle, PATTERN)
            time.sleep(0.003)
        os.ftruncate(handle, 0)
        os.lseek(handle, 0, 0)
def behind():
    children = start_behind(files, 4) + start_behind(syncs, 4) + start_behind(appends, 3)
    time.sleep(1.0)
    return children
play()
"""


def test_journal(tools: Tools) -> None:
    """Inversion 5: others' handles, and the journal's blocks, in front of the foreground's fsync."""
    stock, fasttrack = on_both(tools, JOURNAL)
    assert max(stock.beside) > 20 * max(stock.alone)
    assert sum(stock.beside) > 3 * sum(fasttrack.beside)
    # The first one finds the device's cache full of others' data.
    assert max(fasttrack.beside) < 50


def test_fast_commit(tools: Tools) -> None:
    """Inversion 5: others' fast commits in front of the foreground's, and handles, open or reserved.

    Now and then one waits for write-back that is under way and has handles reserved, the first ones most of all.
    """
    stock, fasttrack = on_both(tools, JOURNAL, Data("ext4", "fast_commit"))
    assert median(stock.beside) > 20 * median(stock.alone)
    assert median(stock.beside) > 10 * median(fasttrack.beside)
    assert sum(stock.beside) > 4 * sum(fasttrack.beside)


def test_ordered_data(tools: Tools) -> None:
    """Inversion 5: others' data in front of the foreground's fsync, where a commit waits for that of all new blocks.

    The first one waits for what the background wrote into the transaction that was open.
    """
    stock, fasttrack = on_both(tools, JOURNAL, Data("ext4", "", "dioread_lock"))
    assert median(stock.beside) > 50 * median(stock.alone)
    assert median(fasttrack.beside) < 2 * median(fasttrack.alone)
    assert sum(stock.beside) > 4 * sum(fasttrack.beside)


# Four apps that do what `directories` does, and three that write.
BESIDE_DIRECTORIES = """
def behind():
    children = start_behind(directories, 4)
    children += start_behind(lambda index: writes_for_ever(f"behind{index}", index, 1), 3)
    time.sleep(1.5)
    return children
play()
"""


CHECKPOINT = """
def front(call, turn):
    # A directory has no blocks of its own to sync: a checkpoint.
    os.mkdir(f"/run/data/front{turn}")
    handle = os.open(f"/run/data/front{turn}", os.O_RDONLY)
    for index in range(6):
        os.close(os.open(f"/run/data/front{turn}/{index}", os.O_CREAT | os.O_WRONLY, 0o644))
        call(os.fsync, handle)
        time.sleep(0.02)
def directories(index):
    at = f"/run/data/dir{index}/"
    os.mkdir(at)
    for number in range(1 << 30):
        with open(at + str(number % 256), "wb", buffering=0) as handle:
            handle.write(PATTERN[:65536])
        time.sleep(0.0005)
"""


def test_checkpoint(tools: Tools) -> None:
    """Inversion 6: others' dirty data in front of the foreground's checkpoint, which waits for what is under way."""
    stock, fasttrack = on_both(tools, CHECKPOINT + BESIDE_DIRECTORIES, Data("f2fs"))
    assert median(stock.beside) > 20 * median(stock.alone)
    assert sum(stock.beside) > 5 * sum(fasttrack.beside)


CHECKPOINT_OF_OTHERS = """
os.mkdir("/run/data/own")
os.chmod("/run/data/own", 0o777)
for index in range(80):
    make(f"own/{index}", 1)
os.sync()
drop_caches()
def front(call, turn):
    for index in range(turn * 40, turn * 40 + 40):
        call(lambda: os.close(os.open(f"/run/data/own/{index}", os.O_RDONLY)))
        time.sleep(0.02)
def directories(index):
    # Each directory's fsync is a checkpoint, with the pages of new files before it.
    os.mkdir(f"/run/data/dir{index}")
    handle = os.open(f"/run/data/dir{index}", os.O_RDONLY)
    for number in range(1 << 30):
        with open(f"/run/data/dir{index}/{number % 64}", "wb", buffering=0) as file:
            file.write(PATTERN[:65536])
        os.fsync(handle)
"""


def test_checkpoint_of_others(tools: Tools) -> None:
    """Inversion 6: a checkpoint that the background has begun has a lock that whoever opens a file needs."""
    stock, fasttrack = on_both(tools, CHECKPOINT_OF_OTHERS + BESIDE_DIRECTORIES, Data("f2fs"))
    assert sum(stock.beside) > 15 * sum(fasttrack.beside)
    assert max(stock.beside) > 5 * max(fasttrack.beside)


# A file and its directory that are on the device: its fsync makes no checkpoint.
FSYNC_WITHOUT_CHECKPOINT = JOURNAL.replace(
    'FILE = "front"',
    """
FILE = "own/front"
os.mkdir("/run/data/own")
make(FILE, 1)
os.chmod("/run/data/" + FILE, 0o666)
os.sync()
""",
)


def test_fsync_on_f2fs(tools: Tools) -> None:
    """Inversion 6: others' writes, checkpoints and cache flushes in front of the foreground's fsync of a file.

    It waits for the node pages of all fsyncs before it, the background's too, which may be at the device already.
    """
    stock, fasttrack = on_both(tools, FSYNC_WITHOUT_CHECKPOINT, Data("f2fs"))
    assert median(stock.beside) > 20 * median(stock.alone)
    assert sum(stock.beside) > 20 * sum(fasttrack.beside)


CACHE_FLUSH = """
make("front", 1)
make("target", 64)
drop_caches()
def front(call, turn):
    # Over blocks that are there: no journal, but a flush.
    handle = os.open("/run/data/front", os.O_WRONLY)
    def once(index):
        os.pwrite(handle, PATTERN[:4096], index * 4096)
        os.fdatasync(handle)
    for index in range(30):
        call(once, index)
        time.sleep(0.005)
def behind():
    children = start_behind(lambda index: direct_writes_for_ever("target", 65536, 0.001), 6)
    time.sleep(0.5)
    return children
play()
"""


def test_cache_flush(tools: Tools) -> None:
    """Inversion 8: the device writes out what everybody has in its cache before a flush ends."""
    stock, fasttrack = on_both(tools, CACHE_FLUSH)
    assert median(stock.beside) > 10 * median(stock.alone)
    # The first one finds the cache full: the background may fill it while nobody is in front.
    assert fasttrack.beside[0] < 20
    assert sum(fasttrack.beside[1:]) < 1.3 * sum(fasttrack.alone[1:])


SHARED = """
import mmap
make("library", 32)
for index in range(5):
    make(f"behind{index}", 120)
drop_caches()
as_uid(10102, lambda: reads_whole("library"))
def front(call, turn):
    handle = os.open("/run/data/library", os.O_RDONLY)
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_RANDOM)
    with mmap.mmap(handle, 32 * MIB, prot=mmap.PROT_READ) as mapped:
        mapped.madvise(mmap.MADV_RANDOM)
        for at in range(turn * 32 * 4096, 32 * MIB, 64 * 4096):
            if MAPPED:
                call(mapped.__getitem__, at)
            else:
                call(os.pread, handle, 4096, at)
def behind():
    for index in range(5):
        as_uid(10102, lambda: reads_whole(f"behind{index}"))
    return []
play()
SHOWN["kept"] = resident("library")
"""


@pytest.mark.parametrize("mapped", [False, True], ids=["read", "mapped"])
def test_shared_files(tools: Tools, mapped: bool) -> None:
    """Inversion 9: pages that the background has read first go when it reads more, though the foreground uses them.

    What is mapped is in the cache already: its faults find it there.
    """
    stock, fasttrack = on_both(tools, f"MAPPED = {mapped}\n{SHARED}")
    assert stock.shown["kept"] < 0.25 and fasttrack.shown["kept"] > 0.95
    assert sum(stock.beside) > 10 > 10 * sum(fasttrack.beside)


FOLIO = """
write(QUEUE + "max_sectors_kb", str(REQUEST_KIB))
go = os.pipe()
make("scroll", 16)
make("shared", 32)
make("target", 64)
drop_caches()
def front(call, turn):
    handle = os.open("/run/data/shared", os.O_RDWR)
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_RANDOM)
    for first in range(0, 32, 8):
        # Somebody scrolls while the background begins with its next parts of the file.
        time.sleep(0.2)
        reads_at_random(lambda one, *arguments: one(*arguments), "scroll", 4)
        parts = range(first, first + PARTS)
        if turn:
            os.write(go[1], bytes(parts))
            time.sleep(0.001)
        use(call, handle, parts[-1] * MIB)
def behind():
    children = start_behind(work, WORKERS) + start_behind(lambda index: Queue("target", OTHERS, 16, READS).keep_full())
    time.sleep(0.1)
    return children
"""

READ_AHEAD = """
WORKERS, READS, OTHERS = 8, True, 131072
def use(call, handle, at):
    call(os.pread, handle, 4096, at)
    os.posix_fadvise(handle, at, 4096, os.POSIX_FADV_DONTNEED)
def work(index):
    handle = os.open("/run/data/shared", os.O_RDONLY)
    while part := os.read(go[0], 1):
        os.posix_fadvise(handle, part[0] * MIB, MIB, os.POSIX_FADV_WILLNEED)
play()
"""

WRITE_BACK = """
WORKERS, READS, OTHERS = 1, False, 524288
# A page does not change under write-back. A file system sees at its mount that the device asks for that.
LIBC.umount2(b"/run/data", 0)
write(QUEUE + "stable_writes", "1")
mount("ext4", "/run/data", "/dev/sda")
write("/proc/sys/vm/dirty_writeback_centisecs", "0")
def use(call, handle, at):
    call(os.pwrite, handle, PATTERN[:4096], at)
def work(index):
    handle = os.open("/run/data/shared", os.O_WRONLY)
    for first in range(0, 32, 8):
        os.pwrite(handle, PATTERN * PARTS, first * MIB)
        os.read(go[0], PARTS)
        # SYNC_FILE_RANGE_WRITE
        LIBC.sync_file_range(handle, ctypes.c_long(first * MIB), ctypes.c_long(PARTS * MIB), 2)
    time.sleep(1000)
play()
"""


@pytest.mark.parametrize(("parts", "request_kib"), [(8, 1024), (2, 256), (8, 256)], ids=["queued", "split", "no tag"])
def test_folio_that_is_read(tools: Tools, parts: int, request_kib: int) -> None:
    """Inversion 7: the page is locked until a request ends with which the background reads ahead.

    Its bio is one request (queued) or four (split), or has not got its requests (no tag).
    """
    stock, fasttrack = on_both(tools, f"PARTS, REQUEST_KIB = {parts}, {request_kib}\n" + FOLIO + READ_AHEAD)
    assert min(stock.beside) > 12
    # The 1 MiB of the page's bio, and what is in the device.
    assert max(fasttrack.beside) < 5


@pytest.mark.parametrize("parts", [2, 8], ids=["queued", "no tag"])
def test_folio_under_write_back(tools: Tools, parts: int) -> None:
    """Inversion 7: the page must not change until the bio of PARTS MiB ends with which the background writes it.

    All of its requests are in the queue (queued), or not yet (no tag).
    """
    stock, fasttrack = on_both(tools, f"PARTS, REQUEST_KIB = {parts}, 1024\n" + FOLIO + WRITE_BACK)
    assert min(stock.beside) > 20 * parts
    # The bio is PARTS times 7 ms of the device's time.
    assert max(fasttrack.beside) < 10 * parts


LOCK_HOLDER = """
write(QUEUE + "nr_requests", "16")
make("scroll", 64)
make("target", 64)
open("/run/data/shared", "w").close()
os.chmod("/run/data/shared", 0o666)
drop_caches()
scroll = start(10101, lambda: reads_for_ever("scroll"))
def front(call, turn):
    handle = os.open("/run/data/shared", os.O_WRONLY | os.O_APPEND)
    for _ in range(10):
        call(os.write, handle, PATTERN[:4096])
        time.sleep(0.02)
def holds(index):
    # Appends past the page cache: each waits for its request with the file's lock held.
    handle = os.open("/run/data/shared", os.O_WRONLY | os.O_APPEND | os.O_DIRECT)
    area = aligned(4096)
    while True:
        os.writev(handle, [area])
        time.sleep(0.0005)
def behind():
    children = start_behind(holds) + start_behind(lambda index: Queue("target", 131072, 64).keep_full())
    time.sleep(0.5)
    return children
play()
end(scroll)
SHOWN["depended"] = stat("depended")
"""


def test_holder_of_a_lock(tools: Tools) -> None:
    """Inversion 7: who holds the lock of a shared file waits for a request tag."""
    stock, held, promoted = play(
        tools, LOCK_HOLDER, EXT4, "stock", 'fasttrack write(FT + "promotion", "0")', "fasttrack"
    )
    assert promoted.shown["depended"] > 0
    assert sum(stock.beside) > 1.5 * sum(promoted.beside)
    assert max(held.beside) > 500
    # The holder's own request is one of those in the queue.
    assert max(promoted.beside) < 50


OWN_WRITE_BACK = """
make("scroll", 64)
drop_caches()
def front(call, turn):
    for _ in range(20):
        reads_at_random(call, "scroll", 1)
        appends_and_syncs(call, "front", 1)
        time.sleep(0.02)
def writes(name):
    handle = os.open("/run/data/" + name, os.O_CREAT | os.O_WRONLY, 0o644)
    for index in range(256):
        os.pwrite(handle, PATTERN, index * MIB)
        time.sleep(0.004)
    time.sleep(1000)
def behind():
    write("/proc/sys/vm/dirty_background_bytes", str(8 * MIB))
    children = [start(10101, lambda: writes("film"))]
    time.sleep(0.3)
    return children
play()
"""


def test_own_write_back(tools: Tools) -> None:
    """An app that writes a large file, and besides reads (even) and syncs small files (odd).

    The fsyncs wait for what the app itself has in the device's cache.
    """
    stock, fasttrack = on_both(tools, OWN_WRITE_BACK)
    assert max(fasttrack.beside[0::2]) < 10
    assert max(stock.beside[1::2]) > 2 * max(fasttrack.beside[1::2])
    assert sum(stock.beside[1::2]) > 2 * sum(fasttrack.beside[1::2])
