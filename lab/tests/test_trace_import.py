# SPDX-License-Identifier: GPL-2.0-only
"""Traces of other tools: exact records of each format, damage that is told, and nothing that stops a reader."""

from __future__ import annotations

import csv
import gzip
import json
import random
import re
import shutil
import struct
import subprocess
import zlib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from recorded import recorded
from trace_imported import imported, rows, taken, written
from trace_samples import (
    BEGIN_NS,
    DEV,
    PIXEL,
    REAL_NS,
    SAMPLES,
    UP_S,
    US,
    WHOLE,
    Sent,
    blk_event,
    blktrace,
    events,
    ftrace,
    pb,
    perfetto_packets,
    perfetto_reused,
    trace_dat_6,
    trace_dat_7,
    uio_record,
)

from fasttrack_lab.commands import trace as command
from fasttrack_lab.host.errors import InputError, UsageProblem
from fasttrack_lab.trace import delta, difference, sources, trace_report, trace_shown
from fasttrack_lab.trace.importers import intake as taking
from fasttrack_lab.trace.importers.formats import FORMATS, of_file
from fasttrack_lab.trace.importers.importing import import_all
from fasttrack_lab.trace.importers.intake import asked
from fasttrack_lab.trace.tables import Tables


def base(sample: str) -> int:
    """When a sample's clock begins: blkparse counts from the first event."""
    return {"blkparse": 0, "perf-threads": BEGIN_NS + UP_S * 10**9}.get(sample, BEGIN_NS)


@pytest.mark.parametrize("sample", SAMPLES)
def test_formats_are_recognised(tmp_path: Path, sample: str) -> None:
    for path in SAMPLES[sample][1](tmp_path):
        found = of_file(path)
        assert found is not None and found.name == SAMPLES[sample][0]


@pytest.mark.parametrize("sample", WHOLE)
def test_all_that_is_said(tmp_path: Path, sample: str) -> None:
    """The same bios and requests from every format that has them all."""
    done, out = imported(tmp_path, sample)
    assert done.damages == []
    tasks = {row["task"]: (row["pid"], row["name"]) for row in rows(out, "task")}
    bios = [
        (
            *(row[name] for name in ("time", "dev", "operation", "sector", "bytes")),
            tasks[row["carrier"]],
            *(row[flag] for flag in ("sync", "fua", "preflush", "meta", "read_ahead")),
        )
        for row in rows(out, "bio")
    ]
    at = base(sample)
    assert bios == [
        (at, DEV, "write", 2048, 4096, (77, "mail"), "true", "false", "false", "true", "false"),
        (at + 10 * US, DEV, "read", 4096, 8192, (88, "dd"), "false", "false", "false", "false", "true"),
        (at + 10**9, DEV, "write", 1 << 33, 131072, (55, "kworker/u8:1"), *["false"] * 5),
    ]
    requests = [
        tuple(row.get(name) for name in ("time", "operation", "sector", "bytes", "queued_ns", "device_ns", "error"))
        for row in rows(out, "request")
    ]
    assert requests == [
        (at + 102 * US, "write", 2048, 4096, US, 100 * US, 0),
        (at + 262 * US, "read", 4096, 8192, US, 250 * US, -5),
        (at + 10**9 + 402 * US, "write", 1 << 33, 131072, US, 400 * US, 0),
    ]
    segments = [(row["bio"], row["bytes"], row.get("block_type")) for row in rows(out, "segment")]
    assert segments == [(1, 4096, "metadata"), (2, 8192, None), (3, 131072, None)]


def test_what_nobody_says_is_not_there(tmp_path: Path) -> None:
    done, out = imported(tmp_path, "trace.dat-6")
    for row in rows(out, "bio"):
        assert not {"class", "cause", "app_uid", "transaction"} & row.keys()
    assert all("kernel_thread" not in row and "uid" not in row for row in rows(out, "task"))
    assert all("owner" not in row and "file" not in row for row in rows(out, "segment"))
    shares = done.shares()
    assert (shares["bio.carrier"], shares["bio.class"], shares["request.device_ns"]) == (1.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("sample", "real", "offset", "kernel"),
    [
        ("blktrace", REAL_NS, None, None),
        ("blkparse", None, None, None),
        ("trace.dat-7", REAL_NS, None, "6.1.75-android"),
        ("ftrace", REAL_NS, None, None),
        ("perfetto", REAL_NS, 7200, "6.1.75-android"),
    ],
)
def test_clocks(tmp_path: Path, sample: str, real: int | None, offset: int | None, kernel: str | None) -> None:
    _, out = imported(tmp_path, sample)
    clocks = rows(out, "clock")
    assert [row["real_ns"] - row["time"] for row in clocks] == ([] if real is None else [real - BEGIN_NS])
    assert [row.get("utc_offset_s") for row in clocks] == [offset] * len(clocks)
    (session,) = rows(out, "session")
    assert (session.get("kernel"), session["sources"]) == (kernel, SAMPLES[sample][0])


def test_losses_of_the_tracer(tmp_path: Path) -> None:
    """Counted by the ring, by Perfetto's statistics, by gaps in blktrace's numbers, in ftrace's text."""
    _, out = imported(tmp_path, "trace.dat-7-zstd")
    assert [(row["cpu"], row["count"], row["reason"]) for row in rows(out, "loss")] == [(1, 7, "ring_overrun")]
    _, out = imported(tmp_path, "perfetto-packed")
    assert [(row["cpu"], row["count"]) for row in rows(out, "loss")] == [(0, 7)]
    first = blktrace()[0]
    gap = blk_event("<", 40, BEGIN_NS + 5 * 10**9, 8, 512, 1 | 1 << 16, 9, 0, 0, b"")
    import_all([written(tmp_path, "sdb.blktrace.0", first + gap)], out)
    assert [(row["cpu"], row["count"], row["time"] - row["since"]) for row in rows(out, "loss")] == [
        (0, 30, 4 * 10**9 - 2 * US)
    ]
    text = "CPU:3 [LOST 12 EVENTS]\n".join(ftrace().replace("12/12", "12/20").splitlines(keepends=True)[-3:])
    import_all(
        [written(tmp_path, "t.txt", "# tracer: nop\n# entries-in-buffer/entries-written: 3/8   #P:2\n" + text)], out
    )
    assert [(row.get("cpu"), row["count"]) for row in rows(out, "loss")] == [(None, 5), (3, 12), (3, 12)]


def test_a_thread_id_that_is_used_again_is_another_task(tmp_path: Path) -> None:
    """Each read is of the process that had the id then; one before all starts of the first."""
    trace = perfetto_reused((1, 3, 5, 6), {10077: 2, 10099: 4})
    import_all([written(tmp_path, "t.pftrace", trace)], tmp_path / "out")
    users = {row["task"]: row["uid"] for row in rows(tmp_path / "out", "task")}
    assert sorted(users.values()) == [10077, 10099]
    assert [users[row["owner"]] for row in rows(tmp_path / "out", "segment")] == [10077, 10077, 10099, 10099]


def test_perfetto_knows_processes(tmp_path: Path) -> None:
    """User ids, thread groups, and which tasks are the kernel's: so who reads is known."""
    done, out = imported(tmp_path, "perfetto")
    tasks = {row["name"]: row for row in rows(out, "task")}
    assert (tasks["mail"]["uid"], tasks["mail"]["kernel_thread"]) == (10077, "false")
    assert tasks["kworker/u8:1"]["kernel_thread"] == "true"
    assert (tasks["dd"]["tgid"], tasks["dd"]["uid"], tasks["dd"]["kernel_thread"]) == (80, 10088, "false")
    assert [row.get("owner") for row in rows(out, "segment")] == [None, tasks["dd"]["task"], None]
    assert done.recordings[0].skipped == {"ftrace events of field 4": 1}


def test_pixel(tmp_path: Path) -> None:
    done, out = imported(tmp_path, "pixel6a")
    assert [(row["time"], row["operation"], row["dev"], row["bytes"]) for row in rows(out, "bio")] == [
        (21262_894973000, "read", DEV, 4096),
        (21263_500000000, "write", DEV, 8192),
        (21264_245743000, "write", DEV, 4096),
    ]
    assert [(row.get("pid"), row.get("name")) for row in rows(out, "task")] == [
        (1181, "dmd"),
        (32156, None),
        (None, "AsyncTask"),
    ]
    assert all("sync" not in row for row in rows(out, "bio")) and rows(out, "request") == []
    assert done.recordings[0].skipped["requests logged twice within 1 s"] == 1


def test_columns_that_are_missing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    import_all([written(tmp_path, "a.csv", "timestamp,rw_flag,sector\n1.5,WS,8\n")], out)
    (row,) = rows(out, "bio")
    assert (row["time"], row["operation"], row["sector"], row["sync"]) == (1_500_000_000, "write", 8, "true")
    assert not {"bytes", "dev", "carrier"} & row.keys()
    assert rows(out, "segment") == []
    done = import_all([written(tmp_path, "b.csv", "time,sector\n1,2\n")], out, "pixel6a")
    assert [damage.what for damage in done.damages] == ["its heading lacks rw_flag or timestamp; nothing is read"]


def test_most(tmp_path: Path) -> None:
    _, out = imported(tmp_path, "most")
    files = {row["file"]: row["path"] for row in rows(out, "file")}
    assert [(row.get("block_type"), files.get(row.get("file", 0))) for row in rows(out, "segment")] == [
        ("metadata", None),
        ("data", "/data/data/a b/x.db-journal"),
        ("journal", None),
    ]
    assert [row["device_ns"] for row in rows(out, "request")] == [100 * US, 250 * US, 400 * US]
    assert all("dev" not in row for row in rows(out, "bio"))
    line = "    0.000492553  D  WAS  23004888   8  4767      IntentService[]  M\n"
    import_all([written(tmp_path, "spaces.po", line)], out)
    assert [row["name"] for row in rows(out, "task")] == ["IntentService[]"]


def test_androtrace(tmp_path: Path) -> None:
    done, out = imported(tmp_path, "androtrace")
    assert [(row["operation"], row["bytes"], row["sync"], row.get("cause")) for row in rows(out, "bio")] == [
        ("write", 4096, "true", "fsync"),
        ("read", 8192, "false", None),
    ]
    (file,) = rows(out, "file")
    assert (file["path"], file["file_type"], file["dev"]) == ("x.db-journal", "sqlite_journal", 179 << 20 | 28)
    assert [row["block_type"] for row in rows(out, "segment")] == ["data", "metadata"]
    assert [row["device_ns"] for row in rows(out, "request")] == [100_000, 50_000]
    # 2015-10-20 09:08:07 in Korea.
    assert rows(out, "bio")[0]["time"] == 1_445_299_687 * 10**9 + 1000
    assert [(row["real_ns"] - row["time"], row["utc_offset_s"]) for row in rows(out, "clock")] == [(0, 32400)]
    assert done.recordings[0].skipped == {"suspends": 1}


def test_androtrace_s_years(tmp_path: Path) -> None:
    """Four bits from 2000 on: 0 is 2016, for the recorder waits for 2014."""
    sent = Sent(0, "R", 8, 8, 0, "a", 0)
    data = uio_record(sent, True, 7, 0, 4) + uio_record(sent, True, 7, 0, 4, year=0)
    out = tmp_path / "out"
    import_all([written(tmp_path, "a.uio", data)], out)
    first, second = (row["time"] for row in rows(out, "bio"))
    assert second - first == 366 * 86400 * 10**9


def test_letters() -> None:
    """As device/trace understands them."""
    known = {
        "R": ("read", ""),
        "RAM": ("read", "AM"),
        "WS": ("write", "S"),
        "FWFSM": ("write", "pFSM"),
        "WFS": ("write", "FS"),
        "FF": ("flush", "p"),
        "F": ("flush", ""),
        "D": ("discard", ""),
        "DE": ("secure_erase", ""),
        "N": ("other", ""),
        "": ("other", ""),
    }
    for text, (operation, flags) in known.items():
        found = asked(text)
        assert found.operation == operation, text
        assert (found.sync, found.fua, found.preflush, found.meta, found.read_ahead) == tuple(
            letter in flags for letter in "SFpMA"
        ), text


def only(kinds: str) -> str:
    """blkparse's lines of some kinds."""
    lines = []
    for number, (time, kind, sent) in enumerate(events(), 1):
        if kind in kinds:
            at = time - BEGIN_NS
            said = 0 if kind == "C" else sent.comm
            place = f"{at // 10**9}.{at % 10**9:09} {sent.pid} {kind} {sent.rwbs} {sent.sector} + {sent.sectors}"
            lines.append(f"  8,0 1 {number} {place} [{said}]\n")
    return "".join(lines)


@pytest.mark.parametrize(
    ("kinds", "bios_from", "device", "queued", "carriers"),
    [
        ("DC", ["issue"], 3, 0, 3),
        ("QC", ["queue"], 0, 0, 3),
        ("D", ["issue"], 0, 0, 3),
        ("C", ["completion"], 0, 0, 0),
        ("IDC", ["issue"], 3, 3, 3),
        ("I", ["insert"], 0, 0, 3),
        ("Q", ["queue"], 0, 0, 3),
    ],
)
def test_sets_of_events(
    tmp_path: Path, kinds: str, bios_from: list[str], device: int, queued: int, carriers: int
) -> None:
    """Without queue events a request stands for a bio; without a begin no time is known."""
    done = import_all([written(tmp_path, "a.txt", only(kinds))], tmp_path / "out")
    requests = rows(tmp_path / "out", "request")
    assert done.recordings[0].made_from == bios_from
    assert len(rows(tmp_path / "out", "bio")) == 3 and len(requests) == 3 * ("C" in kinds)
    assert (sum("device_ns" in row for row in requests), sum("queued_ns" in row for row in requests)) == (
        device,
        queued,
    )
    assert sum("carrier" in row for row in rows(tmp_path / "out", "bio")) == carriers
    assert done.recordings[0].unended == 3 * ("C" not in kinds and kinds != "Q")


def test_each_device_has_its_own_events(tmp_path: Path) -> None:
    """dm-0 has queue events alone, the disk below issue events alone."""
    text = only("Q").replace("8,0", "253,0") + only("DC")
    done = import_all([written(tmp_path, "a.txt", text)], tmp_path / "out")
    assert done.recordings[0].made_from == ["issue", "queue"]
    devices = [row["dev"] for row in rows(tmp_path / "out", "bio")]
    assert (devices.count(253 << 20), devices.count(DEV)) == (3, 3)


def test_parts_and_requeues(tmp_path: Path) -> None:
    """A request that ends in two parts; one that comes back undone and is one bio."""
    text = (
        "  8,0 1 1 0.000000000 7 D W 0 + 16 [a]\n  8,0 1 2 0.000100000 0 C W 0 + 8 [0]\n"
        "  8,0 1 3 0.000300000 0 C W 8 + 8 [0]\n  8,0 1 4 0.001000000 7 D R 64 + 8 [a]\n"
        "  8,0 1 5 0.001100000 7 R R 64 + 8 [0]\n  8,0 1 6 0.001200000 7 D R 64 + 8 [a]\n"
        "  8,0 1 7 0.001500000 0 C R 64 + 8 [0]\n"
    )
    import_all([written(tmp_path, "a.txt", text)], tmp_path / "out")
    assert [(row["sector"], row["device_ns"], row["first_bio"]) for row in rows(tmp_path / "out", "request")] == [
        (0, 100_000, 1),
        (8, 300_000, 1),
        (64, 300_000, 2),
    ]
    assert len(rows(tmp_path / "out", "bio")) == 2


def test_processors_are_merged_by_time(tmp_path: Path) -> None:
    """In any order of files and of events."""
    one, two = blktrace()
    shuffled = [two[at : at + 48] for at in range(0, len(two), 48)][::-1]
    paths = [written(tmp_path, "a.blktrace.0", b"".join(shuffled)), written(tmp_path, "a.blktrace.1", one)]
    import_all(paths, tmp_path / "out")
    assert [row["device_ns"] for row in rows(tmp_path / "out", "request")] == [100 * US, 250 * US, 400 * US]


def test_one_processor_of_two_is_told(tmp_path: Path) -> None:
    paths = SAMPLES["blktrace"][1](tmp_path)
    done = import_all(paths[:1], tmp_path / "out")
    assert any("sda.blktrace.1" in note and "not named" in note for note in done.notes)
    assert done.recordings[0].unended == 3


def test_a_directory_of_all(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for _, write in SAMPLES.values():
        write(folder)
    written(folder, "README.md", "hello\n")
    written(folder, "sda.blktrace.2", b"")
    done = import_all([folder], tmp_path / "out")
    # blktrace's two orders have the same names.
    assert len(done.recordings) == len(SAMPLES) - 1
    assert done.damages == [] and any("README.md: left out" in note for note in done.notes)
    assert len({one.session for one in done.recordings}) == len(done.recordings)
    tables = sources.open_all([tmp_path / "out"])
    assert tables.io.count().to_pyarrow().as_py() == 3 * (len(WHOLE) - 1) + 3 + 3 + 2


def test_the_same_content_once(tmp_path: Path) -> None:
    first = written(tmp_path, "a.csv", PIXEL)
    done = import_all([first, first, written(tmp_path, "b.csv", PIXEL)], tmp_path / "out")
    assert len(done.recordings) == 1 and len(rows(tmp_path / "out", "bio")) == 3
    assert any("b.csv: left out: the same content" in note for note in done.notes)


@pytest.mark.parametrize("sample", ["trace.dat-6", "perfetto", "blktrace", "ftrace", "pixel6a"])
def test_gzip(tmp_path: Path, sample: str) -> None:
    (tmp_path / "in").mkdir()
    _, out = imported(tmp_path, sample)
    plain = [rows(out, "bio"), rows(out, "request")]
    packed = []
    for path in SAMPLES[sample][1](tmp_path / "in"):
        packed.append(path.with_name(path.name + ".gz"))
        packed[-1].write_bytes(gzip.compress(path.read_bytes()))
    done = import_all(packed, out)
    for kind, before in zip(("bio", "request"), plain, strict=True):
        assert [row | {"session": ""} for row in rows(out, kind)] == [row | {"session": ""} for row in before]
    cut = written(tmp_path, "cut.gz", packed[0].read_bytes()[:-30])
    done = import_all([cut], out, SAMPLES[sample][0])
    assert done.damages[0].path == cut


def test_atrace_packed(tmp_path: Path) -> None:
    path = written(tmp_path, "a.atrace", b"TRACE:\n" + zlib.compress(ftrace().encode()))
    assert len(import_all([path], tmp_path / "out").recordings) == 1
    assert len(rows(tmp_path / "out", "bio")) == 3


# Reports and archives


@pytest.mark.parametrize("sample", {form: sample for sample, (form, _) in SAMPLES.items()}.values())
def test_a_report_of_each(tmp_path: Path, sample: str) -> None:
    _, out = imported(tmp_path, sample)
    report = trace_report.make(sources.open_all([out]), [sample])
    assert not report.is_empty
    counts = {row["operation"]: row["count"] for row in report.answers["reads_writes"].rows}
    expected = {"pixel6a": {"read": 1, "write": 2}, "androtrace": {"read": 1, "write": 1}}
    assert counts == expected.get(sample, {"read": 1, "write": 2})
    assert report.answers["apps"].coverage == (1 / 3 if sample.startswith("perfetto") else 0.0)
    assert report.answers["device_time"].recorded == (sample != "pixel6a")
    json.dumps(report.to_json())


def test_a_file_is_a_path(tmp_path: Path) -> None:
    """Imported on the way."""
    (path,) = SAMPLES["trace.dat-7"][1](tmp_path)
    assert sources.open_all([path]).requests.count().to_pyarrow().as_py() == 3


def test_imports_and_diff(tmp_path: Path) -> None:
    tables = []
    for sample in ("most", "trace.dat-7"):
        (tmp_path / sample).mkdir()
        _, out = imported(tmp_path / sample, sample)
        tables.append(sources.open_all([out]))
    read = {one.figure.title: one for one in difference.compare(*tables)}["read"]
    assert read.first.value == read.second.value == 4096.0


def test_two_imports_are_read_together(tmp_path: Path) -> None:
    for sample in ("most", "perfetto"):
        import_all(SAMPLES[sample][1](tmp_path), tmp_path / f"{sample}-out")
    tables = sources.open_all([tmp_path / "most-out", tmp_path / "perfetto-out"])
    assert tables.io.count().to_pyarrow().as_py() == 6
    assert sorted(row["sources"] for row in tables.sessions.to_pyarrow().to_pylist()) == ["most", "perfetto"]


def count(tables: Tables) -> int:
    return int(tables.io.count().to_pyarrow().as_py())


def test_an_archive_knows_what_it_has(tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    _, out = imported(tmp_path, "perfetto")
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    assert delta.append(archive, [out]).new == 1
    shutil.rmtree(out)
    _, out = imported(tmp_path, "perfetto")
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    done = delta.append(archive, [out])
    assert (done.new, done.known, done.rows) == (0, 1, 0)
    (tmp_path / "moved").mkdir()
    done = delta.append(archive, [out.rename(tmp_path / "moved" / "elsewhere")])
    assert (done.known, count(sources.open_all([archive]))) == (1, 3)
    install = rows(tmp_path / "moved" / "elsewhere", "session")[0]["install"]
    assert delta.erase(archive, str(install)) > 0
    assert count(sources.open_all([archive])) == 0


def test_records_of_a_newer_importer_replace_the_older(tmp_path: Path) -> None:
    """The session is of the content, the id of the records."""
    archive = tmp_path / "archive"
    _, out = imported(tmp_path, "most")
    delta.append(archive, [out])
    bios = out / "bio.csv"
    bios.write_text(bios.read_text().replace("true", "false"))
    assert delta.append(archive, [out]).new == 1
    assert count(sources.open_all([archive])) == 3


def test_an_older_export_is_read(tmp_path: Path) -> None:
    """Without the last columns and the last kind of records; a newer one has more."""
    _, out = imported(tmp_path, "most")
    (out / "mark.csv").unlink()
    bios = out / "bio.csv"
    bios.write_text("".join(line.rpartition(",")[0] + "\n" for line in bios.read_text().splitlines()))
    requests = out / "request.csv"
    requests.write_text(
        "".join(f"{line},{at or 'newer'}\n" for at, line in enumerate(requests.read_text().splitlines()))
    )
    tables = sources.open_all([out])
    assert count(tables) == 3
    assert tables.requests.device_us.to_pyarrow().to_pylist() == [100, 250, 400]


# Damage


CUT = [name for name in SAMPLES if name not in ("systrace", "report", "trace.dat-6-big", "blktrace-big")]


@pytest.mark.parametrize("sample", CUT)
def test_cut_files(tmp_path: Path, sample: str) -> None:
    """What is before the cut is read, never more than the whole has, and a cut within an event is told."""
    form, write = SAMPLES[sample]
    path = write(tmp_path)[0]
    whole = path.read_bytes()
    most = taken(form, path, tmp_path / "whole").kinds.total()
    last, told = 0, 0
    step = max(1, len(whole) // 150)
    for end in [*range(0, len(whole), step), len(whole)]:
        cut = written(tmp_path, "cut", whole[:end])
        found = taken(form, cut, tmp_path / "taken")
        assert found.kinds.total() <= most
        assert found.kinds.total() >= last or sample.startswith("trace.dat-7"), end
        last = found.kinds.total()
        told += bool(found.damages)
        for damage in found.damages:
            assert damage.path == cut and damage.what and 0 <= damage.at <= len(whole)
    assert last == most
    assert told > 10


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    "data", [b"", b"\0" * 5000, b"hello\n", random.Random(1).randbytes(5000), b"\n" * 300, b"\xff" * 70000]
)
def test_what_is_not_of_a_format(tmp_path: Path, form: str, data: bytes) -> None:
    """Named by the user: nothing is read, and that is told, save of what is empty."""
    found = taken(form, written(tmp_path, "a", data), tmp_path / "taken")
    assert found.kinds.total() == 0
    assert found.damages or not data.strip() or form == "ftrace"


def said(out: Path, name: str) -> list[str]:
    return trace_shown.head(trace_report.make(sources.open_all([out]), [name]))


@pytest.mark.parametrize("sample", {form: sample for sample, (form, _) in SAMPLES.items()}.values())
def test_a_report_over_nothing_says_so(tmp_path: Path, sample: str) -> None:
    """Whether there was nothing, or nothing can be read of it."""
    form = SAMPLES[sample][0]
    done = import_all([written(tmp_path, "a", b"\xff" * 70000)], tmp_path / "out", form)
    assert len(done.damages) == 1
    head, lost, where = said(tmp_path / "out", "a")
    assert (head, lost.split(":")[0]) == ("a: no I/O can be read; records are lost", "LOST (unreadable)")
    assert str(tmp_path / "a") in where
    import_all([written(tmp_path, "a", b"")], tmp_path / "out", form)
    assert said(tmp_path / "out", "a")[-1].endswith("nothing was recorded, or nothing was copied at byte 0")


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("ftrace", "# tracer: nop\n#\n"),
        ("pixel6a", "proces,device,rw_flag,sector,size,timestamp\n"),
        ("blkparse", "CPU0 (sda):\n Reads Queued:           0,        0KiB\n"),
    ],
)
def test_a_recording_without_io_is_told(tmp_path: Path, form: str, text: str) -> None:
    """No damage, and nothing in it; in an archive, too."""
    assert import_all([written(tmp_path, "a", text)], tmp_path / "out", form).damages == []
    assert said(tmp_path / "out", "a") == ["a: no I/O was recorded"]
    delta.append(tmp_path / "archive", [tmp_path / "out"])
    assert said(tmp_path / "archive", "a") == ["a: no I/O was recorded"]


def test_a_cut_line_of_a_task_without_name_is_told(tmp_path: Path) -> None:
    """It begins as a tag of a page does."""
    whole = ftrace()
    for end in ("          <idle>-0     [0", "  <id", "</script>"):
        done = import_all([written(tmp_path, "a.txt", whole + end)], tmp_path / "out")
        assert bool(done.damages) is (end != "</script>")


def test_damage_is_in_the_report(tmp_path: Path) -> None:
    """Beside what could be read."""
    first = blktrace()[0]
    broken = written(tmp_path, "sda.blktrace.0", first[:248] + b"garbage!" * 9 + first[248:-7])
    done = import_all([broken, written(tmp_path, "junk", b"\1\2\3")], tmp_path / "out")
    junk, middle, end = done.damages
    assert (junk.path.name, junk.at) == ("junk", 0) and "not recognised" in junk.what
    assert (middle.at, middle.bytes, middle.what) == (248, 72, "no event")
    assert (end.at, end.bytes) == (len(first) + 72 - 48, 41)
    report = trace_report.make(sources.open_all([tmp_path / "out"]), ["x"])
    assert report.lossy and len(report.losses) == 3
    shown = "\n".join(trace_shown.head(report))
    assert "LOST (unreadable)" in shown and f"{broken}: no event at byte 248" in shown
    assert len(rows(tmp_path / "out", "bio")) == 3


def test_wrong_lines(tmp_path: Path) -> None:
    """Neighbours are one place; the rest is read."""
    lines = PIXEL.splitlines(keepends=True)
    text = "".join([*lines[:2], "a,b\n", "x\n", *lines[3:4], "dmd-1,8388608,Q,1,2,3\n", *lines[4:]])
    done = import_all([written(tmp_path, "a.csv", text)], tmp_path / "out")
    assert [(damage.records, damage.what) for damage in done.damages] == [
        (2, "lines 3 to 4: 2 fields, the heading has 6"),
        (1, "line 6: rw_flag 'Q'"),
    ]
    assert done.damages[0].at == len("".join(lines[:2])) and done.damages[0].bytes == len("a,b\nx\n")
    assert len(rows(tmp_path / "out", "bio")) == 3


def test_very_many_wrong_lines(tmp_path: Path) -> None:
    lines = only("Q").splitlines(keepends=True)
    found = taken("blkparse", written(tmp_path, "a.txt", "".join([lines[0], "wrong\n"] * 500)), tmp_path / "taken")
    assert found.kinds.total() == 500
    assert len(found.damages) == 101 and found.damages[-1].what == "400 more parts cannot be read"


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("trace.dat", b"\x17\x08\x44tracing9\0", "version 9; read are 6 and 7"),
        ("blktrace", struct.pack("<I", 0x65617408) + b"\0" * 60, "version 8; read is 7"),
        ("trace.dat", trace_dat_7()[:18] + b"lzma" + trace_dat_7()[22:], "its compression lzma is not known"),
    ],
)
def test_newer_files(tmp_path: Path, name: str, data: bytes, says: str) -> None:
    done = import_all([written(tmp_path, "a", data)], tmp_path / "out")
    assert done.recordings[0].format == name
    assert says in done.damages[0].what


def test_other_clocks(tmp_path: Path) -> None:
    """Ticks that nobody knows the length of are no times."""
    data = trace_dat_6().replace(b"local [boot] mono", b"[counter] a mono0")
    done = import_all([written(tmp_path, "a.dat", data)], tmp_path / "out")
    assert "the clock counter does not count ns" in done.damages[0].what
    text = re.sub(r" 100(\d)\.(\d{6}):", r" 100\1\2:", ftrace())
    done = import_all([written(tmp_path, "a.txt", text)], tmp_path / "out")
    assert "its clock does not count seconds" in done.damages[0].what and rows(tmp_path / "out", "bio") == []


@pytest.mark.parametrize(
    ("at", "with_what"),
    [(23, (1 << 63).to_bytes(8, "little")), (23, (1 << 45).to_bytes(8, "little")), (33, b"\1")],
)
def test_places_outside_a_file(tmp_path: Path, at: int, with_what: bytes) -> None:
    """Of the options; and a section that says it is packed."""
    data = bytearray(trace_dat_7())
    place = data.index(b"none\0" + b"1\0") + 7
    assert place == 25
    data[at + 2 : at + 2 + len(with_what)] = with_what
    done = import_all([written(tmp_path, "a.dat", bytes(data))], tmp_path / "out")
    assert done.damages


def test_a_packet_of_perfetto_that_is_broken(tmp_path: Path) -> None:
    """The packets after it are read."""
    packets = perfetto_packets()
    broken = [*packets[:4], pb((1, b"\xff\xff\xff")), *packets[4:]]
    done = import_all([written(tmp_path, "a", b"".join(pb((1, packet)) for packet in broken))], tmp_path / "out")
    assert len(done.damages) == 1 and len(rows(tmp_path / "out", "request")) == 3


def test_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events go to a file in batches."""
    monkeypatch.setattr(taking, "_BATCH", 4)
    intake = taken("blktrace", SAMPLES["blktrace"][1](tmp_path)[0], tmp_path / "taken")
    assert intake._rows == [] and (tmp_path / "taken" / "events.parquet").stat().st_size > 0
    _, out = imported(tmp_path, "trace.dat-7")
    assert [row["device_ns"] for row in rows(out, "request")] == [100 * US, 250 * US, 400 * US]


# The command


def run(*arguments: str) -> Any:
    return CliRunner().invoke(command.command, ["import", *arguments])


def test_the_command(tmp_path: Path) -> None:
    paths = [str(path) for path in SAMPLES["blktrace"][1](tmp_path)]
    done = run(*paths, "-o", str(tmp_path / "out"), "--json", str(tmp_path / "said.json"))
    assert done.exit_code == 0, done.output
    said = json.loads((tmp_path / "said.json").read_text())
    assert said["records"]["bio"] == 3 and said["recordings"][0]["events"]["C"] == 3
    assert said["known"]["request.device_ns"] == 1.0 and said["damage"] == []
    broken = written(tmp_path, "x.blktrace.0", blktrace()[0][:-1])
    assert run(str(broken), "-o", str(tmp_path / "out")).exit_code == 3


def test_wrong_uses(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", PIXEL)
    with pytest.raises(InputError, match="there is no such file"):
        import_all([tmp_path / "nothing"], tmp_path / "out")
    with pytest.raises(UsageProblem, match="did you mean 'pixel6a'"):
        import_all([path], tmp_path / "out", "pixel6")
    with pytest.raises(UsageProblem, match="letters and digits"):
        import_all([path], tmp_path / "out", install="a b")
    with pytest.raises(InputError, match="is there and is no import"):
        import_all([path], tmp_path)
    with pytest.raises(InputError, match="not recognised"):
        import_all([written(tmp_path, "b", "hello\n")], tmp_path / "out")
    assert not (tmp_path / "out").exists() and not list(tmp_path.glob(".out*"))


# Against the formats' own tools, and real recordings


def test_blkparse_says_the_same(tmp_path: Path) -> None:
    program = shutil.which("blkparse") or pytest.skip("blkparse is not installed (package blktrace)")
    SAMPLES["blktrace"][1](tmp_path)
    text = subprocess.run([program, "-i", "sda"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    (total,) = re.findall(r"^Total.*?\n(.*?)^Throughput", text, re.MULTILINE | re.DOTALL) or [text]
    assert re.search(r"Reads Queued:\s+1,\s+8KiB\s+Writes Queued:\s+2,\s+132KiB", total)
    import_all(sorted(tmp_path.glob("sda.*")), tmp_path / "binary")
    import_all([written(tmp_path, "parsed.txt", text)], tmp_path / "text")
    strip = [
        {name: value for name, value in row.items() if name not in ("session", "time")}
        for row in rows(tmp_path / "binary", "request")
    ]
    assert strip == [
        {name: value for name, value in row.items() if name not in ("session", "time")}
        for row in rows(tmp_path / "text", "request")
    ]


@pytest.mark.parametrize("sample", [name for name in SAMPLES if name.startswith("trace.dat") and "zlib" not in name])
def test_trace_cmd_says_the_same(tmp_path: Path, sample: str) -> None:
    program = shutil.which("trace-cmd") or pytest.skip("trace-cmd is not installed")
    _, out = imported(tmp_path, sample)
    (path,) = (tmp_path / "in").iterdir()
    text = subprocess.run([program, "report", "-R", str(path)], capture_output=True, text=True, check=True).stdout
    assert len(re.findall(r"block_rq_complete:", text)) == len(rows(out, "request")) == 3
    assert len(re.findall(r"block_bio_queue:", text)) == len(rows(out, "bio")) == 3


@pytest.mark.parametrize("name", ["pubg_precond", "slideshow_exec", "genshin_impact_exec"])
def test_recordings_of_a_phone(tmp_path: Path, name: str) -> None:
    """Every line is a bio or was logged twice, and the report has the file's own sums."""
    path = recorded(f"pixel6a/{name}.csv.gz")
    done = import_all([path], tmp_path / "out")
    (one,) = done.recordings
    assert done.damages == []
    with gzip.open(path, "rt", newline="") as file:
        lines = list(csv.DictReader(file))
    assert one.kinds["Q"] + one.skipped["requests logged twice within 1 s"] == len(lines)
    assert done.shares()["bio.carrier"] > 0.99
    report = trace_report.make(sources.open_all([tmp_path / "out"]), [name])
    told = {row["operation"]: (row["count"], row["bytes"]) for row in report.answers["reads_writes"].rows}
    assert told == _sums(lines)


def _sums(lines: list[dict[str, str]]) -> dict[str, tuple[int, int]]:
    """Count and bytes by operation, without requests that equal a kept one of the second before."""
    kept: dict[tuple[str, ...], float] = {}
    found: dict[str, tuple[int, int]] = {}
    for line in lines:
        key, time = tuple(line[name] for name in ("device", "rw_flag", "sector", "size")), float(line["timestamp"])
        if abs(time - kept.get(key, -1e9)) < 1:
            continue
        kept[key] = time
        operation = {"R": "read", "W": "write"}[line["rw_flag"]]
        count, size = found.get(operation, (0, 0))
        found[operation] = count + 1, size + 512 * int(line["size"])
    return found
