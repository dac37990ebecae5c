# SPDX-License-Identifier: GPL-2.0-only
"""What a guest has counted (lab/counter), and whether it may be believed."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median

from fasttrack_lab.host.errors import LabError

TURN = 2
"""Instructions of a turn of the guest's loop for the check."""


@dataclass(frozen=True)
class Count:
    """Batches of one operation many times, on one path in one state."""

    ops: int
    """Operations of a batch."""
    sleeps: int
    """How often the program slept in them."""
    ticks: tuple[int, ...]
    """By batch: instructions."""

    @property
    def instructions(self) -> float:
        """Instructions of an operation: the median batch's. The timer's interrupts are in some batches only."""
        return median(self.ticks) / self.ops


@dataclass(frozen=True)
class Written:
    """A file written in a pattern on the emulated phone, and synced."""

    size: int
    """Bytes."""
    ns: int
    """Of the guest's time: an instruction is a nanosecond, and the device's model adds its own."""


@dataclass
class Counts:
    """All that one boot has counted."""

    checks: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """By turns of the loop: ticks."""
    lost: dict[str, int] = field(default_factory=dict)
    """By state with a trace: events that there was no room for."""
    by_state: dict[str, dict[str, Count]] = field(default_factory=dict)
    """By state and path."""
    written: dict[str, dict[str, Written]] = field(default_factory=dict)
    """By state and pattern."""

    def check(self) -> None:
        """An error if the clock does not count instructions, a program slept, or a trace lost something."""
        self._check_clock()
        for state, paths in self.by_state.items():
            for path, count in paths.items():
                if count.sleeps:
                    raise LabError(
                        f"{path} in the state {state}: the program slept {count.sleeps} times, and the clock goes on "
                        "while nobody executes anything"
                    )
        for state, lost in self.lost.items():
            if lost:
                raise LabError(f"{state}: the trace has lost {lost} events, which cost less than those that it keeps")

    def _check_clock(self) -> None:
        if len(self.checks) != 2:
            raise LabError("the guest has not checked its clock")
        (few, few_ticks), (many, many_ticks) = sorted(self.checks.items())
        # An interrupt can only add: the fastest of each is the loop alone.
        took, should = min(many_ticks) - min(few_ticks), (many - few) * TURN
        if took != should:
            raise LabError(
                f"the guest's clock does not count instructions: a loop of {should} took {took} ticks. QEMU has to be "
                "started with -icount shift=0, and the kernel must not change the time stamp counter"
            )


def parse(text: str) -> Counts:
    """The guest's file "counts"; a line that is not as it should be is an error."""
    found = Counts()
    lines = text.splitlines()
    if not lines or lines[-1] != "done":
        raise LabError("the guest has not come to the end of its counts")
    for number, line in enumerate(lines[:-1], 1):
        try:
            _add(found, line.split())
        except (ValueError, IndexError) as error:
            raise LabError(f"line {number} of the guest's counts: {line!r}: {error}") from error
    return found


def _add(found: Counts, words: list[str]) -> None:
    match words:
        case ["check", loops, *ticks] if ticks:
            found.checks[int(loops)] = tuple(map(int, ticks))
        case ["lost", state, events]:
            found.lost[state] = int(events)
        case ["count", state, path, ops, sleeps, *ticks] if ticks and int(ops) > 0:
            found.by_state.setdefault(state, {})[path] = Count(int(ops), int(sleeps), tuple(map(int, ticks)))
        case ["write", state, pattern, size, ns] if int(ns) > 0:
            found.written.setdefault(state, {})[pattern] = Written(int(size), int(ns))
        case _:
            raise ValueError("not a line of counts")
