# SPDX-License-Identifier: GPL-2.0-only
"""All formats, and which one a file has."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fasttrack_lab.host.errors import InputError, UsageProblem, unknown
from fasttrack_lab.inputs.traces import mobigen
from fasttrack_lab.trace.importers import (
    androtrace_uio,
    blkparse_text,
    blktrace_files,
    ftrace_text,
    most_text,
    perfetto_file,
    phone_csv,
    trace_dat,
)
from fasttrack_lab.trace.importers.intake import Intake
from fasttrack_lab.trace.importers.unpack import OTHERS, head_of

_HEAD = 256 * 1024
"""Bytes by which a format is recognised: systrace's begin with a long page."""


@dataclass(frozen=True)
class Format:
    """A format."""

    name: str
    binary: bool
    recognises: Callable[[bytes], bool]
    read: Callable[[Sequence[Path], Intake], None]


def _by_text(recognises: Callable[[str], bool]) -> Callable[[bytes], bool]:
    def of_bytes(head: bytes) -> bool:
        # A power cut leaves zeros behind a text.
        text = head[:4096].rstrip(b"\0")
        return b"\0" not in text and recognises(head.decode("utf-8-sig", errors="replace"))

    return of_bytes


_ALL = (
    Format("trace.dat", True, trace_dat.recognises, trace_dat.read),
    Format("blktrace", True, blktrace_files.recognises, blktrace_files.read),
    Format("perfetto", True, perfetto_file.recognises, perfetto_file.read),
    Format("androtrace", True, androtrace_uio.recognises, androtrace_uio.read),
    Format("pixel6a", False, _by_text(phone_csv.recognises), phone_csv.read),
    Format("blkparse", False, _by_text(blkparse_text.recognises), blkparse_text.read),
    Format("most", False, _by_text(most_text.recognises), most_text.read),
    Format("ftrace", False, _by_text(ftrace_text.recognises), ftrace_text.read),
)
FORMATS = {one.name: one for one in _ALL}
"""By name, in the order in which they are tried."""

PER_CPU = re.compile(r"(?P<stem>.+\.blktrace)\.\d+(?:\.gz|\.zst)?")
"""Names of blktrace's files."""


def of_file(path: Path) -> Format | None:
    """The format of a file by its content; None where it has none of ours."""
    head = head_of(path, _HEAD)
    return next((one for one in _ALL if head and one.recognises(head)), None)


def named(name: str) -> Format:
    """The format NAME."""
    if name not in FORMATS:
        raise UsageProblem(unknown("format", name, FORMATS))
    return FORMATS[name]


def unrecognised(path: Path) -> InputError:
    """Why a file is none of ours."""
    begin = head_of(path, _HEAD)
    if not begin.strip(b"\0\r\n\t "):
        return InputError("it is empty: nothing was recorded, or nothing was copied", path)
    packed = next((name for sign, name in OTHERS.items() if begin.startswith(sign)), None)
    if packed is not None:
        return InputError(f"packed by {packed}: unpack it first", path)
    head = begin.decode("utf-8", errors="replace")
    if any(mobigen.recognises(line) for line in head.splitlines()[:50]):
        return InputError(f"a recording of mobigen has no block I/O; read are {', '.join(FORMATS)}", path)
    return InputError(f"the format is not recognised by the file's begin; name it: {', '.join(FORMATS)}", path)
