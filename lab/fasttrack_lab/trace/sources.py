# SPDX-License-Identifier: GPL-2.0-only
"""What a user names, opened: log files, an archive, or a recording of another tool."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fasttrack_lab.host import ui
from fasttrack_lab.host.errors import InputError
from fasttrack_lab.trace import exporting

if TYPE_CHECKING:
    from fasttrack_lab.trace.tables import Tables


def open_all(paths: Sequence[Path], counted: bool = False, engine: str | None = None, prefix: str = "") -> Tables:
    """The tables of all PATHS: log files, their directories and imports together, an archive, or another recording.

    COUNTED: of records only the columns are read and joined that metrics count over. ENGINE: the URL of another engine
    than DuckDB, for an archive, whose tables are called by their names after PREFIX there.
    """
    for path in paths:
        if not path.exists():
            raise InputError("there is no such file or directory", path)
    archives = [path for path in paths if exporting.is_archive(path)]
    others = [path for path in paths if path.is_file() and path.suffix != exporting.SUFFIX]
    if len(paths) > 1 and (archives or others):
        raise InputError("an archive or a recording of another tool is read alone", (archives or others)[0])
    # Slow to import, and log files do not need it.
    if archives:
        from fasttrack_lab.trace import delta, engines  # noqa: PLC0415

        return delta.read(archives[0], engines.connect(engine), prefix)
    if engine is not None:
        raise InputError(
            "another engine than DuckDB reads an archive: `trace archive ARCHIVE PATH` makes one", paths[0]
        )
    if others:
        return _imported(others, counted)
    for path in paths:
        if not (exporting.is_logs(path) or exporting.is_exported(path)):
            raise InputError("no log file of fasttrack-trace (*.ftlog) is there, and no archive", path)
    with exporting.exported(paths, counted) as folders:
        # The database is loaded while log files are exported.
        from fasttrack_lab.trace import engines, logs  # noqa: PLC0415

        return logs.of_records(folders(), engines.duckdb(), counted)


def _imported(others: Sequence[Path], counted: bool) -> Tables:
    from fasttrack_lab.trace import engines, logs  # noqa: PLC0415
    from fasttrack_lab.trace.importers.importing import import_all  # noqa: PLC0415
    from fasttrack_lab.trace.importers.shown import told  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="fasttrack-trace-") as where:
        imported = import_all(others, Path(where))
        for line in told(imported):
            ui.say(line)
        return logs.of_records([Path(where)], engines.duckdb(), counted)
