# SPDX-License-Identifier: GPL-2.0-only
"""storebench on a machine: which disk it is, what is applied to it, what is written there and what is not."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from test_storebench import READ, SDA, SIZE, TINY_PLAN, WRITE, made

from fasttrack_lab.commands import storebench as commands
from fasttrack_lab.host.errors import LabError
from fasttrack_lab.host.paths import CHECKOUT, LAB
from fasttrack_lab.inputs import phone_digest, profile
from fasttrack_lab.inputs.device import Device
from fasttrack_lab.inputs.patterns import MAX_DEPTH, PATTERNS
from fasttrack_lab.inputs.profile import Profile
from fasttrack_lab.run import fio
from fasttrack_lab.storebench import apply, disk, filesystem, plan, real_device, target
from fasttrack_lab.storebench.disk import Files
from fasttrack_lab.storebench.plan import MIB

# -- disks, by made-up sysfs and procfs


def put(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")


def link(root: Path, name: str, number: str, place: str) -> None:
    """The three links of a block device."""
    put(root, {f"{place}/dev": number})
    for where in (f"sys/class/block/{name}", f"sys/dev/block/{number}"):
        path = root / where
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(root / place)


SDA_AT = "sys/devices/sda"


@pytest.fixture
def fake(tmp_path: Path) -> Path:
    """A SCSI disk sda with a partition sda1, and dm-0 on that."""
    root = tmp_path / "root"
    put(
        root,
        {
            f"{SDA_AT}/size": str(SDA.size_bytes // 512),
            f"{SDA_AT}/ro": "0",
            f"{SDA_AT}/device/vendor": "MFLASH  ",
            f"{SDA_AT}/device/model": "s6              ",
            f"{SDA_AT}/device/queue_depth": "32",
            f"{SDA_AT}/queue/scheduler": "none mq-deadline [smartio]",
            f"{SDA_AT}/sda1/partition": "1",
            f"{SDA_AT}/sda1/size": str(SDA.size_bytes // 512 - 2048),
            f"{SDA_AT}/sda1/ro": "0",
            "sys/devices/dm-0/size": "4194304",
            "sys/devices/dm-0/ro": "0",
            "sys/devices/dm-0/slaves/sda1/partition": "1",
            "proc/self/mountinfo": "1 0 0:5 / / rw - ext4 /dev/vda rw",
            "proc/swaps": "Filename Type Size Used Priority",
        }
        | {f"{SDA_AT}/queue/iosched/{pattern.name}_depth": "0" for pattern in PATTERNS},
    )
    link(root, "sda", "8:0", SDA_AT)
    link(root, "sda1", "8:1", f"{SDA_AT}/sda1")
    link(root, "dm-0", "253:0", "sys/devices/dm-0")
    (root / "sys/block").mkdir()
    (root / "sys/block/sda").symlink_to(root / SDA_AT)
    return root


def test_the_disk_below(fake: Path) -> None:
    files = Files(fake)
    assert [disk.backing(files, name) for name in ("sda", "sda1", "dm-0")] == ["sda"] * 3
    assert disk.name_of(files, "8:1") == "sda1"
    assert disk.device(files, "sda") == SDA
    assert disk.elevator(files, "sda") == ("smartio", ("none", "mq-deadline", "smartio"))
    put(fake, {"sys/devices/dm-0/slaves/sdb/dev": "8:16"})
    assert disk.backing(files, "dm-0") == "dm-0", "two disks are below: which one cannot be said"


class Subvolume(type(Path())):  # type: ignore[misc]
    """A path on a file system that has no device's number."""

    def stat(self, **_: bool) -> os.stat_result:
        return os.stat_result((0, 0, os.makedev(0, 99), 0, 0, 0, 0, 0, 0, 0))


BTRFS = (
    "1 0 8:9 / / rw - ext4 /dev/vda rw\n2 1 0:39 / /mnt/b rw - btrfs /dev/sda1 rw\n3 1 0:40 / /mnt/t rw - tmpfs t rw"
)


def test_the_disk_below_a_subvolume(fake: Path) -> None:
    """stat has another number for each than mountinfo has for all."""
    put(fake, {"proc/self/mountinfo": BTRFS, "sys/fs/btrfs/features/x": "", "sys/fs/btrfs/u/devices/sda1": ""})
    assert disk.below(Files(fake), Subvolume("/mnt/b/deep")) == "sda"
    for path, kind in (("/mnt/t/x", "tmpfs"), ("/mnt/bb", "ext4")):
        with pytest.raises(LabError, match=f"{kind} is on no block device of this machine"):
            disk.below(Files(fake), Subvolume(path))
    put(fake, {"sys/fs/btrfs/u/devices/sdb1": ""})
    with pytest.raises(LabError, match="/mnt/b: btrfs is on sda1, sdb1: what one of them does cannot be measured"):
        disk.below(Files(fake), Subvolume("/mnt/b"))


def test_a_disk_that_names_nothing_is_called_by_its_driver(fake: Path) -> None:
    put(fake, {"sys/block/vda/size": "2048", "sys/block/vda/mq/0/nr_tags": "128"})
    put(fake, {"sys/bus/drivers/virtio_blk/x": "", "sys/block/loop7/size": "2048"})
    (fake / "sys/block/vda/device").mkdir()
    (fake / "sys/block/vda/device/driver").symlink_to(fake / "sys/bus/drivers/virtio_blk")
    assert disk.device(Files(fake), "vda") == Device("", "virtio_blk", 1 << 20, 128)
    assert disk.device(Files(fake), "loop7") == Device("", "loop", 1 << 20, 0)
    with pytest.raises(LabError, match="sdz: sysfs does not say"):
        disk.device(Files(fake), "sdz")


@pytest.mark.parametrize(
    ("files", "serial", "says_its_model"),
    [
        ({"device/model": "disk", "device/wwid": "naa.5"}, "naa.5", True),
        ({"device/model": "disk", "device/serial": "S1", "wwid": "eui.1"}, "eui.1", True),
        ({"device/name": "MMC", "device/manfid": "0x15", "device/serial": "0x0", "device/cid": "15c1d"}, "15c1d", True),
        ({"device/vendor": "0x1af4", "serial": "mine"}, "mine", False),
        ({"device/vendor": "0x1af4", "serial": ""}, "", False),
        ({}, "", False),
    ],
    ids=["SCSI", "NVMe", "eMMC", "virtio", "virtio without", "loop"],
)
def test_the_serial_number(fake: Path, files: dict[str, str], serial: str, says_its_model: bool) -> None:
    put(fake, {"sys/block/x/size": "2048"} | {f"sys/block/x/{name}": text for name, text in files.items()})
    assert disk.device(Files(fake), "x").serial == serial
    assert disk.says_its_model(Files(fake), "x") == says_its_model


def test_odd_bytes_of_a_serial_number(fake: Path) -> None:
    (fake / SDA_AT / "device/wwid").write_bytes(b"t10.\xff\xfe 1\n")
    assert disk.device(Files(fake), "sda").serial == "t10.\ufffd\ufffd 1"


MOUNTED = "2 1 8:1 / /mnt/my\\040data rw - ext4 /dev/sda1 rw"


@pytest.mark.parametrize(
    ("name", "files", "message"),
    [
        ("sda", {}, ""),
        ("sda", {f"{SDA_AT}/ro": "1"}, "sda is read-only"),
        ("sda", {f"{SDA_AT}/size": "2048"}, "sda is too small: 1 MiB, of which 70 MiB are needed; see --size"),
        ("sda1", {"proc/self/mountinfo": MOUNTED}, "sda1 is mounted at /mnt/my data; give a directory there"),
        ("sda", {"proc/self/mountinfo": MOUNTED}, "sda1 is mounted at /mnt/my data"),
        ("sda1", {"proc/self/mountinfo": "2 1 0:44 / /b rw - btrfs /dev/sda1 rw"}, "sda1 is mounted at /b"),
        ("sda", {"proc/swaps": "Filename\n/dev/sda1 partition 1 0 -2"}, "sda1 is swap space in use; swapoff"),
        ("sda", {f"{SDA_AT}/sda1/holders/dm-0/dev": "253:0"}, "sda1 is held by dm-0"),
        ("sda", {f"{SDA_AT}/holders/md0/dev": "9:0"}, "sda is held by md0"),
    ],
)
def test_a_device_that_is_used_or_does_not_fit(fake: Path, name: str, files: dict[str, str], message: str) -> None:
    put(fake, files)
    found = disk.objection(Files(fake), name, target.need_bytes(SIZE))
    assert found.startswith(message) if message else found == ""


# -- applying


class Recorded(Files):
    """Files that note what is written, and may refuse some."""

    def __init__(self, root: Path, refuse: str = "", error: OSError | None = None) -> None:
        super().__init__(root)
        self.refuse, self.error = refuse, error
        self.written: list[tuple[str, str]] = []

    def write(self, name: str, text: str) -> None:
        self.written.append((name, text))
        if self.refuse and name.endswith(self.refuse) and text != "0":
            if self.error:
                raise self.error
            text = "1"  # the kernel took another value
        super().write(name, text)


KNOBS = [f"sys/block/sda/queue/iosched/{pattern.name}_depth" for pattern in PATTERNS]
WANTED = list(zip(KNOBS, ["4", "4", "4", "8"], strict=True))


def test_the_elevator_has_the_knobs() -> None:
    """As the contract with the kernel names them; they take every depth that is measured."""
    found = tomllib.loads((CHECKOUT / "contract" / "sysfs.toml").read_text())["file"]
    knobs = {
        one["path"].lstrip("/"): one["range"]
        for one in found
        if one.get("elevator") == apply.ELEVATOR and "range" in one
    }
    for pattern in PATTERNS:
        lowest, highest = knobs[apply.knob("{disk}", pattern.name)]
        assert lowest == 0 and highest >= MAX_DEPTH


def test_apply_writes_all_four_in_order(fake: Path) -> None:
    files = Recorded(fake)
    planned = apply.writes(made(), Path("s6.json"), files, "sda")
    assert planned == WANTED and files.written == []
    apply.put(files, planned)
    assert files.written == WANTED


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (PermissionError(13, "Permission denied"), "run this as root; the old values are back"),
        (OSError(22, "Invalid argument"), "4 was not taken: Invalid argument; the old values are back"),
        (None, "4 was written, 1 is there; the old values are back"),
    ],
)
def test_apply_is_all_or_none(fake: Path, error: OSError | None, message: str) -> None:
    files = Recorded(fake, "sequential_write_depth", error)
    with pytest.raises(LabError, match=message):
        apply.put(files, apply.writes(made(), Path("s6.json"), files, "sda"))
    assert [files.read(knob) for knob in KNOBS] == ["0"] * 4
    back = [(KNOBS[index], "0") for index in ((2, 1, 0) if error is None else (1, 0))]
    assert files.written == WANTED[:3] + back


def test_what_cannot_be_put_back_is_said(fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = Recorded(fake, "random_write_depth", OSError(22, "Invalid argument"))
    planned = apply.writes(made(), Path("s6.json"), files, "sda")
    put(fake, {KNOBS[0]: "7"})
    write = Recorded.write

    def gone(self: Recorded, name: str, text: str) -> None:
        if text == "7":
            raise OSError(5, "Input/output error")
        write(self, name, text)

    monkeypatch.setattr(Recorded, "write", gone)
    with pytest.raises(LabError, match=r"not everything could be put back: .*sequential_read_depth: 7 was not taken"):
        apply.put(files, planned)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("sdb", {}, "there is no disk 'sdb'; disks: sda"),
        ("../sda", {}, "there is no disk '../sda'"),
        ("sda1", {}, "sda1 is a partition, the I/O scheduler is its disk's: give sda"),
        ("sda", {f"{SDA_AT}/device/model": "n6"}, "made for another device: here, model is 'n6', not 's6'"),
        ("sda", {f"{SDA_AT}/queue/scheduler": "[none] smartio"}, r"echo smartio > /sys/block/sda/queue/scheduler"),
        ("sda", {f"{SDA_AT}/queue/scheduler": "[none] bfq"}, r"no I/O scheduler smartio for sda \(it has none, bfq\)"),
    ],
)
def test_apply_refuses(fake: Path, name: str, change: dict[str, str], message: str) -> None:
    put(fake, change)
    files = Recorded(fake)
    with pytest.raises(LabError, match=message):
        apply.writes(made(), Path("s6.json"), files, name)
    assert files.written == []


def test_apply_refuses_what_a_phone_had_before(fake: Path) -> None:
    """The parameters that the phone was measured with are in its profile; a real device's has none."""
    stale = replace(made(), parameters="0" * 64)
    with pytest.raises(LabError, match="the profile is stale: it was measured with other parameters"):
        apply.writes(stale, Path("s6.json"), Recorded(fake), "sda")
    assert apply.writes(replace(stale, parameters=phone_digest.digest("s6")), Path("s6.json"), Recorded(fake), "sda")


def nameless(fake: Path, serial: str) -> Profile:
    """Makes sda a disk that is called by its driver, and a profile of it."""
    for name in ("vendor", "model"):
        (fake / SDA_AT / "device" / name).unlink()
    put(fake, {f"{SDA_AT}/serial": serial})
    return made(disk.device(Files(fake), "sda"))


def test_a_disk_that_names_nothing_needs_a_word(fake: Path) -> None:
    one, path, files = nameless(fake, ""), Path("x.json"), Recorded(fake)
    assert one.device == Device("", "sda", SDA.size_bytes, 32)
    with pytest.raises(LabError, match="sda says neither its model nor its serial .* say so with --same-device"):
        apply.writes(one, path, files, "sda")
    assert apply.writes(one, path, files, "sda", same_device=True) == WANTED
    put(fake, {f"{SDA_AT}/size": "4096"})
    with pytest.raises(LabError, match="made for another device: here, size bytes"):
        apply.writes(one, path, files, "sda", same_device=True)


def test_a_serial_number_on_both_sides_is_enough(fake: Path) -> None:
    one, path, files = nameless(fake, "mine"), Path("x.json"), Recorded(fake)
    assert apply.writes(one, path, files, "sda") == WANTED
    with pytest.raises(LabError, match="--same-device"):
        apply.writes(made(replace(one.device, serial="")), path, files, "sda")
    put(fake, {f"{SDA_AT}/serial": "other"})
    with pytest.raises(LabError, match="serial is 'other', not 'mine'"):
        apply.writes(one, path, files, "sda", same_device=True)


def test_the_command_takes_the_word(fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "Files", lambda: Files(fake))
    path = tmp_path / "x.json"
    profile.save(nameless(fake, ""), path)
    argv = [str(path), "--disk", "sda", "--dry-run"]
    assert "--same-device" in str(CliRunner().invoke(commands.apply_command, argv).exception)
    done = CliRunner().invoke(commands.apply_command, [*argv, "--same-device"])
    assert done.exit_code == 0 and done.output.splitlines() == [f"echo {value} > /{file}" for file, value in WANTED]


def test_an_elevator_without_the_knobs(fake: Path) -> None:
    files = Recorded(fake)
    planned = apply.writes(made(), Path("s6.json"), files, "sda")
    (fake / KNOBS[3]).unlink()
    with pytest.raises(LabError, match=r"the I/O scheduler lacks a knob: .*random_write_depth"):
        apply.put(files, planned)
    assert files.written == []


# -- a real device: the one below the temporary directory


def needs_disk(directory: Path) -> None:
    if not shutil.which(fio.PROGRAM):
        pytest.skip("fio is not installed")
    try:
        with target.opened(directory, SIZE):
            pass
    except LabError as error:
        pytest.skip(f"the temporary directory cannot be measured: {error}")


def snapshot(directory: Path) -> dict[str, tuple[int, int, str]]:
    """Names, times and contents of all files, but for the time of the last read."""
    files = [path for path in directory.iterdir() if path.is_file()]
    return {
        path.name: (path.stat().st_mtime_ns, path.stat().st_ctime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in files
    }


def test_a_directory_is_as_it_was(tmp_path: Path) -> None:
    needs_disk(tmp_path)
    put(tmp_path, {"mine": "x"})
    before = snapshot(tmp_path)
    name, found = real_device.measure_at(tmp_path, SIZE, 0.2, "command", TINY_PLAN)
    assert snapshot(tmp_path) == before
    assert disk.whole(Files(), name) == name and found.device.size_bytes > SIZE
    assert all(point.mb_s > 0 for curve in found.curves.values() for point in curve)


def test_a_users_file_is_only_read(tmp_path: Path) -> None:
    needs_disk(tmp_path)
    mine = tmp_path / "my: file, 1"
    mine.write_bytes(os.urandom(SIZE))
    mine.chmod(0o400)
    before = snapshot(tmp_path)
    with target.opened(mine, SIZE) as on:
        assert Path(on.files.read).samefile(mine) and not Path(on.files.write).samefile(mine)
        assert os.fstat(on.descriptor).st_nlink == 0
        assert snapshot(tmp_path) == before, "the other file has no name"
        for step in (plan.fill(TINY_PLAN, on.files), plan.pair(WRITE, READ, TINY_PLAN, on.files)):
            subprocess.run(fio.argv(*step), stdout=subprocess.DEVNULL, check=True)
    assert snapshot(tmp_path) == before


def test_a_step_ends_after_parts_of_a_second(tmp_path: Path) -> None:
    needs_disk(tmp_path)
    file = tmp_path / "file"
    file.write_bytes(os.urandom(SIZE))
    job = fio.Job("short", str(file), "randread", "4k", 1, f"{SIZE}", 0.05)
    said = subprocess.run(fio.argv(job), stdout=subprocess.PIPE, check=True).stdout.decode()
    read = fio.side(fio.jobs(said)[0], "read")
    assert read["io_bytes"] < SIZE / 2 and 50 <= read["runtime"] < 500


def test_a_new_file_by_name_and_one_that_is_there(tmp_path: Path) -> None:
    needs_disk(tmp_path)
    with target.opened(tmp_path / "new", SIZE) as on:
        assert os.fstat(on.descriptor).st_size == SIZE and list(tmp_path.iterdir()) == []
    put(tmp_path, {"there": "x"})
    with pytest.raises(LabError, match="there cannot be made: File exists"), target.own_file(tmp_path / "there", SIZE):
        pass
    assert (tmp_path / "there").read_text() == "x\n"


def test_what_no_file_can_be_made_in(tmp_path: Path) -> None:
    needs_disk(tmp_path)
    (tmp_path / "small").write_bytes(b"x")
    with (tmp_path / "holes").open("wb") as handle:
        handle.truncate(SIZE)
    cases: list[tuple[Path, int, str]] = [
        (tmp_path, SIZE - MIB, "a size of 63 MiB is too small, at least 64 are needed"),
        (tmp_path, 1 << 60, "MiB free, a file of"),
        (tmp_path / "no" / "such", SIZE, "there is no directory"),
        (tmp_path / "small", SIZE, "small is too small: 0 MiB, at least 64"),
        (tmp_path / "holes", SIZE, "holes is sparse or compressed"),
        (Path("/dev/null"), SIZE, "neither a directory, nor a file, nor a block device"),
        (Path("/proc"), SIZE, "proc is on no block device"),
    ]
    before = snapshot(tmp_path)
    for path, size, message in cases:
        with pytest.raises(LabError, match=message), target.opened(path, size):
            raise AssertionError("must not be reached")
    assert snapshot(tmp_path) == before


def test_its_own_elevator_is_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_disk(tmp_path)
    monkeypatch.setattr(disk, "elevator", lambda files, name: ("smartio", ("none", "smartio")))
    with pytest.raises(LabError, match="would be measured too; choose another one"), target.opened(tmp_path, SIZE):
        raise AssertionError("must not be reached")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_when_it_is_ended(tmp_path: Path, number: signal.Signals) -> None:
    needs_disk(tmp_path)
    argv = [sys.executable, "-m", "fasttrack_lab", "storebench", "--on", str(tmp_path), "--size", "64 MiB"]
    env = os.environ | {"PYTHONPATH": str(LAB)}
    child = subprocess.Popen(
        [*argv, "--seconds", "60", "--out", str(tmp_path.parent)], env=env, stderr=subprocess.PIPE, text=True
    )
    try:
        assert child.stderr is not None
        assert any(line.startswith("measuring") for line in child.stderr)
        wait_until(lambda: bool(children(child.pid)), "fio does not start")
        running = children(child.pid)
        child.send_signal(number)
        said = child.stderr.read()
        status = child.wait(60)
    finally:
        child.kill()
    assert status == (-number if number == signal.SIGKILL else 130), said
    assert list(tmp_path.iterdir()) == []
    wait_until(lambda: all(ended(pid) for pid in running), "fio outlives its parent")


def wait_until(done: Callable[[], bool], problem: str) -> None:
    deadline = time.monotonic() + 60
    while not done():
        assert time.monotonic() < deadline, problem
        time.sleep(0.02)


def children(parent: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


def ended(pid: int) -> bool:
    """Gone, or nobody's to wait for yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


# -- file systems that nobody has mounted


def empty(image: Path, mib: int) -> Path:
    """A file of zeros."""
    with image.open("wb") as handle:
        handle.truncate(mib * MIB)
    return image


def formatted(image: Path, mib: int, kind: str = "ext4") -> Path:
    """An image with a file system on it."""
    if not shutil.which(f"mkfs.{kind}") or not shutil.which(filesystem.KINDS[kind].tool[0]):
        pytest.skip(f"{filesystem.KINDS[kind].package} is not installed")
    force = {"xfs": ["-f"], "btrfs": ["-f"], "f2fs": ["-f"]}.get(kind, ["-F"])
    argv = [f"mkfs.{kind}", "-q", *force, str(empty(image, mib))]
    subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return image


def sha256(image: Path) -> str:
    with image.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


DUMPE2FS = "Filesystem features:      has_journal {}\nFilesystem state:         {}\n{}"
LOGPRINT = "xfs_logprint:\n    data device: 0x700\n\n    log tail: 2 head: 13 state: <{}>\n"
DUMP_F2FS = "Info: total FS sectors = 1048576 (512 MB)\nInfo: checkpoint state = 185 :  trimmed crc {}\n"
DUMP_SUPER = "root\t\t\t30539776\nlog_root\t\t{}\nlog_root_transid (deprecated)\t7\nlog_root_level\t\t0\n"


@pytest.mark.parametrize(
    ("kind", "said", "why"),
    [
        ("ext4", DUMPE2FS.format("extent", "clean", ""), ""),
        ("ext3", DUMPE2FS.format("needs_recovery", "clean", ""), "journal is to be replayed"),
        ("ext4", DUMPE2FS.format("extent", "clean", "First orphan inode:       13\n"), "files to delete"),
        ("ext4", DUMPE2FS.format("orphan_file orphan_present", "clean", ""), "files to delete"),
        ("ext2", DUMPE2FS.format("filetype", "not clean", ""), "state is 'not clean'"),
        ("ext4", DUMPE2FS.format("extent", "clean with errors", ""), "state is 'clean with errors'"),
        ("ext4", "Filesystem state:         clean\n", filesystem.UNCLEAR),
        ("ext4", "", filesystem.UNCLEAR),
        ("xfs", LOGPRINT.format("CLEAN"), ""),
        ("xfs", LOGPRINT.format("DIRTY"), "log is to be replayed"),
        ("xfs", "xfs_logprint: no log\n", filesystem.UNCLEAR),
        ("f2fs", DUMP_F2FS.format("compacted_summary unmount"), ""),
        ("f2fs", DUMP_F2FS.format("orphan_inodes sudden-power-off"), "orphan_inodes, sudden-power-off"),
        ("f2fs", DUMP_F2FS.format("fsck unmount"), "fsck"),
        ("f2fs", DUMP_F2FS.format(""), filesystem.UNCLEAR),
        ("f2fs", "", filesystem.UNCLEAR),
        ("btrfs", DUMP_SUPER.format("0"), ""),
        ("btrfs", DUMP_SUPER.format("30687232"), "log tree is to be replayed"),
        ("btrfs", "log_root_level\t\t0\n", filesystem.UNCLEAR),
    ],
)
def test_what_a_tool_says_of_its_file_system(kind: str, said: str, why: str) -> None:
    found = filesystem.KINDS[kind].pending(said)
    assert why in found if why else not found


@pytest.mark.parametrize("kind", list(filesystem.KINDS))
def test_a_clean_image_is_only_read(tmp_path: Path, kind: str) -> None:
    image = formatted(tmp_path / "x.img", 320, kind)
    before = sha256(image)
    assert filesystem.clean(image).name == kind
    assert sha256(image) == before


def test_what_cannot_be_asked_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = formatted(tmp_path / "x.img", 16)
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "dumpe2fs" else which(name))
    with pytest.raises(LabError, match="dumpe2fs is missing, .* its ext4 is clean; install e2fsprogs, or mount it"):
        filesystem.clean(image)
    with pytest.raises(LabError, match="no file system that blkid knows"):
        filesystem.clean(empty(tmp_path / "zero.img", 16))
    subprocess.run(["mkswap", str(tmp_path / "zero.img")], capture_output=True, check=True)
    with pytest.raises(LabError, match="has swap; only ext2, .*, btrfs can be looked into without a write; mount it"):
        filesystem.clean(tmp_path / "zero.img")


# -- block devices: loop devices of files


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Callable[..., tuple[Path, Path]]]:
    """Makes loop devices: the device and its file."""
    if os.geteuid() or not Path("/dev/loop-control").exists() or not shutil.which("losetup"):
        pytest.skip("loop devices need root, /dev/loop-control and losetup")
    made_here: list[str] = []

    def make(mib: int, *options: str, fs: bool = True, image: Path | None = None) -> tuple[Path, Path]:
        image = image or (formatted if fs else empty)(tmp_path / f"{mib}.img", mib)
        done = subprocess.run(
            ["losetup", "--find", "--show", *options, str(image)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            pytest.skip(f"no loop device: {done.stderr.strip()}")
        made_here.append(done.stdout.strip())
        return Path(made_here[-1]), image

    yield make
    for name in made_here:
        subprocess.run(["losetup", "--detach", name], check=False)


@contextmanager
def mounted(image: Path, where: Path) -> Iterator[None]:
    """An image mounted where everybody sees it."""
    where.mkdir()
    done = subprocess.run(["mount", "-o", "loop", str(image), str(where)], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"it cannot be mounted here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", str(where)], check=True)


def crashed(image: Path, where: Path) -> Path:
    """A copy of a file system as a power cut leaves it: a file just synced, and one open that is deleted."""
    copy = image.with_suffix(".crashed")
    with mounted(image, where), (where / "gone").open("wb") as gone, (where / "kept").open("wb") as kept:
        gone.write(os.urandom(MIB))
        (where / "gone").unlink()
        subprocess.run(["sync", "--file-system", str(where)], check=True)
        kept.write(os.urandom(MIB))
        kept.flush()
        os.fsync(kept.fileno())
        subprocess.run(["cp", "--sparse=always", str(image), str(copy)], check=True)
    return copy


OPEN = """
    import os, sys
    from pathlib import Path
    from fasttrack_lab.host.errors import LabError
    from fasttrack_lab.storebench import target
    try:
        with target.opened(Path(sys.argv[1]), int(sys.argv[2]) << 20) as on:
            where = Path(f"/proc/self/fd/{on.descriptor}").readlink().parent
            print("opened", on.name, os.fstat(on.descriptor).st_size >> 20, sorted(p.name for p in where.iterdir()))
    except LabError as error:
        print("refused", error)
"""


def open_there(path: Path, mib: int = 64) -> str:
    """What opening a target of so many MiB at PATH says, in a process of its own: it takes a mount namespace."""
    env = os.environ | {"PYTHONPATH": str(LAB)}
    argv = [sys.executable, "-c", textwrap.dedent(OPEN), str(path), str(mib)]
    return subprocess.run(argv, env=env, capture_output=True, text=True, check=True).stdout.strip()


def mounted_devices() -> str:
    return Path("/proc/self/mountinfo").read_text()


def test_a_block_device_is_mounted_for_us_alone(loop: Callable[..., tuple[Path, Path]]) -> None:
    device, image = loop(128)
    before = mounted_devices()
    assert open_there(device) == f"opened {device.name} 64 ['lost+found']"
    assert mounted_devices() == before
    subprocess.run(["e2fsck", "-fn", str(image)], stdout=subprocess.DEVNULL, check=True)


def test_block_devices_that_are_refused_are_untouched(loop: Callable[..., tuple[Path, Path]], tmp_path: Path) -> None:
    cases = [
        (loop(96, fs=False), "no file system that blkid knows"),
        (loop(48), "too small: 48 MiB, of which 70 MiB are needed"),
        (loop(128, "--read-only"), "is read-only"),
        (loop(72), "MiB free, a file of 64 MiB needs 70"),
    ]
    for (device, image), message in cases:
        before = hashlib.sha256(image.read_bytes()).hexdigest()
        said = open_there(device)
        assert said.startswith("refused") and message in said
        assert hashlib.sha256(image.read_bytes()).hexdigest() == before, message


@pytest.mark.parametrize("kind", ["ext2", "ext3", "ext4", "xfs", "btrfs"])
def test_the_look_for_room_writes_nothing(loop: Callable[..., tuple[Path, Path]], tmp_path: Path, kind: str) -> None:
    image = formatted(tmp_path / "x.img", 320, kind)
    with mounted(image, tmp_path / "mnt"):
        pass  # XFS has a log to replay before its first one
    device, _ = loop(320, image=image)
    before = sha256(image)
    said = open_there(device, 285)
    assert said.startswith("refused") and "MiB free, a file of 285 MiB needs" in said
    assert sha256(image) == before
    assert open_there(device).startswith(f"opened {device.name} 64"), "there is room for less"


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs"])
def test_what_needs_recovery_is_refused_and_untouched(
    loop: Callable[..., tuple[Path, Path]], tmp_path: Path, kind: str
) -> None:
    device, image = loop(320, image=crashed(formatted(tmp_path / "x.img", 320, kind), tmp_path / "mnt"))
    before = sha256(image)
    said = open_there(device)
    assert said.startswith(f"refused {device}: to mount its {kind} may write: its ")
    assert "replayed" in said and "or mount it and give a directory there" in said
    assert sha256(image) == before


def test_deleted_files_without_a_journal_to_replay(loop: Callable[..., tuple[Path, Path]], tmp_path: Path) -> None:
    """A mount with noload deletes them for good."""
    crash = crashed(formatted(tmp_path / "x.img", 128), tmp_path / "mnt")
    if not shutil.which("debugfs"):
        pytest.skip("debugfs is not installed")
    subprocess.run(["debugfs", "-w", "-R", "feature -needs_recovery", str(crash)], capture_output=True, check=True)
    device, image = loop(128, image=crash)
    before = sha256(image)
    assert "to mount its ext4 may write: it has files to delete since a crash; run e2fsck" in open_there(device)
    assert sha256(image) == before


def test_a_mounted_block_device_is_refused(loop: Callable[..., tuple[Path, Path]], tmp_path: Path) -> None:
    device, _ = loop(128)
    where = tmp_path / "mnt"
    where.mkdir()
    subprocess.run(["mount", str(device), str(where)], check=True)
    try:
        before = snapshot(where)
        assert f"{device.name} is mounted at {where}; give a directory there" in open_there(device)
        assert snapshot(where) == before
        assert open_there(where).startswith(f"opened {device.name} 64")
    finally:
        subprocess.run(["umount", str(where)], check=True)
