# SPDX-License-Identifier: GPL-2.0-only
"""What came of an import, as lines for a person: what was read, what is known of it, what is missing."""

from __future__ import annotations

from collections.abc import Iterator

from fasttrack_lab.trace.importers.importing import Imported, Recording

_SKIPPED = 8
"""Kinds of events that are named; of the others how many."""
_PLACES = 20
"""Damaged places that are named; damage.csv has more."""


def told(imported: Imported) -> Iterator[str]:
    """The lines."""
    for recording in imported.recordings:
        yield from _recording(recording)
    rows = imported.rows
    yield f"records: {rows['bio']} bios, {rows['request']} requests, {rows['task']} tasks, {rows['file']} files"
    shares = imported.shares()
    if shares:
        known = [f"{name} {share * 100:.0f} %" for name, share in shares.items() if share]
        yield f"known: {', '.join(known)}"
        yield f"unknown in all records: {', '.join(name for name, share in shares.items() if not share)}"
    for damage in imported.damages[:_PLACES]:
        yield f"DAMAGED {damage.path}: {damage.what}: {damage.bytes} bytes at byte {damage.at}"
    if len(imported.damages) > _PLACES:
        yield f"DAMAGED: {len(imported.damages) - _PLACES} places more; damage.csv has them"
    yield from imported.notes


def _recording(one: Recording) -> Iterator[str]:
    names = ", ".join(str(path) for path in one.files[:4])
    more = f" and {len(one.files) - 4} more" if len(one.files) > 4 else ""
    events = ", ".join(f"{count} {kind}" for kind, count in sorted(one.kinds.items())) or "no events of block I/O"
    yield f"{names}{more}: {one.format}, {events}"
    if one.made_from not in ([], ["queue"]):
        yield f"  without queue events a bio stands for each {' or '.join(one.made_from)}: merged bios are one"
    if one.unended:
        yield f"  {one.unended} requests have no end in it"
    if one.lost:
        yield f"  the tracer lost events {one.lost} times"
    if not one.clocked:
        yield "  it does not say the real time: hours and days are unknown"
    if one.skipped:
        some = one.skipped.most_common(_SKIPPED)
        rest = sum(one.skipped.values()) - sum(count for _, count in some)
        others = f", {rest} others" if rest else ""
        yield f"  left out: {', '.join(f'{count} {what}' for what, count in some)}{others}"
