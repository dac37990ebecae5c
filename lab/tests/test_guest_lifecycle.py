# SPDX-License-Identifier: GPL-2.0-only
"""Tasks and requests that change sides under load: fork, exec, setuid, exit, and an app that comes to the front."""

from __future__ import annotations

import pytest
from guest_script import BEHIND, FRONT, look_at_files

from fasttrack_lab.run.runner import Tools

pytestmark = pytest.mark.guest

SERVICE = 1000
"""The UID of a system service: neutral."""

LOAD = f"""
write(QUEUE + "scheduler", "fasttrack")
write(FT + "foreground_uids", "{FRONT}")
write(FT + "enabled", "1")
os.chmod("/dev/sda", 0o666)
make("scroll", 64)
drop_caches()
load = [start({FRONT}, lambda: reads_for_ever("scroll"))]
for index in range(3):
    load.append(start({BEHIND}, lambda: writes_for_ever(f"load{{index}}", index)))

write(TRACE + "events/fasttrack/fasttrack_bio/enable", "1")

def classes_of(pid, work):
    # The classes of what PID sends during WORK.
    write(TRACE + "events/fasttrack/fasttrack_bio/filter", f"pid == {{pid}}")
    return sorted({{bio["class"] for bio in bios_of(work)}})

class Stepper:
    # A child that does one thing after the other, each when it is told to.
    def __init__(self, *steps, fork=os.fork):
        self.go, self.gone = os.pipe(), os.pipe()
        self.pid = fork()
        if self.pid == 0:
            try:
                for step in steps:
                    os.read(self.go[0], 1)
                    step()
                    os.write(self.gone[1], b"x")
                os.read(self.go[0], 1)
            finally:
                os._exit(0)

    def step(self):
        os.write(self.go[1], b"x")
        os.read(self.gone[0], 1)

    def shows(self):
        return classes_of(self.pid, self.step)

    def ends(self):
        os.write(self.go[1], b"x")
        os.waitpid(self.pid, 0)

def becomes(uid):
    def step():
        os.setresuid(0, 0, 0)
        # Root's way back stays open.
        os.setresuid(uid, uid, 0)
        direct_read()
    return step
"""


def test_the_class_follows_fork_exec_and_setuid_under_load(tools: Tools) -> None:
    """Beside writers and a reader: an app's child and what it executes are in front; who leaves its UID is not."""
    shown = look_at_files(
        tools,
        LOAD
        + f"""
one = Stepper(*map(becomes, ({FRONT}, {BEHIND}, {FRONT}, {SERVICE}, 0)))
for name in "in front", "behind", "in front again", "service", "root":
    SHOWN[name] = one.shows()
one.ends()

# A child of the app in front: it knows the pipes, and its parent waits for it.
child, told, done = os.pipe(), os.pipe(), os.pipe()
def forks():
    os.setuid({FRONT})
    inner = os.fork()
    if inner == 0:
        os.read(told[0], 1)
        direct_read()
        os.write(done[1], b"x")
        os.read(told[0], 1)
        os.execv("/bin/dd", ["dd", "if=/dev/sda", "of=/dev/null", "bs=4096", "count=1", "iflag=direct"])
    os.write(child[1], str(inner).encode())
    os.waitpid(inner, 0)
    os.write(done[1], b"x")
parent = start(0, forks)
pid = int(os.read(child[0], 20))
def tell():
    os.write(told[1], b"x")
    os.read(done[0], 1)
SHOWN["forked"] = classes_of(pid, tell)
SHOWN["executed"] = classes_of(pid, tell)
os.waitpid(parent, 0)
end(*load)
""",
    )
    foreground = {"in front", "in front again", "forked", "executed"}
    assert {name for name, classes in shown.items() if classes == ["foreground"]} == foreground
    assert shown["behind"] == ["background"]
    assert shown["service"] == shown["root"] == ["neutral"]


def test_a_reused_pid_is_not_in_front(tools: Tools) -> None:
    """A thread group of the set ends under load: whoever gets its number is what its UID says."""
    shown = look_at_files(
        tools,
        LOAD
        + f"""
class CloneArgs(ctypes.Structure):
    NAMES = ("flags", "pidfd", "child_tid", "parent_tid", "exit_signal", "stack", "stack_size", "tls", "set_tid",
             "set_tid_size", "cgroup")
    _fields_ = [(name, ctypes.c_uint64) for name in NAMES]

def fork_as(pid):
    # clone3(2), a fork whose PID is given.
    wanted = ctypes.c_int(pid)
    args = CloneArgs(exit_signal=signal.SIGCHLD, set_tid=ctypes.addressof(wanted), set_tid_size=1)
    found = LIBC.syscall(435, ctypes.byref(args), ctypes.sizeof(args))
    if found < 0:
        raise OSError(ctypes.get_errno(), "clone3")
    return found

old = Stepper(becomes({BEHIND}), becomes({BEHIND}))
SHOWN["before"] = old.shows()
write(FT + "foreground_tgids", str(old.pid))
SHOWN["member"] = old.shows()
old.ends()
new = Stepper(becomes({BEHIND}), fork=lambda: fork_as(old.pid))
SHOWN["same"] = new.pid == old.pid
SHOWN["reused"] = new.shows()
SHOWN["set"] = read(FT + "foreground_tgids")
new.ends()
end(*load)
""",
    )
    assert shown["same"]
    assert shown["before"] == shown["reused"] == ["background"]
    assert shown["member"] == ["foreground"]
    assert shown["set"] == ""


def test_queued_requests_change_class_with_their_app(tools: Tools) -> None:
    """Requests in the queue are foreground when their app comes to the front, and background when it leaves."""
    shown = look_at_files(
        tools,
        LOAD
        + f"""
mount("debugfs", "/sys/kernel/debug")
def queued():
    lines = read("/sys/kernel/debug/block/sda/sched/state").splitlines()
    return {{line.split()[0]: int(line.split()[2]) for line in lines if " queued " in line}}

def direct_reads_for_ever(index):
    buffer = mmap.mmap(-1, 512 * 1024)
    handle = os.open("/dev/sda", os.O_RDONLY | os.O_DIRECT)
    while True:
        SEEN[index] += os.preadv(handle, [buffer], (index << 30) % (4 << 30) + SEEN[index] % (512 * MIB))

end(*load[1:])
readers = [start({BEHIND}, lambda index=index: direct_reads_for_ever(index)) for index in range(8)]
time.sleep(0.3)
SHOWN["behind"] = queued()
write(FT + "foreground_uids", "{FRONT} {BEHIND}")
SHOWN["came"] = queued()
time.sleep(0.3)
SHOWN["in front"] = queued()
write(FT + "foreground_uids", "{FRONT}")
SHOWN["left"] = queued()
end(load[0], *readers)
""",
        phone_name="n5",
    )
    # One is in the device, which takes one at a time, and the reader in front may have one.
    for state in "behind", "left":
        assert shown[state]["background"] >= 6 and shown[state]["foreground"] <= 1, shown
    for state in "came", "in front":
        assert shown[state]["background"] == 0 and shown[state]["foreground"] >= 6, shown


def test_background_goes_on_behind_neutral_requests(tools: Tools) -> None:
    """Nobody is in front, and services keep the queue full: apps' requests get their share, also when switched off."""
    shown = look_at_files(
        tools,
        LOAD
        + f"""
def direct_writes_for_ever(index):
    buffer = mmap.mmap(-1, 512 * 1024)
    handle = os.open(f"/run/data/service{{index}}", os.O_CREAT | os.O_WRONLY | os.O_DIRECT, 0o644)
    while True:
        SEEN[index] += os.pwritev(handle, [buffer], SEEN[index] % (64 * MIB))

def direct_reads(index):
    buffer = mmap.mmap(-1, 4096)
    handle = os.open("/dev/sda", os.O_RDONLY | os.O_DIRECT)
    while True:
        os.preadv(handle, [buffer], index << 24)
        SEEN[index] += 1

end(*load)
for index in range(16):
    SEEN[index] = 0
services = [start({SERVICE}, lambda index=index: direct_writes_for_ever(index)) for index in range(8)]
time.sleep(1)
apps = [start({BEHIND}, lambda index=index: direct_reads(index)) for index in range(8, 12)]
time.sleep(4)
SHOWN["reads"] = [SEEN[index] for index in range(8, 12)]
SHOWN["wait_max_us"] = stat("dispatch_wait_max_us")
# Those in the queue are still background.
before = [SEEN[index] for index in range(8, 12)]
write(FT + "enabled", "0")
time.sleep(1.5)
SHOWN["off"] = [SEEN[index] - old for index, old in zip(range(8, 12), before)]
end(*services, *apps)
""",
        phone_name="n5",
    )
    assert min(shown["reads"]) >= 4 and min(shown["off"]) >= 4, shown
    assert shown["wait_max_us"] < 1_100_000
