# SPDX-License-Identifier: GPL-2.0-only
"""A trace of I/O origin has the device's bytes, whose they are, and says what it has lost."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import zstandard
from click.testing import CliRunner
from collector_judge import DAC_READ_SEARCH, FOWNER, covers_its_bios, has_given_up, leaves_itself_out
from guest_script import BEHIND, EXT4, FASTTRACK, FRONT, SERVICE, Data, Settings, ask, look

from fasttrack_lab.build import guest_program
from fasttrack_lab.commands.replay import command
from fasttrack_lab.host import process
from fasttrack_lab.host.paths import CHECKOUT
from fasttrack_lab.inputs import phone, policy, scenario
from fasttrack_lab.inputs.cell import Cell
from fasttrack_lab.inputs.exec_job import FOREGROUND_UID, exec_job
from fasttrack_lab.run.result import Result
from fasttrack_lab.run.runner import RunSpec, Tools, run
from fasttrack_lab.trace import io_profile, sources, trace_report
from fasttrack_lab.trace.interaction import Interaction

pytestmark = pytest.mark.guest

MIB = 1 << 20
SAVED = 5 * 4096
"""Bytes of the first file that is saved, as tests/guest/trace.py has them."""

RECORDING = """\
1 100 open "/data/data/app/db" O_RDWR|O_LARGEFILE 40
1 200 pwrite 40 8192 32768
1 300 fsync 40 0
1 400 close 40 0
"""
"""A recording of MobiGen's."""

CASES = [(fs, policy) for fs in ("ext4", "f2fs") for policy in ("stock", "fasttrack")]
SETTINGS: dict[str, Settings] = {"stock": (), "fasttrack": FASTTRACK}


@dataclass(frozen=True)
class Traced:
    """A trace, and the device's counters around it."""

    shown: dict[str, Any]

    @classmethod
    def of_logs(cls, logs: Path) -> Traced:
        program = str(guest_program.build(guest_program.COLLECTOR))
        lines = process.output([program, "cat", "--json", str(logs)]).splitlines()
        return cls({"records": [json.loads(line) for line in lines]})

    def of(self, name: str) -> list[dict[str, Any]]:
        return [record for record in self.shown["records"] if record["record"] == name]

    def gained(self, operation: str) -> int:
        return int(self.shown["after"][operation] - self.shown["before"][operation])

    def names(self, record: str) -> dict[int, dict[str, Any]]:
        return {one[record]: one for one in self.of(record)}

    def owned(self, path: str) -> Counter[tuple[str, int | None]]:
        """Bytes of a file by operation and user id of the owner."""
        tasks, files = self.names("task"), self.names("file")
        operations = {bio["bio"]: bio["operation"] for bio in self.of("bio")}
        total: Counter[tuple[str, int | None]] = Counter()
        for segment in self.of("segment"):
            if files.get(segment.get("file", 0), {}).get("path") == path and segment["block_type"] == "data":
                uid = tasks.get(segment.get("owner", 0), {}).get("uid")
                total[operations[segment["bio"]], uid] += segment["bytes"]
        return total


@pytest.fixture(scope="module", params=CASES, ids="-".join)
def traced(request: pytest.FixtureRequest, tools: Tools) -> Traced:
    fs, policy = request.param
    program = str(guest_program.build(guest_program.COLLECTOR))
    # f2fs discards when it likes, unless it is told not to discard by itself.
    data = Data(fs, options="nodiscard")
    return Traced(ask(tools, "trace.works", data=data, settings=SETTINGS[policy], program=program))


def test_bytes_are_the_devices(traced: Traced) -> None:
    assert not traced.of("loss")
    total: Counter[str] = Counter()
    for request in traced.of("request"):
        total[request["operation"]] += request["bytes"]
    assert {name: total[name] for name in ("read", "write", "discard")} == {
        name: traced.gained(name) for name in ("read", "write", "discard")
    }
    assert total["write"] > 3 * MIB and total["read"] >= 4 * MIB and total["discard"] >= 3 * MIB


def test_flushes_are_the_devices(traced: Traced) -> None:
    """A commit of ext4's has a block that is durable when it ends, after a flush."""
    flushes = sum(request["operation"] == "flush" for request in traced.of("request"))
    assert flushes == traced.gained("flush") > 0
    durable = [bio["bytes"] for bio in traced.of("bio") if bio["preflush"] and bio["bytes"]]
    assert durable, traced.of("bio")


def test_writes_that_are_forced_to_the_medium_are_the_devices(traced: Traced) -> None:
    forced = sum(bio["fua"] for bio in traced.of("bio"))
    assert forced == traced.gained("fua") > 0


def test_it_has_given_up_what_it_does_not_need(traced: Traced) -> None:
    """Though root has started it by hand: CAP_DAC_READ_SEARCH and CAP_FOWNER are left, and a filter of system calls."""
    has_given_up(traced.shown["status"], DAC_READ_SEARCH | FOWNER)


def test_segments_cover_their_bios(traced: Traced) -> None:
    covers_its_bios(traced.shown["records"])


def test_requests_have_their_bios(traced: Traced) -> None:
    """Each with data says its first, and together they have all that was sent, split or merged."""
    bios = traced.names("bio")
    carried: Counter[int] = Counter()
    for request in traced.of("request"):
        if request["operation"] != "flush":
            first = bios[request["first_bio"]]
            assert (first["dev"], first["operation"]) == (request["dev"], request["operation"])
            assert 0 <= (request["sector"] - first["sector"]) * 512 < first["bytes"]
            carried[request["bios"]] += 1
    sent = sum(bio["bytes"] > 0 for bio in bios.values())
    assert sum(count * requests for count, requests in carried.items()) >= sent


def test_owners(traced: Traced) -> None:
    """Each app's bytes of the shared file are its own, whoever sends them."""
    assert traced.owned("/run/data/shared") == {("write", FRONT): 2 * MIB, ("write", BEHIND): MIB}
    assert traced.owned("/run/data/cold") == {("read", BEHIND): 4 * MIB}


def test_every_data_block_has_a_file(traced: Traced) -> None:
    for segment in traced.of("segment"):
        assert segment["block_type"] != "data" or "file" in segment, segment


def test_calls_and_ends(traced: Traced) -> None:
    tasks = traced.names("task")
    calls = [call for call in traced.of("call") if tasks[call["task"]].get("uid") == BEHIND]
    (sync,) = [call for call in calls if call["kind"] == "fsync"]
    assert sync["result"] == 0
    # The task is the process: its thread wrote, waited and sent.
    thread = traced.shown["thread"]
    assert (sync["thread"], tasks[sync["task"]]["tgid"] == thread) == (thread, False)
    assert any(bio.get("thread") == thread and bio["carrier"] == sync["task"] for bio in traced.of("bio"))
    inside = [
        wait
        for wait in traced.of("wait")
        if wait.get("thread") == thread and 0 <= sync["time"] - wait["time"] <= sync["duration_ns"]
    ]
    assert 0.9 * sync["duration_ns"] < sum(wait["duration_ns"] for wait in inside) <= sync["duration_ns"]
    # What took time: the file is read from the device.
    files = traced.names("file")
    read = [call for call in calls if call["kind"] == "read" and files[call["file"]]["path"] == "/run/data/cold"]
    assert read and sum(call["bytes"] for call in read) <= 4 * MIB
    gone = [file for file in traced.of("file") if file["event"] == "unlink"]
    assert [file["path"] for file in gone].count("/run/data/shared") == 1


def test_a_file_that_another_takes_the_name_of_has_ended(traced: Traced) -> None:
    told = [file for file in traced.of("file") if file["path"].rpartition("/")[2] in ("draft", "saved")]
    first, second = list(dict.fromkeys(file["file"] for file in told))
    lives = [
        [(one["event"], Path(one["path"]).name) for one in told if one["file"] == number] for number in (first, second)
    ]
    assert lives[1] == [("first_use", "draft"), ("rename", "saved")]
    assert lives[0] == [*lives[1], ("unlink", "saved")]
    assert [one["bytes"] for one in told if one["event"] == "unlink"] == [SAVED]


def _exec(tools: Tools, line: str, to: Path) -> Result:
    """As `exec --trace`."""
    s6, stock = phone.load("s6"), policy.load("stock")
    job = exec_job(line, [], 1.0, 60.0)
    result = run(RunSpec(Cell("exec", "s6", "stock", (), 1), s6, stock, job, trace_to=to), tools)
    assert result.ok, result.verdict.error
    return result


def test_to_look_at_a_file_writes_nothing_back(tools: Tools, tmp_path: Path) -> None:
    """ext4 writes back what was emptied and is written anew when anybody closes it, who has only read as well."""
    to = tmp_path / "logs"
    _exec(tools, "echo old > x; exec 3> x; dd if=/dev/zero bs=64k count=64 >&3; sleep 2; exec 3>&-; sync x", to)
    traced = Traced.of_logs(to)
    assert traced.owned("/data/app/foreground/x") == {("write", FOREGROUND_UID): 4 * MIB}
    tasks = traced.names("task")
    assert "fasttrack-trace" not in {tasks[bio["carrier"]].get("name") for bio in traced.of("bio")}


def test_a_run_leaves_its_logs(tools: Tools, tmp_path: Path) -> None:
    to = tmp_path / "logs"
    result = _exec(tools, "dd if=/dev/zero of=x bs=64k count=16 conv=fsync", to)
    traced = Traced.of_logs(to)
    assert traced.owned("/data/app/foreground/x") == {("write", FOREGROUND_UID): MIB}
    (session,) = traced.of("session")
    assert session["clear_names"] and "kernel" in session["sources"].split()
    # And they are answered from: the same file in the tables, all that was recorded in a report.
    report = trace_report.make(sources.open_all([to]), ["logs"])
    (file,) = [row for row in report.answers["top_files"].rows if row["path"] == "/data/app/foreground/x"]
    assert (file["written"], file["file_type"]) == (MIB, "other")
    assert report.answers["reads_writes"].asked == len(traced.of("bio"))
    assert report.answers["block_types"].asked == len(traced.of("segment"))
    assert report.answers["sync_share"].coverage == 1.0 and not report.lossy
    # The interaction is the command: all that it wrote ended in it, and its calls filled it.
    told = Interaction.of_result(result)
    assert told is not None and told.foreground == (FOREGROUND_UID,)
    drawn = io_profile.of(sources.open_all([to]), told)
    assert drawn.end - drawn.begin == round(told.seconds * 1e9)
    assert drawn.bytes_of(io_profile.FOREGROUND, drawn.begin, drawn.end + 1) >= MIB
    assert drawn.busy(io_profile.FOREGROUND, io_profile.CALLS) > 0.5 * (drawn.end - drawn.begin)


def test_a_replay_leaves_its_logs(tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the command, of what was recorded in the log."""
    recording, to = tmp_path / "recording", tmp_path / "logs"
    recording.write_text(RECORDING)
    uid = scenario.from_trace(recording, None, 0.0, None).app.uid
    monkeypatch.setattr(Tools, "of_checkout", lambda: tools)
    done = CliRunner().invoke(command, [str(recording), "--phone", "s6", "--trace", str(to)])
    assert done.exit_code == 0, done.output
    traced = Traced.of_logs(to)
    (path,) = {one["path"] for one in traced.of("file") if one.get("path", "").endswith("data/app/db")}
    assert traced.owned(path) == {("write", uid): 8 * 4096}
    assert {one["kind"] for one in traced.of("call")} >= {"write", "fsync"}


def test_payers_that_a_transaction_has_no_room_for(tools: Tools) -> None:
    """They are in the share of nobody, and counted."""
    program = str(guest_program.build(guest_program.COLLECTOR))
    traced = Traced(ask(tools, "trace.payers", data=EXT4, program=program))
    lost = [one for one in traced.of("loss") if one["reason"] == "payers"]
    assert sum(one["count"] for one in lost) == traced.shown["left_out"] > 0
    widest = max(traced.of("transaction"), key=lambda one: int(one["handles"]))
    shares = [one for one in traced.of("share") if one["transaction"] == widest["transaction"]]
    assert len([one for one in shares if "task" in one]) == 63
    for name in ("handles", "blocks"):
        assert sum(one[name] for one in shares) == widest[name]
    (nobody,) = [one for one in shares if "task" not in one]
    assert nobody["handles"] + nobody["blocks"] >= traced.shown["left_out"]


def test_who_has_made_pages_dirty_before_it_records_is_unknown(tools: Tools) -> None:
    program = str(guest_program.build(guest_program.COLLECTOR))
    traced = Traced(ask(tools, "trace.dirty_before", data=EXT4, program=program))
    assert traced.owned("/run/data/before") == {("write", None): 64 * 4096}
    assert traced.owned("/run/data/since") == {("write", BEHIND): 64 * 4096}


def test_what_fasttrack_does_is_in_the_same_records(tools: Tools) -> None:
    """Whose class each bio is of, for what; and each hold, promotion, pause and protected page, as often as counted."""
    program = str(guest_program.build(guest_program.COLLECTOR))
    traced = Traced(ask(tools, "trace.beside", data=EXT4, settings=FASTTRACK, program=program))
    kinds = Counter(wait["kind"] for wait in traced.of("wait"))
    gained = {kind: traced.gained(kind) for kind in ("hold", "promote", "pause", "protect")}
    assert {kind: kinds[kind] for kind in gained} == gained
    assert gained["hold"] > 0 and gained["pause"] > 0, gained
    tasks = traced.names("task")
    said = {
        (tasks[bio["carrier"]]["uid"], bio["operation"], bio["class"], bio["cause"])
        for bio in traced.of("bio")
        if bio["bytes"] and not tasks[bio["carrier"]]["kernel_thread"]
    }
    assert {(FRONT, "read", "foreground", "read"), (BEHIND, "write", "background", "fsync")} <= said, said
    paused = {tasks[wait["task"]]["uid"] for wait in traced.of("wait") if wait["kind"] == "pause"}
    assert paused == {BEHIND}


def test_the_disk_itself_has_owners_and_no_file(tools: Tools) -> None:
    """Not the file either whose pages are sent."""
    program = str(guest_program.build(guest_program.COLLECTOR))
    traced = Traced(ask(tools, "trace.unformatted", program=program))
    tasks = traced.names("task")
    places = {bio["bio"]: bio["sector"] // 2048 - 64 for bio in traced.of("bio")}
    said = [one for one in traced.of("segment") if places[one["bio"]] >= 0]
    assert [(places[one["bio"]], tasks[one["owner"]]["uid"], one["call"], one["bytes"]) for one in said] == [
        (number, uid, call, 4 * 4096)
        for number, uid in enumerate((FRONT, BEHIND, SERVICE))
        for call in ("direct_write", "direct_read")
    ]
    assert not any("file" in one or one["block_type"] != "unknown" for one in said), said


def test_blocks_behind_a_loop_device_are_who_uses_it_s(tools: Tools) -> None:
    """Its worker sends them, long after the apps have written what the file's page cache has then."""
    program = str(guest_program.build(guest_program.COLLECTOR))
    traced = Traced(ask(tools, "trace.looped", data=EXT4, program=program))
    owned = {key: count // 4096 for key, count in traced.owned("/run/data/image").items()}
    # What the file system in it has of its own is the worker's, or was there before it recorded.
    assert {uid for _, uid in owned} <= {FRONT, BEHIND, SERVICE, 0, None}, owned
    assert (owned["write", FRONT], owned["write", BEHIND]) == (32, 16), owned
    assert owned["read", SERVICE] >= 32, owned


def test_its_own_io_is_left_out_and_counted(tools: Tools) -> None:
    program = str(guest_program.build(guest_program.COLLECTOR))
    traced = Traced(ask(tools, "trace.own", data=EXT4, program=program))
    owned = traced.owned("/run/data/direct")
    assert owned.total() == 2000 * 4096
    leaves_itself_out(traced.shown["records"])


def test_from_boot(tools: Tools) -> None:
    """A ring that was filled before the collector began: all of it is in the trace, and the ring stays."""
    program = str(guest_program.build(guest_program.COLLECTOR))
    wanted = [event for event in events("EVENTS") if event not in events("REPLACED")] + events("ORIGIN")
    shown = ask(tools, "trace.from_boot", data=EXT4, program=program, events=wanted)
    assert Traced(shown).owned("/run/data/direct")["write", FRONT] == 200 * 4096
    assert not Traced(shown).of("loss") and shown["stays"]
    assert shown["wrong"][0] == 1 and "trace_clock = boot" in shown["wrong"][1]


RINGS = CHECKOUT / "device" / "trace" / "tests" / "rings"
WRITE_RINGS = "FASTTRACK_WRITE_RINGS"


def events(name: str) -> list[str]:
    """A list of events of the collector's."""
    text = (CHECKOUT / "device" / "trace" / "src" / "join" / "mod.rs").read_text()
    found = re.search(rf"const {name}: .*?= \[(.*?)\];", text, re.DOTALL)
    assert found
    return re.findall(r'"(\w+/\w+)"', found[1])


def without_ids(formats: str) -> str:
    """Events are numbered anew in each kernel."""
    return re.sub(r"^ID: \d+$", "", formats, flags=re.MULTILINE)


@pytest.mark.parametrize("fs", ["ext4", "f2fs"])
@pytest.mark.parametrize("kernel", ["patched", "stock"])
def test_recorded_rings_are_of_this_kernel(tools: Tools, fs: str, kernel: str) -> None:
    """What `cargo test` and the fuzzing of the join begin with. With FASTTRACK_WRITE_RINGS=1 they are made anew."""
    wanted = events("EVENTS")
    if kernel == "patched":
        wanted = [event for event in wanted if event not in events("REPLACED")] + events("ORIGIN")
    shown = ask(tools, "trace.ring", data=Data(fs), events=wanted)
    assert len(shown["formats"]) == len(wanted) and shown["pages"]
    formats = "\0".join(shown["formats"])
    recorded = RINGS / f"{fs}-{kernel}.zst"
    if os.environ.get(WRITE_RINGS):
        pages = bytes.fromhex("".join(shown["pages"]))
        recorded.write_bytes(zstandard.compress(formats.encode() + b"\0\0" + pages, 19))
    before = zstandard.decompress(recorded.read_bytes()).partition(b"\0\0")[0].decode()
    assert without_ids(formats) == without_ids(before), f"an event has changed: run this test with {WRITE_RINGS}=1"


@pytest.mark.parametrize("after_s", [0.05, 0.47])
def test_a_collector_that_is_killed(tools: Tools, after_s: float) -> None:
    """What it finished is read, none twice, and the next one records."""
    program = str(guest_program.build(guest_program.COLLECTOR))
    shown = ask(tools, "trace.killed", data=EXT4, phone_name="ufs40", program=program, after_s=after_s)
    bios = [record["bio"] for record in shown["killed"] if record["record"] == "bio"]
    assert len(bios) == len(set(bios))
    # A block each 0.2 s, when the collector looks.
    assert (len(bios) >= (after_s - 0.3) * 10_000) and (bios or after_s < 0.3)
    assert bios == sorted(bios)
    assert len(shown["both"]) >= len(shown["killed"]) + 200


def test_flight_recorder(tools: Tools) -> None:
    program = str(guest_program.build(guest_program.COLLECTOR))
    shown = ask(tools, "trace.flight", data=EXT4, program=program)

    def count(when: str, name: str) -> int:
        return sum(record["record"] == name for record in shown[when])

    # Nothing is written before something happens; then the last seconds, without what is older.
    assert shown["before"] == []
    first = Traced({"records": shown["fsync"]})
    assert [mark["reason"] for mark in first.of("mark")] == ["fsync"]
    assert 100 <= count("fsync", "bio") < 200
    assert {task.get("uid") for task in first.of("task")} >= {FRONT, BEHIND}
    marks = [record["reason"] for record in shown["signal"] if record["record"] == "mark"]
    assert marks == ["fsync", "signal"]
    assert count("signal", "bio") >= count("fsync", "bio") + 50


def test_flight_recorder_with_a_bound_of_waits(tools: Tools) -> None:
    program = str(guest_program.build(guest_program.COLLECTOR))
    shown = ask(tools, "trace.waits", data=EXT4, phone_name="ufs40", program=program)
    assert shown["before"] == []
    traced = Traced({"records": shown["after"]})
    assert {mark["reason"] for mark in traced.of("mark")} == {"wait"}
    assert max(wait["duration_ns"] for wait in traced.of("wait")) >= 500_000
    assert sum(call["kind"] == "direct_write" for call in traced.of("call")) + len(traced.of("bio")) > 2


def test_its_ring_is_not_removed_while_it_records(tools: Tools) -> None:
    program = str(guest_program.build(guest_program.COLLECTOR))
    shown = ask(tools, "trace.disturbed", data=EXT4, phone_name="ufs40", program=program)
    assert shown["rmdir"] == "Device or resource busy" and not shown["stays"]
    traced = Traced(shown)
    assert traced.owned("/run/data/direct")["write", FRONT] == 100 * 4096 and not traced.of("loss")


def test_transactions_of_sqlite(tools: Tools) -> None:
    """One for each that SQLite's own process has committed, within it, and none for what is rolled back."""
    program = str(guest_program.build(guest_program.COLLECTOR))
    traced = Traced(ask(tools, "trace.databases", data=EXT4, program=program))
    files, tasks = traced.names("file"), traced.names("task")
    found: dict[str, list[dict[str, Any]]] = {}
    for one in traced.of("sqlite_transaction"):
        assert one["derived"] and tasks[one["task"]]["uid"] == FRONT
        found.setdefault(files[one["file"]]["path"].split("/")[-1], []).append(one)
    assert set(found) == set(traced.shown["truth"])
    # The change to a write-ahead log is itself a transaction, by a rollback journal.
    assert found["wal"].pop(0)["mode"] == "rollback"
    for mode, truth in traced.shown["truth"].items():
        assert {one["mode"] for one in found[mode]} == {"wal" if mode == "wal" else "rollback"}
        assert len(found[mode]) == len(truth), mode
        # One that cuts its journal is known to have ended by the next one.
        assert all(one.get("ended") for one in found[mode][:-1])
        for one, (begin, end) in zip(found[mode], truth, strict=True):
            assert begin <= one["time"] - one["duration_ns"] < one["time"] <= end, (mode, one)
            # The rest is a checkpoint, and what it read before.
            assert one["duration_ns"] > (0.2 if mode == "wal" else 0.8) * (end - begin), (mode, one)
            assert 0 < one["syncs_ns"] < one["duration_ns"] and one["syncs"] >= (1 if mode == "wal" else 2)
            assert one["bytes"] > 4096 * (1 if one is found[mode][0] else 3)


def test_top_says_that_it_reads_each_event(tools: Tools) -> None:
    """ARCH=um has no histograms of events: `make test-trace` has the sums that they make."""
    program = str(guest_program.build(guest_program.COLLECTOR))
    shown = look(
        tools,
        f"""
import subprocess
for name, argv in {{"doctor": ["doctor"], "top": ["top", "--count", "1"]}}.items():
    done = subprocess.run([{program!r}, *argv], check=False, capture_output=True, text=True)
    SHOWN[name] = [done.returncode, done.stdout, done.stderr]
""",
    )
    status, found, _ = shown["doctor"]
    assert status == 0 and "top reads each event (CONFIG_HIST_TRIGGERS)" in found
    status, picture, said = shown["top"]
    assert status == 0 and "by app" in picture
    assert "the kernel makes no sums, each event is read: " in said


def test_a_second_collector_begins_at_once(tools: Tools) -> None:
    """That all is in place, the kernel tells the first alone."""
    program = str(guest_program.build(guest_program.COLLECTOR))
    shown = look(
        tools,
        f"""
import subprocess
import time
argv = [{program!r}, "record", "--output", "/run/first", "--state", "/run/state"]
first = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
first.stdout.readline()
time.sleep(6)
began = time.monotonic()
argv = [{program!r}, "top", "--count", "1", "--interval", "1"]
second = subprocess.run(argv, check=False, capture_output=True, text=True)
SHOWN["second"] = [second.returncode, second.stdout, second.stderr, time.monotonic() - began]
first.terminate()
SHOWN["first"] = first.wait()
""",
    )
    status, picture, said, took_s = shown["second"]
    assert (status, shown["first"]) == (0, 0) and "by app" in picture and "records already" in said
    assert took_s < 2


def test_faults(tools: Tools) -> None:
    """Each says what happened; what was finished is read."""
    program = str(guest_program.build(guest_program.COLLECTOR))
    shown = ask(tools, "trace.faults", data=EXT4, phone_name="ufs40", program=program)
    assert shown["busy"][0] == 1 and "another fasttrack-trace writes there" in shown["busy"][1]
    assert shown["full"][0] == 1 and "No space left" in shown["full"][1] and "make room" in shown["full"][1]
    assert shown["kept"] > 3000
    assert shown["doctor"].startswith("1 FAILED   tracefs at /sys/kernel/tracing: permission denied; run it as root")
    assert shown["gone"][0] == 1 and "the ring was taken away" in shown["gone"][1]
    assert "see fasttrack-trace doctor, and record again" in shown["gone"][1].lower()
    # What came before is there, and when the clock was set.
    assert shown["before"]["bio"] > 0 and shown["before"]["jump"] == 1


@pytest.mark.parametrize(("stop_s", "rate", "lost"), [(1.0, 20_000, False), (10.0, 20_000, True)], ids=["1 s", "10 s"])
def test_a_reader_that_is_stopped(tools: Tools, stop_s: float, rate: int, lost: bool) -> None:
    """For a second at 20,000 I/Os a second: nothing is lost. For more than the ring holds: what is lost is counted."""
    program = str(guest_program.build(guest_program.COLLECTOR))
    count = int(stop_s * rate)
    asked = {"program": program, "stop_s": stop_s, "count": count, "per_second": rate, "buffer_kib": 8192}
    shown = ask(tools, "trace.stopped", data=EXT4, phone_name="ufs40", **asked)
    assert shown["resident_kib"] <= 16 << 10
    assert shown["bytes"] <= 12 * shown["records"]
    # In this time, or it was no such rate.
    assert shown["took_s"] < stop_s * 1.01
    counted = sum(loss["count"] for loss in shown["losses"])
    assert counted == shown["overrun"]
    assert (counted > 0) == lost
    assert (shown["bios"] >= count) != lost
