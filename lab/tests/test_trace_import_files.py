# SPDX-License-Identifier: GPL-2.0-only
"""Files and owners by what file systems and the page cache say in other tools' traces; nothing that nobody says."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import trace_samples
from trace_imported import rows, written
from trace_samples import BEGIN_NS, pb, ring_page, trace_dat_7

from fasttrack_lab.trace import sources
from fasttrack_lab.trace.importers.importing import Imported, import_all

_APP, _OTHER, _FLUSHER = ("mail", 77), ("chat", 88), ("kworker/u8:1", 55)
Line = tuple[tuple[str, int], str]
ISSUED = (_FLUSHER, "block_rq_issue: 254,0 WS 4096 () 9000000 + 8 [kworker/u8:1]")
"""A request elsewhere: 254,0 is a disk and no partition."""


def text(said: Sequence[Line]) -> str:
    """tracefs's text, an event a millisecond."""
    lines = [
        f"{name:>16}-{pid:<5} [001] ..... 1000.{at:03}000: {what}\n" for at, ((name, pid), what) in enumerate(said, 1)
    ]
    return "# tracer: nop\n" + "".join(lines)


def made(tmp_path: Path, said: Sequence[Line]) -> tuple[Imported, list[tuple[Any, ...]]]:
    """What came of events, and each segment: offset, bytes, type, inode, page, who dirtied or reads it."""
    tmp_path.mkdir(exist_ok=True)
    done = import_all([written(tmp_path, "trace.txt", text(said))], tmp_path / "out")
    assert done.damages == []
    return done, segments(tmp_path / "out")


def segments(out: Path) -> list[tuple[Any, ...]]:
    files = {row["file"]: row["inode"] for row in rows(out, "file")}
    tasks = {row["task"]: row["pid"] for row in rows(out, "task")}
    return [
        (
            *(row.get(name) for name in ("offset", "bytes", "block_type")),
            files.get(row.get("file")),
            row.get("index"),
            tasks.get(row.get("owner")),
        )
        for row in rows(out, "segment")
    ]


def f2fs_page(inode: int, index: int, at: int, kind: str = "HOT_DATA") -> str:
    return (
        f"f2fs_submit_page_write: dev = (254,0), ino = {inode}, page_index = 0x{index:x}, oldaddr = 0xffffffff, "
        f"newaddr = 0x{at:x}, rw = WRITE(), type = {kind}"
    )


def dirty(disk: str, inode: int, index: int) -> str:
    return f"writeback_dirty_page: bdi {disk}: ino={inode} index={index}"


def queue(dev: str, sector: int, sectors: int, who: tuple[str, int] = _FLUSHER, rwbs: str = "W") -> Line:
    return who, f"block_bio_queue: {dev} {rwbs} {sector} + {sectors} [{who[0]}]"


def test_a_bio_of_f2fs_has_pages_of_several_files(tmp_path: Path) -> None:
    """Exact by page: two files, one with two owners, a node, and a page of which nobody has told."""
    said = [
        ISSUED,
        *((_APP, dirty("254:0", 100, page)) for page in (7, 8)),
        (_OTHER, dirty("254:0", 100, 9)),
        *((_FLUSHER, f2fs_page(100, page, 0x200 + page - 7)) for page in (7, 8, 9)),
        (_FLUSHER, f2fs_page(200, 0, 0x203, "WARM_DATA")),
        (_FLUSHER, f2fs_page(1, 4, 0x204, "COLD_NODE")),
        queue("254,0", 0x200 * 8, 48),
    ]
    done, found = made(tmp_path, said)
    assert (
        found
        == [
            (0, 4096, None, None, None, None),
            (0, 8192, "data", 100, 7, 77),
            (8192, 4096, "data", 100, 9, 88),
            (12288, 4096, "data", 200, 0, None),
            (16384, 4096, "node", None, None, None),
            (20480, 4096, None, None, None, None),
        ][1:]
    )
    assert done.shares()["segment.owner"] == 2 / 5
    rows_of = rows(tmp_path / "out", "segment")
    assert [row.get("dirtied") for row in rows_of[:2]] == [BEGIN_NS + 2 * 10**6, BEGIN_NS + 4 * 10**6]


def test_written_pages_are_clean(tmp_path: Path) -> None:
    """Who dirtied a page owns one write of it; the last who did."""
    send = [(_FLUSHER, f2fs_page(100, 7, 0x200)), queue("254,0", 0x1000, 8)]
    said = [ISSUED, (_APP, dirty("254:0", 100, 7)), (_OTHER, dirty("254:0", 100, 7)), *send, *send]
    assert [segment[-1] for segment in made(tmp_path, said)[1]] == [88, None]


def map_line(block: int, count: int, first: int, inode: int = 12, dev: str = "254,0") -> str:
    return (
        f"ext4_ext_map_blocks_exit: dev {dev} ino {inode} flags CREATE|DELALLOC lblk {first} pblk {block} len {count} "
        f"mflags NM ret {count}"
    )


def test_ext4_s_blocks_are_as_large_as_a_bio_proves(tmp_path: Path) -> None:
    """Blocks of 1 KiB: the first bio of the thread that was told begins at one of them."""
    said = [ISSUED, (_APP, map_line(5000, 16, 32)), queue("254,0", 10_000, 32, _APP), queue("254,0", 10_008, 8, _APP)]
    assert made(tmp_path, said)[1] == [
        (0, 16384, "data", 12, 8, None),
        (0, 4096, "data", 12, 9, None),
    ]


def test_what_proves_nothing_gives_no_file(tmp_path: Path) -> None:
    """No bio begins where its thread was told; a thread that was told two places that could both be it."""
    said = [ISSUED, (_APP, map_line(5000, 16, 32)), queue("254,0", 40_008, 8, _APP), queue("254,0", 40_000, 8, _OTHER)]
    assert {segment[3] for segment in made(tmp_path / "a", said)[1]} == {None}
    both = [ISSUED, (_APP, map_line(5000, 1, 0)), (_APP, map_line(20_000, 1, 1)), queue("254,0", 40_000, 8, _APP)]
    assert made(tmp_path / "b", both)[1] == [(0, 4096, None, None, None, None)]


def test_ext4_s_extents_reads_and_free_blocks(tmp_path: Path) -> None:
    found = "ext4_es_lookup_extent_exit: dev 254,0 ino 12 found 1 [0/64) 700 {}"
    said = [
        ISSUED,
        (_APP, found.format("D")),
        (_APP, found.format("WR")),
        queue("254,0", 5600, 64, _APP, "R"),
        (_OTHER, "ext4_free_blocks: dev 254,0 ino 12 mode 0100644 block 704 count 2 flags "),
        queue("254,0", 5624, 24, _APP, "R"),
        (_APP, map_line(700, 8, 0, 8)),
        queue("254,0", 5600, 8, _FLUSHER),
    ]
    assert made(tmp_path, said)[1] == [
        (0, 32768, "data", 12, 0, None),
        (0, 4096, "data", 12, 3, None),
        (4096, 8192, None, None, None, None),
        (0, 4096, "journal", None, None, None),
    ]


@pytest.mark.parametrize(
    ("remap", "dev"),
    [
        ("block_bio_remap: 8,3 W 12096 + 8 <- (8,3) 4096", "8,3"),
        ("block_bio_remap: 8,0 W 12096 + 8 <- (8,3) 4096", "8,0"),
    ],
)
def test_a_partition_s_place_is_what_its_bio_s_way_says(tmp_path: Path, remap: str, dev: str) -> None:
    """Of a newer kernel and an older; without the event nobody knows where the partition begins."""
    file = f2fs_page(100, 7, 0x200).replace("254,0", "8,3")
    begin = [(_APP, dirty("8:0", 100, 7)), (_FLUSHER, file)]
    sent = queue(dev, 12_096, 8)
    assert made(tmp_path / "a", [*begin, (_FLUSHER, remap), sent])[1] == [(0, 4096, "data", 100, 7, 77)]
    assert made(tmp_path / "b", [*begin, sent])[1] == [(0, 4096, None, None, None, None)]
    beside = [(_OTHER, "block_bio_remap: 8,2 R 2056 + 8 <- (8,2) 8"), queue("8,2", 2056, 8, _OTHER, "R")]
    of_two = made(tmp_path / "c", [*beside, *begin, (_FLUSHER, remap), sent])[1]
    assert of_two[-1] == (0, 4096, "data", 100, 7, None), "inode 100 could be the other partition's"


def test_a_mapped_device_and_what_is_below(tmp_path: Path) -> None:
    """dm-0 on a partition: both bios have the file."""
    said = [
        (_FLUSHER, f2fs_page(100, 7, 0x200)),
        queue("254,0", 4096, 8),
        (_FLUSHER, "block_bio_remap: 8,3 W 5120 + 8 <- (254,0) 4096"),
        (_FLUSHER, "block_bio_remap: 8,3 W 13120 + 8 <- (8,3) 5120"),
        queue("8,3", 13_120, 8),
    ]
    assert made(tmp_path, said)[1] == [(0, 4096, "data", 100, 7, None)] * 2


def test_the_device_s_own_pages_are_metadata(tmp_path: Path) -> None:
    said = [ISSUED, (_APP, dirty("254:0", 254 << 20, 512)), queue("254,0", 4096, 16)]
    assert made(tmp_path, said)[1] == [
        (0, 4096, "metadata", None, None, 77),
        (4096, 4096, None, None, None, None),
    ]


def test_syncs_are_calls(tmp_path: Path) -> None:
    """ext4 says at the begin which it is, f2fs at the end. One that began before is left out."""
    exited = "f2fs_sync_file_exit: dev = (254,0), ino = 100, cp_reason: no needed, datasync = 1, ret = {}"
    entered = (
        "dev = (254,0), ino = 100, pino = 3, i_mode = 0x81b0, i_size = 5, i_nlink = 1, i_blocks = 8, i_advise = 0x0"
    )
    said = [
        (_OTHER, exited.format(0)),
        (_APP, "ext4_sync_file_enter: dev 8,3 ino 12 parent 2 datasync 0 "),
        (_OTHER, f"f2fs_sync_file_enter: {entered}"),
        (_OTHER, exited.format(-5)),
        (_APP, "ext4_sync_file_exit: dev 8,3 ino 12 ret 0"),
        (_APP, "f2fs_lookup_end: dev = (254,0), pino = 3, name:a, b.db, ino:100, err:0"),
    ]
    made(tmp_path, said)
    calls = sources.open_all([tmp_path / "out"]).calls.order_by("time").to_pyarrow().to_pylist()
    told = [tuple(row[name] for name in ("kind", "path", "duration_us", "result", "pid", "name")) for row in calls]
    assert told == [("fdatasync", "a, b.db", 1000, -5, 88, "chat"), ("fsync", None, 3000, 0, 77, "mail")]


def test_a_file_of_two_names_has_none(tmp_path: Path) -> None:
    """The inode was used again, or the file has two links."""
    named = "f2fs_lookup_end: dev = (254,0), pino = 3, name:{}, ino:100, err:0"
    said = [ISSUED, (_APP, named.format("a")), (_APP, named.format("b")), (_FLUSHER, f2fs_page(100, 7, 0x200))]
    made(tmp_path, [*said, queue("254,0", 4096, 8)])
    assert [(row["inode"], row.get("path")) for row in rows(tmp_path / "out", "file")] == [(100, None)]


def test_what_was_known_before_a_loss_is_forgotten(tmp_path: Path) -> None:
    lines = text([ISSUED, (_FLUSHER, f2fs_page(100, 7, 0x200)), queue("254,0", 4096, 8)]).splitlines(keepends=True)
    lost = [*lines[:-1], "CPU:1 [LOST 5 EVENTS]\n", lines[-1]]
    import_all([written(tmp_path, "a.txt", "".join(lost))], tmp_path / "out")
    assert segments(tmp_path / "out") == [(0, 4096, None, None, None, None)]


def test_what_is_not_as_the_kernel_prints_it(tmp_path: Path) -> None:
    said = [(_APP, "ext4_free_blocks: nothing"), (_APP, "block_bio_remap: 8,3"), (_APP, "f2fs_map_blocks: ")]
    done = import_all([written(tmp_path, "a.txt", text(said))], tmp_path / "out")
    assert [damage.records for damage in done.damages] == [3]


def test_perfetto_s_own_and_generic_messages(tmp_path: Path) -> None:
    """Numbers of devices are makedev's in the first, the kernel's in the second."""

    def generic(called: str, **said: int | str) -> bytes:
        values = [(2, pb((1, key), (3 if isinstance(value, str) else 5, value))) for key, value in said.items()]
        return pb((1, called), *values)

    dev, made_dev = 254 << 20, 254 << 8
    page = {"dev": dev, "ino": 100, "index": 7, "new_blkaddr": 0x200, "type": 0}
    said: list[tuple[int, int, bytes]] = [
        (55, 45, pb((1, made_dev), (2, 9_000_000), (3, 8), (4, 4096), (5, "W"), (6, "kworker/u8:1"))),
        (77, 327, generic("writeback_dirty_folio", name="254:0", ino=100, index=7)),
        (55, 327, generic("f2fs_submit_page_write", **page)),
        (55, 119, pb((1, made_dev), (2, 4096), (3, 8), (4, "W"), (5, "kworker/u8:1"))),
        (88, 43, pb((1, made_dev), (2, 12), (3, 2), (4, 1))),
        (88, 44, pb((1, made_dev), (2, 12))),
    ]
    events = [(2, pb((1, BEGIN_NS + at), (2, pid), (what, body))) for at, (pid, what, body) in enumerate(said)]
    data = pb((1, pb((1, pb((1, 0), *events)))))
    import_all([written(tmp_path, "a.pftrace", data)], tmp_path / "out")
    assert segments(tmp_path / "out") == [(0, 4096, "data", 100, 7, 77)]
    assert [(row["kind"], row["duration_ns"]) for row in rows(tmp_path / "out", "call")] == [("fdatasync", 1)]


def test_trace_dat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the fields that the file's own format says."""
    fields = "".join(
        f"\tfield:unsigned long {name};\toffset:{at};\tsize:8;\tsigned:0;\n"
        for at, name in ((16, "ino"), (24, "index"), (32, "new_blkaddr"))
    )
    more = fields + "\tfield:int type;\toffset:40;\tsize:4;\tsigned:1;\n"
    monkeypatch.setitem(trace_samples._FORMATS, "P", (105, "f2fs_submit_page_write", more))

    def pages(order: str) -> list[bytes]:
        head = struct.Struct(order + "HBBiI4x")
        page = head.pack(105, 0, 0, 55, 8 << 20) + struct.pack(order + "QQQi", 100, 7, 0x200, 0)
        sent = trace_samples.Sent(0, "W", 4096, 8, 55, "kworker/u8:1", 100)
        bio = [(BEGIN_NS + 5 + at, trace_samples.ring_event(order, kind, sent)) for at, kind in enumerate("QDC")]
        return [ring_page(order, BEGIN_NS, [(BEGIN_NS + 1, page), *bio]), ring_page(order, BEGIN_NS, [])]

    monkeypatch.setattr(trace_samples, "ring_pages", pages)
    import_all([written(tmp_path, "trace.dat", trace_dat_7())], tmp_path / "out")
    assert segments(tmp_path / "out") == [(0, 4096, "data", 100, 7, None)]
