# SPDX-License-Identifier: GPL-2.0-only
"""Where time goes: queue, device, and the waits above them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fasttrack_lab.trace import lazy_ibis as ibis
from fasttrack_lab.trace.metric import metric, named, percentiles, ratio, sum_if, total
from fasttrack_lab.trace.tables import Tables

if TYPE_CHECKING:
    import ibis.expr.types as ir

_US = "count: requests; p50, p90, p99, longest: us"


def _by_class(rows: ir.Table, us: ir.IntegerValue) -> ir.Table:
    by = {"app_class": named(rows["class"]), "operation": named(rows.operation)}
    return percentiles(rows, by, us).order_by(list(by))


@metric(
    "Device time by class",
    unit=_US,
    formula="time of requests in the device, nearest rank",
    source="biolatency's and FastTrack's users, figure 3",
    table="requests",
    known="device_us",
)
def device_time(t: Tables) -> ir.Table:
    """Percentiles by class and operation."""
    return _by_class(t.requests, t.requests.device_us)


@metric(
    "Queue time by class",
    unit=_US,
    formula="time of requests from insertion to the device, nearest rank",
    source="blktrace's users (Q2D), FastTrack, figure 3",
    table="requests",
    known="queued_us",
)
def queue_time(t: Tables) -> ir.Table:
    """Percentiles by class and operation."""
    return _by_class(t.requests, t.requests.queued_us)


@metric(
    "Latency by app",
    unit="uid: user id, -1 nobody or unknown; " + _US,
    formula="queue and device time of requests together, nearest rank",
    source="biolatency's users",
    table="requests",
    known="app_uid",
    of_one=True,
)
def app_latency(t: Tables) -> ir.Table:
    """Percentiles by app and operation."""
    rows = t.requests
    by = {"uid": rows.app_uid.fill_null(-1), "operation": named(rows.operation)}
    found = percentiles(rows, by, rows.device_us + rows.queued_us.fill_null(0))
    return found.order_by([ibis.desc("count"), "uid", "operation"]).limit(50)


def _outer(t: Tables) -> ir.Table:
    """Waits that are in no other one of their thread, as far as that is known."""
    return t.waits.filter(~t.waits.nested.fill_null(False))


@metric(
    "Where waits went",
    unit="count: waits; sum, p50, p90, p99, longest: us",
    formula="waits by class and by what was waited for; a wait within another one of its thread is not counted again",
    source="FastTrack, figure 3",
    table="waits",
    known="class",
)
def waits(t: Tables) -> ir.Table:
    """Waits by class and kind."""
    outer = _outer(t)
    rows = outer.mutate(app_class=named(outer["class"]), kind=named(outer.kind))
    sums = rows.group_by(["app_class", "kind"]).agg(sum=total(rows.duration_us))
    found = percentiles(rows, {"app_class": rows.app_class, "kind": rows.kind}, rows.duration_us)
    joined = found.left_join(sums, ["app_class", "kind"]).select(found, sums["sum"])
    return joined.order_by(["app_class", "kind"])


@metric(
    "Foreground coefficient",
    unit="busy, foreground: us of device time; coefficient: share",
    formula="device time of the foreground's requests over that of all; the paper does not say how it counts",
    source="FastTrack, figure 2 (F6): 42, 77 and 53 %",
    table="requests",
    known="class",
)
def foreground_coefficient(t: Tables) -> ir.Table:
    """How much of the device's time is the foreground's."""
    rows = t.requests
    front = ibis.ifelse((rows["class"] == "foreground").fill_null(False), rows.device_us, 0)
    found = rows.agg(busy=total(rows.device_us), foreground=total(front))
    return found.mutate(coefficient=ratio(found.foreground, found.busy))


PAGE_CACHE = ("folio", "dirty_throttle", "writeback", "pause")
JOURNAL = ("transaction", "checkpoint", "buffer")
ELEVATOR = ("tag", "hold")
_LAYERS = ("page_cache", "journal", "block_layer", "device")


@metric(
    "Layers",
    unit="page_cache, journal, block_layer, device: us",
    formula="by class: waits for folios, throttling, the flusher, pauses; transactions, checkpoints, buffers; tags and "
    "queue; device. A wait within another is the outer one's; layers overlap",
    source="FastTrack, figure 3 (F7, F8)",
    table="waits",
    known="class",
)
def layers(t: Tables) -> ir.Table:
    """Time by class and layer."""
    waits = _outer(t)

    def of(*kinds: str) -> ir.IntegerScalar:
        return sum_if(waits.duration_us, waits.kind.isin(kinds))

    zero = ibis.literal(0, "int64")
    above = waits.group_by(app_class=named(waits["class"])).agg(
        page_cache=of(*PAGE_CACHE), journal=of(*JOURNAL), block_layer=of("tag")
    )
    below = t.requests.group_by(app_class=named(t.requests["class"])).agg(
        block_layer=total(t.requests.queued_us), device=total(t.requests.device_us)
    )
    rows = above.mutate(device=zero).union(below.mutate(page_cache=zero, journal=zero).select("app_class", *_LAYERS))
    return rows.group_by("app_class").agg(**{name: total(rows[name]) for name in _LAYERS}).order_by("app_class")
