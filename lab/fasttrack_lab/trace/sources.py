# SPDX-License-Identifier: GPL-2.0-only
"""What a user names, opened: log files, an archive, or a recording of another tool."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import ibis

from fasttrack_lab.host import ui
from fasttrack_lab.host.errors import InputError
from fasttrack_lab.trace import engines, logs
from fasttrack_lab.trace.tables import Tables


def open_all(paths: Sequence[Path], engine: ibis.BaseBackend | None = None) -> Tables:
    """The tables of all PATHS: log files, their directories and imports together, an archive, or another recording."""
    engine = engine or engines.duckdb()
    for path in paths:
        if not path.exists():
            raise InputError("there is no such file or directory", path)
    archives = [path for path in paths if logs.is_archive(path)]
    others = [path for path in paths if path.is_file() and path.suffix != logs.SUFFIX]
    if len(paths) > 1 and (archives or others):
        raise InputError("an archive or a recording of another tool is read alone", (archives or others)[0])
    # Slow to import, and log files need neither.
    if archives:
        from fasttrack_lab.trace import delta  # noqa: PLC0415

        return delta.read(archives[0], engine)
    if others:
        from fasttrack_lab.trace.importers.importing import import_all  # noqa: PLC0415
        from fasttrack_lab.trace.importers.shown import told  # noqa: PLC0415

        with tempfile.TemporaryDirectory(prefix="fasttrack-trace-") as where:
            imported = import_all(others, Path(where))
            for line in told(imported):
                ui.say(line)
            return logs.read([Path(where)], engine)
    for path in paths:
        if not (logs.is_logs(path) or logs.is_exported(path)):
            raise InputError("no log file of fasttrack-trace (*.ftlog) is there, and no archive", path)
    return logs.read(paths, engine)
