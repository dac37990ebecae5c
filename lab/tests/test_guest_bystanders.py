# SPDX-License-Identifier: GPL-2.0-only
"""Nobody pays who is not background: kernel threads, others' write-back, an app in front that sleeps or fills a cgroup.

All in virtual time, so exact.
"""

from __future__ import annotations

import pytest
from guest_script import BEHIND, FRONT, Data, look_at_files

from fasttrack_lab.run.runner import Tools

pytestmark = pytest.mark.guest

BOUND_MS = 1000
"""background_pause_ms."""

ON = f"""
FRONT, BEHIND = {FRONT}, {BEHIND}
write(QUEUE + "scheduler", "fasttrack")
write(FT + "foreground_uids", str(FRONT))
write(FT + "enabled", "1")
"""


def test_the_worker_of_a_loop_device_does_not_pause(tools: Tools) -> None:
    """It reads and writes a file for whoever uses the device: root here, who is neutral."""
    shown = look_at_files(
        tools,
        ON
        + """
make("cold", 64)
with open("/run/data/image", "wb") as image:
    image.truncate(64 * MIB)
subprocess.run(["/usr/sbin/losetup", "/dev/loop0", "/run/data/image"], check=True)
drop_caches()
front = start(FRONT, lambda: reads_for_ever("cold"))
handle = os.open("/dev/loop0", os.O_RDWR)
waits = []
for turn in range(8):
    begin = time.monotonic()
    os.pwrite(handle, PATTERN * 4, turn * 8 * MIB)
    os.fsync(handle)
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    os.pread(handle, 4 * MIB, turn * 8 * MIB + 4 * MIB)
    waits.append((time.monotonic() - begin) * 1000)
SHOWN["longest_ms"], SHOWN["pauses"] = max(waits), stat("pauses")
end(front)
os.close(handle)
subprocess.run(["/usr/sbin/losetup", "-d", "/dev/loop0"], check=True)
""",
    )
    assert shown["pauses"] == 0
    assert shown["longest_ms"] < BOUND_MS / 2


def test_a_foreground_that_sleeps_for_ever_holds_nobody(tools: Tools) -> None:
    """Two threads in front read one terminal: the second sleeps in a mutex until somebody presses a key."""
    shown = look_at_files(
        tools,
        ON
        + """
os.makedirs("/dev/pts", exist_ok=True)
mount("devpts", "/dev/pts", options="ptmxmode=666")
if not os.path.exists("/dev/ptmx"):
    os.symlink("pts/ptmx", "/dev/ptmx")
master, slave = os.openpty()
readers = [start(FRONT, lambda: os.read(slave, 1)) for _ in range(2)]
ms_until(lambda: any("mutex" in read(f"/proc/{reader}/stack") for reader in readers))
behind = start(BEHIND, lambda: writes_for_ever("target"))
# Less than FT_ASLEEP_LIMIT of policy.h, 5 s; and then more.
time.sleep(2.5)
SHOWN["at_first"] = stat("pauses")
time.sleep(4)
before, done = stat("pauses"), SEEN[0]
time.sleep(3)
SHOWN["later"], SHOWN["mib"] = stat("pauses") - before, SEEN[0] - done
end(behind, *readers)
""",
    )
    assert shown["at_first"] > 0
    assert shown["later"] == 0
    assert shown["mib"] > 100


def test_an_app_in_front_fills_its_cgroup_with_dirty_pages(tools: Tools) -> None:
    """It is throttled for those, as on stock, and not killed."""
    fills = """
os.mkdir("/run/cgroup")
mount("cgroup2", "/run/cgroup")
write("/run/cgroup/cgroup.subtree_control", "+memory")
os.mkdir("/run/cgroup/front")
write("/run/cgroup/front/memory.max", str(64 * MIB))
def fills():
    handle = os.open("/run/data/target", os.O_CREAT | os.O_WRONLY, 0o644)
    for turn in range(256):
        os.pwrite(handle, PATTERN, turn * MIB)
child = os.fork()
if child == 0:
    write("/run/cgroup/front/cgroup.procs", str(os.getpid()))
    os._exit(as_uid(FRONT, fills))
SHOWN["status"] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
SHOWN["events"] = read("/run/cgroup/front/memory.events")
"""
    stock, fasttrack = (look_at_files(tools, f"FRONT = {FRONT}\n" + on + fills) for on in ("", ON))
    for shown in (stock, fasttrack):
        assert shown["status"] == 0
        assert "oom_kill 0" in shown["events"]


def test_a_paused_fsync_lets_others_write_back_on_f2fs(tools: Tools) -> None:
    """f2fs writes nothing back for others while somebody syncs data; a background fsync takes long."""
    shown = look_at_files(
        tools,
        ON
        + """
make("cold", 64)
make("mine", 4)
make("target", 24)
drop_caches()
SYNC_FILE_RANGE_WRITE = 2
front = start(FRONT, lambda: reads_for_ever("cold"))
target = os.open("/run/data/target", os.O_WRONLY)
os.pwrite(target, PATTERN * 24, 0)
def syncs():
    # Others have made it dirty: a write of its own would pause.
    handle = os.open("/run/data/target", os.O_WRONLY)
    SEEN[0] = 1
    os.fsync(handle)
    SEEN[0] = 2
    time.sleep(60)
behind = start(BEHIND, syncs)
ms_until(lambda: all(name in read(f"/proc/{behind}/stack") for name in ("ft_pause", "do_writepages")), 20)
handle = os.open("/run/data/mine", os.O_RDWR)
os.pwrite(handle, PATTERN, 0)
LIBC.sync_file_range(handle, ctypes.c_int64(0), ctypes.c_int64(0), SYNC_FILE_RANGE_WRITE)
SHOWN["syncs"] = SEEN[0] == 1
# What is clean can be dropped.
def is_clean():
    os.posix_fadvise(handle, 0, MIB, os.POSIX_FADV_DONTNEED)
    return resident("mine") == 0
SHOWN["clean_ms"] = ms_until(is_clean)
SHOWN["still_syncs"] = SEEN[0] == 1
end(behind, front)
""",
        Data("f2fs"),
        "n5",
    )
    assert shown["syncs"] and shown["still_syncs"]
    assert shown["clean_ms"] < BOUND_MS
