# SPDX-License-Identifier: GPL-2.0-only
"""What parsers do with any input: units, lines of TOML files, recordings. Made up, but the same every time."""

from __future__ import annotations

import os
import random
import re
import tempfile
import tomllib
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from test_traces import BLKTRACE, MOBIGEN, PIXEL

from fasttrack_lab.host import units
from fasttrack_lab.host.errors import InputError
from fasttrack_lab.host.toml_lines import KeyPath, Lines
from fasttrack_lab.inputs import traces

# Whoever tries mutants wants to know that one is seen, not by how little.
PHASES = (Phase.explicit, Phase.generate) if "MUTANT_UNDER_TEST" in os.environ else tuple(Phase)
settings.register_profile("lab", derandomize=True, deadline=None, database=None, max_examples=60, phases=PHASES)
settings.load_profile("lab")

# -- sizes, times and rates

UNITS = {units.parse_size: units.SIZE_UNITS, units.parse_time: units.TIME_UNITS, units.parse_rate: units.RATE_UNITS}
SPREADS = {units.parse_size_spread: units.SIZE_UNITS, units.parse_time_spread: units.TIME_UNITS}
EVERY_UNIT = sorted({unit for valid in UNITS.values() for unit in valid})
NEAR_QUANTITIES = st.one_of(
    st.text(max_size=12),
    st.lists(
        st.sampled_from([*EVERY_UNIT, "1", "0", "2.5", ".", "-", "+", "±", "+-", "..", "%", " ", "9" * 400]), max_size=6
    ).map("".join),
)
ANYTHING = st.one_of(NEAR_QUANTITIES, st.integers(), st.floats(), st.none(), st.lists(st.text(max_size=3), max_size=2))


@given(ANYTHING)
def test_a_quantity_is_a_number_or_a_value_error(given_text: object) -> None:
    for parse in UNITS:
        try:
            value = parse(given_text)
        except ValueError as error:
            assert str(error)
        else:
            assert 0 <= value < float("inf")


@given(st.one_of(ANYTHING, st.dictionaries(st.sampled_from(["mean", "spread", "width"]), NEAR_QUANTITIES, max_size=3)))
def test_a_spread_is_a_range_or_a_value_error(given_text: object) -> None:
    for parse in SPREADS:
        try:
            spread = parse(given_text)
        except ValueError as error:
            assert str(error)
        else:
            assert 0 <= spread.low <= spread.mean <= spread.high < float("inf")
            assert spread.low <= spread.draw(random.Random(1)) <= spread.high


@given(st.integers(0, 10**9), st.sampled_from(["", " ", "  "]), st.data())
def test_a_number_counts_as_many_as_its_unit(number: int, blank: str, data: st.DataObject) -> None:
    for parse, valid in UNITS.items():
        unit = data.draw(st.sampled_from(sorted(valid)))
        if number or parse is not units.parse_rate:
            assert parse(f"{number}{blank}{unit}") == number * valid[unit]


@given(st.integers(1, 10**6), st.integers(0, 100))
def test_a_spread_in_per_cent_is_that_in_units(middle: int, percent: int) -> None:
    relative = units.parse_size_spread(f"{middle * 100} B ± {percent} %")
    absolute = units.parse_size_spread(f"{middle * 100} B ± {middle * percent} B")
    from_to = units.parse_size_spread(f"{middle * (100 - percent)} B .. {middle * (100 + percent)} B")
    assert (relative.low, relative.high) == pytest.approx((absolute.low, absolute.high))
    assert (absolute.low, absolute.high) == (from_to.low, from_to.high)


# -- where the keys of a TOML file stand


class Writer:
    """Writes a valid TOML text in which every key and every scalar is there once, so that its line is known."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.numbers = count(1000)

    def one_of(self, *choices: str) -> str:
        return str(self.draw(st.sampled_from(choices)))

    def key(self) -> str:
        """A key of any notation; all have the mark that is searched for."""
        mark = f"k{next(self.numbers)}"
        return self.one_of(
            mark, f'"{mark}"', f"'{mark}'", f'"{mark} [a.b] = \\"1\\" # "', f"'{mark}={{'", f'"\\u006b{mark}"'
        )

    def gap(self) -> str:
        """What may stand between the elements of a list."""
        return self.one_of("", " ", "\n", "\n  # a ] comment\n", "\r\n\t")

    def scalar(self) -> str:
        mark = f"{next(self.numbers)}"
        return self.one_of(
            mark,
            f"{mark}.5",
            f'"{mark} = [ # "',
            f"'{mark} }} \\'",
            f'"""{mark}\n[x] \\" "" # \n"""',
            f"'''{mark}\n'' k = 1,\n'''",
            f"'''{mark}'''",
            f'"""{mark}"""""',
        )

    def value(self, depth: int = 0) -> str:
        kind = "scalar" if depth > 2 else self.one_of("scalar", "scalar", "list", "table")
        if kind == "scalar":
            return self.scalar()
        parts = range(self.draw(st.integers(0, 3)))
        if kind == "table":
            return "{" + ", ".join(f" {self.pair(depth + 1)} " for _ in parts) + "}"
        inside = ",".join(f"{self.gap()}{self.value(depth + 1)}{self.gap()}" for _ in parts)
        return f"[{inside}{self.gap()}]"

    def pair(self, depth: int = 0) -> str:
        name = self.key() if self.draw(st.integers(0, 3)) else f"{self.key()} . {self.key()}"
        return f"{name}{self.one_of('=', ' = ')}{self.value(depth)}"

    def pairs(self) -> Iterator[str]:
        for _ in range(self.draw(st.integers(0, 3))):
            yield self.one_of("", "  ") + self.pair() + self.one_of("\n", "\n\n", " # k = [\n", "\n# [k]\n")

    def document(self) -> str:
        """Pairs, then tables and lists of tables, some with a table inside."""
        parts = [*self.pairs()]
        for _ in range(self.draw(st.integers(0, 3))):
            name = self.key()
            if self.draw(st.booleans()):
                for _ in range(self.draw(st.integers(1, 3))):
                    parts += [f"[[{name}]]\n", *self.pairs()]
                    if self.draw(st.booleans()):
                        parts += [f"[ {name}.{self.key()} ]\n", *self.pairs()]
            else:
                parts += [f"[{name}]\n", *self.pairs(), f"[{name}.{self.key()}]\n", *self.pairs()]
        return "".join(parts)


@st.composite
def documents(draw: Any) -> str:
    return Writer(draw).document()


def marks(found: object, place: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """Every key of a table and every scalar of a list, with the mark that stands in its line."""
    if isinstance(found, dict):
        for key, value in found.items():
            mark = re.search(r"k\d+", key)
            assert mark
            yield (*place, key), mark[0]
            yield from marks(value, (*place, key))
    elif isinstance(found, list):
        for index, value in enumerate(found):
            mark = re.search(r"\d+", str(value))
            if not isinstance(value, dict | list) and mark:
                yield (*place, index), mark[0]
            yield from marks(value, (*place, index))


@given(documents())
def test_every_key_is_where_it_stands(text: str) -> None:
    lines, at = Lines(text), {}
    for number, line in enumerate(text.split("\n"), start=1):
        for mark in re.findall(r"k?\d{4,}", line):
            at.setdefault(mark, number)
    for place, mark in marks(tomllib.loads(text)):
        assert lines.of(place) == at[mark], (place, text)


def test_what_a_dotted_name_implies_stands_where_it_is_first_implied() -> None:
    lines = Lines("a.b = 1\n[c.d]\ne = 2\n[c]\nf = 3\n[[g.h]]\n[[g.h]]\n")
    places: tuple[KeyPath, ...] = (("a",), ("a", "b"), ("c", "d"), ("c",), ("g",), ("g", "h"), ("g", "h", 1), ("z",))
    assert [lines.of(place) for place in places] == [1, 1, 2, 4, 6, 6, 7, 1]
    assert lines.of(("c", "d", "lacking")) == 2


@given(documents())
def test_every_element_of_a_list_of_tables_has_its_header(text: str) -> None:
    lines = Lines(text)
    headers = [number for number, line in enumerate(text.split("\n"), start=1) if line.startswith("[[")]
    tables = (
        (key, index)
        for key, value in tomllib.loads(text).items()
        if f"[[{key}]]" in text and isinstance(value, list)
        for index in range(len(value))
    )
    assert {lines.of(place) for place in tables} <= set(headers)


# -- recordings

SAMPLES = {"mobigen": MOBIGEN, "pixel6a": PIXEL, "blktrace": BLKTRACE}
ODD = [
    "",
    "-1",
    "0",
    "4",
    "nan",
    "inf",
    "1e999",
    "9" * 25,
    "9" * 5000,
    "0.0",
    "9" * 400 + ".0",
    '"',
    "'",
    "\\",
    "\0",
    "\t",
    "é",
    "٣",
    "\x7f",
    ",",
    "open",
    "rename",
    "/",
    '"a/../.."',
    "O_RDWR",
    "0x1F",
    "D",
    "FWFS",
    "+",
]


@st.composite
def damaged(draw: Any, sample: str) -> str:
    """A recording with words and lines replaced, repeated or lost."""
    lines = sample.splitlines()
    for _ in range(draw(st.integers(1, 4))):
        index = draw(st.integers(0, len(lines) - 1))
        words = re.split(r"([ ,]+)", lines[index])
        what = draw(st.sampled_from(["word", "word", "word", "line", "twice", "cut"]))
        if what == "word":
            words[draw(st.integers(0, len(words) - 1))] = draw(st.one_of(st.sampled_from(ODD), st.text(max_size=4)))
            lines[index] = "".join(words)
        elif what == "line":
            lines[index] = draw(st.text(max_size=30))
        elif what == "twice":
            lines.insert(draw(st.integers(0, len(lines))), lines[index])
        else:
            lines[index] = lines[index][: draw(st.integers(0, len(lines[index])))]
    return "\n".join(lines) + draw(st.sampled_from(["", "\n"]))


def read_whole_or_refused(data: bytes, form: str | None, **window: float) -> None:
    """Calls in the contract's order, each a line of its own; or an error that the user can act on."""
    with tempfile.TemporaryDirectory() as where:
        path = Path(where) / "sample"
        path.write_bytes(data)
        try:
            trace = traces.load(path, form, **window)
        except InputError as error:
            assert str(error).startswith(f"{path}:")
            return
    assert [(call.thread, call.us) for call in trace.calls] == sorted((call.thread, call.us) for call in trace.calls)
    assert all(call.thread >= 0 and call.us >= 0 for call in trace.calls)
    assert all(item.bytes >= 0 for item in trace.needed)
    # What is written is read again as it was: no name has a tab or the end of a line in it.
    assert [line.split("\t") for line in trace.text().split("\n")[:-1]] == [
        [str(part) for part in (call.thread, call.us, call.name, *call.args)] for call in trace.calls
    ]


@pytest.mark.parametrize("form", SAMPLES)
@given(data=st.data())
def test_a_damaged_recording_is_read_or_refused(form: str, data: st.DataObject) -> None:
    read_whole_or_refused(data.draw(damaged(SAMPLES[form])).encode(), form)


@given(st.sampled_from([*SAMPLES, None]), st.one_of(st.binary(max_size=60), st.text(max_size=60).map(str.encode)))
def test_what_is_no_recording_is_refused(form: str | None, data: bytes) -> None:
    read_whole_or_refused(data, form)


@pytest.mark.parametrize("form", SAMPLES)
@given(start_s=st.floats(0, 2e-3), length_s=st.floats(1e-6, 2))
def test_any_window_of_a_recording_is_read_or_empty(form: str, start_s: float, length_s: float) -> None:
    read_whole_or_refused(SAMPLES[form].encode(), form, start_s=start_s, length_s=length_s)
