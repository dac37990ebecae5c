# SPDX-License-Identifier: GPL-2.0-only
"""What the background must give up for the foreground: how long calls take, against what the background gets done.

A program in front does calls with a pause after each, beside some writers or readers. Its calls are compared with the
same alone under `stock`, the bytes of those behind with `stock` in the same cell, and with `stock` where the program in
front does nothing.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich import box
from rich.table import Table

from fasttrack_lab.compare.records import BASELINE_POLICY, Record, latest
from fasttrack_lab.inputs import phone, policy
from fasttrack_lab.inputs.cell import Cell
from fasttrack_lab.inputs.exec_job import background_name
from fasttrack_lab.run.runner import RunSpec
from fasttrack_lab.workloads import behind, front
from fasttrack_lab.workloads.calls import Calls, bytes_between, calls_of, ratio_text
from fasttrack_lab.workloads.programs import DATA_BYTES, FRONT_TEXT, MIB, RUN, Place, Program, behinds, spec_of

IDLE = front.IDLE
KINDS = tuple(kind for kind in front.PACED if kind != IDLE)
BEHIND = ("write", "read")
THINKS_MS = (0.0, 1.0, 3.0, 10.0, 30.0, 100.0)
APPS = (1, 2, 6)
OURS = ("fasttrack", "fasttrack-minus")
CSV = "points.csv"

READ_MIB = 1800
"""What all readers together read before they begin again."""
LITTLE = 0.10
"""A program in front that alone spends at most this part of the time in its calls uses little of the device."""
BEHIND_GOAL = {"UFS": 0.85, "eMMC": 0.75}
"""Where it does, by kind of storage: the part of its throughput under `stock` that the background shall have."""
P99_GOAL = 1.25
"""And the 99th percentile of the calls in front over alone, on UFS. On eMMC a request more than alone is met."""


@dataclass(frozen=True)
class Point:
    """Where something is measured: the calls in front and their pause, the programs behind, the place."""

    kind: str
    think_ms: float
    behind: str
    apps: int
    place: Place

    @property
    def scenario(self) -> str:
        """What the program in front is called."""
        return scenario(self.kind, self.think_ms)


def scenario(kind: str, think_ms: float) -> str:
    """What a program in front is called; one that does nothing has no pauses to tell."""
    return kind if kind == IDLE else f"{kind}-{think_ms:g}ms"


@dataclass(frozen=True)
class Asked:
    """What a frontier is made of. Times in s: virtual before the window, the window, real for a run."""

    kinds: tuple[str, ...]
    thinks_ms: tuple[float, ...]
    behinds: tuple[str, ...]
    apps: tuple[int, ...]
    places: tuple[Place, ...]
    policies: tuple[str, ...]
    seed: int
    times_s: tuple[float, float, float]

    def points(self) -> Iterator[Point]:
        """All points, in the order of tables."""
        for place in self.places:
            for kind in self.kinds:
                for other in self.behinds:
                    for apps in self.apps:
                        for think_ms in self.thinks_ms:
                            yield Point(kind, think_ms, other, apps, place)

    def runs(self) -> Iterator[tuple[Cell, RunSpec]]:
        """All runs: the baselines first, which the points need."""
        for place in self.places:
            for kind in self.kinds:
                for think_ms in self.thinks_ms:
                    yield self._run(Point(kind, think_ms, "", 0, place), BASELINE_POLICY)
            for other in self.behinds:
                for apps in self.apps:
                    yield self._run(Point(IDLE, 0.0, other, apps, place), BASELINE_POLICY)
        for point in self.points():
            for rule in dict.fromkeys((BASELINE_POLICY, *self.policies)):
                yield self._run(point, rule)

    def _run(self, point: Point, rule: str) -> tuple[Cell, RunSpec]:
        (name, fs), (warmup_s, window_s, real_s) = point.place, self.times_s
        line = f"exec python3 {RUN}/{FRONT_TEXT} {point.kind} {self.seed} {point.think_ms:g} {window_s:g}"
        first = Program(point.scenario, line, ((front.DATA, DATA_BYTES),))
        others = [program_behind(point.behind, point.apps)] * point.apps if point.apps else []
        cell = Cell(first.name, name, rule, (point.behind,) * point.apps, self.seed, fs)
        # A call that has begun in the window may end long after it.
        return cell, spec_of(
            cell, (phone.load(name).with_fs(fs), policy.load(rule)), (first, others), (warmup_s, 60 + window_s, real_s)
        )


def program_behind(kind: str, apps: int) -> Program:
    """A program behind; the readers' files are the smaller the more readers there are."""
    files = ((behind.LARGE, READ_MIB // apps * MIB),) if kind == "read" else ()
    return replace(behinds([kind])[0], files=files)


@dataclass(frozen=True)
class Row:
    """A point under a policy. What could not be measured is None."""

    point: Point
    policy: str
    calls: Calls | None
    behind_mb_s: float | None
    p50: float | None
    """The calls' median over that alone."""
    p99: float | None
    behind_to_idle: float | None
    """Bytes of those behind over those under stock beside a program that does nothing."""
    behind_to_stock: float | None
    """The same over stock in the same cell."""
    share: float | None
    """Of the time alone, the part that is spent in calls."""

    @property
    def light(self) -> bool:
        """Whether the program in front uses little of the device, so that there are goals."""
        return self.share is not None and self.share <= LITTLE

    @property
    def failed(self) -> bool:
        """Whether there are goals and the run has no times: then none is met."""
        return self.light and (self.calls is None or self.calls.p99_s is None)

    @property
    def behind_met(self) -> bool | None:
        """Whether the background has what it shall have; None where there is no goal or nothing to compare with."""
        if self.failed:
            return False
        if not self.light or self.behind_to_stock is None:
            return None
        return self.behind_to_stock >= behind_goal(self.point.place)

    @property
    def front_met(self) -> bool | None:
        """Whether the calls are as fast as they shall be; None where there is no goal or nothing to compare with."""
        if self.failed:
            return False
        if not self.light or self.p99 is None or self.calls is None or self.calls.p99_s is None:
            return None
        storage = phone.load(self.point.place[0])
        if storage.storage == "UFS":
            return self.p99 <= P99_GOAL
        alone_s = self.calls.p99_s / self.p99
        return self.calls.p99_s - alone_s <= storage.longest_request_s


def behind_goal(place: Place) -> float:
    """What the background shall have of its throughput under `stock` on a phone."""
    return BEHIND_GOAL[phone.load(place[0]).storage]


def _mb_s(record: Record, calls: Calls) -> float:
    """Throughput of those behind while the program in front was at work."""
    printed = (record.result or {}).get("printed", {})
    outs = [printed.get(background_name(index), {}).get("out", "") for index in range(len(record.cell.backgrounds))]
    return sum(bytes_between(out, calls.begin_s, calls.end_s) for out in outs) / 1e6 / (calls.end_s - calls.begin_s)


def _ratio(mine: float | None, other: float | None) -> float | None:
    return mine / other if mine is not None and other else None


def rows(records: Iterable[Record], asked: Asked) -> list[Row]:
    """All points under all policies."""
    found: dict[tuple[str, tuple[str, ...], Place, str], tuple[Calls, float]] = {}
    for cell, record in latest(records).items():
        if calls := calls_of(record):
            found[cell.scenario, cell.backgrounds, (cell.phone, cell.fs), cell.policy] = calls, _mb_s(record, calls)
    made = []
    for point in asked.points():
        others = (point.behind,) * point.apps
        alone, _ = found.get((point.scenario, (), point.place, BASELINE_POLICY), (None, 0.0))
        _, idle = found.get((IDLE, others, point.place, BASELINE_POLICY), (None, None))
        _, stock = found.get((point.scenario, others, point.place, BASELINE_POLICY), (None, None))
        for rule in asked.policies:
            calls, mb_s = found.get((point.scenario, others, point.place, rule), (None, None))
            both = calls and alone
            made.append(
                Row(
                    point,
                    rule,
                    calls,
                    mb_s,
                    p50=_ratio(calls.p50_s, alone.p50_s) if both and calls and alone else None,
                    p99=_ratio(calls.p99_s, alone.p99_s) if both and calls and alone else None,
                    behind_to_idle=_ratio(mb_s, idle),
                    behind_to_stock=_ratio(mb_s, stock),
                    share=_ratio(alone.sum_s, alone.end_s - alone.begin_s) if alone else None,
                )
            )
    return made


def table(found: Sequence[Row], policies: Sequence[str]) -> Table:
    """For the terminal: under each policy p50 and p99 over alone, and throughput behind over stock's in its cell."""
    title = "p50/p99 of calls over alone, throughput behind over stock's in the same cell"
    shown = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False)
    for heading in ("place", "in front", "behind"):
        shown.add_column(heading, no_wrap=True)
    for heading in ("share", *policies):
        shown.add_column(heading, justify="right", no_wrap=True)
    by_point: dict[Point, list[Row]] = {}
    for row in found:
        by_point.setdefault(row.point, []).append(row)
    for point, mine in by_point.items():
        share = "-" if mine[0].share is None else f"{mine[0].share:.0%}"
        texts = [f"{ratio_text(row.p50)}/{ratio_text(row.p99)} {ratio_text(row.behind_to_stock)}" for row in mine]
        shown.add_row("-".join(point.place), point.scenario, f"{point.apps} {point.behind}", share, *texts)
    return shown


def summary(found: Sequence[Row]) -> list[str]:
    """Where the program in front uses little of the device: whether both sides have what they shall, a line a side."""
    ufs, emmc = BEHIND_GOAL["UFS"], BEHIND_GOAL["eMMC"]
    behind = f"background at least {ufs:g} of stock's in the same cell, {emmc:g} on eMMC"
    front = f"p99 in front at most {P99_GOAL:g} of alone, on eMMC a request more"
    return [
        f"where the front uses at most {LITTLE:.0%}:",
        f"{behind}: {_told(found, lambda row: row.behind_met, lambda row: row.behind_to_stock or 0.0, min)}",
        f"{front}: {_told(found, lambda row: row.front_met, lambda row: row.p99 or 0.0, max)}",
    ]


def _told(
    found: Sequence[Row],
    met: Callable[[Row], bool | None],
    number: Callable[[Row], float],
    worst: Callable[..., Row],
) -> str:
    """In how many points of each policy of ours a goal is met, and the NUMBER of the WORST, by min or max.

    In a failed run it is not met; it has no number.
    """
    parts = []
    for rule in OURS:
        counted = [row for row in found if row.policy == rule and met(row) is not None]
        if not counted:
            continue
        text = f"{rule} {sum(map(bool, map(met, counted)))} of {len(counted)}"
        numbered = [row for row in counted if not row.failed]
        if failed := len(counted) - len(numbered):
            text += f", {failed} failed"
        if numbered:
            row = worst(numbered, key=number)
            where = row.point
            text += (
                f", worst {number(row):.2f} "
                f"({where.scenario} beside {where.apps} {where.behind} on {'-'.join(where.place)})"
            )
        parts.append(text)
    return "; ".join(parts) or "no such point"


def write_csv(path: Path, found: Sequence[Row]) -> None:
    """A line a point and policy."""
    ratios = ("p50", "p99", "behind_to_idle", "behind_to_stock", "share", "behind_mb_s")
    times = ("calls", "sum_s", "p50_s", "p99_s", "longest_s")
    with path.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        names = (*ratios[:2], "throughput_over_idle", "throughput_over_stock", "alone_share", "behind_mb_s")
        writer.writerow(["phone", "fs", "kind", "think_ms", "behind", "apps", "policy", *names, *times])
        for row in found:
            point = row.point
            where = [*point.place, point.kind, point.think_ms, point.behind, point.apps, row.policy]
            own = [getattr(row.calls, name) if row.calls else None for name in times]
            writer.writerow([*where, *(getattr(row, name) for name in ratios), *own])
