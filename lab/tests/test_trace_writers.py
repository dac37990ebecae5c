# SPDX-License-Identifier: GPL-2.0-only
"""Processes that append to one archive and erase from it at once, and one that cannot write.

All rows are there, none twice, and none of a device that is erased.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from trace_records import SECOND, bio, of_another, write

from fasttrack_lab.host.errors import LabError
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


_ERASE = """
import resource, sys
from pathlib import Path
from fasttrack_lab.host.errors import LabError
from fasttrack_lab.trace import delta

archive, install, *full = sys.argv[1:]
table = delta._table

def until_full(folder, name):
    if name in full:
        # No file grows: a full disk.
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    return table(folder, name)

delta._table = until_full
try:
    print(delta.erase(Path(archive), install))
except LabError as error:
    print(error)
    sys.exit(1)
"""


def erasing(archive: Path, install: str, *full: str) -> subprocess.Popen[str]:
    """Another process that erases a device; from the table FULL on the disk is."""
    argv = [sys.executable, "-c", _ERASE, str(archive), install, *full]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)


def of_device(archive: Path, install: str) -> dict[str, int]:
    found = sources.open_all([archive])
    return {name: table.filter(table.install == install).count().to_pyarrow().as_py() for name, table in found}


def test_one_erases_while_another_appends(tmp_path: Path, archive: Path) -> None:
    """In either order nothing is left of the one device, and all is there of the others."""
    there = imports(tmp_path, 5)
    delta.append(archive, there[:2])
    eraser = erasing(archive, f"{1:032}")
    for path in there[2:]:
        delta.append(archive, [path])
    said, _ = eraser.communicate(timeout=300)
    assert (eraser.returncode, said) == (0, f"{sum(of(1).values())}\n")
    assert rows(archive) == of(4)
    assert of_device(archive, f"{1:032}") == dict.fromkeys(COLUMNS, 0)


def test_an_erasure_that_fails_half_way_leaves_the_others(tmp_path: Path, archive: Path) -> None:
    """The disk is full from the table of bios on. The same command, when it is not, does the rest."""
    there = imports(tmp_path, 2)
    delta.append(archive, there)
    eraser = erasing(archive, f"{1:032}", "segments")
    said, _ = eraser.communicate(timeout=300)
    assert eraser.returncode == 1
    assert f"{archive}: not all is erased: " in said and "run the same command again" in said
    left = of_device(archive, f"{1:032}")
    assert left["io"] == 0 and left["segments"] == left["sessions"] * 10 == 10
    assert of_device(archive, f"{2:032}") == of_device(archive, f"{2:032}") | {"io": 10, "segments": 10, "sessions": 1}
    delta.erase(archive, f"{1:032}")
    assert rows(archive) == of(1)


def test_an_append_that_fails_is_told(tmp_path: Path) -> None:
    """A file stands where the archive is to be."""
    (tmp_path / "file").touch()
    (one,) = imports(tmp_path, 1)
    with pytest.raises(LabError, match=r"not all is added: .*; run the same command again when it can work"):
        delta.append(tmp_path / "file" / "archive", [one])
