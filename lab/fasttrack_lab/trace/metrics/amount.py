# SPDX-License-Identifier: GPL-2.0-only
"""How much was read and written, of what, in which pieces, and when."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fasttrack_lab.trace import lazy_ibis as ibis
from fasttrack_lab.trace.interval import real_of_losses
from fasttrack_lab.trace.metric import count_if, counted, metric, named, ratio, sum_if, total, with_shares
from fasttrack_lab.trace.tables import Tables, lost

if TYPE_CHECKING:
    import ibis.expr.types as ir

_MOVES = ("read", "write")
_COUNTED = "count: bios; bytes: bytes; *_share: of all"


def moving(table: ir.Table) -> ir.Table:
    """What moves data."""
    return table.filter(table.operation.isin(_MOVES))


def _by_operation(moved: ir.Table, column: str) -> ir.Table:
    """Count and volume by operation and a column, with their shares of the operation."""
    grouped = counted(moved, {"operation": moved.operation, column: named(moved[column])})
    return with_shares(grouped, ["count", "bytes"], ["operation"]).order_by(["operation", column])


@metric(
    "Reads and writes",
    unit=_COUNTED,
    formula="bios by what they ask of the device",
    source="Androtrace, A4",
    table="io",
    known="operation",
)
def reads_writes(t: Tables) -> ir.Table:
    """Count and volume by operation."""
    return with_shares(counted(t.io, {"operation": named(t.io.operation)}), ["count", "bytes"]).order_by("operation")


@metric(
    "Block types",
    unit="count: segments; bytes: bytes; *_share: of the operation",
    formula="runs of blocks by what they hold",
    source="Androtrace, A9 and figure 9",
    table="segments",
    known="block_type",
)
def block_types(t: Tables) -> ir.Table:
    """Count and volume by operation and block type."""
    return _by_operation(moving(t.segments), "block_type")


@metric(
    "File types",
    unit="count: segments; bytes: bytes; *_share: of the operation",
    formula="runs of data blocks by the type of their file; SQLite by content and siblings",
    source="Androtrace, A8",
    table="segments",
    known="path",
)
def file_types(t: Tables) -> ir.Table:
    """Count and volume of data blocks by operation and type of file."""
    moved = moving(t.segments)
    return _by_operation(moved.filter(moved.block_type == "data"), "file_type")


_SIZES_KIB = (4, 8, 16, 32, 64, 128, 256, 512, 1024)


@metric(
    "Sizes",
    unit="kib: KiB, up to; -1: larger; " + _COUNTED,
    formula="bios by size, each in the smallest class that holds it",
    source="biosnoop's and btt's users",
    table="io",
)
def sizes(t: Tables) -> ir.Table:
    """Count and volume by operation and size."""
    moved = moving(t.io)
    cases = [(moved.bytes <= kib * 1024, ibis.literal(kib, "int64")) for kib in _SIZES_KIB]
    kib = ibis.cases(*cases, else_=ibis.literal(-1, "int64"))
    return counted(moved, {"operation": moved.operation, "kib": kib}).order_by(["operation", "kib"])


@metric(
    "Sequentiality",
    unit="count, sequential: bios; sequential_share: of the operation",
    formula="a bio is sequential if it begins where the one before it of the same device and operation ended",
    source="blktrace's users (btt)",
    table="io",
    known="sequential",
)
def sequentiality(t: Tables) -> ir.Table:
    """How many bios follow the one before."""
    moved = moving(t.io)
    grouped = moved.group_by("operation").agg(count=moved.count(), sequential=count_if(moved.sequential))
    return grouped.mutate(sequential_share=ratio(grouped.sequential, grouped["count"])).order_by("operation")


LOST = (
    "losses: losses that overlap it, each of which may have made it too small; "
    "elsewhere: losses that overlap no row, where there may have been one"
)
"""The unit of a column: a figure over a lossy interval is marked, one beside it is not."""

_HOUR_NS = 3_600_000_000_000


def marked(
    grouped: ir.Table, keys: Sequence[str], losses: ir.Table, overlaps: Callable[[ir.Table], ir.Value]
) -> ir.Table:
    """With how many losses overlap each row, and how many overlap none; one whose time nobody knows overlaps all. KEYS
    tell rows apart."""
    some = lost(losses)
    equal = some.group_by(some.columns).agg(times=some.count())
    both = grouped.select(*keys).distinct().cross_join(equal)
    both = both.mutate(met=ibis.ifelse(overlaps(both).fill_null(True), both.times, 0))
    met = both.group_by(list(keys)).agg(losses=total(both.met))
    each = both.group_by([column for column in both.columns if column not in {*keys, "met"}]).agg(met=both.met.max())
    beside = each.agg(elsewhere=sum_if(each.times, each.met == 0))
    joined = grouped.left_join(met, list(keys)).select(grouped, met.losses)
    return joined.mutate(losses=joined.losses.fill_null(0)).cross_join(beside)


def _hours(losses: ir.Table) -> ir.Table:
    """Losses with the hour in which they ended, since 1970, in the device's time zone, and how many before it they
    began; unknown where the clock was set meanwhile."""
    ended = real_of_losses(losses) + losses.utc_offset_s.fill_null(0) * 10**9
    began = ended - (losses.time - losses.since.fill_null(losses.time))
    hours = ((ended - ended % _HOUR_NS) - (began - began % _HOUR_NS)) / _HOUR_NS
    return losses.mutate(last_hour=ended.isnull().ifelse(None, losses.hour), lasting=hours.cast("int64"))


@metric(
    "By hour",
    unit=f"hour: of the day, in the device's time zone; {_COUNTED}; {LOST}",
    formula="bios by the hour of their local time",
    source="node_exporter's and beszel's users: who did it, hours ago",
    table="io",
    known="hour",
)
def by_hour(t: Tables) -> ir.Table:
    """Count and volume by operation and hour of the day."""
    moved = moving(t.io)
    grouped = counted(moved, {"hour": named_hour(moved.hour % 24), "operation": moved.operation})

    def overlaps(both: ir.Table) -> ir.Value:
        back = (both.last_hour - both.hour + 24) % 24
        return (both.hour < 0) | (back <= both.lasting)

    return marked(grouped, ["hour"], _hours(t.losses), overlaps).order_by(["hour", "operation"])


@metric(
    "By day",
    unit=f"day: days since 1970, in the device's time zone; {_COUNTED}; {LOST}",
    formula="bios by the day of their local time",
    source="Androtrace, section 4: days of use",
    table="io",
    known="hour",
)
def by_day(t: Tables) -> ir.Table:
    """Count and volume by operation and day."""
    moved = moving(t.io)
    grouped = counted(moved, {"day": named_hour(_day(moved.hour)), "operation": moved.operation})

    def overlaps(both: ir.Table) -> ir.Value:
        first, last = _day(both.last_hour - both.lasting), _day(both.last_hour)
        return (both.day < 0) | ((first <= both.day) & (both.day <= last))

    return marked(grouped, ["day"], _hours(t.losses), overlaps).order_by(["day", "operation"])


def _day(hour: ir.IntegerValue) -> ir.IntegerValue:
    return ((hour - hour % 24) / 24).cast("int64")


def named_hour(value: ir.IntegerValue) -> ir.IntegerValue:
    """With a row of its own, -1, for what nobody knows."""
    return value.fill_null(-1)


_STEPS = 300
"""Points of a line over time: more cannot be told apart."""


@metric(
    "Over time",
    unit="ms: ms since 1970 (UTC), or of the boot clock where nobody knows; step_ms: ms, length of the step; "
    f"read, written: bytes; {LOST}",
    formula="bytes of bios by steps and class: throughput of foreground and background",
    source="FastTrack, figures 6 and 11",
    table="io",
    known="class",
    of_one=True,
)
def over_time(t: Tables) -> ir.Table:
    """Volume by time and class, in steps of which the trace has at most _STEPS."""
    moved = moving(t.io)
    # Of several boots, only real time puts them in order.
    ns = moved.real_ns.fill_null(moved.time)
    moved = moved.mutate(at=_ms(ns), app_class=named(moved["class"]))
    ends = moved.agg(first=moved["at"].min(), last=moved["at"].max())
    spanned = ends.mutate(step_ms=((ends.last - ends.first) / _STEPS).floor().cast("int64") + 1)
    keyed = moved.cross_join(spanned)
    begun = keyed.mutate(ms=keyed["at"] - (keyed["at"] - keyed.first) % keyed.step_ms)
    grouped = begun.group_by(["ms", "step_ms", "app_class"]).agg(
        read=sum_if(begun.bytes, begun.operation == "read"), written=sum_if(begun.bytes, begun.operation == "write")
    )
    length = t.losses.time - t.losses.since.fill_null(t.losses.time)
    is_set = t.losses.clock_set.fill_null(False)
    ended = is_set.ifelse(None, t.losses.real_ns.fill_null(t.losses.time))
    losses = t.losses.mutate(begin_ms=_ms(ended - length), end_ms=_ms(ended))

    def overlaps(both: ir.Table) -> ir.Value:
        return (both.begin_ms < both.ms + both.step_ms) & (both.ms <= both.end_ms)

    return marked(grouped, ["ms", "step_ms"], losses, overlaps).order_by(["ms", "app_class"])


def _ms(ns: ir.IntegerValue) -> ir.IntegerValue:
    """Whole ms: a quotient has no more than 53 bits, and is near the integer that it stands for."""
    return ((ns - ns % 1_000_000) / 1_000_000 + 0.5).floor().cast("int64")


_LIVES = ((1_000, "under 1 s"), (10_000, "under 10 s"), (60_000, "under 1 min"), (3_600_000, "under 1 h"))


@metric(
    "Life spans",
    unit="count: files; bytes: bytes when they were unlinked",
    formula="time from creation to the end of files that ended while it was recorded, by type",
    source="Androtrace, A1",
    table="files",
    known="event",
)
def life_spans(t: Tables) -> ir.Table:
    """Files that ended, by type and how long they lived."""
    gone = t.files.filter(t.files.event == "unlink")
    spans = [(gone.life_ms < limit, ibis.literal(f"{place} {text}")) for place, (limit, text) in enumerate(_LIVES)]
    life = ibis.ifelse(gone.life_ms.isnull(), "unknown", ibis.cases(*spans, else_="4 longer"))
    return counted(gone, {"life": life, "file_type": named(gone.file_type)}).order_by(["life", "file_type"])
