# SPDX-License-Identifier: GPL-2.0-only
"""Where in a TOML file each key stands, which `tomllib` does not tell.

The text must have been accepted by `tomllib` before: this scanner follows valid TOML only and checks nothing.
A place is a tuple of keys and list indices, as in `("app", 0, "thread", 1, "steps", 3, "bytes")`.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left
from collections import defaultdict

KeyPath = tuple[str | int, ...]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SCALAR = re.compile(r"[^,\]}\n#]+")
_STRING = re.compile(r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\])*"|\'[^\']*\'', re.DOTALL)


class _Scanner:
    """Walks the text once and notes the line of every key and list element."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.ends = [match.start() for match in re.finditer("\n", text)]
        self.lines: dict[KeyPath, int] = {}
        self.implied: dict[KeyPath, int] = {}
        self.tables: defaultdict[KeyPath, int] = defaultdict(int)

    def note(self, place: KeyPath) -> None:
        """Remembers the present line for a place, the first time it is met; and for those that its name implies."""
        line = bisect_left(self.ends, self.at) + 1
        self.lines.setdefault(place, line)
        for depth in range(1, len(place)):
            self.implied.setdefault(place[:depth], line)

    def skip(self) -> None:
        """Over white space, line ends and comments."""
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def keys(self, end: str) -> list[str]:
        """A dotted key up to the character `end`, which is consumed."""
        found: list[str] = []
        while True:
            self.skip()
            char = self.text[self.at]
            if char in "\"'":
                match = _STRING.match(self.text, self.at)
                assert match is not None
                found.extend(tomllib.loads(f"{match[0]} = 0"))
                self.at = match.end()
            elif char in (".", end):
                self.at += 1
                if char == end:
                    return found
            else:
                match = _BARE.match(self.text, self.at)
                assert match is not None
                found.append(match[0])
                self.at = match.end()

    def resolve(self, keys: list[str], new_element: bool) -> KeyPath:
        """The place that a table header names; `[[x]]` opens the next element of the list x."""
        place: KeyPath = ()
        for depth, key in enumerate(keys):
            place += (key,)
            last = depth == len(keys) - 1
            if last and new_element:
                self.tables[place] += 1
            if self.tables[place]:
                place += (self.tables[place] - 1,)
        return place

    def value(self, place: KeyPath) -> None:
        """One value: the places inside lists and inline tables are noted too."""
        self.skip()
        self.note(place)
        char = self.text[self.at]
        if char == "[":
            self.at += 1
            self.elements(place)
        elif char == "{":
            self.at += 1
            self.pairs(place)
        else:
            match = (_STRING if char in "\"'" else _SCALAR).match(self.text, self.at)
            assert match is not None
            self.at = match.end()

    def elements(self, place: KeyPath) -> None:
        """The elements of a list, up to its closing bracket."""
        index = 0
        while True:
            self.skip()
            char = self.text[self.at]
            if char in ",]":
                self.at += 1
                if char == "]":
                    return
                continue
            self.value((*place, index))
            index += 1

    def pairs(self, place: KeyPath) -> None:
        """The pairs of an inline table, up to its closing brace."""
        while True:
            self.skip()
            char = self.text[self.at]
            if char in ",}":
                self.at += 1
                if char == "}":
                    return
                continue
            self.pair(place)

    def pair(self, place: KeyPath) -> None:
        """`key = value` below a place."""
        start = self.at
        inner = (*place, *self.keys("="))
        end, self.at = self.at, start
        self.note(inner)
        self.at = end
        self.value(inner)

    def document(self) -> dict[KeyPath, int]:
        """The whole text."""
        place: KeyPath = ()
        while True:
            self.skip()
            if self.at >= len(self.text):
                return self.implied | self.lines
            if self.text.startswith("[[", self.at):
                self.at += 2
                start = self.at
                place = self.resolve(self.keys("]"), new_element=True)
                self.at, end = start, self.at + 1
                self.note(place)
                self.at = end
            elif self.text[self.at] == "[":
                self.at += 1
                start = self.at
                place = self.resolve(self.keys("]"), new_element=False)
                self.at, end = start, self.at
                self.note(place)
                self.at = end
            else:
                self.pair(place)


class Lines:
    """Lines of a TOML text by place."""

    def __init__(self, text: str) -> None:
        """`text` must be valid TOML."""
        self._lines = _Scanner(text).document()

    def of(self, place: KeyPath) -> int:
        """The line (from 1) of a place, or of the nearest place around it that the file spells out."""
        while place:
            if place in self._lines:
                return self._lines[place]
            place = place[:-1]
        return 1
