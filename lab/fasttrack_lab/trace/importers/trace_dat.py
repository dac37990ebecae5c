# SPDX-License-Identifier: GPL-2.0-only
"""trace-cmd's trace.dat of versions 6 and 7: trace-cmd.dat.v6(5), trace-cmd.dat.v7(5).

Own code, not trace-cmd: that reads nothing of a file that is cut, and is not everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fasttrack_lab.trace.importers import file_events, ring_pages
from fasttrack_lab.trace.importers.dat_sections import MAGIC, Buffer, Contents, Cut, contents_of
from fasttrack_lab.trace.importers.event_formats import Format, number_of
from fasttrack_lab.trace.importers.intake import BLOCK_EVENTS, Clock, Intake, Loss, block_event

_TICKS = ("counter", "x86-tsc", "ppc-tb")
"""Clocks that do not count ns. trace-cmd says the ns of a tick for the second."""


def recognises(head: bytes) -> bool:
    """Whether a file begins so."""
    return head.startswith(MAGIC)


def read(files: Sequence[Path], intake: Intake) -> None:
    """Reads files."""
    for path in files:
        try:
            contents = contents_of(path, intake.damage)
        except Cut as cut:
            intake.damage(path, cut.at, max(0, path.stat().st_size - cut.at), f"{cut}; nothing of it can be read")
            continue
        _Reader(path, contents, intake).read()


class _Reader:
    """Reads the events of a file."""

    def __init__(self, path: Path, contents: Contents, intake: Intake) -> None:
        self._path = path
        self._contents = contents
        self._intake = intake
        self._order = contents.order
        self._formats: dict[int, tuple[Format, str | None]] = {
            one.number: (one, BLOCK_EVENTS.get(one.name)) for one in contents.formats
        }

    def read(self) -> None:
        said = self._contents
        if said.uname:
            words = said.uname.split()
            self._intake.kernel = words[2] if len(words) > 2 else None
        self._intake.page_bytes = said.page_bytes
        if said.real_offset is not None:
            self._intake.clocks.append(Clock(0, said.real_offset))
        if not self._formats:
            self._intake.damage(self._path, 0, 0, "it has no formats of events; nothing of it can be read")
            return
        if not any(kind for _, kind in self._formats.values()):
            self._intake.damage(self._path, 0, 0, "it has no format of a block event: none was recorded")
            return
        for buffer in said.buffers:
            if (buffer.clock or said.clock) in _TICKS and said.tick is None:
                what = f"the clock {buffer.clock or said.clock} does not count ns"
                self._intake.damage(self._path, 0, 0, f"{what}; {buffer.name or 'the buffer'} is left out")
                continue
            for cpu in buffer.cpus:
                self._processor(buffer, cpu.number, cpu.at, cpu.size)

    def _processor(self, buffer: Buffer, cpu: int, at: int, size: int) -> None:
        """The pages of a processor."""
        layout = self._contents.page
        last: int | None = None
        pages = ring_pages.pages(
            self._path,
            at,
            size,
            buffer.page_bytes,
            self._contents.codec if buffer.packed else None,
            self._order,
            self._intake.damage,
        )
        for place, page in pages:
            found = ring_pages.events(page, layout, self._order)
            for lost in found.lost:
                self._intake.losses.append(Loss(self._time(found.begin), last, cpu, lost))
            for ticks, data in found.events:
                last = self._time(ticks)
                self._event(last, data)
            if found.wrong:
                self._intake.damage(self._path, place, len(page), f"processor {cpu}: {found.wrong}")

    def _time(self, ticks: int) -> int:
        said = self._contents
        if said.tick is not None:
            multiplier, shift = said.tick
            ticks = ticks * multiplier >> shift
        return max(0, ticks + said.offset)

    def _event(self, time: int, data: bytes) -> None:
        order = self._order
        number = number_of(data[:2], order)
        found = self._formats.get(number)
        if found is None:
            self._intake.skipped["events without a format"] += 1
            return
        form, kind = found
        if form.name in file_events.FILE_EVENTS:
            pid = form.integer(data, "common_pid", order)
            file_events.take(form.name, time, pid, None, lambda name: _said(form, data, name, order), self._intake)
            return
        if kind is None:
            self._intake.skipped[form.name] += 1
            return
        rwbs = form.text(data, "rwbs", order)
        if rwbs is None:
            self._intake.skipped[f"{form.name} that is cut"] += 1
            return
        error = form.integer(data, "error", order)
        self._intake.event(
            block_event(
                kind,
                time,
                form.integer(data, "dev", order),
                form.integer(data, "sector", order),
                form.integer(data, "nr_sector", order),
                form.integer(data, "bytes", order),
                rwbs,
                form.integer(data, "common_pid", order),
                form.text(data, "comm", order) or None,
                form.integer(data, "errors", order) if error is None else error,
            )
        )


def _said(form: Format, data: bytes, name: str, order: str) -> int | str | None:
    """A field of an event: names are texts."""
    return form.text(data, name, order) if name == "name" else form.integer(data, name, order)
