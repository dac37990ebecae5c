# SPDX-License-Identifier: GPL-2.0-only
"""Which of the files that a user names are one recording, and in which format they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from fasttrack_lab.host.errors import InputError
from fasttrack_lab.trace.importers.formats import PER_CPU, Format, of_file, unrecognised
from fasttrack_lab.trace.importers.intake import Damage

Chosen = list[tuple[Format, list[Path]]]


def chosen_of(sources: Sequence[Path], form: Format | None, damages: list[Damage], notes: list[str]) -> Chosen:
    """The files of each recording. A file that is named and is no trace is damage; one of a directory is a note."""
    found: defaultdict[tuple[str, Path], list[Path]] = defaultdict(list)
    forms: dict[str, Format] = {}
    first: InputError | None = None
    for path, is_named in _files(sources):
        try:
            its = form or of_file(path)
            size = path.stat().st_size
        except OSError as error:
            damages.append(Damage(path, 0, 0, f"cannot be read: {error.strerror}"))
            continue
        if its is not None:
            forms[its.name] = its
            if path not in found[its.name, _stem(path)]:
                found[its.name, _stem(path)].append(path)
        elif size > 0 or _stem(path) == path:
            why = unrecognised(path)
            first = first or why
            if is_named:
                damages.append(Damage(path, 0, size, why.problem))
            else:
                notes.append(f"{path}: left out: {why.problem}")
        # Else it is of a processor without an event.
    if not found:
        raise first or InputError("there is no file of another tool that can be read", sources[0])
    notes += _forgotten(found)
    return [(forms[name], sorted(paths)) for (name, _), paths in found.items()]


def _files(sources: Sequence[Path]) -> Iterator[tuple[Path, bool]]:
    """Each file, and whether the user has named it."""
    for source in sources:
        if not source.exists():
            raise InputError("there is no such file or directory", source)
        if source.is_dir():
            yield from ((path, False) for path in sorted(source.iterdir()) if path.is_file())
        else:
            yield source, True


def _stem(path: Path) -> Path:
    """What the files of one recording have in common: blktrace writes a file for each processor."""
    match = PER_CPU.fullmatch(path.name)
    return path.with_name(match["stem"]) if match else path


def _forgotten(found: dict[tuple[str, Path], list[Path]]) -> Iterator[str]:
    """Files of blktrace that stand beside those that are named."""
    for (_, stem), paths in found.items():
        if stem in paths:
            continue
        beside = {path for path in stem.parent.glob(f"{stem.name}.*") if PER_CPU.fullmatch(path.name)}
        if more := sorted(path.name for path in beside - set(paths) if path.stat().st_size):
            yield f"{stem}: of the same recording, and not named: {', '.join(more)}"
