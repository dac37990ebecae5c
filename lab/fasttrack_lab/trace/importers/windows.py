# SPDX-License-Identifier: GPL-2.0-only
"""A file through a window: what is read next, in little memory, with its place; and the lines of a text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

_CHUNK = 1 << 20
LINE = 1 << 16
"""Longer lines are no events: a binary file has such."""
_BOM = b"\xef\xbb\xbf"
"""Before the text of some editors and shells."""
TOO_LONG = "\ufffd"
"""In their place."""


class Window:
    """A binary file that is read from its begin to its end."""

    def __init__(self, path: Path, begin: int = 0, end: int | None = None) -> None:
        """The part BEGIN to END of the file."""
        self._file = path.open("rb")
        self._data = b""
        self._next = 0
        whole = path.stat().st_size
        self.size = whole if end is None else min(end, whole)
        """Where it ends, in bytes of the file."""
        self.at = min(begin, self.size)
        """Where it is."""
        self._file.seek(self.at)

    def __enter__(self) -> Window:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def has(self, count: int) -> bool:
        """Whether so many bytes follow; reads them."""
        if self.size - self.at < count:
            return False
        while len(self._data) - self._next < count:
            more = self._file.read(max(_CHUNK, count))
            if not more:
                self.size = self.at + len(self._data) - self._next
                return False
            self._data = self._data[self._next :] + more
            self._next = 0
        return True

    def peek(self, count: int) -> bytes:
        """The next bytes, which are there."""
        return self._data[self._next : self._next + count]

    def skip(self, count: int) -> None:
        """Goes on by bytes, which are there."""
        self._next += count
        self.at += count

    def take(self, count: int) -> bytes:
        """The next bytes, which are there, and goes on."""
        found = self.peek(count)
        self.skip(count)
        return found

    def skip_to(self, signs: Sequence[bytes]) -> None:
        """To the next place after this that begins with one of SIGNS, or to the end."""
        self.skip(1)
        longest = max(map(len, signs))
        while self.has(1):
            self.has(min(_CHUNK, self.size - self.at))
            data = self._data[self._next : self._next + self.size - self.at]
            places = [place for sign in signs if (place := data.find(sign)) >= 0]
            if places:
                self.skip(min(places))
                return
            rest = 0 if self.at + len(data) >= self.size else longest - 1
            self.skip(len(data) - rest)


CUT_LINE = "the last line has no end: it may be cut"
"""Why it is not read."""


class Line(NamedTuple):
    """A line of a text."""

    at: int
    """Byte of the file."""
    number: int
    text: str
    is_whole: bool
    """It has its end: the last line of a file that was cut has none."""
    until: int
    """Where the next one begins."""


def lines(path: Path) -> Iterator[Line]:
    """The lines of a file; a longer one than LINE is `TOO_LONG`."""
    with path.open("rb") as file:
        at, number = 0, 0
        while line := file.readline(LINE):
            number += 1
            begin, part = at, line
            at += len(line)
            while not part.endswith(b"\n") and (more := file.readline(LINE)):
                at += len(more)
                line, part = b"", more
            if number == 1:
                line = line.removeprefix(_BOM)
            text = line.decode("utf-8", errors="replace").rstrip("\r\n") if line else TOO_LONG
            yield Line(begin, number, text, part.endswith(b"\n"), at)


class Unread:
    """Lines of a text that are no events: neighbours are told of together."""

    def __init__(self, path: Path, tell: Callable[[Path, int, int, str, int | None], None]) -> None:
        """TELL takes damage."""
        self._path = path
        self._tell = tell
        self._begin: tuple[int, int, str] | None = None
        self._count = 0

    def line(self, at: int, number: int, why: str) -> None:
        """A line that is not understood."""
        if self._begin is None:
            self._begin = at, number, why
        self._count += 1

    def until(self, at: int) -> None:
        """The next line, or the end, is understood."""
        if self._begin is None:
            return
        begin, number, why = self._begin
        where = f"line {number}" if self._count == 1 else f"lines {number} to {number + self._count - 1}"
        self._tell(self._path, begin, at - begin, f"{where}: {why}", self._count)
        self._begin, self._count = None, 0


def take_lines(some: Iterable[Line], unread: Unread, take: Callable[[Line], str | None]) -> None:
    """Gives lines to TAKE, which says why one is not understood: nothing where it is, None where it is no matter."""
    end = 0
    for line in some:
        end = line.until
        why = take(line)
        if why:
            unread.line(line.at, line.number, why)
        elif why is not None:
            unread.until(line.at)
    unread.until(end)
