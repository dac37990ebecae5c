# SPDX-License-Identifier: GPL-2.0-only
"""`trace explain`: what is asked for, as text and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fasttrack_lab.host.errors import UsageProblem
from fasttrack_lab.trace import explaining, perfetto_export
from fasttrack_lab.trace.explained_shown import bio_lines, call_lines, request_text, transaction_lines
from fasttrack_lab.trace.explaining import Explained, Wanted, bio_json
from fasttrack_lab.trace.perfetto_export import Exported
from fasttrack_lab.trace.tables import Tables, counted


@dataclass(frozen=True)
class Told:
    """An answer."""

    lines: list[str]
    json: dict[str, Any]
    calls: list[Explained] = field(default_factory=list)


def calls(tables: Tables, wanted: Wanted) -> Told:
    """The calls that are wanted; of a trace without calls its slowest request, or transaction."""
    if not counted(tables.calls):
        return _instead(tables, wanted)
    lines = list(_only_syncs(tables))
    found = explaining.explain(tables, explaining.choose(tables, wanted))
    for one in found:
        lines += ["", *call_lines(one)] if lines else call_lines(one)
    return Told(lines, {"calls": [one.to_json() for one in found]}, found)


def tracks(tables: Tables, told: Told, out: Path) -> Exported:
    """Writes a trace of Perfetto's of all that took place while the calls did, and what belongs to them."""
    sessions = {one.call.session for one in told.calls}
    if len(sessions) != 1:
        why = "there is no call" if not sessions else "the calls are of several recordings"
        raise UsageProblem(f"{why}, and a trace of Perfetto's is of one")
    spans = [one.span for one in told.calls]
    since, until = min(begin for begin, _ in spans), max(end for _, end in spans)
    return perfetto_export.write(tables.of_session(sessions.pop()).between(since / 1e9, (until + 1) / 1e9), out)


def _only_syncs(tables: Tables) -> Iterator[str]:
    bounds = tables.sessions.calls_over_us.max().to_pyarrow().as_py()
    if bounds is None:
        yield "calls that this trace has: fsync and fdatasync, on a kernel without FastTrack's events"
    elif bounds:
        yield f"calls that this trace has: those of {bounds} us and more, and all syncs"


def _instead(tables: Tables, wanted: Wanted) -> Told:
    why = "the trace has no calls: its kernel does not tell of them, or there were none"
    if wanted != Wanted():
        raise UsageProblem(f"{why}; --bio N and --transaction N explain what it has")
    slowest = explaining.slowest_request(tables)
    if slowest is not None:
        near, request = slowest
        lines = [f"{why}. Its slowest request instead", "", request_text(request)]
        for bio in request.bios:
            lines += ["", *bio_lines(bio, near)]
        if not request.bios:
            lines += ["  its bios are unknown"]
        return Told(lines, {"calls": [], "bios": [bio_json(bio) for bio in request.bios]})
    transactions = explaining.transactions_of(tables, None)
    if not transactions:
        bios = counted(tables.io)
        what = f"no request and no transaction either; --bio N explains one of its {bios} bios" if bios else "no I/O"
        return Told([f"{why}. There is {what}"], {"calls": []})
    ((near, one),) = transactions
    lines = [f"{why}. Its slowest transaction instead", "", *transaction_lines(one, near)]
    return Told(lines, {"calls": [], "transactions": [asdict(one)]})


def bio(tables: Tables, number: int) -> Told:
    """The bio of a number: one a recording."""
    found = explaining.bios_of(tables, number)
    lines = [line for near, one in found for line in bio_lines(one, near)]
    return Told(lines, {"bios": [bio_json(one) for _, one in found]})


def transaction(tables: Tables, number: int) -> Told:
    """The transaction of a number: one a journal, with the bios that made it durable."""
    found = explaining.transactions_of(tables, number)
    lines: list[str] = []
    for near, one in found:
        lines += transaction_lines(one, near)
        for of_it in (one_bio for one_bio in near.bios if one.has(one_bio)):
            lines += [f"  {line}" for line in bio_lines(of_it, near, one.began)]
    return Told(lines, {"transactions": [asdict(one) for _, one in found]})
