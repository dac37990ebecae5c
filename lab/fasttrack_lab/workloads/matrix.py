# SPDX-License-Identifier: GPL-2.0-only
"""Programs in front of programs: the runs of a matrix, and what its cells say.

A cell is a program in front, beside two of a kind behind, on a phone with a file system. Its time is the time in the
program's calls, over the time of the same alone under the policy `stock`; where the program is started at several
moments, the mean of all. The program may also be a service's, beside somebody in front who looks at pictures: what is
told of it then is what the one in front costs it.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from statistics import fmean, geometric_mean

from rich import box
from rich.table import Table
from rich.text import Text

from fasttrack_lab.compare.ranking import NEAR
from fasttrack_lab.compare.records import BASELINE_POLICY, Record, latest
from fasttrack_lab.host.errors import UsageProblem
from fasttrack_lab.inputs import phone, policy
from fasttrack_lab.inputs.cell import Cell
from fasttrack_lab.run.runner import RunSpec
from fasttrack_lab.workloads import front
from fasttrack_lab.workloads.calls import Calls, calls_of, ratio_text
from fasttrack_lab.workloads.programs import Place, Program, looks, spec_of

BESIDE = 2
"""Programs of a kind behind."""
OURS = "fasttrack"
FLOOR_S = 0.001
"""Times count as this at least: in a millisecond nobody has waited, and many programs wait for nothing alone."""
CSV = "cells.csv"
LOOKS, LOOKS_MS = "read", 10.0
"""What somebody in front does beside a service: a cold read of 64 KiB each 10 ms, 4 % of an s6's time."""


@dataclass(frozen=True)
class Asked:
    """What a matrix is made of.

    Times in s: virtual before the front starts, one or more; virtual that it may take, and real for a run.
    """

    fronts: tuple[Program, ...]
    behinds: tuple[Program, ...]
    places: tuple[Place, ...]
    policies: tuple[str, ...]
    seed: int
    warmups_s: tuple[float, ...]
    limits_s: tuple[float, float]
    service: bool = False
    """Whether the programs in front are a service's."""

    def runs(self) -> Iterator[tuple[Cell, RunSpec]]:
        """All runs: those alone first, which every cell needs. Alone nothing comes of the moment, and one is enough."""
        for place, one in product(self.places, self.fronts):
            yield self._run(place, (one, None), BASELINE_POLICY, self.warmups_s[0])
        every = product(self.places, product(self.fronts, self.behinds), self.policies, self.warmups_s)
        for place, programs, rule, warmup_s in every:
            yield self._run(place, programs, rule, warmup_s)

    def looked_into(self, why_ns: int, trace_to: Path | None) -> RunSpec:
        """The run of the only cell, recorded; UsageProblem if there are more.

        WHY_NS is the virtual time between two samples of where the front waits, 0 for none; TRACE_TO is the logs'
        directory.
        """
        lists = (self.fronts, self.behinds, self.places, self.policies, self.warmups_s)
        if any(len(one) != 1 for one in lists):
            raise UsageProblem(
                "--why and --trace look into one cell: name one kind in front, one behind, one phone, one file system, "
                "one of --policies, and one --warmup"
            )
        *_, (_, spec) = self.runs()
        job = {**spec.job, "why_interval_ns": why_ns} if why_ns else spec.job
        return replace(spec, job=job, trace_to=trace_to)

    def _run(
        self, place: Place, programs: tuple[Program, Program | None], rule: str, warmup_s: float
    ) -> tuple[Cell, RunSpec]:
        (name, fs), (one, other), (limit_s, real_s) = place, programs, self.limits_s
        others = [other] * BESIDE if other else []
        scenario = f"service-{one.name}" if self.service else one.name
        behind = tuple(program.name for program in others)
        cell = Cell(scenario, name, rule, behind, self.seed, fs, start_s=warmup_s)
        times_s = warmup_s, limit_s, real_s
        on = phone.load(name).with_fs(fs), policy.load(rule)
        if not self.service:
            return cell, spec_of(cell, on, (one, others), times_s)
        ahead = looks(LOOKS if other else front.IDLE, self.seed, LOOKS_MS, limit_s)
        return cell, spec_of(cell, on, (ahead, others), times_s, one)


@dataclass(frozen=True)
class Row:
    """A cell of the matrix: the program alone, and under each policy; None where a run failed or is lacking."""

    front: str
    behind: str
    place: Place
    alone: Calls | None
    by_policy: Mapping[str, Calls | None]
    """Of several moments the mean; the longest call is that of all."""
    worst_s: Mapping[str, float]
    """The time in the calls at the worst moment."""

    def over_alone(self, rule: str) -> float | None:
        """The time under a policy over the time alone."""
        mine = self.by_policy.get(rule)
        return _over(mine.sum_s, self.alone.sum_s) if mine and self.alone else None

    def worst_over_alone(self, rule: str) -> float | None:
        """The same at the worst moment."""
        return _over(self.worst_s[rule], self.alone.sum_s) if self.alone and rule in self.worst_s else None

    def best(self) -> str | None:
        """The fastest of the policies but ours."""
        others = {rule: calls.sum_s for rule, calls in self.by_policy.items() if calls and rule != OURS}
        return min(others, key=lambda rule: others[rule], default=None)

    @property
    def over_best(self) -> float | None:
        """Our time over the fastest other policy's."""
        mine, best = self.by_policy.get(OURS), self.best()
        other = self.by_policy[best] if best else None
        return _over(mine.sum_s, other.sum_s) if mine and other else None

    @property
    def failed(self) -> bool:
        """Whether we have no result where another policy has one."""
        return OURS in self.by_policy and self.by_policy[OURS] is None and self.best() is not None

    @property
    def worse(self) -> bool:
        """Whether we are slower than the fastest other policy, or failed where it did not."""
        return self.failed or (self.over_best or 0.0) > NEAR


def _over(mine_s: float, other_s: float) -> float:
    return max(mine_s, FLOOR_S) / max(other_s, FLOOR_S)


def rows(records: Iterable[Record], policies: Sequence[str]) -> list[Row]:
    """The cells of some records, in their order."""
    found = {cell: calls_of(record) for cell, record in latest(records).items()}
    alone = {(cell.scenario, cell.phone, cell.fs): calls for cell, calls in found.items() if not cell.backgrounds}
    by_cell: dict[tuple[str, str, Place], dict[str, list[Calls | None]]] = {}
    for cell, calls in found.items():
        if cell.backgrounds:
            timed = by_cell.setdefault((cell.scenario, cell.backgrounds[0], (cell.phone, cell.fs)), {})
            timed.setdefault(cell.policy, []).append(calls)
    return [
        Row(
            front,
            behind,
            place,
            alone.get((front, *place)),
            {rule: _mean(timed.get(rule, [])) for rule in policies},
            {rule: max(one.sum_s for one in moments if one) for rule, moments in timed.items() if all(moments)},
        )
        for (front, behind, place), timed in by_cell.items()
    ]


def _mean(moments: Sequence[Calls | None]) -> Calls | None:
    """The calls of several moments as one: means, and the longest of all. None where a moment has none."""
    timed = [one for one in moments if one]
    if not timed or len(timed) < len(moments):
        return None

    def over(name: str, made: Callable[[list[float]], float]) -> float | None:
        values = [value for one in timed if (value := getattr(one, name)) is not None]
        return made(values) if values else None

    return Calls(
        fmean(one.sum_s for one in timed),
        over("p50_s", fmean),
        over("p99_s", fmean),
        over("longest_s", max),
        round(fmean(one.calls for one in timed)),
    )


def ms_text(value_s: float | None) -> str:
    """A time in ms."""
    return "-" if value_s is None else f"{value_s * 1e3:.1f}" if value_s < 0.1 else f"{value_s * 1e3:.0f}"


def mark(row: Row) -> str:
    """What is said of a cell where we are worse than another policy."""
    if row.failed:
        return f"failed, {row.best()}"
    return f"{ratio_text(row.over_best)}x {row.best()}" if row.worse else ""


def table(found: Sequence[Row], policies: Sequence[str]) -> Table:
    """For the terminal: time over alone, at the worst moment if there are several, and the longest call in ms."""
    moment = ", at the worst moment" if any(_has_moments(row) for row in found) else ""
    title = f"time in calls over alone{moment} (longest call, ms), beside {BESIDE} programs of the kind behind"
    shown = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False)
    several = len({row.place for row in found}) > 1
    for heading in (*(("place",) if several else ()), "in front", "behind"):
        shown.add_column(heading, no_wrap=True)
    for heading in ("alone, s", *policies):
        shown.add_column(heading, justify="right", no_wrap=True)
    shown.add_column("worse than", no_wrap=True)
    for row in found:
        place = ("-".join(row.place),) if several else ()
        alone = "-" if row.alone is None else f"{row.alone.sum_s:.3f} ({ms_text(row.alone.longest_s)})"
        shown.add_row(
            *place,
            row.front,
            row.behind,
            alone,
            *(_policy_text(row, rule) for rule in policies),
            Text(mark(row), style="bold red"),
        )
    return shown


def _has_moments(row: Row) -> bool:
    """Whether the moments of a cell differ."""
    return any(calls and row.worst_s[rule] > calls.sum_s for rule, calls in row.by_policy.items())


def over_text(row: Row, rule: str) -> str:
    """The time over alone; also at the worst moment where moments differ."""
    mean = ratio_text(row.over_alone(rule))
    return f"{mean}, {ratio_text(row.worst_over_alone(rule))}" if _has_moments(row) else mean


def _policy_text(row: Row, rule: str) -> str:
    calls = row.by_policy[rule]
    return "failed" if calls is None else f"{over_text(row, rule)} ({ms_text(calls.longest_s)})"


@dataclass(frozen=True)
class Sum:
    """All cells of a policy. Numbers are of those that have a result, None where none has."""

    policy: str
    cells: int
    """That have a result."""
    total: int
    mean: float | None
    """Geometric mean of the times over alone."""
    worst: float | None
    """Of all moments."""
    where: str
    longest_s: float | None
    """The longest call of all."""

    @property
    def cells_text(self) -> str:
        """How many cells the mean is of."""
        return f"{self.cells} of {self.total}"

    @property
    def mean_text(self) -> str:
        """The mean, marked where it lacks cells."""
        return ratio_text(self.mean) + ("*" if self.cells < self.total else "")


def sums(found: Sequence[Row], policies: Sequence[str]) -> list[Sum]:
    """Each policy over all cells."""
    made = []
    for rule in policies:
        values = [(over, row) for row in found if (over := row.over_alone(rule)) is not None]
        if not values:
            made.append(Sum(rule, 0, len(found), None, None, "", None))
            continue
        worst, where = max(((row.worst_over_alone(rule) or over, row) for over, row in values), key=lambda at: at[0])
        calls = [row.by_policy[rule] for _, row in values]
        longest_s = max((one.longest_s for one in calls if one and one.longest_s is not None), default=None)
        mean = geometric_mean([over for over, _ in values])
        beside = f"{where.front} beside {where.behind}"
        made.append(Sum(rule, len(values), len(found), mean, worst, beside, longest_s))
    return made


def counted(found: Sequence[Row]) -> tuple[int, int]:
    """In how many cells we are worse than the best other policy, and of how many in which one has a result."""
    both = [row for row in found if row.over_best is not None or row.failed]
    return sum(row.worse for row in both), len(both)


def summary(found: Sequence[Row], policies: Sequence[str]) -> str:
    """In a line: each policy's geometric mean and worst, and in how many cells we are worse than the best other."""
    totals = sums(found, policies)
    if not any(one.cells for one in totals):
        return "geometric mean over alone: no cell has a result"
    parts = [
        f"{one.policy} {one.mean_text} in {one.cells_text} cells, worst {ratio_text(one.worst)}"
        + (f" ({one.where})" if one.where else "")
        for one in totals
    ]
    worse, cells = counted(found)
    if cells:
        others = ", ".join(rule for rule in policies if rule != OURS)
        parts.append(
            f"{OURS} is worse than the best of {others}, or failed, in {worse} of the {cells} cells where one of them "
            "has a result"
        )
    note = "; * of the cells that have a result" if any(one.cells < one.total for one in totals) else ""
    return f"geometric mean over alone: {'; '.join(parts)}{note}"


TIMES = ("sum_s", "p50_s", "p99_s", "longest_s")


def write_csv(path: Path, found: Sequence[Row]) -> None:
    """A line a cell and policy; the program alone is the policy `alone`."""
    with path.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        ratios = ("over_alone", "worst_over_alone", "over_best_other")
        writer.writerow(["front", "behind", "phone", "fs", "policy", "calls", *TIMES, *ratios])
        for row in found:
            for rule, calls in (("alone", row.alone), *row.by_policy.items()):
                times = [getattr(calls, name) for name in TIMES] if calls else [None] * len(TIMES)
                over = row.over_alone(rule), row.worst_over_alone(rule), row.over_best if rule == OURS else None
                count = calls.calls if calls else None
                writer.writerow([row.front, row.behind, *row.place, rule, count, *times, *over])
