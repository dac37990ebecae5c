# SPDX-License-Identifier: GPL-2.0-only
"""What a PATH is, and log files as records: `fasttrack-trace export` makes CSV files of them.

Without the database: this takes a second to load, in which the export is on its way.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fasttrack_lab.build import guest_program
from fasttrack_lab.host import process, ui
from fasttrack_lab.host.errors import LabError

DAMAGED = 3
"""Exit status of `fasttrack-trace export` after it has told of damage and has written the rest."""
SUFFIX = ".ftlog"

COUNTED = {
    "bio": "time bio dev operation sector bytes sync class cause carrier app_uid",
    "segment": "time bio bytes block_type file owner call",
    "request": "time operation first_bio queued_ns device_ns",
    "call": "time kind file bytes duration_ns",
    "wait": "time task kind duration_ns class thread",
}
"""Of the kinds with many records, the columns that metrics count over: those of `tables.COUNTED` are made from them."""


def is_logs(path: Path) -> bool:
    """Whether PATH is a log file or a directory that has one."""
    return path.suffix == SUFFIX or (path.is_dir() and any(path.glob(f"*{SUFFIX}")))


def is_exported(path: Path) -> bool:
    """Whether PATH is a directory of records as `fasttrack-trace export` and `./fasttrack trace import` make it."""
    return all((path / f"{record}.csv").is_file() for record in ("session", "bio", "damage"))


def is_of_session(path: Path) -> bool:
    """Whether PATH is a session's directory in one of records, whose name is the id: damage is beside these."""
    return not (path / "damage.csv").exists()


def is_archive(path: Path) -> bool:
    """Whether PATH is the directory of an archive (`delta.py`)."""
    return (path / "io" / "_delta_log").is_dir()


def start(paths: Sequence[Path], to: Path, counted: bool = False) -> Callable[[], None]:
    """Begins to export log files into the directory TO; what is given back waits for the end.

    COUNTED: columns alone that metrics count over, of each session in a directory with its id as name.
    """
    program = str(guest_program.build(guest_program.COLLECTOR))
    few = [f"--columns={kind}={','.join(names.split())}" for kind, names in COUNTED.items()]
    asked = ["--by-session", *few] if counted else []
    child = process.start([program, "export", "--output", str(to), *asked, *map(str, paths)], stderr=None)

    def wait() -> None:
        ended = process.finish(child, None)
        if ended.status not in (0, DAMAGED):
            raise LabError(f"fasttrack-trace export ended with status {ended.status}")
        if ended.status == DAMAGED:
            ui.say("the damaged parts are losses in what follows")

    return wait


@contextmanager
def exported(paths: Sequence[Path], counted: bool = False) -> Iterator[Callable[[], list[Path]]]:
    """The directories of records of log files, of their directories, and of what is exported already: when asked for.

    Temporary ones are there within the context. COUNTED: of log files, what metrics count over.
    """
    with tempfile.TemporaryDirectory(prefix="fasttrack-trace-") as where:
        folders = [path for path in paths if is_exported(path)]
        logged = [path for path in paths if path not in folders]
        wait = start(logged, Path(where), counted) if logged else None

        def ready() -> list[Path]:
            if wait is None:
                return folders
            wait()
            return [*folders, *sorted(path for path in Path(where).iterdir() if path.is_dir()), Path(where)]

        yield ready
