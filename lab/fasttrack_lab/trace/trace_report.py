# SPDX-License-Identifier: GPL-2.0-only
"""All metrics of a trace with their coverage and what is lost: what the terminal, the page and JSON show."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from fasttrack_lab.trace.metric import Metric, coverages
from fasttrack_lab.trace.metrics import METRICS
from fasttrack_lab.trace.tables import Tables, rows_of

Row = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """A metric's answer."""

    metric: Metric
    rows: list[Row]
    asked: int
    """Rows of the table that it counts over."""
    known: int
    """Those of them that it can tell apart."""

    @property
    def recorded(self) -> bool:
        """Whether the trace knows anything of what the metric needs."""
        return self.known > 0

    @property
    def coverage(self) -> float:
        """Share that is known; of what is not recorded, 0."""
        return self.known / self.asked if self.asked else 0.0

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        told = {name: getattr(self.metric, name) for name in ("title", "unit", "formula", "source", "table")}
        return {**told, "recorded": self.recorded, "coverage": self.coverage, "rows": self.rows}


@dataclass(frozen=True)
class Report:
    """A trace's answers."""

    traces: list[str]
    sessions: list[Row]
    answers: dict[str, Answer]
    begin_ns: int | None
    """Times of the boot clock between which there are bios; None where there is none."""
    end_ns: int | None
    losses: list[Row]

    @property
    def is_empty(self) -> bool:
        """Whether the trace has no I/O."""
        return self.begin_ns is None

    @property
    def lossy(self) -> bool:
        """Whether a figure may be too small."""
        return bool(self.losses)

    @property
    def seconds(self) -> float:
        """Time between the first bio and the last."""
        return 0.0 if self.begin_ns is None or self.end_ns is None else (self.end_ns - self.begin_ns) / 1e9

    def absent(self) -> list[Metric]:
        """Metrics that need records that the trace does not have."""
        return [
            answer.metric for answer in self.answers.values() if not answer.recorded and answer.metric.table != "losses"
        ]

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        kept = {name: value for name, value in asdict(self).items() if name != "answers"}
        answers = {name: answer.to_json() for name, answer in self.answers.items()}
        return {**kept, "seconds": self.seconds, "lossy": self.lossy, "metrics": answers}


_LOSS_ROWS = 100
_OF_SESSION = ("session", "install", "boot", "kernel", "collector", "sources", "clear_names", "utc_offset_s")


def make(tables: Tables, traces: Iterable[str]) -> Report:
    """Asks every metric."""
    covered = coverages(tables, METRICS.values())
    answers = {}
    for name, metric in METRICS.items():
        asked, known = covered[name]
        rows = rows_of(tables.engine, metric(tables)) if known else []
        answers[name] = Answer(metric, rows, asked, known)
    io, sessions = tables.io, tables.sessions
    (span,) = rows_of(tables.engine, io.agg(begin=io.time.min(), end=io.time.max()))
    lost = rows_of(tables.engine, tables.losses.order_by(["time", "reason"]).limit(_LOSS_ROWS))
    of_session = rows_of(tables.engine, sessions.select(*_OF_SESSION).distinct().order_by("session"))
    return Report(list(traces), of_session, answers, span["begin"], span["end"], lost)
