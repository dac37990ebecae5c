# SPDX-License-Identifier: GPL-2.0-only
"""Do the same for many things at once, as many as the machine has cores, with a progress bar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

from fasttrack_lab.host import cores, process, ui

Item = TypeVar("Item")
Answer = TypeVar("Answer")

POLL_S = 0.5
"""How soon a signal is seen by the thread that waits."""


def each(
    items: Sequence[Item],
    work: Callable[[Item], Answer],
    title: str,
    on_done: Callable[[Item, Answer], None] | None = None,
    jobs: int | None = None,
) -> list[Answer]:
    """WORK on every item, in threads: the work is a guest's, Python only waits. Answers are in the order of ITEMS.

    ON_DONE is called from the caller's thread as each ends. An error of WORK ends everything and is raised.
    """
    answers: dict[int, Answer] = {}
    with ui.bar(title, len(items)) as progress, ThreadPoolExecutor(jobs or cores.count()) as pool:
        futures: dict[Future[Answer], int] = {pool.submit(work, item): index for index, item in enumerate(items)}
        pending = set(futures)
        try:
            while pending:
                done, pending = wait(pending, timeout=POLL_S, return_when=FIRST_COMPLETED)
                for future in done:
                    index = futures[future]
                    answers[index] = future.result()
                    progress.advance()
                    if on_done:
                        on_done(items[index], answers[index])
        except BaseException:
            process.stop_all()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return [answers[index] for index in range(len(items))]
