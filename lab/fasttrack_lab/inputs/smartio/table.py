# SPDX-License-Identifier: GPL-2.0-only
"""The table of apps: lab/scenarios/smartio/apps.toml, which explains its columns."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from fasttrack_lab.host.paths import SCENARIOS
from fasttrack_lab.host.toml_tables import Table, count, text
from fasttrack_lab.host.units import Spread, parse_size, parse_size_spread, parse_time

TABLE = SCENARIOS / "smartio" / "apps.toml"
FIRST_UID = 10301
_NAME = re.compile(r"[a-z][a-z0-9]*")


@dataclass(frozen=True)
class Row:
    """One app. Sizes are bytes, parts are from 0 to 1."""

    name: str
    what: str
    uid: int
    seed: int
    ios: int
    mmap: float
    large: float
    sqlite: float
    small: Spread
    item: Spread
    write: Spread
    fsync: float
    loaders: int
    think_s: float
    package: int


def _name(value: Any) -> str:
    """A name that can stand between two hyphens."""
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ValueError(f"{value!r} must be small letters and digits, a letter first")
    return value


def _part(value: Any) -> float:
    """A number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError(f"{value!r} must be a number from 0 to 1")
    return float(value)


def _row(table: Table, index: int) -> Row:
    """One row of the table."""
    row = Row(
        name=table.take("name", _name),
        what=table.take("what", text),
        uid=FIRST_UID + index,
        seed=table.take("seed", count(0)),
        ios=table.take("ios", count(1)),
        mmap=table.take("mmap", _part),
        large=table.take("large", _part),
        sqlite=table.take("sqlite", _part),
        small=table.take("small", parse_size_spread),
        item=table.take("item", parse_size_spread),
        write=table.take("write", parse_size_spread),
        fsync=table.take("fsync", _part),
        loaders=table.take("loaders", count(1)),
        think_s=table.take("think", parse_time),
        package=table.take("package", parse_size),
    )
    table.finish()
    if row.mmap + row.large > 1:
        raise table.error(f"mmap and large are parts of the reads: {row.mmap} and {row.large} are more than all")
    if row.fsync == 0:
        raise table.error("fsync: 0 leaves nothing that the block layer would see; give a part above 0", "fsync")
    return row


@lru_cache(maxsize=8)
def rows(path: Path = TABLE) -> dict[str, Row]:
    """The rows by name, in the table's order. InputError names the line of what is wrong."""
    table = Table.read(path)
    found: dict[str, Row] = {}
    for index, item in enumerate(table.tables("app")):
        row = _row(item, index)
        if row.name in found:
            raise item.error(f"app '{row.name}' is there twice", "name")
        found[row.name] = row
    table.finish()
    return found
