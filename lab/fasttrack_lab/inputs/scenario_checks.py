# SPDX-License-Identifier: GPL-2.0-only
"""Checks of a scenario as a whole: that the files its steps use are there, and that every loop sleeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from fasttrack_lab.host.errors import InputError
from fasttrack_lab.host.toml_tables import Table
from fasttrack_lab.inputs.steps import Step, expand


class _File(Protocol):
    """What is asked of a prepared file."""

    @property
    def path(self) -> str:
        """Its name in the app's directory."""
        ...


class _Thread(Protocol):
    """What is asked of a thread."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def line(self) -> int:
        """Its line in the file."""
        ...

    @property
    def repeat(self) -> bool:
        """Whether it starts over."""
        ...

    @property
    def copies(self) -> int:
        """How many of it there are."""
        ...

    @property
    def steps(self) -> tuple[Step, ...]:
        """What it does."""
        ...


def check_files(table: Table, files: Sequence[_File]) -> None:
    """No file is prepared twice."""
    seen: set[str] = set()
    for item in files:
        if item.path in seen:
            raise table.error(f"file '{item.path}' is prepared twice", "file")
        seen.add(item.path)


def _names(name: str, cycle: int, copies: int) -> Iterator[str]:
    """All names that a step's file name stands for."""
    for copy in range(copies) if "{t}" in name else (0,):
        yield from expand(name.replace("{t}", str(copy)), cycle)


def _made(threads: Sequence[_Thread]) -> Iterator[str]:
    """Names of the files that the steps themselves make."""
    for thread in threads:
        for step in thread.steps:
            for inner, cycle in step.walk():
                creates = inner.op == "write" and "create" in inner.fields["flags"]
                if creates or inner.op == "mkdir":
                    yield from _names(inner.fields["file"], cycle, thread.copies)
                elif inner.op == "rename":
                    yield from _names(inner.fields["to"], cycle, thread.copies)


def check_threads(table: Table, threads: Sequence[_Thread], prepared: Mapping[str, str], foreground: bool) -> None:
    """Thread names differ, loops sleep, foreground threads end, used files are prepared or made by a step."""
    there = set(prepared) | set(_made(threads))
    names: set[str] = set()
    for thread in threads:
        if thread.name in names:
            raise InputError(f"thread '{thread.name}' is there twice", table.path, thread.line)
        names.add(thread.name)
        if thread.repeat and not any(step.sleeps() for step in thread.steps):
            raise InputError(
                f"thread '{thread.name}' repeats and never sleeps: add a think, or virtual time stops",
                table.path,
                thread.line,
            )
        endless = any(inner.fields.get("times") == 0 for step in thread.steps for inner, _ in step.walk())
        if foreground and (thread.repeat or endless):
            raise InputError(
                f"thread '{thread.name}' is the foreground's and never ends: give its repeat a number of times",
                table.path,
                thread.line,
            )
        for step in thread.steps:
            for inner, cycle in step.walk():
                for name in _used_names(table, inner, cycle, thread.copies):
                    _check_name(table, inner, name, there, prepared)


def _used_names(table: Table, step: Step, cycle: int, copies: int) -> list[str]:
    """All files that a step may use."""
    name = step.fields.get("file")
    if name is None:
        return []
    if "{i}" in name and cycle == 0:
        raise InputError(f"'{name}' has {{i}}, but no repeat is around it", table.path, step.line)
    if "{t}" in name and copies == 1:
        raise InputError(f"'{name}' has {{t}}, but the thread has no copies", table.path, step.line)
    return list(_names(name, cycle, copies))


def _check_name(table: Table, step: Step, name: str, there: set[str], prepared: Mapping[str, str]) -> None:
    """One file of a step."""
    if name not in there:
        problem = (
            f"file '{name}' is missing: prepare it with an [[app.file]], or make it with a write that has "
            f'flags = ["create"]'
        )
        raise InputError(problem, table.path, step.line)
    if step.op == "sqlite" and prepared.get(name) != "sqlite":
        raise InputError(f"'{name}' is not prepared with kind = \"sqlite\"", table.path, step.line)
