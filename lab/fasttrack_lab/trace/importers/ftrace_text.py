# SPDX-License-Identifier: GPL-2.0-only
"""Events of ftrace as text: tracefs's `trace`, systrace and atrace (HTML, text, packed), `trace-cmd report`, perf.

dd-22051  ( 22051) [001] d..1.  8397.302345: block_bio_queue: 254,0 RS 320916992 + 16 [dd]
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from fasttrack_lab.trace.importers import file_events
from fasttrack_lab.trace.importers.intake import BLOCK_EVENTS, COMPLETE, QUEUE, Clock, Event, Intake, Loss, block_event
from fasttrack_lab.trace.importers.text_numbers import device, nanoseconds, whole
from fasttrack_lab.trace.importers.windows import CUT_LINE, Line, Unread, lines, take_lines

_LINE = re.compile(
    r"\s*(?P<comm>.*?)(?:-|\s+)(?P<pid>\d+)(?:/\d+)?\s+(?:\(\s*(?P<tgid>\d+|-+)\)\s+)?\[(?P<cpu>\d+)\]\s+"
    r"(?:[^\s:]{4,8}\s+)?(?P<time>\d+(?:\.\d+)?):\s+(?:\w+:)?(?P<event>\w+):(?:\s+(?P<rest>.*))?"
)
_SEEN = re.compile(r"\[\d+\]\s(?:.*\s)?-?\d+(?:\.\d+)?:\s")
"""An event. perf has nothing before the time, and of a machine that is up for hours one blank."""
_BIO = re.compile(r"(\d+),(\d+) (\S*) (\d+) \+ (\d+) \[(.*)\]\s*")
_REQUEST = re.compile(r"(\d+),(\d+) (\S*) (?:(\d+) )?\((.*?)\) (\d+) \+ (\d+)(?: \S+,\d+,\d+)? \[(.*)\]\s*")
_LOST = re.compile(r"CPU:(\d+) \[(?:LOST )?(?:(\d+) )?EVENTS(?: DROPPED)?\]")
_ENTRIES = re.compile(r"# entries-in-buffer/entries-written: (\d+)/(\d+).*")
_REAL = re.compile(r"trace_event_clock_sync: realtime_ts=(\d+)\s*")
_NO_NAME = "<...>"


def recognises(head: str) -> bool:
    """Whether a text is so."""
    if head.lstrip("\ufeff \r\n").lower().startswith(("<!doctype html", "<html")):
        return "trace" in head.lower()
    some = head.splitlines()[:400]
    return any(line.startswith("# tracer: ") for line in some) or any(
        (match := _LINE.fullmatch(line)) is not None and nanoseconds(match["time"]) is not None for line in some
    )


def _is_no_event(text: str) -> bool:
    """Whether the begin of a line is that of a comment or of a tag: tasks without a name have brackets, too."""
    unnamed = any(text.startswith(name) or name.startswith(text) for name in ("<idle>", "<...>"))
    return text == "" or text.startswith("#") or (text.startswith("<") and not unnamed)


def read(files: Sequence[Path], intake: Intake) -> None:
    """Reads texts."""
    for path in files:
        _Text(path, intake).read()


class _Text:
    """One text."""

    def __init__(self, path: Path, intake: Intake) -> None:
        self._path = path
        self._intake = intake
        self._last: int | None = None
        """Time of the last event."""
        self._lost: list[tuple[int | None, int | None]] = []
        """Losses before the next event: processor and count."""

    def read(self) -> None:
        take_lines(lines(self._path), Unread(self._path, self._intake.damage), self._line)
        self._tell_losses(self._last)

    def _line(self, line: Line) -> str | None:
        """Takes a line; why it is not understood."""
        if _SEEN.search(line.text) is None:
            self._aside(line.text)
            # Of a page the last line is a tag.
            return None if line.is_whole or _is_no_event(line.text.lstrip()) else CUT_LINE
        match = _LINE.fullmatch(line.text)
        if not line.is_whole and not line.text.endswith("]"):
            return CUT_LINE
        return "no event of ftrace" if match is None else self._event(match)

    def _aside(self, line: str) -> None:
        """A line that is no event: a heading, or a loss."""
        entries, lost = _ENTRIES.fullmatch(line), _LOST.search(line)
        if entries is not None and (gone := (whole(entries[2]) or 0) - (whole(entries[1]) or 0)) > 0:
            self._lost.append((None, gone))
        elif lost is not None:
            self._lost.append((whole(lost[1]), whole(lost[2])))

    def _tell_losses(self, time: int | None) -> None:
        for cpu, count in self._lost if time is not None else ():
            self._intake.losses.append(Loss(time or 0, self._last, cpu, count))
        if time is not None:
            self._lost.clear()

    def _event(self, match: re.Match[str]) -> str:
        """Takes an event; why it is not understood."""
        time = nanoseconds(match["time"])
        if time is None:
            return "its time is no time"
        if "." not in match["time"]:
            # Another clock than seconds: what a tick of it is, nobody says.
            return "its clock does not count seconds"
        if self._lost:
            self._tell_losses(time)
        self._last = time
        name, rest = match["event"], match["rest"] or ""
        kind = BLOCK_EVENTS.get(name)
        pid, tgid = whole(match["pid"]), whole(match["tgid"])
        if pid and tgid is not None:
            self._intake.task(pid).tgid = tgid
        if name in file_events.FILE_EVENTS:
            return self._file_event(name, time, pid, match["comm"].strip(), rest)
        if kind is None:
            real = _REAL.search(rest)
            if real is not None and (ms := whole(real[1])) is not None:
                self._intake.clocks.append(Clock(time, ms * 1_000_000))
            self._intake.skipped[name] += 1
            return ""
        event = _block(kind, time, pid, match["comm"], rest)
        if event is None:
            return f"{name} is not as the kernel prints it"
        self._intake.event(event)
        return ""

    def _file_event(self, name: str, time: int, pid: int | None, comm: str, rest: str) -> str:
        """Takes what a file system says; why it is not understood."""
        said = file_events.said_by(name, rest)
        if said is None:
            return f"{name} is not as the kernel prints it"
        file_events.take(name, time, pid, None if comm in ("", _NO_NAME) else comm, said, self._intake)
        return ""


def _block(kind: str, time: int, pid: int | None, comm: str, rest: str) -> Event | None:
    """A block event."""
    match = (_BIO if kind == QUEUE else _REQUEST).fullmatch(rest)
    if match is None:
        return None
    dev = device(match[1], match[2])
    if kind == QUEUE:
        size, sector, sectors, said = None, match[4], match[5], match[6]
    else:
        size, sector, sectors, said = whole(match[4]), match[6], match[7], match[8]
    error = int(said) if kind == COMPLETE and re.fullmatch(r"-?\d{1,6}", said) else None
    name: str | None = said or comm.strip()
    if name == _NO_NAME:
        name = None
    return block_event(kind, time, dev, whole(sector), whole(sectors), size, match[3], pid, name, error)
