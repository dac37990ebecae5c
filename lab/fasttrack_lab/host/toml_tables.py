# SPDX-License-Identifier: GPL-2.0-only
"""Reading checked TOML tables: each key once, by its parser; what is left over is an error with its line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from fasttrack_lab.host.errors import InputError, unknown
from fasttrack_lab.host.toml_lines import KeyPath, Lines

T = TypeVar("T")
_TOML_LINE = re.compile(r"\(at line (\d+), column \d+\)")


class Table:
    """One table of a TOML file. `take` removes what it reads; `finish` refuses what was not asked for."""

    def __init__(self, data: dict[str, Any], path: Path, lines: Lines, place: KeyPath = ()) -> None:
        """`place` is where the table stands in the file."""
        self.data = dict(data)
        self.path = path
        self.lines = lines
        self.place = place
        self.known: list[str] = []

    @classmethod
    def read(cls, path: Path) -> Table:
        """The whole of a file."""
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot be read: {error}", path) from error
        return cls.parse(text, path)

    @classmethod
    def parse(cls, text: str, path: Path) -> Table:
        """The whole of a text; errors name PATH."""
        try:
            data = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            match = _TOML_LINE.search(str(error))
            problem = _TOML_LINE.sub("", str(error)).strip()
            raise InputError(f"not valid TOML: {problem}", path, int(match[1]) if match else None) from error
        return cls(data, path, Lines(text))

    def error(self, problem: str, key: str | None = None) -> InputError:
        """An error at a key of this table, or at the table."""
        place = self.place if key is None else (*self.place, key)
        return InputError(problem, self.path, self.lines.of(place))

    def take(self, key: str, parse: Callable[[Any], T], default: T | None = None) -> T:
        """The parsed value of a key. Without a default the key must be there."""
        self.known.append(key)
        if key not in self.data:
            if default is None:
                raise self.error(f"'{key}' is missing")
            return default
        value = self.data.pop(key)
        try:
            return parse(value)
        except ValueError as problem:
            raise self.error(f"{key}: {problem}", key) from problem

    def has(self, key: str) -> bool:
        """Whether a key is there and not taken yet."""
        self.known.append(key)
        return key in self.data

    def tables(self, key: str) -> list[Table]:
        """A list of tables; empty where the key is absent."""
        self.known.append(key)
        value = self.data.pop(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.error(f"'{key}' must be a list of tables", key)
        return [Table(item, self.path, self.lines, (*self.place, key, index)) for index, item in enumerate(value)]

    def table(self, key: str) -> Table:
        """One table inside this one."""
        self.known.append(key)
        value = self.data.pop(key, None)
        if not isinstance(value, dict):
            raise self.error(f"'{key}' must be a table", key)
        return Table(value, self.path, self.lines, (*self.place, key))

    def finish(self) -> None:
        """Refuses the keys that nobody took."""
        for key in self.data:
            raise self.error(unknown("key", key, sorted(set(self.known))), key)


def text(value: Any) -> str:
    """Text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"text is wanted, not {value!r}")
    return value


def boolean(value: Any) -> bool:
    """true or false."""
    if not isinstance(value, bool):
        raise ValueError(f"true or false is wanted, not {value!r}")
    return value


def count(minimum: int) -> Callable[[Any], int]:
    """A whole number from `minimum` up."""

    def parse(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"a whole number is wanted, not {value!r}")
        if value < minimum:
            raise ValueError(f"{value} is below {minimum}")
        return value

    return parse


def choice(what: str, valid: Iterable[str]) -> Callable[[Any], str]:
    """One of some names."""
    names = list(valid)

    def parse(value: Any) -> str:
        if value not in names:
            raise ValueError(unknown(what, str(value), names))
        return str(value)

    return parse


def texts(value: Any) -> list[str]:
    """A list of texts."""
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(f"a list of texts is wanted, not {value!r}")
    return list(value)


def relative_path(value: Any) -> str:
    """A path inside an app's own directory."""
    name = text(value)
    if name.startswith("/") or ".." in name.split("/"):
        raise ValueError(f"'{name}' must be a path inside the app's own directory")
    return name
