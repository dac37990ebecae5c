# SPDX-License-Identifier: GPL-2.0-only
"""Two processes that make one archive, or append to it, at once: all rows are there, none twice."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from trace_records import SECOND, bio, of_another, write

from fasttrack_lab.trace import delta, sources
from fasttrack_lab.trace.tables import COLUMNS

_APPEND = """
import sys, time
from pathlib import Path
from fasttrack_lab.trace import delta

met, mine, other, archive, *paths = sys.argv[1:]
write, turn = delta.write_deltalake, 0

def together(*arguments, **options):
    # Commits when the other one does: it is waited for, if it comes.
    global turn
    turn += 1
    Path(met, f"{mine}-{turn}").touch()
    ends = time.monotonic() + 0.3
    while not Path(met, f"{other}-{turn}").exists() and time.monotonic() < ends:
        pass
    return write(*arguments, **options)

delta.write_deltalake = together
done = delta.append(Path(archive), list(map(Path, paths)))
print(done.new, done.known)
"""


def imports(where: Path, count: int) -> list[Path]:
    """Recordings of as many phones, each with ten bios."""
    found = []
    for number in range(1, count + 1):
        records = of_another(
            [one for n in range(10) for one in bio(n, n * SECOND + 5000)], f"{number:032}", f"{number:032x}"
        )
        (where / str(number)).mkdir()
        write(where / str(number), records)
        found.append(where / str(number))
    return found


def at_once(archive: Path, first: Sequence[Path], second: Sequence[Path]) -> list[tuple[int, str, str]]:
    """Status, output and errors of two writers, whose commits are at the same time."""
    met = archive.parent / "met"
    met.mkdir()
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", _APPEND, str(met), mine, other, str(archive), *map(str, paths)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for mine, other, paths in (("a", "b", first), ("b", "a", second))
    ]
    said = [writer.communicate(timeout=300) for writer in writers]
    return [(writer.returncode, out.strip(), errors) for writer, (out, errors) in zip(writers, said, strict=True)]


def rows(archive: Path) -> dict[str, int]:
    return {name: table.count().to_pyarrow().as_py() for name, table in sources.open_all([archive])}


def of(count: int) -> dict[str, int]:
    """The rows of so many recordings."""
    some = {"sessions": 1, "io": 10, "segments": 10, "files": 2, "tasks": 2}
    return {name: some.get(name, 0) * count for name in COLUMNS}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return tmp_path / "archive"


def test_two_make_one_archive(tmp_path: Path, archive: Path) -> None:
    """Of different recordings."""
    there = imports(tmp_path, 4)
    assert at_once(archive, there[:2], there[2:]) == [(0, "2 0", "")] * 2
    assert rows(archive) == of(4)


def test_two_append_to_one_archive(tmp_path: Path, archive: Path) -> None:
    there = imports(tmp_path, 5)
    delta.append(archive, there[:1])
    assert at_once(archive, there[1:3], there[3:]) == [(0, "2 0", "")] * 2
    assert rows(archive) == of(5)


def test_two_append_the_same(tmp_path: Path, archive: Path) -> None:
    """Each row is there once, whoever came first."""
    there = imports(tmp_path, 2)
    assert [(status, errors) for status, _, errors in at_once(archive, there, there)] == [(0, "")] * 2
    assert rows(archive) == of(2)
