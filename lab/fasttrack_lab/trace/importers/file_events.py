# SPDX-License-Identifier: GPL-2.0-only
"""Events by which file systems and the page cache say whose blocks are where, from any of ftrace's formats.

Their fields are the kernel's (include/trace/events/ext4.h, f2fs.h, writeback.h, block.h); the text of each is as the
kernel prints it. What each says is told in docs/TRACE-QUERIES.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from fasttrack_lab.trace.importers.intake import (
    CLEAN,
    DIRTY,
    EXTENT,
    PAGE,
    REMAP,
    SYNC_BEGIN,
    SYNC_END,
    Event,
    Intake,
)
from fasttrack_lab.trace.importers.text_numbers import device, whole

Said = Callable[[str], int | str | None]
"""A field of an event, by its name in the kernel."""

_ON_DISK = 3
"""Status of an extent of ext4: written or unwritten. Others have no place on the disk."""
_EXT4_JOURNAL = 8
"""ext4's inode of its journal, which it maps as a file's."""
_NO_PLACE = (0, 0xFFFF_FFFF, 0xFFFF_FFFE)
"""f2fs's addresses of what has no place: a hole, a new block, a compressed cluster."""
_PAGE_TYPES: dict[int | str, str] = {
    0: "data",
    1: "node",
    2: "checkpoint",
    3: "checkpoint",
    "DATA": "data",
    "NODE": "node",
    "META": "checkpoint",
    "META_FLUSH": "checkpoint",
}
"""f2fs's `enum page_type`, and as it is printed."""
_BDI = re.compile(r"(\d+):(\d+)")


def _number(said: Said, *names: str) -> int | None:
    """A field as a number, under the first of its names that there is."""
    found = next((value for name in names if (value := said(name)) is not None), None)
    return found if isinstance(found, int) else None


def _run(kind: str, said: Said, place: str, first: str, count: int | None, block_type: str = "data") -> Event | None:
    """A run of a file's blocks; none where it has no place."""
    block = _number(said, place)
    if block in _NO_PLACE or not count or count < 0:
        return None
    dev, inode = _number(said, "dev"), _number(said, "ino")
    return Event(
        0, kind, dev, block, count, block_type=block_type, inode=inode, at=_number(said, first) if inode else None
    )


def _ext4_run(said: Said, count: int | None) -> Event | None:
    journal = said("ino") == _EXT4_JOURNAL
    return _run(EXTENT, said, "pblk", "lblk", count, "journal" if journal else "data")


def _ext4_found(said: Said) -> Event | None:
    status = said("status")
    placed = status & _ON_DISK if isinstance(status, int) else "W" in (status or "") or "U" in (status or "")
    return _ext4_run(said, _number(said, "len")) if said("found") and placed else None


def _f2fs_mapped(said: Said) -> Event | None:
    return _run(PAGE, said, "m_pblk", "m_lblk", _number(said, "m_len")) if said("ret") == 0 else None


def _f2fs_page(said: Said) -> Event | None:
    """A page of f2fs that is sent. Nodes and checkpoints are pages of inodes that are no files."""
    kind = said("type")
    # In text the temperature is before the type.
    kind = kind.split("_", 1)[-1] if isinstance(kind, str) else kind
    block_type = _PAGE_TYPES.get(kind) if kind is not None else None
    place = "new_blkaddr" if said("new_blkaddr") is not None else "block"
    found = None if block_type is None else _run(PAGE, said, place, "index", 1, block_type)
    return found if found is None or block_type == "data" else found._replace(inode=None, at=None)


def _dirtied(said: Said) -> Event | None:
    """The page cache names the disk, not the file system's device."""
    name = _BDI.fullmatch(str(said("name")))
    return name and Event(0, DIRTY, device(name[1], name[2]), inode=_number(said, "ino"), at=_number(said, "index"))


def _sync(kind: str) -> Callable[[Said], Event]:
    def of(said: Said) -> Event:
        flag = _number(said, "datasync")
        cause = None if flag is None else "fdatasync" if flag else "fsync"
        ret = _number(said, "ret")
        return Event(0, kind, _number(said, "dev"), error=ret, cause=cause, inode=_number(said, "ino"))

    return of


def _remapped(said: Said) -> Event:
    return Event(
        0,
        REMAP,
        _number(said, "dev"),
        _number(said, "sector"),
        inode=_number(said, "old_dev"),
        at=_number(said, "old_sector"),
    )


def _freed(said: Said) -> Event:
    return Event(0, CLEAN, _number(said, "dev"), _number(said, "block"), _number(said, "count"))


_TAKES: dict[str, Callable[[Said], Event | None]] = {
    "block_bio_remap": _remapped,
    "writeback_dirty_page": _dirtied,
    "writeback_dirty_folio": _dirtied,
    "ext4_es_lookup_extent_exit": _ext4_found,
    "ext4_ext_map_blocks_exit": lambda said: _ext4_run(said, _number(said, "ret")),
    "ext4_ind_map_blocks_exit": lambda said: _ext4_run(said, _number(said, "ret")),
    "ext4_free_blocks": _freed,
    "ext4_sync_file_enter": _sync(SYNC_BEGIN),
    "ext4_sync_file_exit": _sync(SYNC_END),
    "f2fs_map_blocks": _f2fs_mapped,
    "f2fs_sync_file_enter": _sync(SYNC_BEGIN),
    "f2fs_sync_file_exit": _sync(SYNC_END),
    **{
        f"f2fs_submit_{what}": _f2fs_page
        for what in ("page_write", "page_bio", "folio_write", "folio_bio", "write_page")
    },
}
"""Event -> what it says, without its time and task."""
_LOOKUP = "f2fs_lookup_end"
FILE_EVENTS = (*_TAKES, _LOOKUP)


def take(name: str, time: int, pid: int | None, comm: str | None, said: Said, intake: Intake) -> None:
    """Takes in an event of FILE_EVENTS."""
    if name == _LOOKUP:
        _name(said, intake)
        return
    found = _TAKES[name](said)
    if found is None or found.dev is None:
        intake.skipped[f"{name} without a place"] += 1
    else:
        intake.event(found._replace(time=time, pid=pid, comm=comm))


def _name(said: Said, intake: Intake) -> None:
    """f2fs has looked a name up."""
    dev, inode, name = _number(said, "dev"), _number(said, "cino"), said("name")
    if dev is not None and inode and isinstance(name, str) and name and not said("err"):
        intake.name_file(dev, inode, name)


# Text

_DEV = re.compile(r"\(?(\d+),(\d+)\)?")
_REMAPPED = re.compile(r"(?P<dev>\d+,\d+) \S* (?P<sector>\d+) \+ \d+ <- \((?P<old_dev>\d+,\d+)\) (?P<old_sector>\d+)")
_DIRTIED = re.compile(r"bdi (?P<name>\S+): ino=(?P<ino>\d+) index=(?P<index>\d+)")
_FOUND = re.compile(
    r"dev (?P<dev>\d+,\d+) ino (?P<ino>\d+) found (?P<found>\d+) \[(?P<lblk>\d+)/(?P<len>\d+)\) (?P<pblk>\d+) ?"
    r"(?P<status>\S*)"
)
_LOOKED_UP = re.compile(
    r"dev = (?P<dev>\(\d+,\d+\)), pino = \d+, name:(?P<name>.*), ino:(?P<cino>\d+), err:(?P<err>-?\d+)"
)
_WHOLE = {
    "block_bio_remap": _REMAPPED,
    "writeback_dirty_page": _DIRTIED,
    "writeback_dirty_folio": _DIRTIED,
    "ext4_es_lookup_extent_exit": _FOUND,
    _LOOKUP: _LOOKED_UP,
}
_EXT4 = re.compile(r"(\w+) (\d+,\d+|-?\d+)(?!\S)")
_F2FS = re.compile(r"(?:^|, )([\w ]+?)(?: = |: ?)(\(\d+,\d+\)|[^,]*)")
_PRINTED = {
    "page_index": "index",
    "file offset": "m_lblk",
    "start blkaddr": "m_pblk",
    "len": "m_len",
    "newaddr": "new_blkaddr",
    "err": "ret",
}
"""What f2fs prints of a field in place of its name."""


def said_by(name: str, text: str) -> Said | None:
    """The fields of an event of FILE_EVENTS as the kernel prints it; None where it does not print it so."""
    pattern = _WHOLE.get(name)
    if pattern is not None:
        match = pattern.fullmatch(text.strip())
        found = None if match is None else match.groupdict()
    elif name.startswith("f2fs"):
        found = {_PRINTED.get(key, key): value for key, value in _F2FS.findall(text)}
    else:
        found = dict(_EXT4.findall(text))
    if not found or not found.keys() & {"dev", "name"}:
        return None
    values = {key: value if key == "name" else _value(value.strip()) for key, value in found.items()}
    return values.get


def _value(text: str) -> int | str | None:
    """A number, a device, or what else is printed."""
    dev = _DEV.fullmatch(text)
    if dev is not None:
        return device(dev[1], dev[2])
    if re.fullmatch(r"0x[0-9a-f]{1,16}", text):
        return int(text, 16)
    sign = -1 if text.startswith("-") else 1
    number = whole(text.removeprefix("-"))
    return text if number is None else sign * number
