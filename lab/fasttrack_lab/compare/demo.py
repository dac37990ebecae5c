# SPDX-License-Identifier: GPL-2.0-only
"""The demo: what stock does to the app in front, and what FastTrack does about it, in one table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from fasttrack_lab.compare import comparison, report
from fasttrack_lab.compare.records import BASELINE_POLICY, Record
from fasttrack_lab.host.errors import LabError
from fasttrack_lab.inputs.cell import Cell
from fasttrack_lab.run.result import Result
from fasttrack_lab.run.runner import RunSpec, Tools, run_many


def cells(phone: str, seed: int) -> list[Cell]:
    """The demo's runs: each foreground alone, then with its background under both policies."""
    found = []
    for scenario, background in report.DEMO_PAIRS:
        found.append(Cell(scenario, phone, BASELINE_POLICY, (), seed))
        found += [Cell(scenario, phone, policy, (background,), seed) for policy in report.DEMO_POLICIES]
    return list(dict.fromkeys(found))


def records(planned: Sequence[Cell], tools: Tools) -> list[Record]:
    """Run the cells side by side."""
    specs = [comparison.run_of(cell) for cell in planned]
    by_spec = {id(spec): cell for spec, cell in zip(specs, planned, strict=True)}
    made: list[Record] = []

    def keep(spec: RunSpec, result: Result) -> None:
        error = None if result.ok else result.verdict.error or "failed without a reason"
        made.append(Record(by_spec[id(spec)], "", tools.kernel.key, result.to_json(), error))

    run_many(specs, tools, "demo", keep)
    return made


def show(made: Sequence[Record]) -> None:
    """Print the table; a run that failed fails the demo."""
    Console().print(report.demo_table(made))
    failures = [f"{record.cell.text()}: {record.error}" for record in made if record.error is not None]
    if failures:
        raise LabError("runs failed:\n" + "\n".join(failures))
