# SPDX-License-Identifier: GPL-2.0-only
"""What a user names, opened: log files, an archive, or a recording of another tool."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from fasttrack_lab.host import ui
from fasttrack_lab.host.errors import InputError
from fasttrack_lab.trace import exporting

if TYPE_CHECKING:
    from fasttrack_lab.trace.plain_duckdb import Connected, Plain
    from fasttrack_lab.trace.tables import Tables


def filled(paths: Sequence[Path], counted: bool = False) -> Connected:
    """DuckDB with the tables of all PATHS, which `open_all` describes, for queries in SQL.

    Without Ibis, unless it is an archive.
    """
    _check(paths)
    if any(exporting.is_archive(path) for path in paths):
        return cast("Connected", open_all(paths).engine)
    return _of_records(paths, counted)


def open_all(paths: Sequence[Path], counted: bool = False, engine: str | None = None, prefix: str = "") -> Tables:
    """The tables of all PATHS: log files, their directories and imports together, an archive, or another recording.

    COUNTED: of records only the columns are read and joined that metrics count over. ENGINE: the URL of another engine
    than DuckDB, for an archive, whose tables are called by their names after PREFIX there.
    """
    _check(paths)
    # Slow to import, and log files do not need it.
    if exporting.is_archive(paths[0]):
        from fasttrack_lab.trace import delta, engines  # noqa: PLC0415

        return delta.read(paths[0], engines.connect(engine), prefix)
    if engine is not None:
        raise InputError(
            "another engine than DuckDB reads an archive: `trace archive ARCHIVE PATH` makes one", paths[0]
        )
    plain = _of_records(paths, counted)
    from fasttrack_lab.trace import engines, logs  # noqa: PLC0415

    return logs.of_filled(engines.of_plain(plain), counted)


def _check(paths: Sequence[Path]) -> None:
    for path in paths:
        if not path.exists():
            raise InputError("there is no such file or directory", path)
    alone = [path for path in paths if exporting.is_archive(path) or _is_other(path)]
    if alone and len(paths) > 1:
        raise InputError("an archive or a recording of another tool is read alone", alone[0])


def _is_other(path: Path) -> bool:
    """Whether PATH is a recording of another tool."""
    return path.is_file() and path.suffix != exporting.SUFFIX


def _of_records(paths: Sequence[Path], counted: bool) -> Plain:
    """A database with the tables of log files, or of another recording."""
    with (_imported if _is_other(paths[0]) else _exported)(paths, counted) as folders:
        # The database is loaded while log files are exported.
        from fasttrack_lab.trace import logs, plain_duckdb  # noqa: PLC0415

        plain = plain_duckdb.connect()
        logs.fill(folders(), plain, counted)
        return plain


def _exported(paths: Sequence[Path], counted: bool) -> AbstractContextManager[Callable[[], list[Path]]]:
    """The folders of log files' tables."""
    for path in paths:
        if not (exporting.is_logs(path) or exporting.is_exported(path)):
            raise InputError("no log file of fasttrack-trace (*.ftlog) is there, and no archive", path)
    return exporting.exported(paths, counted)


@contextmanager
def _imported(others: Sequence[Path], _: bool) -> Iterator[Callable[[], list[Path]]]:
    """The folder of another recording's tables; of what it leaves out or guesses is told."""
    from fasttrack_lab.trace.importers.importing import import_all  # noqa: PLC0415
    from fasttrack_lab.trace.importers.shown import told  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="fasttrack-trace-") as where:
        imported = import_all(others, Path(where))
        for line in told(imported):
            ui.say(line)
        yield lambda: [Path(where)]
