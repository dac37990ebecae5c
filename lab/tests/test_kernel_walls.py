# SPDX-License-Identifier: GPL-2.0-only
"""The kernel part's files: within a folder they call each other one way, and never in a circle."""

from __future__ import annotations

import re
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

import pytest

from fasttrack_lab.host.paths import KERNEL

OVERLAY = KERNEL / "overlay"
ROOMS = {
    "mm/fasttrack": ("*.c",),
    "block": ("fasttrack-*.c", "smartio-*.c"),
    "drivers/scsi/mflash": ("*.c",),
}
"""Folder of the overlay -> its files that may lean on each other."""

NO_CODE = re.compile(
    r"""/\*.*?\*/ | //[^\n]* | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'
    | ^[ \t]*\#[ \t]*(?!define\b)\w+(?:\\\n|[^\n])*""",
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
"""Comments, strings, and directives. What a macro's body names counts as used."""

DEFINE = re.compile(r"^[ \t]*#[ \t]*define\b(?:\\\n|[^\n])*", re.MULTILINE)
NAME = re.compile(r"(?<![\w.])(?<!->)[A-Za-z_]\w*")
"""An identifier that is no member of a struct."""

HEAD = re.compile(r"([A-Za-z_]\w*)\s*\(.*\)\s*(?:__\w+\s*)*\Z", re.DOTALL)
"""What stands before the brace of a function."""

Uses = dict[str, dict[str, set[str]]]
"""File -> file that it calls -> the functions."""


def functions(source: str) -> tuple[set[str], set[str]]:
    """The functions that a C file defines: those that others may call, and static ones."""
    text = DEFINE.sub("", NO_CODE.sub(" ", source))
    found: tuple[set[str], set[str]] = set(), set()
    depth = start = 0
    for brace in re.finditer(r"[{};]", text):
        if brace.group() == "{":
            head = text[start : brace.start()]
            name = HEAD.search(head) if depth == 0 and "=" not in head else None
            if name:
                found["static" in NAME.findall(head)].add(name.group(1))
            depth += 1
        elif brace.group() == "}":
            depth -= 1
        if depth == 0:
            start = brace.end()
    assert depth == 0, "braces do not match"
    return found


def uses(sources: dict[str, str]) -> Uses:
    """Which file calls which."""
    defined = {file: functions(source) for file, source in sources.items()}
    home = {name: file for file, (shared, _) in defined.items() for name in shared}
    found: Uses = {file: {} for file in sources}
    for file, source in sources.items():
        shared, static = defined[file]
        for name in set(NAME.findall(NO_CODE.sub(" ", source))) & home.keys() - shared - static:
            found[file].setdefault(home[name], set()).add(name)
    return found


def circle(found: Uses) -> str:
    """The first circle, with who is called, or an empty string."""
    try:
        TopologicalSorter({file: called.keys() for file, called in found.items()}).prepare()
    except CycleError as error:
        files = error.args[1][::-1]
        return "; ".join(f"{a} calls {b}: {', '.join(sorted(found[a][b]))}" for a, b in pairwise(files))
    return ""


def room(folder: str) -> dict[str, str]:
    paths = [path for pattern in ROOMS[folder] for path in sorted((OVERLAY / folder).glob(pattern))]
    return {path.name: path.read_text() for path in paths}


@pytest.mark.parametrize("folder", ROOMS)
def test_files_of_a_folder_call_each_other_in_no_circle(folder: str) -> None:
    found = uses(room(folder))
    assert any(found.values()), f"{folder}: no file calls another"
    assert not circle(found)


def test_core_calls_only_files_that_its_makefile_names_before() -> None:
    folder = "mm/fasttrack"
    order = [f"{name}.c" for name in re.findall(r"([\w-]+)\.o\b", (OVERLAY / folder / "Makefile").read_text())]
    found = uses(room(folder))
    assert set(order) == found.keys()
    calls = [(caller, called) for caller in found for called in found[caller]]
    assert [(caller, called) for caller, called in calls if order.index(called) > order.index(caller)] == []


C_FILE = r"""
/* void in_comment(void) { */
#include <in_include.h>
#define CALLS(_x)	in_macro(_x);	\
			again(_x)
static const char *text = "in_string() { \" {";
static struct ops ops = { .member = pointed_to, .other = '{' };
struct type { int field; };
LIST_HEAD(list);

static int local(int a)
{
	if (a) {
		return called(a)->not_called + a.nor_this;
	}
	return 0;
}

unsigned long *first(void)
{
	return NULL;
}
EXPORT_SYMBOL_GPL(first);
#ifdef CONFIG_ONE
struct type second(struct type *(*f)(int),
                   int b) __must_hold(lock)
{
	return f(b);
}
#else
int second(void) { return '\''; }
#endif
"""


def test_functions_of_a_file_are_found() -> None:
    assert functions(C_FILE) == ({"first", "second"}, {"local"})


def test_what_a_file_names_is_a_call_unless_it_is_text_or_a_member() -> None:
    names = ("called", "pointed_to", "in_macro", "again", "in_comment", "in_include", "in_string", "not_called")
    other = "".join(f"int {name}(void) {{ return 0; }}\n" for name in (*names, "nor_this", "member", "local"))
    assert uses({"a.c": C_FILE, "b.c": other}) == {
        "a.c": {"b.c": {"called", "pointed_to", "in_macro", "again"}},
        "b.c": {},
    }


def test_a_circle_is_named_with_its_calls() -> None:
    sources = {
        "a.c": "void a(void) { b(); }",
        "b.c": "void b(void) { c(); }",
        "c.c": "void c(void) { a(); d(); }",
        "d.c": "void d(void) { }",
    }
    said = circle(uses(sources))
    assert {"a.c calls b.c: b", "b.c calls c.c: c", "c.c calls a.c: a"} == set(said.split("; "))
    assert circle(uses(sources | {"c.c": "void c(void) { d(); }"})) == ""
