# SPDX-License-Identifier: GPL-2.0-only
"""One call followed through page cache, journal, elevator and device: where its time went, and what nobody knows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import ibis
import ibis.expr.types as ir

from fasttrack_lab.host.errors import UsageProblem
from fasttrack_lab.trace import scene_loading
from fasttrack_lab.trace.belonging import Belongs, Index, Waited, same_thread
from fasttrack_lab.trace.metrics.layers import ELEVATOR, JOURNAL, PAGE_CACHE
from fasttrack_lab.trace.scene import Bio, Call, Loss, Request, Scene, Task, Transaction, Wait
from fasttrack_lab.trace.tables import Tables, counted

_AROUND_S = 30
"""What is under way in a call began at most so long before: the block layer's own time-out of a request."""
_TOGETHER_S = 120
"""Calls that are further apart have scenes of their own: all of a scene is in memory, 4 KB a bio."""
_LOOSE_NS = 500
"""Half a us: what a time in s on the command line is rounded to."""

Span = tuple[int, int]


@dataclass(frozen=True)
class Wanted:
    """Which calls are to be explained."""

    slowest: int = 1
    call: str | None = None
    """TIME:TASK as `Explained.name` has it, or a time in s at which it was under way."""
    app: str | None = None
    file: str | None = None
    kind: str | None = None


@dataclass(frozen=True)
class Nested:
    """A wait, or a call within the call, with how many of these are around it."""

    what: Wait | Call
    depth: int
    shared: bool
    """It is that of this call or of another one of its process."""


@dataclass(frozen=True)
class Layer:
    """What a layer has of the call's time; layers overlap."""

    name: str
    ns: int
    what: str


@dataclass(frozen=True)
class Explained:
    """A call with all that belongs to it."""

    call: Call
    task: Task | None
    inside: list[Nested]
    transactions: list[Transaction]
    behind: list[Transaction]
    """Those of the same journal that had to end first."""
    unrecorded: list[int]
    """Numbers of transactions that it waited for and that the trace does not have."""
    bios: list[Belongs]
    layers: list[Layer]
    waited_ns: int
    """What its waits cover."""
    shared_ns: int
    """What besides is covered by waits that are its own or those of another call of its process."""
    losses: list[Loss]
    scene: Scene

    @property
    def name(self) -> str:
        """Its id: when it ended, and the task."""
        return f"{self.call.time}:{self.call.task if self.call.task is not None else 'unknown'}"

    @property
    def span(self) -> tuple[int, int]:
        """From the first to the last of what belongs to it, ns of the boot clock."""
        begun = [self.call.begin, *(one.bio.time for one in self.bios)]
        begun += [one.began for one in self.transactions if one.began is not None]
        ended = [self.call.time, *(one.bio.done or one.bio.time for one in self.bios)]
        return min(begun), max(ended)

    @property
    def unexplained_ns(self) -> int:
        """What no wait covers."""
        return self.call.duration_ns - self.waited_ns - self.shared_ns

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "id": self.name,
            "call": asdict(self.call),
            "task": None if self.task is None else asdict(self.task),
            "inside": [
                asdict(one.what) | {"depth": one.depth, "shared": one.shared, "begin": one.what.begin}
                for one in self.inside
            ],
            "transactions": [asdict(one) for one in self.transactions],
            "behind": [asdict(one) for one in self.behind],
            "unrecorded_transactions": self.unrecorded,
            "bios": [bio_json(one.bio) | {"why": one.why, "shared": one.shared} for one in self.bios],
            "layers": {layer.name: layer.ns for layer in self.layers},
            "waited_ns": self.waited_ns,
            "shared_ns": self.shared_ns,
            "unexplained_ns": self.unexplained_ns,
            "losses": [asdict(one) for one in self.losses],
        }


def bio_json(bio: Bio) -> dict[str, Any]:
    """A bio with its requests, for programs."""
    plain = {name: getattr(bio, name) for name in Bio.__dataclass_fields__ if name not in ("runs", "requests", "left")}
    requests = [
        {name: getattr(one, name) for name in Request.__dataclass_fields__ if name != "bios"} for one in bio.requests
    ]
    return plain | {"done": bio.done, "runs": [asdict(run) for run in bio.runs], "requests": requests}


def _of_app(calls: ir.Table, app: str) -> ir.Table:
    return calls.filter(calls.uid == int(app) if app.isdigit() else calls.name == app)


def of_file(rows: ir.Table, file: str) -> ir.Table:
    """Rows of the files whose path contains that."""
    return rows.filter(rows.path.contains(file))


def choose(tables: Tables, wanted: Wanted) -> list[Call]:
    """The calls that are wanted, the slowest first."""
    calls = scene_loading.lasted(tables.calls)
    if wanted.kind is not None:
        kinds = calls.group_by("kind").agg().order_by("kind").to_pyarrow()["kind"].to_pylist()
        if wanted.kind not in kinds:
            raise UsageProblem(f"no call is a '{wanted.kind}'; there are: {', '.join(map(str, kinds))}")
        calls = calls.filter(calls.kind == wanted.kind)
    if wanted.app is not None:
        calls = _of_app(calls, wanted.app)
    if wanted.file is not None:
        calls = of_file(calls, wanted.file)
    if wanted.call is not None:
        calls = _named(calls, wanted.call)
    order = [ibis.desc("duration_ns"), "time", "task"]
    found = scene_loading.calls_of(calls.order_by(order).limit(wanted.slowest))
    if not found:
        raise UsageProblem(f"none of the {counted(tables.calls)} calls is like that; trace sql lists them: table calls")
    return sorted(found, key=lambda call: (-call.duration_ns, call.time))


def _named(calls: ir.Table, name: str) -> ir.Table:
    time, colon, task = name.partition(":")
    try:
        if colon:
            of_time = calls.filter(calls.time == int(time))
            return of_time.filter(of_time.task.isnull() if task == "unknown" else of_time.task == int(task))
        at = round(float(name) * 1e9)
    except ValueError:
        raise UsageProblem(
            f"'{name}' is no call: an id as explain prints it (582499072:6), or a time of the boot clock in s at which "
            "it was under way"
        ) from None
    begin = calls.time - calls.duration_ns
    return calls.filter((begin <= at + _LOOSE_NS) & (calls.time >= at - _LOOSE_NS))


def around(tables: Tables, begin: int, end: int) -> Scene:
    """What can have to do with an interval, ns."""
    return scene_loading.load(tables.between(begin / 1e9 - _AROUND_S, end / 1e9 + _AROUND_S))


def explain(tables: Tables, calls: Sequence[Call]) -> list[Explained]:
    """Calls with what belongs to each. What is around neighbours is loaded once."""
    found: dict[int, Explained] = {}
    for group in _neighbours(calls):
        near = around(tables, min(call.begin for call in group), max(call.time for call in group))
        index = Index(near)
        found |= {id(call): _explained(call, near, index) for call in group}
    return [found[id(call)] for call in calls]


def _neighbours(calls: Iterable[Call]) -> list[list[Call]]:
    """Calls in groups that are explained together: what is around each overlaps, and all is not too long."""
    groups: list[list[Call]] = []
    begin = end = 0
    for call in sorted(calls, key=lambda call: call.begin):
        if groups and call.begin - end <= 2 * _AROUND_S * 10**9 and call.time - begin <= _TOGETHER_S * 10**9:
            groups[-1].append(call)
            end = max(end, call.time)
        else:
            groups.append([call])
            begin, end = call.begin, call.time
    return groups


def _explained(call: Call, near: Scene, index: Index) -> Explained:
    # The same call, as the scene has it.
    call = next(one for one in near.calls if one == call)
    waits = index.waits(call)
    transactions = index.transactions(one.wait for one in waits)
    bios = index.bios(call, waits, transactions)
    there = {one.transaction for one in transactions}
    asked = {one.wait.transaction for one in waits if one.wait.transaction is not None}
    spans = [(one.shared, _clipped(one.wait.begin, one.wait.time, call)) for one in waits]
    waited = length(span for shared, span in spans if span is not None and not shared)
    with_shared = length(span for _, span in spans if span is not None)
    return Explained(
        call,
        near.task(call.session, call.task),
        _nested(waits, _calls_within(call, near.calls)),
        transactions,
        _behind(transactions, near.transactions, call),
        sorted(asked - there),
        bios,
        _layers(call, [one.wait for one in waits if not one.shared], bios),
        waited,
        with_shared - waited,
        [loss for loss in near.losses if _touches(loss, call)],
        near,
    )


def _behind(waited: Sequence[Transaction], all_of_them: Iterable[Transaction], call: Call) -> list[Transaction]:
    """A journal commits one transaction at a time."""
    until = {(one.session, one.dev): one.began for one in waited if one.began is not None}
    return [
        one
        for one in all_of_them
        if call.begin < one.time <= until.get((one.session, one.dev), 0) and not any(one is other for other in waited)
    ]


def _touches(loss: Loss, call: Call) -> bool:
    """Whether records can be missing that belong to a call; those of an unknown time can."""
    if loss.time is None:
        return True
    return loss.time >= call.begin and (loss.time if loss.since is None else loss.since) <= call.time


def _calls_within(call: Call, calls: Iterable[Call]) -> list[Call]:
    """A page fault in a write(2), for one."""
    task = call.session, call.task
    mine = (
        one for one in calls if (one.session, one.task) == task and call.task is not None and same_thread(one, call)
    )
    return [
        one for one in mine if call.begin <= one.begin and one.time <= call.time and one.duration_ns < call.duration_ns
    ]


def _nested(waits: Iterable[Waited], calls: Iterable[Call]) -> list[Nested]:
    """In the order of time, with what is around each. A call within is another thread's, perhaps, if it says none."""
    found: list[tuple[Wait | Call, bool]] = [(one.wait, one.shared) for one in waits]
    found += [(call, call.thread is None) for call in calls]
    made: list[Nested] = []
    open_until: list[int] = []
    for one, shared in sorted(found, key=lambda pair: (pair[0].begin, -pair[0].time)):
        while open_until and open_until[-1] < one.time:
            open_until.pop()
        made.append(Nested(one, len(open_until), shared))
        open_until.append(one.time)
    return made


def _clipped(begin: int, end: int, call: Call) -> Span | None:
    """What of an interval is in the call."""
    begin, end = max(begin, call.begin), min(end, call.time)
    return (begin, end) if begin < end else None


def length(spans: Iterable[Span]) -> int:
    """ns that at least one of the intervals covers."""
    covered, until = 0, 0
    for begin, end in sorted(spans):
        covered += max(0, end - max(begin, until))
        until = max(until, end)
    return covered


def _layers(call: Call, waits: Sequence[Wait], bios: Sequence[Belongs]) -> list[Layer]:
    """Waits by layer, and when at least one of its requests was queued or in the device."""

    def waited(*kinds: str) -> list[Span]:
        of_kind = (wait for wait in waits if wait.kind in kinds)
        return [span for wait in of_kind if (span := _clipped(wait.begin, wait.time, call)) is not None]

    requests = {id(request): request for one in bios if not one.shared for request in one.bio.requests}.values()
    queued = [
        span
        for one in requests
        if one.issued is not None
        and one.queued_ns is not None
        and (span := _clipped(one.begin, one.issued, call)) is not None
    ]
    in_device = [
        span
        for one in requests
        if one.issued is not None and (span := _clipped(one.issued, one.time, call)) is not None
    ]
    tags = waited(*ELEVATOR)
    return [
        Layer("page cache", length(waited(*PAGE_CACHE)), "waits for folios, throttling, the flusher, pauses"),
        Layer("journal", length(waited(*JOURNAL)), "waits for transactions, checkpoints, buffers of metadata"),
        Layer("elevator", length([*tags, *queued]), "waits for tags; a request of its is queued"),
        Layer("device", length([*waited("flush"), *in_device]), "a request of its is in it; waits for its flush"),
    ]


def slowest_request(tables: Tables) -> tuple[Scene, Request] | None:
    """The request that took longest in queue and device, with what is around it; None if the trace has none."""
    requests = scene_loading.precise(tables.requests).filter(lambda rows: rows.device_ns.notnull())
    took = requests.device_ns + requests.queued_ns.fill_null(0)
    rows = requests.mutate(took=took).order_by([ibis.desc("took"), "time"]).limit(1).to_pyarrow().to_pylist()
    if not rows:
        return None
    row = rows[0]
    near = around(tables, row["time"] - row["took"], row["time"])
    same = ("session", "time", "dev", "operation", "sector")
    return near, next(one for one in near.requests if all(getattr(one, name) == row[name] for name in same))


def bios_of(tables: Tables, number: int) -> list[tuple[Scene, Bio]]:
    """The bios of a number, one a session at most."""
    rows = tables.io.filter(tables.io.bio == number).order_by("time").select("session", "time").to_pyarrow().to_pylist()
    if not rows:
        raise UsageProblem(
            f"there is no bio {number} among {counted(tables.io)}; trace sql lists them: table io, column bio"
        )
    found = []
    for row in rows:
        near = around(tables, row["time"], row["time"])
        found += [(near, one) for one in near.bios if (one.session, one.bio) == (row["session"], number)]
    return found


def transactions_of(tables: Tables, number: int | None) -> list[tuple[Scene, Transaction]]:
    """The transactions of a number, one a journal; without a number the slowest of all."""
    rows = tables.transactions
    if number is not None:
        rows = rows.filter(rows.journal_transaction == number).order_by("time")
    else:
        known = rows.filter(rows.began.notnull())
        rows = known.mutate(took=known.time - known.began).order_by([ibis.desc("took"), "time"]).limit(1)
    found = []
    for row in rows.select("session", "time", "dev", "journal_transaction", "began").to_pyarrow().to_pylist():
        near = around(tables, row["time"] if row["began"] is None else row["began"], row["time"])
        key = row["session"], row["time"], row["dev"], row["journal_transaction"]
        found += [(near, one) for one in near.transactions if key == (one.session, one.time, one.dev, one.transaction)]
    if number is not None and not found:
        raise UsageProblem(
            f"there is no transaction {number} among {counted(tables.transactions)}; "
            "trace sql lists them: table transactions, column journal_transaction"
        )
    return found
