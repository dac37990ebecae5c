# SPDX-License-Identifier: GPL-2.0-only
"""What a metric is: a query over the tables with its unit, formula, source and coverage.

A metric of no table is not recorded, and its coverage is 0. All values are integers, texts, or one integer over
another, so that every engine gives the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from fasttrack_lab.trace import lazy_ibis as ibis
from fasttrack_lab.trace.tables import FLAG, Tables

if TYPE_CHECKING:
    import ibis.expr.types as ir

Query: TypeAlias = "Callable[[Tables], ir.Table]"


@dataclass(frozen=True)
class Metric:
    """A question that tables answer."""

    name: str
    title: str
    unit: str
    """Of its columns: `column: unit`, separated by semicolons."""
    formula: str
    source: str
    """The paper's figure or claim that it is for, or whose question it answers."""
    table: str
    """The table that it counts over."""
    known: str | None
    """The column that must be known for a row to be told apart; None: every row is."""
    query: Query
    of_one: bool = False
    """It is of one installation: user ids, paths or rates of several have nothing to do with each other."""

    def __call__(self, tables: Tables) -> ir.Table:
        """The answer, as a query in a fixed order of rows."""
        return self.query(tables)


Known = tuple[int, int]
"""Rows of a table, and how many of them a metric can tell apart."""


def known_of(tables: Tables, metrics: Iterable[Metric]) -> dict[str, ir.Table]:
    """How much metrics know, a query a table that they count over: of one row, which `coverage` reads."""
    wanted = {(one.table, one.known) for one in metrics}
    queries = {}
    for name in sorted({table for table, _ in wanted}):
        columns = sorted({column for table, column in wanted if table == name and column is not None})
        table = tables.by_name[name]
        asked = {column: _asked(table, name, column) for column in columns}
        there = {f"{column}_known": count_if(whole & _is_known(table[column])) for column, whole in asked.items()}
        rows = {f"{column}_rows": count_if(whole) for column, whole in asked.items()}
        queries[name] = table.agg(rows=table.count(), **rows, **there)
    return queries


def coverage(metric: Metric, row: Mapping[str, int]) -> Known:
    """How much a metric knows, of the row of its table."""
    if metric.known is None:
        return row["rows"], row["rows"]
    return row[f"{metric.known}_rows"], row[f"{metric.known}_known"]


def _asked(table: ir.Table, name: str, column: str) -> ir.BooleanValue:
    """The rows that can have a COLUMN: only data blocks have a file."""
    whole = table.time.notnull()
    return whole & (table.block_type == "data") if (name, column) == ("segments", "path") else whole


def _is_known(value: ir.Value) -> ir.BooleanValue:
    """Whether a value says something."""
    return value.notnull() & (value != "unknown") if value.type().is_string() else value.notnull()


METRICS: dict[str, Metric] = {}
"""All metrics by name, in the order of a report."""


def metric(
    title: str, *, unit: str, formula: str, source: str, table: str, known: str | None = None, of_one: bool = False
) -> Callable[[Query], Metric]:
    """Registers a query as a metric under its function's name."""

    def register(query: Query) -> Metric:
        made = Metric(query.__name__, title, unit, formula, source, table, known, query, of_one)
        METRICS[made.name] = made
        return made

    return register


def count_if(which: ir.BooleanValue) -> ir.IntegerScalar:
    """How many rows are so; what is unknown is not."""
    return ibis.ifelse(which.fill_null(False), 1, 0).sum().cast("int64").fill_null(0)


def sum_if(value: ir.IntegerValue, which: ir.BooleanValue) -> ir.IntegerScalar:
    """The sum over the rows that are so."""
    return ibis.ifelse(which.fill_null(False), value, 0).sum().cast("int64").fill_null(0)


def total(value: ir.IntegerValue) -> ir.IntegerScalar:
    """The sum; of nothing, 0."""
    return value.sum().cast("int64").fill_null(0)


def ratio(part: ir.IntegerValue, whole: ir.IntegerValue) -> ir.FloatingValue:
    """One over the other; of nothing, NULL."""
    return part.cast("float64") / whole.nullif(0).cast("float64")


def named(value: ir.StringValue, unknown: str = "unknown") -> ir.StringValue:
    """With a row of its own for what nobody knows."""
    return value.fill_null(unknown)


def with_shares(grouped: ir.Table, columns: Sequence[str], within: Sequence[str] = ()) -> ir.Table:
    """With `COLUMN_share`, each value's share of all, or of those that are equal in WITHIN."""
    window = ibis.window(group_by=list(within)) if within else ibis.window()
    shares = {f"{name}_share": ratio(grouped[name], grouped[name].sum().over(window).cast("int64")) for name in columns}
    return grouped.mutate(**shares)


def counted(table: ir.Table, by: Sequence[str] | dict[str, ir.Value], **more: Any) -> ir.Table:
    """Count and bytes of each group."""
    keys = by if isinstance(by, dict) else {name: table[name] for name in by}
    keyed = table.mutate(**keys)
    return keyed.group_by(list(keys)).agg(count=keyed.count(), bytes=total(keyed.bytes), **more)


PERCENTS = (50, 90, 99)


def percentiles(table: ir.Table, by: dict[str, ir.Value], value: ir.IntegerValue) -> ir.Table:
    """Count, nearest-rank percentiles and the largest VALUE of each group: the least value that P % do not exceed.

    By counts of equal values, so that rows are not sorted, and every engine finds the same.
    """
    keys = list(by)
    rows = table.mutate(**by, value=value).filter(lambda row: row.value.notnull())
    equal = rows.group_by([*keys, "value"]).agg(times=rows.count())
    window = ibis.window(group_by=keys, order_by="value", preceding=None, following=0)
    ranked = equal.mutate(
        rank=equal.times.sum().over(window).cast("int64"),
        all_times=equal.times.sum().over(ibis.window(group_by=keys)).cast("int64"),
    )
    found = {
        f"p{percent}": ibis.ifelse(
            ranked.rank * 100 >= ranked.all_times * percent, ranked.value, ibis.null("int64")
        ).min()
        for percent in PERCENTS
    }
    return ranked.group_by(keys).agg(count=total(ranked.times), **found, longest=ranked.value.max())


def is_flag(value: ir.Value) -> ir.BooleanValue:
    """A flag that is unknown is not set."""
    return value.cast(FLAG).fill_null(False)
