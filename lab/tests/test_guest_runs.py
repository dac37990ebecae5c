# SPDX-License-Identifier: GPL-2.0-only
"""Runs of real guests: determinism, verified content, failures that must be seen."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from guest_script import look
from jobs import MIB, reader_and_writer, spec, step, thread

from fasttrack_lab.host.paths import CHECKOUT, digest
from fasttrack_lab.host.rundir import run_dir
from fasttrack_lab.inputs import lru, phone, policy, scenario
from fasttrack_lab.inputs.exec_job import exec_job
from fasttrack_lab.run.boot.backend import BootSpec
from fasttrack_lab.run.image import ROOM_MIB, storage_params
from fasttrack_lab.run.result import judge_boot
from fasttrack_lab.run.runner import Tools, run, run_many
from fasttrack_lab.run.script import init_script
from fasttrack_lab.run.specs import spec_of

pytestmark = pytest.mark.guest

PHONES = ["n5", "n6", "s6", "p1", "ufs31", "ufs40"]


@pytest.mark.parametrize("policy_name", ["stock", "fasttrack"])
def test_one_seed_is_one_result_alone_and_side_by_side(tools: Tools, policy_name: str) -> None:
    job = spec(reader_and_writer(), policy_name=policy_name)
    alone = run(job, tools).to_json()
    assert alone["ok"], alone["error"]
    beside = [result.to_json() for result in run_many([job, job], tools)]
    host = [shown.pop("host") for shown in (alone, *beside)]
    assert all(entry["log"] is None for entry in host)
    assert beside == [alone, alone]


def test_a_run_does_not_depend_on_the_place_of_its_programs(tools: Tools, tmp_path: Path) -> None:
    moved = tmp_path / "a-longer-way" / "to-the" / "program-of-the-guest"
    moved.parent.mkdir(parents=True)
    shutil.copy2(tools.guest, moved)
    front, update = scenario.load("gallery-launch"), scenario.load("update")
    job = spec_of(front, [update], phone.load("s6"), policy.load("stock"), 1)
    here, there = (run(job, given).to_json() for given in (tools, replace(tools, guest=moved)))
    assert here["ok"], here["error"]
    assert here | {"host": None} == there | {"host": None}


@pytest.mark.parametrize("policy_name", ["stock", "fasttrack"])
def test_f2fs_is_as_exact_as_ext4(tools: Tools, policy_name: str) -> None:
    front, update = scenario.load("gallery-launch"), scenario.load("update")
    job = spec_of(front, [update], phone.load("s6").with_fs("f2fs"), policy.load(policy_name), 1)
    first, again = (result.to_json() for result in run_many([job, job], tools))
    assert first["ok"], first["error"]
    assert first["fs"] == "f2fs" and first["response_s"] > 0
    assert first | {"host": None} == again | {"host": None}


def test_the_lru_is_what_the_record_says(tools: Tools) -> None:
    shown = look(
        tools,
        f"""
path = "{lru.KNOB}"
SHOWN["own"] = read(path)
SHOWN["said"] = [write(path, "y"), read(path), write(path, "0"), read(path)]
""",
    )
    assert shown["own"] == "0x0000", f"{lru.KERNEL_LRU} is not the kernel's own"
    # y is all that this machine can do: at least the lists themselves, bit 0.
    said = shown["said"]
    assert said[0] == said[2] == "ok" and int(said[1], 16) & 1 and said[3] == "0x0000"
    made = spec(reader_and_writer())
    jobs = [replace(made, cell=replace(made.cell, lru=name)) for name in ("mglru", "mglru", "classic")]
    first, again, classic = (result.to_json() | {"host": None} for result in run_many(jobs, tools))
    assert first["ok"], first["error"]
    assert first == again and first["lru"] == "mglru" and classic["lru"] == "classic"


def stored(path: Path) -> str:
    """Hash of what a sparse file holds, and where."""
    parts: list[bytes | str] = []
    with path.open("rb") as handle:
        size, position = os.fstat(handle.fileno()).st_size, 0
        while position < size:
            try:
                begin = os.lseek(handle.fileno(), position, os.SEEK_DATA)
            except OSError:
                break
            position = os.lseek(handle.fileno(), begin, os.SEEK_HOLE)
            parts += [f"{begin}", os.pread(handle.fileno(), position - begin, begin)]
    return digest(parts)


@pytest.mark.parametrize("fs", phone.FILE_SYSTEMS)
def test_a_format_does_not_depend_on_the_random_generator(tools: Tools, fs: str) -> None:
    one = phone.load("s6").with_fs(fs)
    script = init_script(
        "#!/bin/sh\nmount -t proc none /proc && mount -t sysfs none /sys && mount -t tmpfs none /run\n"
        f"{' '.join(one.format)} || echo fasttrack-guest: error: mkfs\n"
        "sync\necho o > /proc/sysrq-trigger\nsleep 10\n"
    )
    images = []
    for seed in (1, 2):
        with run_dir(512 + ROOM_MIB) as where:
            params = storage_params(tools.backend, one)
            outcome = tools.backend.boot(BootSpec(tools.kernel.image, script, 512, where, 120.0, seed, params))
            assert judge_boot(outcome) is None
            images.append(stored(where / "phone.img"))
    assert images[0] == images[1]


def test_seeds_differ(tools: Tools) -> None:
    results = run_many([spec(reader_and_writer(), seed=seed) for seed in (1, 2)], tools)
    assert results[0].response_s != results[1].response_s


def test_processes_of_their_own_agree(tools: Tools, tmp_path: Path) -> None:
    files = [tmp_path / "one.json", tmp_path / "another-name.json"]
    commands = [
        [
            str(CHECKOUT / "fasttrack"),
            "exec",
            "--foreground",
            "dd if=/dev/zero of=x bs=64k count=64 conv=fsync",
            "--seed",
            "5",
            "--json",
            str(path),
        ]
        for path in files
    ]
    env = os.environ | {"SOMETHING": "x" * 1000}
    running = [subprocess.Popen(commands[0]), subprocess.Popen(commands[1], env=env, cwd=tmp_path)]
    assert [child.wait() for child in running] == [0, 0]
    shown = [json.loads(path.read_text()) for path in files]
    assert shown[0]["exit_code"] == 0 and shown[0]["response_s"] > 0
    for one in shown:
        del one["host"]
    assert shown[0] == shown[1]


def test_content_is_what_was_written(tools: Tools) -> None:
    result = run(spec(reader_and_writer(verify=True), policy_name="fasttrack"), tools)
    shown = result.to_json()
    assert result.ok, shown["error"]
    assert shown["foreground"]["verify_errors"] == 0
    assert shown["foreground"]["bytes_read"] >= 17 * MIB


def test_virtual_limit_fails_the_run(tools: Tools) -> None:
    job = reader_and_writer()
    job["apps"][0]["threads"] = [thread("ui", [step("think", s=50.0)], after_touch=True)]
    job["limit_s"] = 5.0
    result = run(spec(job), tools)
    assert not result.ok and result.response_s is None
    assert result.kept_log is not None and "sysrq" in Path(result.kept_log).read_text()


def test_kernel_warning_and_hang_fail_the_run(tools: Tools) -> None:
    crash = init_script("#!/bin/sh\nmount -t proc none /proc\necho c > /proc/sysrq-trigger\n")
    hang = init_script("#!/bin/sh\nwhile :; do :; done\n")
    with run_dir(512) as where:
        error = judge_boot(tools.backend.boot(BootSpec(tools.kernel.image, crash, 256, where, 30.0)))
        assert error is not None and "panic" in error
    with run_dir(512) as where:
        error = judge_boot(tools.backend.boot(BootSpec(tools.kernel.image, hang, 256, where, 3.0)))
        assert error is not None and "did not end within" in error


@pytest.mark.parametrize("name", PHONES)
def test_fio_verifies_on_every_phone(tools: Tools, name: str) -> None:
    one = phone.load(name)
    fio = "fio --directory=/mnt --size=16m --bs=4k-64k --ioengine=libaio --direct=1 --verify=crc32c --verify_fatal=1"
    more = "--clocksource=clock_gettime --randrepeat=1 --rw=randwrite --iodepth=8 --thread --fsync=64 --minimal"
    script = init_script(
        "#!/bin/sh\nmount -t proc none /proc && mount -t sysfs none /sys\n"
        "mount -t tmpfs none /tmp && mount -t tmpfs none /run\n"
        f"{' '.join(one.format)}\nmount -t {one.fs} /dev/sda /mnt\ncd /tmp\n"
        f"{fio} {more} --name=check > /tmp/log && echo fio: clean || cat /tmp/log\n"
        "umount /mnt\necho o > /proc/sysrq-trigger\nsleep 10\n"
    )
    with run_dir(512 + ROOM_MIB) as where:
        outcome = tools.backend.boot(
            BootSpec(tools.kernel.image, script, 512, where, 120.0, 1, storage_params(tools.backend, one))
        )
    assert judge_boot(outcome) is None
    assert "fio: clean" in outcome.console


def test_a_commands_end_is_seen_at_once(tools: Tools) -> None:
    """Many processes end in the background meanwhile: a signal that is lost would be found at the limit."""
    finds = "while :; do find . -name '*3' > /dev/null; sleep 0.001; done"
    job = exec_job("cat file0 > /dev/null", (finds,) * 4, 0.1, 600.0)
    job["files"] = [
        {"app": app["name"], "path": f"file{index}", "bytes": 4096, "kind": "data"}
        for app in job["apps"]
        for index in range(200)
    ]
    results = run_many([spec(job, seed=seed) for seed in (1, 2)], tools)
    for result in results:
        assert result.ok, result.verdict.error
        assert result.response_s is not None and result.response_s < 1


def test_a_command_that_is_over_at_its_limit_fails_the_run(tools: Tools) -> None:
    result = run(spec(exec_job("sleep 50", ("sleep 1000",), 0.5, 5.0)), tools)
    assert not result.ok and result.response_s is None
    assert "limit_s" in str(result.verdict.error) and "foreground" in str(result.verdict.error)


def test_an_error_in_a_guests_script_fails_its_boot(tools: Tools) -> None:
    with pytest.raises(AssertionError, match="error in a script that is the guest's init.*ZeroDivisionError"):
        look(tools, "SHOWN['x'] = 1 / 0")
