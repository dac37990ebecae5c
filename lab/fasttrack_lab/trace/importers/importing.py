# SPDX-License-Identifier: GPL-2.0-only
"""Imports files of other tools: which are one recording, what came of each, and a directory that is whole or not there.

A recording's session is made from the content of its files, so who imports them again has the same records.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fasttrack_lab.host.errors import InputError, UsageProblem
from fasttrack_lab.host.paths import digest, file_sha256
from fasttrack_lab.trace import engines, exporting, logs
from fasttrack_lab.trace.importers.choosing import chosen_of
from fasttrack_lab.trace.importers.event_join import BIO_FROM, Joiner
from fasttrack_lab.trace.importers.formats import Format, named
from fasttrack_lab.trace.importers.intake import Damage, Intake
from fasttrack_lab.trace.importers.record_files import RecordFiles
from fasttrack_lab.trace.importers.unpack import unpacked

_ID = 32
"""Letters of a session's id."""
_SORT_MEMORY = "256MB"
"""Of DuckDB while it sorts events; what is more goes to a temporary directory."""
_PLAIN = "{}.plain"
"""What is in a packed file, by its place."""
_MADE_FROM = {"Q": "queue", "D": "issue", "I": "insert", "C": "completion"}


@dataclass
class Recording:
    """What came of the files of one recording."""

    format: str
    files: list[Path]
    session: str
    kinds: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    made_from: list[str] = field(default_factory=list)
    """Events that the bios are, by devices."""
    unended: int = 0
    lost: int = 0
    """Losses that the tracer told of."""
    clocked: bool = False
    """Whether real time is known."""


@dataclass
class Imported:
    """What came of all."""

    recordings: list[Recording] = field(default_factory=list)
    damages: list[Damage] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    rows: Counter[str] = field(default_factory=Counter)
    """Records by kind."""
    known: Counter[tuple[str, str]] = field(default_factory=Counter)

    def shares(self) -> dict[str, float]:
        """What is known of bios, segments and requests: the share of them, by RECORD.FIELD."""
        return {
            f"{kind}.{column}": self.known[kind, column] / self.rows[kind]
            for kind, columns in logs.record_columns().items()
            if kind in ("bio", "segment", "request") and self.rows[kind]
            for column in columns
            if column not in ("session", "log", "time", "bio")
        }

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "recordings": [
                {
                    "format": one.format,
                    "files": [str(path) for path in one.files],
                    "session": one.session,
                    "events": dict(one.kinds),
                    "skipped": dict(one.skipped),
                    "bios_from": one.made_from,
                    "unended": one.unended,
                    "losses": one.lost,
                    "real_time": one.clocked,
                }
                for one in self.recordings
            ],
            "records": dict(self.rows),
            "known": self.shares(),
            "damage": [
                {"path": str(one.path), "at": one.at, "bytes": one.bytes, "records": one.records, "what": one.what}
                for one in self.damages
            ],
            "notes": self.notes,
        }


def import_all(sources: Sequence[Path], out: Path, form: str | None = None, install: str | None = None) -> Imported:
    """Makes the directory OUT of SOURCES: files and directories of them. FORM: their format; else it is recognised."""
    if install is not None and not (install.isascii() and install.isalnum()):
        raise UsageProblem(f"'{install}' is no id of an installation: letters and digits")
    if out.exists() and not (out.is_dir() and (exporting.is_exported(out) or not any(out.iterdir()))):
        raise InputError("is there and is no import; name another directory", out)
    imported = Imported()
    chosen = chosen_of(sources, None if form is None else named(form), imported.damages, imported.notes)
    out.parent.mkdir(parents=True, exist_ok=True)
    where = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    try:
        made = where / "made"
        made.mkdir()
        with RecordFiles(made) as files:
            _import(chosen, files, where, install, imported)
            imported.rows, imported.known = files.rows, files.known
        if out.exists():
            shutil.rmtree(out)
        made.rename(out)
    finally:
        shutil.rmtree(where, ignore_errors=True)
    return imported


def _import(
    chosen: list[tuple[Format, list[Path]]], files: RecordFiles, where: Path, install: str | None, imported: Imported
) -> None:
    """Each recording after the other."""
    seen: set[str] = set()
    for number, (form, paths) in enumerate(chosen):
        session = digest([form.name, *(file_sha256(path) for path in paths)])[:_ID]
        if session in seen:
            imported.notes.append(f"{paths[0]}: left out: the same content is imported already")
            continue
        seen.add(session)
        folder = where / str(number)
        folder.mkdir()
        intake = Intake(folder)
        _read(form, paths, folder, intake)
        intake.close()
        _put(form, paths, session, install or session[:16], intake, files, imported)
        shutil.rmtree(folder)
    for damage in imported.damages:
        place = {"session": damage.session, "log": damage.session and 1}
        said = {name: getattr(damage, name) for name in ("at", "bytes", "records", "what")}
        files.put("damage", {**said, **place, "path": str(damage.path)})


def _read(form: Format, paths: list[Path], folder: Path, intake: Intake) -> None:
    """Gives the files to the format's reader, unpacked."""
    plain = []
    for place, path in enumerate(paths):
        try:
            plain.append(unpacked(path, folder / _PLAIN.format(place), intake.damage))
            if len(paths) == 1 and not plain[-1].stat().st_size:
                # One of several processors may have none.
                intake.damage(path, 0, 0, "it is empty: nothing was recorded, or nothing was copied")
                plain.pop()
        except OSError as error:
            intake.damage(path, 0, 0, f"cannot be read: {error.strerror}")
    try:
        form.read(plain, intake)
    except OSError as error:
        intake.damage(paths[0], 0, 0, f"cannot be read: {error.strerror}")


def _put(
    form: Format, paths: list[Path], session: str, install: str, intake: Intake, files: RecordFiles, imported: Imported
) -> None:
    """The records of a recording."""
    joiner = Joiner(session, intake, files)
    begin = min((clock.time for clock in intake.clocks), default=0)
    joiner.put(
        "session",
        {
            "time": begin,
            "install": install,
            "kernel": intake.kernel,
            "collector": "import",
            "sources": form.name,
            "events": " ".join(kind for kind in sorted(intake.kinds)),
            "clear_names": True,
            "page_bytes": intake.page_bytes,
        },
    )
    for clock in intake.clocks:
        offset = intake.utc_offset_s if clock.utc_offset_s is None else clock.utc_offset_s
        joiner.put(
            "clock",
            {
                "time": clock.time,
                "reason": "file_start",
                "real_ns": clock.real_ns,
                "monotonic_ns": clock.monotonic_ns,
                "utc_offset_s": offset,
            },
        )
    for loss in intake.losses:
        joiner.put(
            "loss",
            {"time": loss.time, "reason": "ring_overrun", "cpu": loss.cpu, "since": loss.since, "count": loss.count},
        )
    joiner.join(intake.in_order(engines.duckdb(_SORT_MEMORY)))
    unpacked_to = {intake.folder / _PLAIN.format(place): path for place, path in enumerate(paths)}
    imported.damages += [
        replace(one, path=unpacked_to.get(one.path, one.path), session=session) for one in intake.damages
    ]
    bases = {next((kind for kind in BIO_FROM if kind in kinds), "") for kinds in intake.by_device.values()}
    imported.recordings.append(
        Recording(
            form.name,
            paths,
            session,
            intake.kinds,
            intake.skipped,
            sorted(_MADE_FROM[kind] for kind in bases if kind),
            joiner.unended,
            len(intake.losses),
            bool(intake.clocks),
        )
    )
