# SPDX-License-Identifier: GPL-2.0-only
"""What a test imports of samples, and the records that came of it."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

from trace_samples import SAMPLES

from fasttrack_lab.trace.importers.formats import FORMATS
from fasttrack_lab.trace.importers.importing import Imported, import_all
from fasttrack_lab.trace.importers.intake import Intake
from fasttrack_lab.trace.importers.unpack import unpacked

Row = dict[str, Any]


def rows(out: Path, record: str) -> list[Row]:
    """The records of a kind, without their place; numbers as numbers, what is unknown is not there."""
    with (out / f"{record}.csv").open(newline="") as file:
        return [
            {name: int(value) if re.fullmatch(r"-?\d+", value) else value for name, value in row.items() if value != ""}
            for row in csv.DictReader(file)
        ]


def imported(tmp_path: Path, sample: str) -> tuple[Imported, Path]:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir(exist_ok=True)
    return import_all(SAMPLES[sample][1](folder), out), out


def written(tmp_path: Path, name: str, data: bytes | str) -> Path:
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def taken(form: str, path: Path, folder: Path) -> Intake:
    """What a reader says of one file, without the records."""
    folder.mkdir(exist_ok=True)
    intake = Intake(folder)
    FORMATS[form].read([unpacked(path, folder / "plain", intake.damage)], intake)
    intake.close()
    return intake
