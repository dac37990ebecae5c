# SPDX-License-Identifier: GPL-2.0-only
"""A few runs whose numbers are kept to the nanosecond, so that a change of behaviour is seen where it was not meant.

A run is exact: the same kernel and the same inputs give the same nanosecond, and anything else is a fault of the lab.
Another kernel may differ. How far is shown, and by more than BOUND it is a failure until the records are renewed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.table import Table

from fasttrack_lab.compare.comparison import runs_of
from fasttrack_lab.host.errors import InputError, LabError
from fasttrack_lab.host.paths import CHECKOUT, write_if_changed
from fasttrack_lab.inputs.cell import Cell
from fasttrack_lab.run.result import NS_PER_S, Result
from fasttrack_lab.run.runner import Tools, run_many

RATCHET = CHECKOUT / "docs" / "RATCHET.jsonl"
RENEW = "./fasttrack ratchet --renew"

BOUND = 0.02
"""By how much another kernel's number may differ, as a share. The cells below hardly notice a page of memory more
or less; where memory is scarce, that alone changes a response by per cents."""

SIX = ("backup", "download", "photo-upload", "scan", "sync", "update")
CELLS = (
    Cell("gallery-launch", "s6", "stock", (), 1),
    Cell("gallery-launch", "s6", "fasttrack", ("update",), 1),
    Cell("gallery-launch", "n6", "stock", ("update",), 1),
    Cell("gallery-launch", "n6", "bfq", ("backup",), 1),
    Cell("gallery-launch", "n5", "fasttrack", ("backup",), 1, "f2fs", "mglru"),
    Cell("gallery-launch", "p1", "none", ("backup",), 1, "f2fs"),
    Cell("camera-switch", "s6", "fasttrack", ("update",), 1, lru="mglru"),
    Cell("camera-switch", "n6", "fasttrack", SIX, 1),
    Cell("camera-switch", "s6", "cgroup", SIX, 1),
    Cell("camera-switch", "ufs31", "fasttrack", ("backup",), 1),
    Cell("game-load", "s6", "fasttrack-minus", ("backup",), 1, "f2fs"),
    Cell("smartio-maps-launch", "s6", "smartio", ("install",), 1),
)
"""Every scenario, phones with eMMC and UFS, both file systems and LRUs, FastTrack's elevator and others. Each
takes less than two seconds."""


@dataclass(frozen=True)
class Pin:
    """The numbers of one run, and what it was made from: keys of the kernel, and of the job with the guest program."""

    cell: Cell
    kernel: str
    inputs: str
    response_ns: int
    background_bytes: int
    """Read and written by the background apps, up to the end of the run."""

    @property
    def made_of(self) -> tuple[str, str]:
        """What the numbers follow from."""
        return self.kernel, self.inputs


@dataclass(frozen=True)
class Moved:
    """One cell: what is on record, and what a run gives now."""

    kept: Pin
    now: Pin

    @property
    def share(self) -> float:
        """The larger of the two numbers' changes, as a share of what is on record; negative where it is less now."""
        pairs = (
            (self.kept.response_ns, self.now.response_ns),
            (self.kept.background_bytes, self.now.background_bytes),
        )
        return max(((now - kept) / max(kept, 1) for kept, now in pairs), key=abs)

    @property
    def moved(self) -> bool:
        """Whether a number differs at all."""
        return (self.kept.response_ns, self.kept.background_bytes) != (
            self.now.response_ns,
            self.now.background_bytes,
        )

    @property
    def error(self) -> str | None:
        """Why this must not be; None where it may."""
        if self.moved and self.kept.made_of == self.now.made_of:
            return f"{self.now.cell.text()}: other numbers from the same kernel and inputs: a run is not exact any more"
        if abs(self.share) > BOUND:
            return f"{self.now.cell.text()}: {self.share:+.1%}, more than {BOUND:.0%}"
        return None


def read(path: Path = RATCHET) -> list[Pin]:
    """The records. InputError if the file is missing or damaged."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError as error:
        raise InputError(f"missing; {RENEW} makes it", path) from error
    pins: list[Pin] = []
    for number, line in enumerate(lines, start=1):
        try:
            raw = json.loads(line)
            pins.append(Pin(**raw | {"cell": Cell.of_json(raw["cell"])}))
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise InputError(f"not a record ({error!r}); {RENEW} makes it", path, number) from error
    return pins


def write(pins: Sequence[Pin], path: Path = RATCHET) -> None:
    """Replaces the records."""
    lines = (json.dumps(asdict(pin), sort_keys=True) + "\n" for pin in pins)
    write_if_changed(path, "".join(lines).encode())


def measure(cells: Sequence[Cell], tools: Tools) -> list[Pin]:
    """Run the cells. LabError if a run fails."""
    runs = runs_of(cells, tools)
    results = run_many([spec for spec, _ in runs.values()], tools, title="ratchet")
    return [_pin(cell, tools.kernel.key, runs[cell][1], result) for cell, result in zip(runs, results, strict=True)]


def _pin(cell: Cell, kernel: str, inputs: str, result: Result) -> Pin:
    if result.response_s is None:
        raise LabError(f"{cell.text()}: {result.verdict.error}")
    moved = sum(app["bytes"] for app in result.to_json()["background"].values())
    return Pin(cell, kernel, inputs, round(result.response_s * NS_PER_S), moved)


def compare(kept: Sequence[Pin], now: Sequence[Pin]) -> list[Moved]:
    """Each cell of today with its record. LabError if one has none."""
    by_cell = {pin.cell: pin for pin in kept}
    lacking = [pin.cell.text() for pin in now if pin.cell not in by_cell]
    if lacking:
        raise LabError(f"no record of {lacking[0]}; {RENEW} makes it")
    return [Moved(by_cell[pin.cell], pin) for pin in now]


def failures(pairs: Sequence[Moved]) -> list[str]:
    """What must not be, a line each; the last says the way out."""
    errors = [pair.error for pair in pairs if pair.error]
    return [*errors, f"if this is meant: {RENEW}, and put the table into the commit's message"] if errors else []


def table(pairs: Sequence[Moved]) -> Table:
    """The cells whose numbers moved, with both numbers and by how much."""
    shown = Table("run", "response, ns", "", "", "background, bytes", "", "", title="what moved")
    for pair in pairs:
        if pair.moved:
            kept, now = pair.kept, pair.now
            numbers = (
                (kept.response_ns, now.response_ns),
                (kept.background_bytes, now.background_bytes),
            )
            texts = [f"{a:,} {b:,} {(b - a) / max(a, 1):+.3%}".split() for a, b in numbers]
            shown.add_row(now.cell.text(), *texts[0], *texts[1])
    return shown


def said(pairs: Sequence[Moved]) -> str:
    """The outcome in a line."""
    moved = sum(pair.moved for pair in pairs)
    same = sum(pair.kept.made_of == pair.now.made_of for pair in pairs)
    made = "the same kernel and inputs" if same == len(pairs) else "another kernel or other inputs"
    return f"ratchet: {moved} of {len(pairs)} runs moved, on {made}"
