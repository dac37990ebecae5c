# SPDX-License-Identifier: GPL-2.0-only
"""All metrics of a trace with their coverage and what is lost: what the terminal, the page and JSON show."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from fasttrack_lab.host.known import remembered
from fasttrack_lab.trace import duckdb_tables, engines
from fasttrack_lab.trace.metric import Metric, coverage, known_of
from fasttrack_lab.trace.metrics import METRICS
from fasttrack_lab.trace.plain_duckdb import Connected
from fasttrack_lab.trace.tables import COLUMNS, COUNTED, SAMPLED, Tables, lost, rows_of

if TYPE_CHECKING:
    import ibis.expr.types as ir

Row = dict[str, Any]
Query: TypeAlias = "ir.Expr | str"


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

    @property
    def marked(self) -> int | None:
        """Rows that losses overlap, where the metric tells; None where it is of the whole interval."""
        if self.rows and "losses" in self.rows[0]:
            return sum(bool(row["losses"]) for row in self.rows)
        return None

    @property
    def elsewhere(self) -> int:
        """Losses that overlap no row, where the metric tells."""
        return self.rows[0].get("elsewhere", 0) if self.rows else 0

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
    spans: list[Row]
    """Of each session with bios: times of the boot clock, ns, of the first and the last."""
    losses: list[Row]

    @property
    def is_empty(self) -> bool:
        """Whether the trace has no I/O."""
        return not self.spans

    @property
    def lossy(self) -> bool:
        """Whether a figure may be too small."""
        return bool(self.losses)

    @property
    def installs(self) -> list[str]:
        """The installations that it is of."""
        return sorted({row["install"] for row in self.sessions if row["install"] is not None})

    def lost(self, answer: Answer) -> str:
        """What losses mean for an answer: nothing, the whole of it, some of its rows, or rows that it lacks."""
        if not self.lossy:
            return ""
        found = []
        if answer.marked is None:
            found.append("records are lost, so this may be too small")
        elif answer.marked:
            some = f"in {answer.marked} of {len(answer.rows)} rows, by the column losses"
            found.append(f"records are lost, so this may be too small {some}")
        if answer.elsewhere:
            found.append(f"rows may be missing: {answer.elsewhere} losses overlap none")
        return "; ".join(found)

    def mixed(self, answer: Answer) -> bool:
        """Whether an answer that makes sense of one installation is of several."""
        return answer.metric.of_one and len(self.installs) > 1

    @property
    def sample(self) -> int:
        """One bio of so many was recorded, in the session that was sampled most."""
        return max((row["sample"] or 1 for row in self.sessions), default=1)

    def sampled(self, answer: Answer) -> bool:
        """Whether an answer counts a part of what there was: no metric scales by weights."""
        return self.sample > 1 and answer.metric.table in SAMPLED

    @property
    def seconds(self) -> float:
        """Time between the first bio and the last, all sessions together."""
        return float(sum(row["last"] - row["first"] for row in self.spans)) / 1e9

    def absent(self) -> list[Metric]:
        """Metrics that need records that the trace does not have."""
        return [
            answer.metric for answer in self.answers.values() if not answer.recorded and answer.metric.table != "losses"
        ]

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        kept = {name: value for name, value in asdict(self).items() if name != "answers"}
        answers = {name: answer.to_json() | {"lossy": bool(self.lost(answer))} for name, answer in self.answers.items()}
        return {
            **kept,
            "seconds": self.seconds,
            "lossy": self.lossy,
            "sample": self.sample,
            "installs": self.installs,
            "metrics": answers,
        }


_LOSS_ROWS = 100
_OF_SESSION = ("session", "install", "boot", "kernel", "collector", "sources", "clear_names", "utc_offset_s", "sample")


@dataclass(frozen=True)
class Asked:
    """The queries of a report; DuckDB's as SQL, for to make them takes as long as to answer those of a small trace."""

    metrics: dict[str, Query]
    known: dict[str, Query]
    spans: Query
    losses: Query
    sessions: Query

    def answered(self, engine: Connected, traces: Iterable[str]) -> Report:
        """Asks them of the tables that are in ENGINE, which is Ibis's unless they are SQL."""
        counts = {table: rows_of(engine, query)[0] for table, query in self.known.items()}
        answers = {}
        for name, metric in METRICS.items():
            asked, known = coverage(metric, counts[metric.table])
            answers[name] = Answer(metric, rows_of(engine, self.metrics[name]) if known else [], asked, known)
        losses, sessions = rows_of(engine, self.losses), rows_of(engine, self.sessions)
        return Report(list(traces), sessions, answers, rows_of(engine, self.spans), losses)


def ask(chosen: Callable[[Tables], Tables] | None = None, counted: bool = True) -> Asked:
    """All queries, before there are tables, of what is CHOSEN of these. COUNTED: they have columns for metrics alone.

    Without a choice the queries are the same each time, so they are kept in the cache: what they are made by is in the
    key. Those of a choice have a user's paths or ids in them.
    """
    if chosen is not None:
        return _asked(chosen(_no_tables(counted)))
    made_by = [*map(version, _COMPILERS), str(counted)]
    kept = remembered("report-queries", _sources(), made_by, lambda: json.dumps(asdict(_asked(_no_tables(counted)))))
    return Asked(**json.loads(kept))


_COMPILERS = ("ibis-framework", "sqlglot")
"""Packages that make SQL of a query."""


def _sources() -> list[Path]:
    return sorted(Path(__file__).parent.rglob("*.py"))


def _no_tables(counted: bool) -> Tables:
    """Tables by name alone."""
    engine, there = engines.duckdb(), COUNTED if counted else COLUMNS
    return Tables({name: duckdb_tables.table(engine, name, columns) for name, columns in there.items()}, engine)


def _asked(tables: Tables) -> Asked:
    def compiled(query: ir.Expr) -> Query:
        return str(tables.engine.compile(query)) if tables.engine.name == engines.DUCKDB else query

    io, losses, sessions = tables.io, tables.losses, tables.sessions
    # What a sample leaves is told once, by the metric of losses.
    some = lost(losses)
    return Asked(
        {name: compiled(metric(tables)) for name, metric in METRICS.items()},
        {name: compiled(query) for name, query in known_of(tables, METRICS.values()).items()},
        compiled(io.group_by("session").agg(first=io.time.min(), last=io.time.max()).order_by("session")),
        compiled(some.order_by(["time", "reason"]).limit(_LOSS_ROWS)),
        compiled(sessions.select(*_OF_SESSION).distinct().order_by("session")),
    )


def make(tables: Tables, traces: Iterable[str]) -> Report:
    """Asks every metric."""
    return _asked(tables).answered(tables.engine, traces)
