# SPDX-License-Identifier: GPL-2.0-only
"""A trace's tables as a trace of Perfetto's, which ui.perfetto.dev and trace_processor open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import ibis

from fasttrack_lab.host.errors import InputError, UsageProblem
from fasttrack_lab.host.paths import replaced
from fasttrack_lab.trace import timeline_rows
from fasttrack_lab.trace.importers.wire_format import SAME_OFFSET_NS
from fasttrack_lab.trace.io_flows import Flows
from fasttrack_lab.trace.perfetto_packets import BEGIN, COUNTER, INSTANT, Packets
from fasttrack_lab.trace.tables import Tables
from fasttrack_lab.trace.timeline import Timeline

_TIMED = ("io", "requests", "calls", "waits", "transactions")
"""Tables of what takes place; without a row in any nothing was recorded."""


@dataclass(frozen=True)
class Exported:
    """What was written."""

    slices: int
    instants: int
    counts: int
    bytes: int
    flows: bool
    """Whether it has flows and files: of too many bios it has none."""


def write(tables: Tables, out: Path, session: str | None = None) -> Exported:
    """Writes OUT, whole or not at all; of one boot, or of the recording SESSION alone."""
    if not out.parent.is_dir():
        raise InputError("no such directory", out.parent)
    if out.is_dir():
        raise InputError("that is a directory", out)
    chosen = _one_boot(tables, session)
    kinds: Counter[int] = Counter()
    flows = Flows(chosen)
    with replaced(out) as file:
        size = sum(file.write(packet) for packet in _packets(chosen, kinds, flows))
    return Exported(kinds[BEGIN], kinds[INSTANT], kinds[COUNTER], size, flows.known)


def _one_boot(tables: Tables, session: str | None) -> Tables:
    """The tables, if their times are of one clock."""
    found = _sessions(tables)
    if not found:
        raise InputError("nothing is recorded: no bio, request, call, wait or transaction")
    if session is not None:
        if session not in found:
            raise UsageProblem(f"there is no session '{session}'; valid: {', '.join(map(str, sorted(found)))}")
        return tables.of_session(session)
    if len(set(found.values())) > 1:
        raise UsageProblem(
            f"these are recordings of {len(set(found.values()))} boots, each with a clock of its own; "
            f"choose one by --session: {', '.join(map(str, sorted(found)))}"
        )
    return tables


def _sessions(tables: Tables) -> dict[str, str]:
    """Session -> its boot; where that is not known it is the only one of its own."""
    rows = ibis.union(*(getattr(tables, name).select("session") for name in _TIMED)).distinct()
    boots = tables.sessions.group_by("session").agg(boot=tables.sessions.boot.max())
    named = rows.left_join(boots, "session").select(rows.session, boots.boot).to_pyarrow().to_pylist()
    return {row["session"]: row["boot"] or row["session"] for row in named}


def _packets(tables: Tables, kinds: Counter[int], flows: Flows) -> Iterator[bytes]:
    """Packets in order of time; KINDS counts events."""
    packets = Packets()
    clocks = _clocks(tables)
    rows = timeline_rows.of(tables)
    for event in Timeline(timeline_rows.processes(rows), flows).events(timeline_rows.ordered(tables, rows)):
        while clocks and (clocks[0][0] <= event.time or not kinds):
            time, offset = clocks.pop(0)
            yield packets.clock(time, time + offset)
        kinds[event.kind] += 1
        yield packets.event(event)


def _clocks(tables: Tables) -> list[tuple[int, int]]:
    """Time and offset where the real time begins or jumps."""
    kept: list[tuple[int, int]] = []
    for time, offset in timeline_rows.offsets(tables):
        if not kept or abs(offset - kept[-1][1]) >= SAME_OFFSET_NS:
            kept.append((time, offset))
    return kept
