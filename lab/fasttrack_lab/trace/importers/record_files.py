# SPDX-License-Identifier: GPL-2.0-only
"""Records as files: a CSV file for each kind, in the columns of contract/trace.toml, as `fasttrack-trace export`."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from fasttrack_lab.trace.logs import record_columns

_QUOTED = re.compile(r'[",\n\r]')


class RecordFiles:
    """Writes the records of recordings into a directory."""

    def __init__(self, folder: Path) -> None:
        """The directory is there."""
        self.known: Counter[tuple[str, str]] = Counter()
        """Records in which a column is known, by kind and column."""
        self.rows: Counter[str] = Counter()
        self._open = ExitStack()
        self._columns = record_columns()
        self._files = {}
        for kind, columns in self._columns.items():
            file = (folder / f"{kind}.csv").open("w", encoding="utf-8", newline="", errors="replace")
            self._files[kind] = self._open.enter_context(file)
            file.write(",".join(columns) + "\n")

    def __enter__(self) -> RecordFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def put(self, kind: str, fields: dict[str, Any]) -> None:
        """A record; a field that is None or not there is unknown."""
        self.rows[kind] += 1
        cells = []
        for column in self._columns[kind]:
            value = fields.get(column)
            if value is not None:
                self.known[kind, column] += 1
            cells.append(_cell(value))
        self._files[kind].write(",".join(cells) + "\n")


def _cell(value: Any) -> str:
    """As DuckDB reads it: nothing is unknown, an empty text is in quotes."""
    if value is None:
        return ""
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    text = str(value).replace("\0", "")
    if text == "" or _QUOTED.search(text):
        quoted = text.replace('"', '""')
        return f'"{quoted}"'
    return text
