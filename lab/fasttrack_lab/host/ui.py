# SPDX-License-Identifier: GPL-2.0-only
"""What the user sees while something takes time. Everything goes to standard error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

console = Console(stderr=True, highlight=False)

PLAIN_STEPS = 10
"""Lines a bar prints where there is no terminal."""


def say(text: str) -> None:
    """One line of progress."""
    console.print(text, markup=False, soft_wrap=True)


class Bar:
    """A progress bar, or a few plain lines where standard error is no terminal."""

    def __init__(self, title: str, total: int, progress: Progress | None) -> None:
        self.title = title
        self.total = max(total, 1)
        self.done = 0
        self._shown = 0
        self._progress = progress
        self._task = progress.add_task(title, total=self.total) if progress else None

    def advance(self, note: str = "") -> None:
        """One more is done."""
        self.done += 1
        self.total = max(self.total, self.done)
        if self._progress and self._task is not None:
            self._progress.update(self._task, completed=self.done, total=self.total, note=note)
            return
        step = self.done * PLAIN_STEPS // self.total
        if step > self._shown:
            self._shown = step
            say(f"{self.title}: {self.done}/{self.total}")


@contextmanager
def bar(title: str, total: int) -> Iterator[Bar]:
    """A bar for the time of a with block."""
    if not console.is_terminal:
        say(f"{title} ...")
        yield Bar(title, total, None)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        yield Bar(title, total, progress)
