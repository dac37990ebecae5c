# SPDX-License-Identifier: GPL-2.0-only
"""Intervals of a trace: in seconds of the boot clock, or by the clock on the wall.

A row's real time is its boot time by the snapshot of the clocks before it, so a clock that was set shows in it from
then on: what it showed twice is in an interval twice, what it skipped is in none. Without the database, for --help.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeAlias

from fasttrack_lab.host.errors import UsageProblem

if TYPE_CHECKING:
    import ibis.expr.types as ir

Moment: TypeAlias = float | datetime
"""Seconds of the boot clock; what the device's clock showed in its own time zone; with a time zone, a real time."""

_SECOND = 10**9
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse(text: str) -> Moment:
    """12.5, 2026-11-27T10:00, 2026-11-27 or 2026-11-27T10:00+01:00."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageProblem(
            f"'{text}' is no time: write seconds of the boot clock, as 12.5, or the device's clock, as 2026-11-27T10:00"
        ) from error


def is_wall(*moments: Moment | None) -> bool:
    """Whether one is of the clock on the wall."""
    return any(isinstance(moment, datetime) for moment in moments)


def is_local(*moments: Moment | None) -> bool:
    """Whether one is what the device's clock showed in its own time zone."""
    return any(isinstance(moment, datetime) and moment.tzinfo is None for moment in moments)


def cut(table: ir.Table, logs: ir.Table, since: Moment | None, until: Moment | None) -> ir.Table:
    """The rows of a TABLE in an interval: a loss if a part of it is, or if its time is unknown. By the clock on the
    wall, other rows need a known time, and a loss that has a jump of that clock in it may be at any time.

    LOGS are the sessions: rows of older archives have the offset of their log file from there.
    """
    columns, loses = table.columns, "since" in table.columns
    if is_local(since, until):
        offsets = logs.group_by(["session", "log"]).agg(log_offset_s=logs.utc_offset_s.max())
        joined = table.left_join(offsets, ["session", "log"]).select(table, offsets.log_offset_s)
        table = joined.mutate(shown_offset_s=joined.utc_offset_s.fill_null(joined.log_offset_s))
    length = table.time - table.since.fill_null(table.time) if loses else 0
    if since is not None:
        at, bound = _placed(table, since, loses)
        table = table.filter(_in(at >= bound, at, loses or not is_wall(since)))
    if until is not None:
        at, bound = _placed(table, until, loses)
        table = table.filter(_in(at - length <= bound, at, loses or not is_wall(until)))
    return table.select(*columns)


def _in(which: ir.BooleanValue, at: ir.IntegerValue, if_unknown: bool) -> ir.BooleanValue:
    return at.isnull() | which if if_unknown else which


def _placed(table: ir.Table, moment: Moment, loses: bool) -> tuple[ir.IntegerValue, int]:
    """When rows are, and the moment, ns by the same clock."""
    if not isinstance(moment, datetime):
        return table.time, int(moment * _SECOND)
    real = real_of_losses(table) if loses else table.real_ns
    if moment.tzinfo is not None:
        return real, _ns(moment)
    return real + table.shown_offset_s * _SECOND, _ns(moment.replace(tzinfo=UTC))


def real_of_losses(losses: ir.Table) -> ir.IntegerValue:
    """The real time of the end of losses, ns; unknown where a time of the boot clock cannot be taken from it."""
    return losses.clock_set.fill_null(False).ifelse(None, losses.real_ns)


def _ns(moment: datetime) -> int:
    """Since 1970, without the rounding of a float."""
    passed = moment - _EPOCH
    return (passed.days * 86400 + passed.seconds) * _SECOND + passed.microseconds * 1000
