# SPDX-License-Identifier: GPL-2.0-only
"""What the user sees while something takes time. Everything goes to standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

PLAIN_STEPS = 10
"""Lines a bar prints where there is no terminal."""


def _print(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


_say: list[Callable[[str], None]] = [_print]
"""How a line is printed: the last entry. Below a bar that is drawn it is the bar's own way."""


def say(text: str) -> None:
    """One line of progress."""
    _say[-1](text)


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
    if not sys.stderr.isatty():
        say(f"{title} ...")
        yield Bar(title, total, None)
        return
    # Slow to import, and most runs have no bar.
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    console = Console(stderr=True, highlight=False)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        _say.append(lambda text: console.print(text, markup=False, soft_wrap=True))
        try:
            yield Bar(title, total, progress)
        finally:
            _say.pop()
