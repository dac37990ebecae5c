# SPDX-License-Identifier: GPL-2.0-only
"""Recorded inputs: hand-made samples of every format, and the whole recordings where they are."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from recorded import recorded

from fasttrack_lab.host.errors import InputError
from fasttrack_lab.inputs import traces
from fasttrack_lab.inputs.traces import block

MOBIGEN = """\
1 0 open /data/data O_WRONLY|O_CREAT|O_TRUNC|O_LARGEFILE 36
1 0 write 36 4
1 500 write 36 4
2 100 open "/data/data/app/db" O_RDWR|O_LARGEFILE 40
2 200 pread 40 8192 4096
2 300 access "/data/data/app/db-journal" -1
2 400 open data/data O_RDWR|O_CREAT|O_LARGEFILE 41
2 450 open /data/data O_WRONLY|O_CREAT|O_TRUNC|O_LARGEFILE 41
2 450 pwrite 41 0 512
2 600 fsync 41 0
2 700 open "/data/data/app" O_RDONLY|O_LARGEFILE 42
2 800 fsync 42 0
2 900 close 42 0
2 950 read 50 -1
2 960 write 50 100
2 970 fstat64 40 0
2 980 pwrite 60 4096 4096
2 990 open "/dev/urandom" O_RDONLY|O_LARGEFILE 61
2 991 read 61 16
2 1000 open "/data/data/app/lost" O_RDONLY -1
2 1100 close 41 0
2 1200 unlink "/data/data/app/db-journal" 0
"""

PIXEL = """\
process,device,rw_flag,sector,size,timestamp
app,8,R,1000,8,10.0
app,8,R,1008,8,10.1
kworker,8,R,1000,8,10.4
app,8,W,900000,16,10.5
app,8,R,1000,8,11.6
"""

BLKTRACE = """\
  8,0    1        1     0.000000000   100  Q   R 2048 + 8 [app]
  8,0    1        2     0.000100000   100  D   R 2048 + 8 [app]
  8,0    1        3     0.001100000     0  C   R 2048 + 8 [0]
  8,0    1        4     0.005100000   100  D  WS 4096 + 16 [app]
  8,0    1        5     0.006000000   100  D FWFS 8192 + 8 [app]
  8,0    1        6     0.007000000   100  D   D 9000 + 64 [app]
  8,0    1        7     0.008000000   100  P   N [app]
CPU1 (8,0):
 Reads Queued:           1,        4KiB
"""


def sample(tmp_path: Path, text: str, name: str = "sample") -> Path:
    """A recording."""
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_mobigen(tmp_path: Path) -> None:
    trace = traces.load(sample(tmp_path, MOBIGEN))
    assert trace.format == "mobigen"
    lines = [call.line().split("\t")[1:] for call in trace.calls]
    assert lines[0] == ["100", "open", "data/data/app/db", "2", lines[0][4]]
    db = lines[0][4]
    assert lines[1] == ["200", "pread", db, "4096", "8192"]
    assert lines[2] == ["300", "stat", "data/data/app/db-journal"]
    assert lines[3][:3] == ["400", "open", "data/data/app/db-journal"]
    journal = lines[3][4]
    assert lines[4] == ["450", "pwrite", journal, "512", "0"]
    assert lines[5] == ["600", "fsync", journal]
    assert lines[6][:4] == ["700", "open", "data/data/app", str(0o200000)]
    assert ["1000", "stat", "data/data/app/lost"] in lines
    assert lines[-1] == ["1200", "unlink", "data/data/app/db-journal"]
    assert len({db, journal, lines[6][4]}) == 3


def test_mobigen_leaves_out_and_counts_what_is_no_file(tmp_path: Path) -> None:
    stats = traces.load(sample(tmp_path, MOBIGEN)).stats
    assert stats.descriptors["pipe or eventfd, by transfers of 1 to 8 bytes"] == 1
    assert stats.descriptors["pipe or socket, by failed reads or two-way transfers"] == 1
    assert stats.descriptors["file without a recorded open, by calls with an offset or fsync"] == 1
    assert stats.descriptors["device node"] == 1
    assert stats.left_out["calls on: pipe or eventfd, by transfers of 1 to 8 bytes"] == 2
    assert stats.left_out["calls on: device node"] == 2
    assert stats.left_out["fstat calls, which do no I/O"] == 1
    # One descriptor without a recorded open has its open made up.
    assert stats.replayed + sum(stats.left_out.values()) == stats.lines + 1
    assert (stats.bytes_read, stats.bytes_written) == (4096, 512 + 4096)


def test_mobigen_files(tmp_path: Path) -> None:
    needed = {item.path: item.bytes for item in traces.load(sample(tmp_path, MOBIGEN)).needed}
    assert needed["data/data/app/db"] == 12288
    assert needed["data/data/app/.keep"] == 0
    assert "data/data/app" not in needed
    assert "data/data/app/lost" not in needed


def test_mobigen_window_opens_what_was_open(tmp_path: Path) -> None:
    trace = traces.load(sample(tmp_path, MOBIGEN), start_s=0.0006, length_s=0.0003)
    lines = [call.line().split("\t")[1:] for call in trace.calls]
    assert lines[0][:3] == ["0", "open", "data/data/app/db-journal"]
    assert int(lines[0][3]) & 0o1000 == 0
    assert lines[1] == ["0", "fsync", lines[0][4]]
    assert trace.stats.left_out["outside the window"] > 0


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("1 0 write 3 4\n1 x write 3 4\n", 2, "not 'thread microseconds call arguments'"),
        ("1 0 write 3 4\n1 5 wrote 3 4\n", 2, "unknown call 'wrote'.*valid: access"),
        ("1 0 write 3 4\n1 5 write 3\n", 2, "write has 1 arguments, 2 are wanted"),
        ("1 0 pread 3 4 z\n", 1, "'z' is not a whole number"),
        (f"1 0 pread 3 4 {'9' * 5000}\n", 1, "'99999999999999999999' is not a whole number"),
        (f"1 {'9' * 400} fsync 3 0\n", 1, "microseconds: '9+' is no whole number below"),
        (f"{'9' * 5000} 1 fsync 3 0\n", 1, "thread and microseconds: '9+' is no whole number below"),
        ("1 0 pwrite 3 -5 10\n", 1, "pwrite: an offset or a length cannot be negative"),
        ('1 0 truncate "/data/x" -5 0\n', 1, "truncate: an offset or a length cannot be negative"),
        ('1 0 open "/data/a\tb" O_RDWR 3\n', 1, "a tab in a name"),
    ],
)
def test_mobigen_errors(tmp_path: Path, text: str, line: int, says: str) -> None:
    path = sample(tmp_path, text)
    with pytest.raises(InputError, match=says) as caught:
        traces.load(path, "mobigen")
    assert str(caught.value).startswith(f"{path}:{line}: ")


def test_pixel6a_drops_what_was_logged_twice(tmp_path: Path) -> None:
    path = tmp_path / "sample.csv.gz"
    path.write_bytes(gzip.compress(PIXEL.encode()))
    trace = traces.load(path)
    assert trace.format == "pixel6a"
    assert trace.stats.left_out == {"requests logged twice within 1 s": 1}
    assert [call.line() for call in trace.calls] == [
        "1\t0\tbread\t0\t4096",
        "1\t100000\tbread\t4096\t4096",
        "1\t500000\tbwrite\t8192\t8192",
        "1\t1600000\tbread\t0\t4096",
    ]
    assert trace.files == [{"path": "blocks", "bytes": 16384, "kind": "data"}]


def test_pixel6a_window(tmp_path: Path) -> None:
    trace = traces.load(sample(tmp_path, PIXEL), start_s=0.05, length_s=1.0)
    assert [call.name for call in trace.calls] == ["bread", "bwrite"]
    assert trace.calls[0].us == 50000
    assert trace.stats.left_out["outside the window"] == 2


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        (PIXEL.replace("900000", "9x"), 5, "must be numbers"),
        (PIXEL.replace("900000", "9" * 25), 5, "'9+' is no whole number below"),
        (PIXEL.replace("900000", "9" * 17), 5, "larger than any device"),
        (PIXEL.replace("10.5", "nan"), 5, "'nan' is no time"),
        (PIXEL.replace("10.5", "1e999"), 5, "'1e999' is no time"),
        (PIXEL.replace("kworker", "k" * 200_000), 4, "not CSV: field larger than"),
        (PIXEL.replace(",W,", ",X,"), 5, "rw_flag 'X'; valid: R, W, F, D"),
        (PIXEL.replace("app,8,W,900000,16,10.5", "app,8,W"), 5, "3 fields, the heading has 6"),
        (PIXEL.replace("sector", "sektor"), 1, "the heading lacks sector"),
    ],
)
def test_pixel6a_errors(tmp_path: Path, text: str, line: int, says: str) -> None:
    path = sample(tmp_path, text)
    with pytest.raises(InputError, match=says) as caught:
        traces.load(path, "pixel6a")
    assert caught.value.line == line


def test_a_device_of_any_name_is_mapped(tmp_path: Path) -> None:
    text = PIXEL.replace("app,8,", "app,\x7f,").replace("kworker,8,", "kworker,é,")
    trace = traces.load(sample(tmp_path, text))
    assert {call.args for call in trace.calls} == {(0, 4096), (4096, 4096), (8192, 8192), (16384, 4096)}
    assert trace.files == [{"path": "blocks", "bytes": 20480, "kind": "data"}]


@pytest.mark.parametrize("number", ["9" * 17, "9" * 25, "9" * 5000])
def test_blktrace_sectors_that_no_device_has(tmp_path: Path, number: str) -> None:
    with pytest.raises(InputError, match="larger than any device|no whole number") as caught:
        traces.load(sample(tmp_path, BLKTRACE.replace("4096 + 16", f"{number} + 16")), "blktrace")
    assert caught.value.line == 4


def test_blktrace_uses_issue_events_and_takes_off_service_times(tmp_path: Path) -> None:
    trace = traces.load(sample(tmp_path, BLKTRACE))
    assert trace.format == "blktrace"
    # 5 ms pass between the first two requests, of which the first took 1 ms.
    assert [call.line() for call in trace.calls] == [
        "1\t0\tbread\t0\t4096",
        "1\t4000\tbwrite\t4096\t8192",
        "1\t4900\tbflush",
        "1\t4900\tbwrite\t12288\t4096",
        "1\t4900\tbflush",
    ]
    assert trace.stats.left_out["events of kind Q"] == 1
    assert trace.stats.left_out["discards and other requests without data"] == 1


def test_blktrace_falls_back_to_queue_events(tmp_path: Path) -> None:
    trace = traces.load(sample(tmp_path, BLKTRACE.splitlines()[0] + "\n"))
    assert [call.name for call in trace.calls] == ["bread"]
    assert "queue (Q)" in trace.stats.notes[0]


def test_blktrace_error(tmp_path: Path) -> None:
    path = sample(tmp_path, BLKTRACE.splitlines()[0] + "\nnonsense\n")
    with pytest.raises(InputError, match="not an event of blkparse") as caught:
        traces.load(path)
    assert caught.value.line == 2


def test_unknown_formats(tmp_path: Path) -> None:
    path = sample(tmp_path, "hello\nworld\n")
    with pytest.raises(InputError, match=r"not recognised.*mobigen, pixel6a, blktrace"):
        traces.load(path)
    with pytest.raises(InputError, match="unknown trace format 'csv'; valid: mobigen"):
        traces.load(path, "csv")


def requests(*spans: tuple[int, int]) -> list[block.Request]:
    """Requests by sector and length in sectors."""
    return [block.Request(0.0, "a", "read", "8,0", sector, length) for sector, length in spans]


def test_dense_map_keeps_neighbours_and_order() -> None:
    made = requests((80, 8), (88, 8), (1_000_000, 16), (40, 8))
    mapping = block.DenseMap(made)
    assert [mapping.place(item) for item in made] == [(4096, 4096), (8192, 4096), (12288, 8192), (0, 4096)]
    assert mapping.file_bytes == 5 * 4096
    assert not mapping.folded


def test_dense_map_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block, "MAX_FILE", 8 * 4096)
    made = requests(*((sector * 1000, 24) for sector in range(8)))
    mapping = block.DenseMap(made)
    assert mapping.folded
    for item in made:
        offset, length = mapping.place(item)
        assert offset >= 0
        assert offset + length <= mapping.file_bytes == 8 * 4096
        assert length == 3 * 4096


def test_unaligned_requests_cover_whole_blocks() -> None:
    made = requests((9, 2))
    assert block.DenseMap(made).place(made[0]) == (0, 4096)


def test_writing_is_whole_or_not_at_all(tmp_path: Path) -> None:
    trace = traces.load(sample(tmp_path, PIXEL))
    out = tmp_path / "out"
    trace.write(out)
    assert out.read_text().splitlines() == [call.line() for call in trace.calls]
    assert sorted(item.name for item in tmp_path.iterdir()) == ["out", "sample"]


def test_whole_facebook_recording() -> None:
    trace = traces.load(recorded("mobigen/facebook.mobigen"))
    stats = trace.stats
    assert stats.lines == 30819
    assert sum(call.name == "fsync" for call in trace.calls) == 997
    assert stats.left_out["calls on: pipe or eventfd, by transfers of 1 to 8 bytes"] > 10000
    made_up = stats.left_out["made-up opens of descriptors without a recorded open"]
    assert made_up == 99
    emitted_opens = stats.replayed + sum(stats.left_out.values()) - stats.lines
    assert emitted_opens == stats.descriptors["file without a recorded open, by calls with an offset or fsync"]
    assert stats.span_s == pytest.approx(118, abs=2)
    keys = [(call.thread, call.us) for call in trace.calls]
    assert keys == sorted(keys)
    opened = {call.args[2] for call in trace.calls if call.name == "open"}
    used = {call.args[0] for call in trace.calls if call.name in ("read", "write", "pread", "pwrite", "fsync", "close")}
    assert used <= opened


def test_whole_pixel_recording() -> None:
    trace = traces.load(recorded("pixel6a/pubg_precond.csv.gz"))
    twice = trace.stats.left_out["requests logged twice within 1 s"]
    assert trace.stats.lines == 51110
    assert trace.stats.replayed + twice == trace.stats.lines
    assert 13000 < twice < 14100
    assert trace.needed[0].bytes == block.MAX_FILE
    assert all(int(call.args[0]) + int(call.args[1]) <= block.MAX_FILE for call in trace.calls)
