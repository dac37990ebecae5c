# SPDX-License-Identifier: GPL-2.0-only
"""The papers' evaluations: chosen, made and shown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Group
from rich.markup import escape
from rich.table import Table

from fasttrack_lab.host.errors import UsageProblem, unknown
from fasttrack_lab.trace import androtrace_evaluations, fasttrack_evaluations, recordings
from fasttrack_lab.trace.evaluation import Evaluation, Outcome

EVALUATIONS = {one.name: one for one in (*androtrace_evaluations.EVALUATIONS, *fasttrack_evaluations.EVALUATIONS)}


@dataclass(frozen=True)
class Made:
    """An evaluation with what it found and what it lacked."""

    evaluation: Evaluation
    outcome: Outcome
    lacking: list[str]

    @property
    def differs(self) -> bool:
        """Whether a number is not the paper's."""
        return any(one.agrees is False for one in self.outcome.found)

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        one = self.evaluation
        told = {name: getattr(one, name) for name in ("title", "source", "because")}
        return {**told, "found": [asdict(found) for found in self.outcome.found], "lacking": self.lacking}


def chosen(names: Sequence[str]) -> list[Evaluation]:
    """Those of these names, all without one."""
    for name in names:
        if name not in EVALUATIONS:
            raise UsageProblem(unknown("evaluation", name, EVALUATIONS))
    return [EVALUATIONS[name] for name in dict.fromkeys(names)] or list(EVALUATIONS.values())


def make(wanted: Sequence[Evaluation], out: Path) -> Iterator[Made]:
    """Makes what is lacking of their recordings, and evaluates; pictures and numbers go to OUT."""
    for one in wanted:
        there = [each for each in one.recordings if each.lacking() is None]
        lacking = list(dict.fromkeys(filter(None, (each.lacking() for each in one.recordings))))
        recordings.make_all(there, out)
        made = Made(one, one.find(out, there), lacking)
        for name, text in made.outcome.pictures.items():
            (out / name).write_text(text, encoding="utf-8")
        (out / f"{one.name}.json").write_text(json.dumps(made.to_json(), indent=1) + "\n", encoding="utf-8")
        yield made


def shown(all_made: Iterable[Made]) -> Group:
    """For the terminal: the paper's number beside ours, and why they differ."""
    parts: list[Any] = []
    for made in all_made:
        one = made.evaluation
        table = Table(
            title=f"\n{one.name}: {one.title} ({escape(one.source)})",
            title_justify="left",
            box=box.SIMPLE_HEAD,
            show_edge=False,
        )
        for heading in ("of", "what", "paper", "here", ""):
            table.add_column(heading)
        for found in made.outcome.found:
            table.add_row(*(escape(text) for text in (found.of, found.what, found.paper, found.here, found.verdict)))
        parts += [table, *(f"left out: {escape(why)}" for why in made.lacking)]
        parts.append(f"{'why they differ' if made.differs else 'note'}: {escape(one.because)}")
    return Group(*parts)
