# SPDX-License-Identifier: GPL-2.0-only
"""Recorded inputs: MobiGen system calls, Pixel 6a block I/O, blktrace text.

`load` recognises the format by content and gives a `Trace`: normalised calls, the files that they need, statistics.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path

from fasttrack_lab.host.errors import InputError, unknown
from fasttrack_lab.inputs.traces import blktrace, mobigen, pixel6a
from fasttrack_lab.inputs.traces.model import Call, NeededFile, Stats, Trace, Window, read_lines

__all__ = ["FORMATS", "Call", "NeededFile", "Stats", "Trace", "Window", "load", "recognise"]

_READERS: dict[str, tuple[Callable[[str], bool], Callable[[Path, Window], Trace]]] = {
    "mobigen": (mobigen.recognises, mobigen.read),
    "pixel6a": (pixel6a.recognises, pixel6a.read),
    "blktrace": (blktrace.recognises, blktrace.read),
}
FORMATS = tuple(_READERS)
_PROBE_LINES = 50


def recognise(path: Path) -> str:
    """The format of a recording, by its first lines."""
    for line in islice(read_lines(path), _PROBE_LINES):
        for name, (recognises, _) in _READERS.items():
            if recognises(line):
                return name
    raise InputError(
        f"the format is not recognised by the first {_PROBE_LINES} lines; name it: {', '.join(FORMATS)}", path
    )


def load(path: Path | str, format: str | None = None, start_s: float = 0.0, length_s: float | None = None) -> Trace:
    """Reads a recording. `start_s` and `length_s` choose a window, in seconds from the first event."""
    source = Path(path)
    if format is not None and format not in _READERS:
        raise InputError(unknown("trace format", format, FORMATS))
    if start_s < 0 or (length_s is not None and length_s <= 0):
        raise InputError("a window starts at 0 s or later and is longer than 0 s", source)
    window = Window(start_s, length_s)
    trace = _READERS[format or recognise(source)][1](source, window)
    if not trace.calls:
        cut = "" if window.whole else f" in the window from {start_s:g} s"
        raise InputError(f"nothing to replay{cut}: {trace.stats.lines} lines, all left out", source)
    return trace
