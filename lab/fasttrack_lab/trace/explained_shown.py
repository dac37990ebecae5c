# SPDX-License-Identifier: GPL-2.0-only
"""An explained call, bio or transaction as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from fasttrack_lab.host.units import format_size
from fasttrack_lab.trace.belonging import Belongs
from fasttrack_lab.trace.explaining import Explained
from fasttrack_lab.trace.scene import Bio, Call, Loss, Request, Run, Scene, Share, Task, Transaction, Wait
from fasttrack_lab.trace.tables import NO_LOSS

MOST_LINES = 40
"""Waits, bios or payers that are shown; --json has all."""
_MINOR = (1 << 20) - 1
_SHARED = " (?)"
"""Of this call or of another one of its process."""
_WHY = {"sent": "it sent", "waited for": "it waited for", "transaction": "of its transaction", "file": "of its file"}


def ms(ns: int | None) -> str:
    """A time."""
    return "unknown" if ns is None else f"{ns / 1e6:.3f} ms"


def device(dev: int | None) -> str:
    """MAJOR:MINOR."""
    return "unknown" if dev is None else f"{dev >> 20}:{dev & _MINOR}"


def percent(part: int, whole: int) -> str:
    """A share."""
    return f"{part / whole * 100:.1f} %" if whole else "-"


def said(value: object) -> str:
    """A value, or that nobody knows it."""
    return "unknown" if value is None else str(value)


def who(task: Task | None, name: str | None = None, uid: int | None = None) -> str:
    """A task with its numbers."""
    name = task.name if task is not None and task.name is not None else name
    uid = task.uid if task is not None and task.uid is not None else uid
    numbers = [f"pid {task.pid}"] if task is not None and task.pid is not None else []
    numbers += [f"uid {uid}"] if uid is not None else []
    if task is not None and task.kernel_thread:
        numbers = [f"pid {said(task.pid)}", "the kernel's"]
    return said(name) + (f" ({', '.join(numbers)})" if numbers else "")


def bytes_of(value: int | None) -> str:
    """A size."""
    return "unknown size" if value is None else format_size(value)


def _sum(parts: Sequence[Bio] | Sequence[Run]) -> int | None:
    """The size of all together; None if one is not known."""
    known = [part.bytes for part in parts if part.bytes is not None]
    return sum(known) if len(known) == len(parts) else None


def call_lines(one: Explained) -> Iterator[str]:
    """All that is known of a call."""
    call = one.call
    yield (
        f"{said(call.kind)} by {who(one.task, call.name, call.uid)} on {said(call.path)}: {ms(call.duration_ns)}, "
        f"result {said(call.result)}"
    )
    if call.bytes or call.offset:
        yield f"  {bytes_of(call.bytes)} at byte {said(call.offset)}"
    yield f"  from {call.begin / 1e9:.6f} to {call.time / 1e9:.6f} s of the boot clock; call {one.name}"
    yield from _losses(one.losses)
    yield from _inside(one)
    for number in one.unrecorded:
        yield f"\n  transaction {number}: the trace has no record of it"
    for transaction in one.transactions:
        yield ""
        yield from (f"  {line}" for line in transaction_lines(transaction, one.scene, call.begin))
        behind = [other for other in one.behind if (other.session, other.dev) == (transaction.session, transaction.dev)]
        yield from (f"    {_behind(other, one)}" for other in behind)
    yield from _bios(one)
    yield ""
    yield "  time by layer; layers overlap"
    for layer in one.layers:
        yield f"    {layer.name:<12}{ms(layer.ns):>14}  {percent(layer.ns, call.duration_ns):>7}  {layer.what}"
    yield f"  waits cover {ms(one.waited_ns)}, {percent(one.waited_ns, call.duration_ns)}"
    if one.shared_ns:
        share = percent(one.shared_ns, call.duration_ns)
        yield f"  (?) of it or of another call of its process: {ms(one.shared_ns)}, {share}"
    yield (
        f"  unexplained {ms(one.unexplained_ns)}, {percent(one.unexplained_ns, call.duration_ns)}: "
        "computing, or a wait that has no record"
    )


def _behind(transaction: Transaction, one: Explained) -> str:
    task = one.scene.task(transaction.session, transaction.trigger)
    asked = (
        f"trigger {who(task, transaction.trigger_name, transaction.trigger_uid)}"
        if transaction.trigger is not None or transaction.trigger_name is not None
        else "trigger the timer, or unknown"
    )
    until = ms(transaction.time - one.call.begin)
    return f"  behind transaction {said(transaction.transaction)}, which ended at +{until}: {asked}"


def _losses(losses: Sequence[Loss]) -> Iterator[str]:
    for loss in losses:
        count = "nobody knows how many" if loss.lost is None else str(loss.lost)
        when = "" if loss.time is not None else ", nobody knows when"
        if loss.reason in NO_LOSS:
            yield f"  {NO_LOSS[loss.reason].format(count)}{when}"
            continue
        yield f"  LOST ({said(loss.reason)}): {count} records{when}: what follows may lack some"


def _more(count: int, margin: str = "    ") -> Iterator[str]:
    if count > MOST_LINES:
        yield f"{margin}and {count - MOST_LINES} more: --json has them"


def _inside(one: Explained) -> Iterator[str]:
    call = one.call
    yield ""
    if not one.inside:
        yield "  waits: none was recorded"
        return
    yield "  waits, in the order of time"
    for nested in one.inside[:MOST_LINES]:
        what = nested.what
        told = wait_text(what) if isinstance(what, Wait) else f"call {said(what.kind)} on {said(what.path)}"
        share = percent(what.duration_ns, call.duration_ns)
        told += _SHARED if nested.shared else ""
        yield (
            f"    +{ms(what.begin - call.begin):>12} {ms(what.duration_ns):>13} {share:>7}  {'  ' * nested.depth}{told}"
        )
    yield from _more(len(one.inside))


def wait_text(wait: Wait) -> str:
    """What a wait was for."""
    kind = said(wait.kind)
    if wait.transaction is not None:
        return f"{kind} {wait.transaction} of {device(wait.dev)}"
    if wait.sector is not None:
        return f"{kind}: sector {wait.sector} of {device(wait.dev)}"
    if wait.file is not None:
        return f"{kind}: page {said(wait.index)} of {wait.path if wait.path is not None else 'an unknown file'}"
    return kind + (f" of {device(wait.dev)}" if wait.dev is not None else "")


def transaction_lines(one: Transaction, scene: Scene, begin: int | None = None) -> Iterator[str]:
    """A transaction: who asked for it, who pays, who wrote it. Times are after BEGIN, or of the boot clock."""
    name = "checkpoint" if one.kind == "checkpoint" else "transaction"
    took = None if one.began is None else one.time - one.began
    if one.began is None:
        began = "unknown when it began"
    elif begin is None:
        began = f"commit began at {one.began / 1e9:.6f} s"
    else:
        began = f"commit began at {'+' if one.began >= begin else '-'}{ms(abs(one.began - begin))}"
    yield f"{name} {said(one.transaction)} of {device(one.dev)}: {began}, took {ms(took)}"
    yield f"  {said(one.handles)} handles, {said(one.blocks)} blocks changed, {said(one.logged)} written to the journal"
    if one.trigger is None and one.trigger_name is None:
        yield "  trigger: the timer, or unknown"
    else:
        task = scene.task(one.session, one.trigger)
        yield f"  trigger: {who(task, one.trigger_name, one.trigger_uid)} by {said(one.trigger_call)}"
    yield f"  carrier: {who(scene.task(one.session, one.carrier_task), one.carrier)}"
    waited = Counter[str]()
    for wait in scene.waits:
        theirs = one.carrier_task is not None and (wait.session, wait.task) == (one.session, one.carrier_task)
        if theirs and (one.time if one.began is None else one.began) <= wait.begin and wait.time <= one.time:
            waited[said(wait.kind)] += wait.duration_ns
    yield from (f"    it waited {ms(ns)} for {kind}" for kind, ns in waited.most_common())
    if not one.shares:
        yield "  payers: unknown"
        return
    shares = sorted(one.shares, key=lambda share: (-(share.blocks or 0), -(share.handles or 0)))
    yield "  payers"
    for share in shares[:MOST_LINES]:
        yield f"    {_share(share, one, scene)}"
    yield from _more(len(shares))


def _share(share: Share, one: Transaction, scene: Scene) -> str:
    flusher = ", through the flusher" if share.through_flusher else ""
    whole = sum(other.blocks or 0 for other in one.shares)
    payer = who(scene.task(one.session, share.task), share.name, share.uid)
    of_all = percent(share.blocks or 0, whole)
    return f"{of_all:>7}  {said(share.blocks)} blocks, {said(share.handles)} handles: {payer}{flusher}"


def _bios(one: Explained) -> Iterator[str]:
    yield ""
    if not one.bios:
        yield "  bios: none is known to belong to it"
        return
    yield "  bios and their requests, in the order of time"
    groups = [
        list(group)
        for _, group in groupby(one.bios, lambda belongs: (_why(belongs, one.call), *_sent_alike(belongs.bio)))
    ]
    for group in groups[:MOST_LINES]:
        bios = [belongs.bio for belongs in group]
        yield from (f"    {line}" for line in bios_lines(bios, one.scene, one.call.begin, _why(group[0], one.call)))
    yield from _more(len(groups))


def _why(belongs: Belongs, call: Call) -> str:
    before = ", before the call" if belongs.bio.time < call.begin else ""
    return f"; {_WHY[belongs.why]}{before}" + (_SHARED if belongs.shared else "")


def _sent_alike(bio: Bio) -> tuple[object, ...]:
    """Equal for bios that are told together: parts of one request that differ in their blocks alone."""
    together = id(bio.requests[0]) if len(bio.requests) == 1 and bio.left == 0 else id(bio)
    flags = bio.preflush, bio.fua, bio.sync
    return together, bio.operation, *flags, bio.app_class, bio.cause, bio.carrier_task


def bio_lines(bio: Bio, scene: Scene, begin: int | None = None, why: str = "") -> Iterator[str]:
    """A bio and its requests. Times are after BEGIN, or of the boot clock."""
    return bios_lines((bio,), scene, begin, why)


def bios_lines(bios: Sequence[Bio], scene: Scene, begin: int | None = None, why: str = "") -> Iterator[str]:
    """Bios that were sent alike, one after the other, and their requests."""
    bio = bios[0]
    when = (
        f"at {bio.time / 1e9:.6f} s"
        if begin is None
        else f"{'+' if bio.time >= begin else '-'}{ms(abs(bio.time - begin))}"
    )
    flags = [name for name in ("preflush", "fua", "sync") if getattr(bio, name)]
    more = f" ({', '.join(flags)})" if flags else ""
    number = said(bio.bio) if len(bios) == 1 else f"{said(bio.bio)} to {said(bios[-1].bio)}, {len(bios)} of them"
    yield f"{when}  bio {number}: {said(bio.operation)} {bytes_of(_sum(bios))}{more}{why}"
    carrier = who(scene.task(bio.session, bio.carrier_task))
    yield f"  class {said(bio.app_class)}, cause {said(bio.cause)}, sent by {carrier}"
    yield from (f"  {line}" for line in _runs([run for one in bios for run in one.runs], bio.session, scene))
    for request in bio.requests:
        yield f"  {request_text(request)}"
    if bio.done is None:
        yield "  its end is unknown"


def _runs(runs: Sequence[Run], session: str, scene: Scene) -> list[str]:
    """Runs of blocks; those of one file, type and owner together."""
    alike: dict[tuple[object, ...], list[Run]] = {}
    for run in runs:
        alike.setdefault((run.block_type, run.file, run.path, run.owner, run.call), []).append(run)
    lines = [_run(same, session, scene) for same in alike.values()]
    return [*lines[:MOST_LINES], *_more(len(lines), margin="")]


def _run(runs: Sequence[Run], session: str, scene: Scene) -> str:
    run = runs[0]
    page = "" if run.index is None else f" page {run.index}"
    if page and len(runs) > 1:
        page = f", {len(runs)} places from{page} on"
    kind = said(run.block_type)
    where = f"{kind} of {said(run.path)}{page}" if run.file is not None or kind == "data" else kind
    owner = who(scene.task(session, run.owner))
    return f"{bytes_of(_sum(runs))} {where}, owner {owner}" + (f", by {run.call}" if run.call else "")


def request_text(request: Request) -> str:
    """A request's way."""
    bios = f", {len(request.bios)} bios" if len(request.bios) > 1 else ""
    error = f", ERROR {request.error}" if request.error else ""
    queued = "not queued, or unknown" if request.queued_ns is None else f"queued {ms(request.queued_ns)}"
    return (
        f"request {said(request.operation)} {bytes_of(request.bytes)} on {device(request.dev)}{bios}: {queued}, "
        f"in the device {ms(request.device_ns)}, ended at {request.time / 1e9:.6f} s{error}"
    )
