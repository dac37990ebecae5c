# SPDX-License-Identifier: GPL-2.0-only
"""The runs that a figure or a table needs, told as comparisons, and made where they are lacking."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fasttrack_lab.compare import comparison
from fasttrack_lab.compare.records import Again, Front, Record, Request, plan
from fasttrack_lab.inputs.background_sets import given
from fasttrack_lab.inputs.cell import Cell
from fasttrack_lab.inputs.lru import KERNEL_LRU
from fasttrack_lab.run import runner


@dataclass(frozen=True)
class Grid:
    """Every scenario on every phone, under every policy, beside every set of backgrounds; and alone under stock."""

    scenarios: tuple[str, ...]
    phones: tuple[str, ...]
    policies: tuple[str, ...]
    backgrounds: tuple[str, ...]
    """Sets: names joined by `+`, in the order of the alphabet."""
    fs: str = ""
    """The file system; empty is each phone's own."""
    lru: str = KERNEL_LRU
    most_seeds: int | None = None
    """Seeds that are enough of it, however many are asked for."""

    def seeds_of(self, seeds: int) -> int:
        """How many of the seeds that are asked for it takes."""
        return min(seeds, self.most_seeds or seeds)

    def narrowed(self, phones: Iterable[str]) -> Grid:
        """The part of it on some phones, in the grid's own order."""
        wanted = set(phones)
        return replace(self, phones=tuple(name for name in self.phones if name in wanted))

    def requests(self, seeds: int) -> list[Request]:
        """The comparisons that make its runs, one a scenario."""
        seeds = self.seeds_of(seeds)
        return [
            Request(
                command=self._command(scenario, seeds),
                fronts=(Front(scenario),),
                phones=self.phones,
                policies=self.policies,
                backgrounds=tuple(tuple(names.split("+")) for names in self.backgrounds),
                seeds=seeds,
                file_systems=dict.fromkeys(self.phones, (self.fs,)),
                lrus=(self.lru,),
            )
            for scenario in self.scenarios
        ]

    @property
    def platform(self) -> tuple[str, str]:
        """File system and LRU, as its cells have them."""
        return self.fs, self.lru

    def _command(self, scenario: str, seeds: int) -> str:
        backgrounds = tuple(given(names) for names in self.backgrounds)
        lists = (("phones", self.phones), ("policies", self.policies), ("backgrounds", backgrounds))
        options = [part for name, values in lists for part in (f"--{name}", ",".join(values))]
        options += ["--fs", self.fs] if self.fs else []
        options += ["--lru", self.lru] if self.lru != KERNEL_LRU else []
        return shlex.join(["./fasttrack", "compare", scenario, *options, "--seeds", str(seeds)])


def cells(grids: Iterable[Grid], seeds: int) -> list[Cell]:
    """All runs, each once."""
    return list(dict.fromkeys(cell for grid in grids for request in grid.requests(seeds) for cell in plan(request)))


def measure(
    directory: Path, planned: Sequence[Cell], again: Again, title: str, capped: Collection[Cell] = ()
) -> tuple[list[Record], str]:
    """Makes the runs that the directory lacks, and those to be made AGAIN; CAPPED ones are ended when long.

    Returns the records of all planned ones, and the kernel's key.
    """
    directory.mkdir(parents=True, exist_ok=True)
    tools = runner.Tools.of_checkout()
    runs = comparison.runs_of(planned, tools)
    return comparison.run_missing(directory, runs, tools, again, title, capped), tools.kernel.key
