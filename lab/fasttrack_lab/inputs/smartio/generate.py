# SPDX-License-Identifier: GPL-2.0-only
"""Scenarios from the table of apps, as the text of a scenario file: launch, run time and installation of each app.

A launch begins with nothing in the page cache. Code is mapped and faulted in, small pieces of the package are read, the
database is asked, files of content are read by threads of their own, and what changed is written. Run time begins where
a launch has ended: its first part is the launch, before the touch; what is measured reads other code, other places and
other content, and writes new files. An installation copies the package and its libraries as the package manager does.

Everything is drawn from the row's seed, in one order: all scenarios of an app have the same files, and the launch
before run time is the launch.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from fasttrack_lab.host.errors import InputError
from fasttrack_lab.host.units import Spread
from fasttrack_lab.inputs.smartio.mix import INSERT_ROWS, RUN_SHARE, SELECT_ROWS, Mix, launch_mix, run_mix
from fasttrack_lab.inputs.smartio.table import TABLE, Row

DATABASE_ROWS, ROW_BYTES = 30000, 300
"""9 MB of rows: one SELECT seldom finds what another has read."""
PLACE = 64 << 10
"""Bytes between two places of the package: reads at two of them never look sequential."""
LIBRARY = Spread(128 << 10, 512 << 10)
"""Bytes; read-around makes of the first fault one request for all of it, on every phone."""
PAGE = 4096

PACKAGES = 500
"""Rows of the package manager's database."""
BLOCK = 1 << 20
"""Bytes of one write of an installation."""
COPY_S = 0.002
"""For one BLOCK: copying and checking digests make about 500 MB/s, as in install.toml."""

RUN_TOUCH = "6 s"
"""The launch before run time has ended, and a background app's lead fits after it."""
THINK_SPREAD = "30 %"
ORDER = {"fault": 0.0, "small": 0.3, "select": 0.4, "insert": 0.7, "write": 0.7}
"""When an operation's kind is due, before up to 1 that is drawn: code comes first, and the kinds overlap."""
ASK_SHARE = 1 / 3
"""Of the app's computing, what comes before content is asked for."""


@dataclass(frozen=True)
class Phase:
    """Lines of steps: of the thread that does everything but content, and of each that reads content."""

    ui: tuple[str, ...]
    loaders: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Drawn:
    """What a row's seed gives."""

    libraries: tuple[int, ...]
    items: tuple[int, ...]
    launch: Phase
    run: Phase


def _size(spread: Spread, rng: random.Random) -> int:
    """A drawn size in whole pages, one at least."""
    return max(round(spread.draw(rng) / PAGE), 1) * PAGE


def _step(op: str, **fields: object) -> str:
    """A line of a thread's steps."""
    return "  { " + ", ".join(f"{key} = {json.dumps(value)}" for key, value in {"op": op, **fields}.items()) + " },"


def _think(seconds: float) -> str:
    """A think time as scenario files have it."""
    return f"{round(seconds * 1e6)} us ± {THINK_SPREAD}"


def _transaction(kind: str, database: str, **fields: object) -> str:
    """One transaction, in the journal mode that Android's SQLite has by default."""
    return _step("sqlite", file=f"databases/{database}.db", kind=kind, transactions=1, journal="truncate", **fields)


class _Drawing:
    """Draws the steps of the phases; the second goes on where the first left off."""

    def __init__(self, row: Row, mixes: Sequence[Mix]) -> None:
        self.row = row
        wanted, there = sum(mix.small for mix in mixes), row.package // PLACE
        if wanted > there:
            raise InputError(f"app '{row.name}' reads {wanted} places, its package has {there}: make it larger", TABLE)
        self.places = iter(self._generator("places").sample(range(there), wanted))
        libraries, items = self._generator("libraries"), self._generator("items")
        self.libraries = [_size(LIBRARY, libraries) for _ in range(sum(mix.faults for mix in mixes))]
        self.items = [_size(row.item, items) for _ in range(sum(mix.large for mix in mixes))]
        self.library, self.item, self.out = (iter(range(1 << 20)) for _ in range(3))
        self.pieces, self.writes, self.order = (self._generator(name) for name in ("pieces", "writes", "order"))

    def _generator(self, name: str) -> random.Random:
        """A generator of its own for every drawn thing, so that one more draw moves no other."""
        return random.Random(f"{self.row.seed}/{name}")

    def fault(self, think: str) -> list[str]:
        """One page fault in the middle of a library."""
        number = next(self.library)
        middle = self.libraries[number] // PAGE // 2 * PAGE
        file = f"lib/code{number}.so"
        return [_step("mmap", file=file, offset=f"{middle} B", bytes="4 KiB", block="4 KiB", think=think)]

    def small(self, think: str) -> list[str]:
        """One piece of the package."""
        size, offset = f"{_size(self.row.small, self.pieces)} B", f"{next(self.places) * PLACE} B"
        return [_step("read", file="base.apk", offset=offset, bytes=size, block=size, think=think)]

    def select(self, think: str) -> list[str]:
        """One question to the database."""
        return [_transaction("select", "main", rows=SELECT_ROWS, think=think)]

    def insert(self, think: str) -> list[str]:
        """One transaction that changes it."""
        return [_transaction("insert", "main", rows=INSERT_ROWS, row_bytes=f"{ROW_BYTES} B", think=think)]

    def plain(self, think: str) -> list[str]:
        """A new file that is not synced."""
        return [self._file(f"files/out{next(self.out)}", think)]

    def synced(self, think: str) -> list[str]:
        """A new file that is."""
        name = f"files/out{next(self.out)}"
        return [self._file(name, think), _step("fsync", file=name)]

    def _file(self, name: str, think: str) -> str:
        size = f"{_size(self.row.write, self.writes)} B"
        return _step("write", file=name, bytes=size, flags=["create", "truncate"], think=think)

    def phase(self, mix: Mix, think_s: float) -> Phase:
        """All operations of a mix, in an order that is drawn."""
        kinds: list[tuple[str, Callable[[str], list[str]], int]] = [
            ("fault", self.fault, mix.faults),
            ("small", self.small, mix.small),
            ("select", self.select, mix.selects),
            ("insert", self.insert, mix.inserts),
            ("write", self.synced, mix.synced),
            ("write", self.plain, mix.plain),
        ]
        think = _think(think_s / sum(number for _, _, number in kinds))
        drawn = [
            (ORDER[kind] + self.order.random(), make(think)) for kind, make, number in kinds for _ in range(number)
        ]
        ui = tuple(line for _, lines in sorted(drawn, key=lambda one: one[0]) for line in lines)
        ask = _step("think", time=_think(think_s * ASK_SHARE))
        loaders: list[list[str]] = [[ask] for _ in range(self.row.loaders)]
        for number in range(mix.large):
            line = _step("read", file=f"cache/item{next(self.item)}", block="512 KiB", think=think)
            loaders[number % self.row.loaders].append(line)
        return Phase(ui, tuple(tuple(lines) for lines in loaders))


def draw(row: Row) -> Drawn:
    """Files and steps of a row. InputError where its package is too small for its reads."""
    mixes = launch_mix(row), run_mix(row)
    drawing = _Drawing(row, mixes)
    launch = drawing.phase(mixes[0], row.think_s)
    run = drawing.phase(mixes[1], row.think_s * RUN_SHARE)
    return Drawn(tuple(drawing.libraries), tuple(drawing.items), launch, run)


def _files(row: Row, drawn: Drawn) -> Iterator[str]:
    """What the phone has of the app; the same for each of its scenarios, which share a prepared phone."""
    sizes = {
        "base.apk": row.package,
        **{f"lib/code{number}.so": size for number, size in enumerate(drawn.libraries)},
        **{f"cache/item{number}": size for number, size in enumerate(drawn.items)},
        "files/keep": PAGE,
        "new/keep": PAGE,
    }
    for path, size in sizes.items():
        yield f'[[app.file]]\npath = "{path}"\nbytes = "{size} B"'
    for name, count in (("main", DATABASE_ROWS), ("packages", PACKAGES)):
        rows = f'kind = "sqlite"\nrows = {count}\nrow_bytes = "{ROW_BYTES} B"'
        yield f'[[app.file]]\npath = "databases/{name}.db"\n{rows}'


def _thread(name: str, steps: Sequence[str]) -> str:
    return "\n".join(["", "[[app.thread]]", f'name = "{name}"', "steps = [", *steps, "]"])


def _threads(phases: Sequence[Phase]) -> Iterator[str]:
    """The app's threads; what is not of the last phase is done before the touch."""
    touch = (_step("touch"),)
    named = [("ui", [phase.ui for phase in phases])]
    named += [(f"loader{n}", [phase.loaders[n] for phase in phases]) for n in range(len(phases[0].loaders))]
    for name, (first, *rest) in named:
        yield _thread(name, [*first, *(line for lines in rest for line in (*touch, *lines))])


def _installation(row: Row, drawn: Drawn) -> Iterator[str]:
    """What the touch starts: the package and its libraries are copied and synced, it is entered and gets its name."""
    sizes = {"new/base.apk": row.package, "new/lib.so": sum(drawn.libraries)}
    for file, size in sizes.items():
        flags, think = ["create", "truncate"], _think(COPY_S)
        yield _step("write", file=file, bytes=f"{size} B", block=f"{BLOCK} B", flags=flags, think=think)
        yield _step("fsync", file=file)
    yield _transaction("update", "packages", rows=INSERT_ROWS, row_bytes=f"{ROW_BYTES} B")
    yield _step("rename", file="new/base.apk", to="base.apk")


def launch(row: Row) -> str:
    """The app is started cold."""
    drawn = draw(row)
    return _text(f"read-dominant: launch of {row.what}", row, drawn, _threads([drawn.launch]))


def run(row: Row) -> str:
    """The app is used, after a launch that does not count."""
    drawn = draw(row)
    return _text(f"mixed: run time of {row.what}", row, drawn, _threads([drawn.launch, drawn.run]), RUN_TOUCH)


def install(row: Row) -> str:
    """The app's package is installed; it was downloaded a moment ago, and is in the page cache."""
    drawn = draw(row)
    downloaded = _step("read", file="base.apk", block="512 KiB")
    thread = _thread("installer", [downloaded, _step("touch"), *_installation(row, drawn)])
    return _text(f"write-dominant: installation of {row.what}", row, drawn, [thread])


def _text(what: str, row: Row, drawn: Drawn, threads: Iterable[str], touch: str = "") -> str:
    lines = [f'description = "foreground, {what}"']
    lines += [f'touch = "{touch}"'] if touch else []
    lines += ["", "[[app]]", f'name = "{row.name}"', f"uid = {row.uid}", 'role = "foreground"', ""]
    return "\n".join([*lines, *_files(row, drawn), *threads, ""])
