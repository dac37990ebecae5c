# SPDX-License-Identifier: GPL-2.0-only
"""Traces of other tools as programs pack and write them: odd, but legal; and what is wrong is told by its place."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from trace_imported import imported, rows, written
from trace_samples import SAMPLES

from fasttrack_lab.host.errors import InputError
from fasttrack_lab.trace.importers.importing import import_all


@pytest.mark.parametrize("sample", SAMPLES)
def test_zstd(tmp_path: Path, sample: str) -> None:
    """What is packed says the same, frames one behind the other too, and what is cut is told."""
    _, out = imported(tmp_path, sample)
    before = [row | {"session": ""} for row in rows(out, "bio")]
    packed = []
    for path in SAMPLES[sample][1](tmp_path):
        data = path.read_bytes()
        packed.append(path.with_name(path.name + ".zst"))
        half = len(data) // 2
        packed[-1].write_bytes(b"".join(pa.compress(part, "zstd", asbytes=True) for part in (data[:half], data[half:])))
    assert not import_all(packed, out).damages
    assert [row | {"session": ""} for row in rows(out, "bio")] == before
    cut = written(tmp_path, "cut.zst", packed[0].read_bytes()[:-9])
    damage = import_all([cut], out, SAMPLES[sample][0]).damages[0]
    assert damage.path == cut and "cannot be unpacked" in damage.what


TEXTS = ["blkparse", "most", "ftrace", "pixel6a"]


@pytest.mark.parametrize("sample", TEXTS)
@pytest.mark.parametrize(
    "written_as",
    [
        lambda text: b"\xef\xbb\xbf" + text.encode(),
        lambda text: text.encode("utf-16"),
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: b"\r\n\n" + text.encode(),
    ],
    ids=["mark", "utf-16", "crlf", "blank lines first"],
)
def test_texts_as_other_programs_write_them(tmp_path: Path, sample: str, written_as: Callable[[str], bytes]) -> None:
    _, out = imported(tmp_path, sample)
    before = [[row | {"session": ""} for row in rows(out, kind)] for kind in ("bio", "request")]
    (path,) = SAMPLES[sample][1](tmp_path)
    path.write_bytes(written_as(path.read_text()))
    assert not import_all([path], out).damages
    assert [[row | {"session": ""} for row in rows(out, kind)] for kind in ("bio", "request")] == before


@pytest.mark.parametrize("sample", TEXTS)
def test_zeros_behind_a_text(tmp_path: Path, sample: str) -> None:
    """As a power cut leaves them."""
    (path,) = SAMPLES[sample][1](tmp_path)
    size = path.stat().st_size
    path.write_bytes(path.read_bytes() + b"\0" * 300)
    (damage,) = import_all([path], tmp_path / "out").damages
    assert (damage.at, damage.bytes) == (size, 300)


@pytest.mark.parametrize(
    ("csv", "says"),
    [
        ("rw_flag,timestamp,sector,size\nW,1.5,100.0,8.0\n", (1_500_000_000, "write", 100, 4096)),
        ("rw_flag;timestamp;sector;size\nw; 15E-1; 100; 8\n", (1_500_000_000, "write", 100, 4096)),
        ("size\tRW_Flag\tTimestamp\n8\tRS\t1.5\n", (1_500_000_000, "read", None, 4096)),
        (",timestamp,rw_flag,sector,size\n0,2.5e-05,R,nan,NaN\n", (25_000, "read", None, None)),
        ("timestamp,rw_flag,sector\n1,R,18446744073709551615\n", (1_000_000_000, "read", None, None)),
        ("timestamp,rw_flag,sector\n1,R,-1\n", (1_000_000_000, "read", None, None)),
    ],
)
def test_numbers_of_a_table(tmp_path: Path, csv: str, says: tuple[Any, ...]) -> None:
    """As programs write a table that they have read: other delimiters, numbers of floating point, an index."""
    done = import_all([written(tmp_path, "a.csv", csv)], tmp_path / "out")
    (row,) = rows(tmp_path / "out", "bio")
    assert tuple(row.get(name) for name in ("time", "operation", "sector", "bytes")) == says
    assert not done.damages


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("W,1,abc,8", "line 3: sector 'abc'"),
        ("W,1,8,4K", "line 3: size '4K'"),
        ("W,-1.5,8,8", "line 3: timestamp '-1.5'"),
        ("W,1e99,8,8", "line 3: timestamp '1e99'"),
    ],
)
def test_a_number_that_is_none(tmp_path: Path, line: str, why: str) -> None:
    """It is told with its line; the others are read."""
    text = f"rw_flag,timestamp,sector,size\nR,1,8,8\n{line}\nR,9,8,8\n"
    done = import_all([written(tmp_path, "a.csv", text)], tmp_path / "out")
    assert [damage.what for damage in done.damages] == [why]
    assert len(rows(tmp_path / "out", "bio")) == 2


def test_what_is_empty_or_packed_otherwise(tmp_path: Path) -> None:
    for data in (b"", b"\n", gzip.compress(b"")):
        with pytest.raises(InputError, match="it is empty"):
            import_all([written(tmp_path, "a", data)], tmp_path / "out")
        done = import_all([written(tmp_path, "a", b"")], tmp_path / "out", "most")
        assert [damage.what for damage in done.damages] == ["it is empty: nothing was recorded, or nothing was copied"]
    with pytest.raises(InputError, match="packed by xz: unpack it first"):
        import_all([written(tmp_path, "a.xz", lzma.compress(b"text"))], tmp_path / "out")


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("0.1\tC\tWS\t8\t8\t7\tmail\tM\tfile-NONE\n0.2\tC\tWS\t8\t8\t7\tmail\tM\tfile-NONE", True),
        ("0.1\tC\tWS\t8\t8\t7\tmail\tM\tfile-NONE\n0.2\tC\tWS\t8\t8\t7\tmail\tD\t/data/a.db", False),
        ("rw_flag,sector,timestamp\nR,8,1.000001\nR,16,1.000002", True),
        ("rw_flag,sector,timestamp\nR,8,1.000001\nR,16,1.00000", False),
        ("rw_flag,sector,timestamp\nR,8,1.000001\nR,16,1.5\nR,24,1.25", False),
        ("rw_flag,timestamp,sector\nR,1.000001,8\nR,1.000002,16", False),
    ],
)
def test_a_last_line_without_an_end(tmp_path: Path, text: str, whole: bool) -> None:
    """It is read where its last field shows that it is whole: a path or a number could go on."""
    done = import_all([written(tmp_path, "a.txt", text)], tmp_path / "out")
    assert bool(done.damages) is not whole
    assert done.recordings[0].kinds.total() == text.count("\n") - text.startswith("rw_flag") + whole
