# SPDX-License-Identifier: GPL-2.0-only
"""The power is cut at random commands while FastTrack holds the background back; what was acknowledged must be there.

Two apps write records and fsync them, one in front and one behind, and a third, behind, only dirties pages. The first
boot prints each record's number after its fsync returned. The console goes to the host at once, so what it shows was
acknowledged before the cut. The second boot mounts (which replays the journal, or rolls forward), reads every
acknowledged record back, unmounts and checks the file system.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, replace
from functools import partial

import pytest
from guest_script import PROLOGUE

from fasttrack_lab.host.rundir import run_dir
from fasttrack_lab.host.side_by_side import each
from fasttrack_lab.inputs import phone
from fasttrack_lab.run.boot.backend import BootSpec
from fasttrack_lab.run.image import storage_params
from fasttrack_lab.run.result import judge_boot, judge_power_cut, tail
from fasttrack_lab.run.runner import Tools
from fasttrack_lab.run.script import init_script

pytestmark = pytest.mark.guest

CUTS = 50
"""On each file system as phones make it."""

FAST_COMMIT_CUTS = 20
"""On ext4 with fast commits."""

LAST_COMMAND = 700
"""Counted from the writers' start."""

MEMORY_MIB = 256
STORAGE_MIB = 1024
"""Small, because fsck.f2fs takes its time by the size."""

SEED = 20180711

SHARED = """
os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
UIDS = (10101, 10102)
EVERY = 8

def record(writer, number):
    return f"{writer} {number};".encode() * 300

def mount_phone():
    subprocess.run(["mount", "-t", FS, "-o", OPTIONS, "/dev/sda", "/mnt"], check=True)
"""

WRITE = (
    SHARED
    + """
def fast_commits():
    # The second line of what ext4 shows is "COUNT commits".
    return read("/proc/fs/ext4/sda/fc_info").splitlines()[1].split()[0] if FS == "ext4" else "0"

def acknowledge(writer, number):
    counted = " ".join(f"{name} {read(FT + 'stats/' + name)}" for name in ("pauses", "dispatch_held"))
    os.write(1, f"acked {writer} {number} {counted} fast {fast_commits()}\\n".encode())

def replace_file(directory, writer, number):
    # A new file under its last name, as apps save theirs.
    new = os.open(f"/mnt/new{writer}", os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644)
    os.write(new, record(writer, number))
    os.fsync(new)
    os.close(new)
    os.rename(f"/mnt/new{writer}", f"/mnt/file{writer}-{number}")
    os.fsync(directory)

def sync_records(writer):
    log = os.open(f"/mnt/log{writer}", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
    directory = os.open("/mnt", os.O_RDONLY)
    for number in range(100000):
        os.write(log, record(writer, number))
        os.fsync(log)
        if number % EVERY == 0:
            replace_file(directory, writer, number)
        acknowledge(writer, number)
        # Now and then the app in front rests for longer than the idle window.
        time.sleep(0.04 if writer == 0 and number % 16 == 15 else 0.0005)

def dirty_pages():
    handle = os.open("/mnt/dirty", os.O_CREAT | os.O_WRONLY, 0o644)
    piece = os.urandom(4096) * 64
    for number in range(100000):
        os.pwrite(handle, piece, number % 128 * len(piece))
        time.sleep(0.001)

def start(uid, work):
    if os.fork() == 0:
        try:
            os.setgid(uid)
            os.setuid(uid)
            work()
        finally:
            traceback.print_exc()
            os._exit(1)

subprocess.run(FORMAT, check=True)
mount_phone()
os.chmod("/mnt", 0o1777)
for path, value in (
    (QUEUE + "scheduler", "fasttrack"),
    ("/sys/module/mflash/parameters/scheduler", "foreground"),
    (FT + "foreground_uids", str(UIDS[0])),
    (FT + "enabled", "1"),
    # Short segments and pauses, and early write-back: many of each before the cut.
    (FT + "segment_kb", "16"),
    (FT + "background_pause_ms", "5"),
    ("/proc/sys/vm/dirty_background_bytes", "1048576"),
    ("/sys/module/mflash/parameters/power_cut_after", os.environ["cut_command"]),
):
    if write(path, value) != "ok":
        raise OSError(f"{path} does not take {value}")
start(UIDS[0], lambda: sync_records(0))
start(UIDS[1], lambda: sync_records(1))
start(UIDS[1], dirty_pages)
raise ChildProcessError(f"a writer ended: {os.wait()}")
"""
)

CHECK = (
    SHARED
    + """
mount_phone()
for writer in range(len(UIDS)):
    last = int(os.environ[f"acked{writer}"])
    wanted = b"".join(record(writer, number) for number in range(last + 1))
    found = open(f"/mnt/log{writer}", "rb").read() if last >= 0 else b""
    if found[: len(wanted)] != wanted:
        print(f"check: log{writer} has {len(found)} bytes, {len(wanted)} were acknowledged")
    for number in range(0, last + 1, EVERY):
        if open(f"/mnt/file{writer}-{number}", "rb").read() != record(writer, number):
            print(f"check: file{writer}-{number} differs")
print("check: read")
if LIBC.umount(b"/mnt"):
    raise OSError(ctypes.get_errno(), "umount /mnt")
checkers = {"ext4": ["e2fsck", "-fn"], "f2fs": ["fsck.f2fs", "--dry-run"]}
done = subprocess.run([*checkers[FS], "/dev/sda"], capture_output=True, text=True)
whole = done.returncode == 0 and "[Fail]" not in done.stdout
print("check: clean" if whole else f"check: exit status {done.returncode}: {done.stdout}{done.stderr}")
write("/proc/sysrq-trigger", "o")
time.sleep(10)
"""
)


@dataclass(frozen=True)
class Cut:
    """Where and how the power goes."""

    fs: str
    features: str
    """What the file system is made with beside what phones have."""
    command: int
    seed: int
    persist: int


@dataclass(frozen=True)
class Answer:
    """What came of a cut."""

    error: str | None
    """The first thing that went wrong."""
    acknowledged: tuple[int, ...]
    """Records of each writer."""
    pauses: int
    """Of background tasks, before the last record."""
    held: int
    """Requests that the dispatcher held back, before the last record."""
    fast_commits: int
    """Of ext4, before the last record."""


def cuts(fs: str, features: str, count: int) -> list[Cut]:
    draw = random.Random(f"{SEED} {fs}{features}")
    return [
        Cut(fs, features, draw.randrange(1, LAST_COMMAND), index, draw.choice([0, 0, 30, 70])) for index in range(count)
    ]


def written(console: str, error: str | None) -> Answer:
    """What the first boot's writers printed."""
    line = r"^acked (\d) (\d+) pauses (\d+) dispatch_held (\d+) fast (\d+)\r?$"
    lines = re.findall(line, console, re.MULTILINE)
    said = [tuple(map(int, line)) for line in lines]
    return Answer(
        error,
        tuple(max((number + 1 for who, number, *_ in said if who == writer), default=0) for writer in range(2)),
        *(max((one[column] for one in said), default=0) for column in (2, 3, 4)),
    )


def cut_and_check(tools: Tools, cut: Cut) -> Answer:
    """Two boots: the writing one ends in the cut, the other reads what it left."""
    s6 = phone.load("s6").with_fs(cut.fs)
    program, *arguments = s6.format
    made = [program, *(["-O", cut.features] if cut.features else []), *arguments]
    about = f"FS, OPTIONS, FORMAT = {s6.fs!r}, {s6.mount_options!r}, {made!r}\n"
    params = storage_params(tools.backend, s6)
    params |= {"mflash.size_mb": str(STORAGE_MIB), "mflash.seed": str(cut.seed)}
    power = {"cut_command": str(cut.command), "mflash.power_cut_persist": str(cut.persist)}
    with run_dir(MEMORY_MIB + STORAGE_MIB) as where:
        boot = partial(BootSpec, tools.kernel.image, memory_mib=MEMORY_MIB, run_dir=where, limit_s=120.0, seed=cut.seed)
        outcome = tools.backend.boot(boot(init=init_script(PROLOGUE + about + WRITE), params=params | power))
        answer = written(outcome.console, judge_power_cut(outcome))
        if not answer.error:
            acked = {f"acked{writer}": str(count - 1) for writer, count in enumerate(answer.acknowledged)}
            outcome = tools.backend.boot(boot(init=init_script(PROLOGUE + about + CHECK), params=params | acked))
            said = [line for line in outcome.console.splitlines() if line.startswith("check: ")]
            error = judge_boot(outcome)
            if error or said != ["check: read", "check: clean"]:
                answer = replace(answer, error=f"{error}, {said}")
    return replace(answer, error=f"{cut}: {answer.error}\n{tail(outcome.console)}") if answer.error else answer


@pytest.mark.parametrize(
    ("fs", "features", "count"),
    [("ext4", "", CUTS), ("f2fs", "", CUTS), ("ext4", "fast_commit", FAST_COMMIT_CUTS)],
    ids=["ext4", "f2fs", "ext4-fast_commit"],
)
def test_nothing_that_was_synced_is_lost(tools: Tools, fs: str, features: str, count: int) -> None:
    planned = cuts(fs, features, count)
    answers = each(planned, lambda cut: cut_and_check(tools, cut), f"power cuts on {fs}")
    failures = [answer.error for answer in answers if answer.error]
    assert not failures, "\n".join(failures)
    for writer in range(2):
        assert sum(answer.acknowledged[writer] > 0 for answer in answers) > count // 2
    assert sum(answer.pauses > 0 for answer in answers) > count // 2
    assert sum(answer.held > 0 for answer in answers) > count // 2
    fast = sum(answer.fast_commits > 0 for answer in answers)
    assert fast > count // 2 if features else fast == 0
    assert len({cut.command for cut in planned}) > count // 2
