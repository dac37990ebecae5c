# SPDX-License-Identifier: GPL-2.0-only
"""The timeline of a trace: its rows as events on tracks, in order of time.

A process has a track for each task, with calls, waits within them, and the bios that it sends; a device one for each
request that it has at once, a counter of those and one for each transaction of its file system. A type of files has
tracks with the runs of blocks that are under way.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import PurePosixPath
from typing import Any

from fasttrack_lab.trace import timeline_rows
from fasttrack_lab.trace.io_flows import Flows
from fasttrack_lab.trace.lanes import Lanes
from fasttrack_lab.trace.perfetto_packets import BEGIN, COUNTER, END, INSTANT, Event, Track

Row = Mapping[str, Any]

_ARGUMENTS = {
    timeline_rows.CALL: ("path", "file_type", "bytes", "result", "uid"),
    timeline_rows.WAIT: ("class", "dev", "sector", "journal_transaction", "uid"),
    timeline_rows.TRANSACTION: (
        "journal_transaction",
        "handles",
        "blocks",
        "logged",
        "trigger_call",
        "trigger_name",
        "trigger_uid",
        "carrier",
    ),
    timeline_rows.BIO: ("number", "dev", "sector", "bytes", "sync", "class", "cause", "app_uid", "journal_transaction"),
    timeline_rows.REQUEST: ("number", "sector", "bytes", "sync", "class", "cause", "app_uid", "error"),
    timeline_rows.LOSS: ("lost", "cpu", "since", "bytes", "detail"),
    timeline_rows.RUN: ("path", "file_type", "bytes", "number", "name", "uid", "class", "cause"),
}
"""What a row is of -> the columns that are its event's arguments."""
_CATEGORIES = {
    timeline_rows.CALL: "call",
    timeline_rows.WAIT: "wait",
    timeline_rows.TRANSACTION: "transaction",
    timeline_rows.BIO: "bio",
    timeline_rows.REQUEST: "request",
    timeline_rows.LOSS: "loss",
    timeline_rows.RUN: "run",
}
_SESSION_BITS = 44
"""A flow's id is a bio's, with the number of its session above these bits."""


_last = lru_cache(1 << 16)(lambda path: PurePosixPath(path).name)
"""The last part of a path."""


@cache
def _device(dev: int | None) -> str:
    return "an unknown device" if dev is None else f"{dev >> 20}:{dev & 0xFFFFF}"


class Timeline:
    """Makes events of rows."""

    def __init__(self, processes: Mapping[int, str], flows: Flows) -> None:
        """PROCESSES are names by id; FLOWS say what belongs together."""
        self._flows = flows
        self._names = processes
        self._later: list[tuple[int, int, Callable[[], Event | None]]] = []
        """What is to come, by time; of one time the last that was told first, so that inner slices end first."""
        self._told = 0
        self._lanes: dict[tuple[Any, ...], Lanes] = {}
        self._roots: dict[Any, Track] = {}
        self._threads: set[int] = set()
        self._in_device: Counter[int | None] = Counter()
        self._changed: set[int | None] = set()
        """Devices whose count has changed at the time below, and is not told."""
        self._changed_at = 0
        self._sessions: dict[str | None, int] = {}

    def events(self, rows: Iterable[Row]) -> Iterator[Event]:
        """The events of ROWS, which are in order of their begin; those of an unknown time are at the first's."""
        undated: list[Row] = []
        for row in rows:
            if row["at"] is None:
                undated.append(row)
                continue
            yield from self._until(row["at"])
            for early in (*undated, row):
                yield from self._of(early, row["at"])
            undated.clear()
        yield from self._until(None)

    def _until(self, time: int | None) -> Iterator[Event]:
        """What is to come, up to TIME; all of it without one."""
        while self._later and (time is None or self._later[0][0] <= time):
            yield from self._counts(self._later[0][0])
            event = heapq.heappop(self._later)[2]()
            if event is not None:
                yield event
        yield from self._counts(time)

    def _at(self, time: int, action: Callable[[], Event | None]) -> None:
        self._told += 1
        heapq.heappush(self._later, (time, -self._told, action))

    def _counts(self, time: int | None) -> Iterator[Event]:
        """Counts that have changed before TIME."""
        if time is not None and time <= self._changed_at:
            return
        for dev in sorted(self._changed, key=str):
            track = self._root(("count", dev), f"requests in {_device(dev)}", counter=True)
            yield Event(self._changed_at, COUNTER, track, value=self._in_device[dev])
        self._changed.clear()

    def _count(self, time: int, dev: int | None, by: int) -> None:
        self._in_device[dev] += by
        self._changed.add(dev)
        self._changed_at = time

    def _of(self, row: Row, time: int) -> Iterator[Event]:
        what = row["what"]
        if what == timeline_rows.REQUEST:
            yield from self._request(row, time)
        elif what == timeline_rows.BIO:
            lanes = self._of_task(row)
            flows = [self._flow(row, row["number"])] if self._flows.has(row) else []
            yield self._event(row, time, INSTANT, lanes.track(lanes.busy()), flows=flows)
        elif what == timeline_rows.LOSS:
            yield self._event(row, time, INSTANT, self._root("loss", "losses"))
        elif what == timeline_rows.TRANSACTION:
            yield from self._slice(row, time, self._of_device(row["dev"], "transactions of"))
        elif what == timeline_rows.RUN:
            yield from self._run(row, time)
        else:
            sent = self._flows.of_call(row) if what == timeline_rows.CALL else []
            yield from self._slice(row, time, self._of_task(row), [self._flow(row, number) for number in sent])

    def _run(self, row: Row, time: int) -> Iterator[Event]:
        """A run of blocks until its bio has ended; by the type of its file, or by what it holds."""
        if not self._flows.known:
            return
        data = row["kind"] == "data"
        group = (row["file_type"] or "unknown file") if data else f"{row['kind'] or 'unknown'} blocks"
        name = _last(row["path"]) if row["path"] else row["kind"]
        key = ("files", group)
        if key not in self._lanes:
            files = self._root("files", "files")
            self._lanes[key] = Lanes(lambda _: Track(group, files), nested=False)
        yield from self._slice({**row, "kind": name, "until": self._flows.done(row)}, time, self._lanes[key])

    def _slice(self, row: Row, time: int, lanes: Lanes, flows: Sequence[int] = ()) -> Iterator[Event]:
        """A row's whole time; an instant at its end where its begin is unknown."""
        if row["until"] is None:
            yield self._event(row, time, INSTANT, lanes.track(0))
            return
        lane = lanes.place(row["until"])
        yield self._event(row, time, BEGIN, lanes.track(lane), flows=flows)
        self._at(row["until"], lambda: _closed(row["until"], lanes, lane))

    def _request(self, row: Row, time: int) -> Iterator[Event]:
        """A request: a slice with its time in the queue and in the device as slices within."""
        lanes = self._of_device(row["dev"], "requests of")
        bios, ended = self._flows.of_request(row), row["until"] or time
        # A bio that was split ends with its last request.
        last = [self._flow(row, bio.bio or 0) for bio in bios if bio.requests[-1].time == ended]
        if row["until"] is None:
            yield self._event(row, time, INSTANT, lanes.track(0), ends_flows=last)
            return
        # One that was merged was sent after the request began: a flow leads forwards.
        early = [self._flow(row, bio.bio or 0) for bio in bios if bio.time <= time]
        late = [self._flow(row, bio.bio or 0) for bio in bios if bio.time > time]
        dev, issued, end = row["dev"], row["issued"], row["until"]
        lane = lanes.place(end)
        track = lanes.track(lane)
        yield self._event(row, time, BEGIN, track, *_ending(early, last))
        self._at(end, lambda: _closed(end, lanes, lane))
        self._at(end, lambda: self._count(end, dev, -1))
        self._at(end, lambda: Event(end, END, track))
        self._at(
            issued,
            lambda: Event(issued, BEGIN, track, "device", "device", {}, *_ending(late, last)),
        )
        self._at(issued, lambda: self._count(issued, dev, 1))
        if issued > time:
            yield Event(time, BEGIN, track, "queue", "queue")
            self._at(issued, lambda: Event(issued, END, track))

    def _event(
        self, row: Row, time: int, kind: int, track: Track, flows: Sequence[int] = (), ends_flows: Sequence[int] = ()
    ) -> Event:
        arguments = {name: row[name] for name in _ARGUMENTS[row["what"]]}
        if arguments.get("dev") is not None:
            arguments["dev"] = _device(row["dev"])
        category = _CATEGORIES[row["what"]]
        return Event(time, kind, track, row["kind"] or category, category, arguments, flows, ends_flows)

    def _flow(self, row: Row, bio: int) -> int:
        session = self._sessions.setdefault(row["session"], len(self._sessions))
        return session << _SESSION_BITS | bio

    def _root(self, key: Any, name: str, pid: int | None = None, counter: bool = False) -> Track:
        if key not in self._roots:
            self._roots[key] = Track(name, pid=pid, counter=counter)
        return self._roots[key]

    def _of_device(self, dev: int | None, what: str) -> Lanes:
        key = (what, dev)
        if key not in self._lanes:
            root = self._root(key, f"{what} {_device(dev)}")
            self._lanes[key] = Lanes(lambda lane: Track(f"{lane}", root), nested=False)
        return self._lanes[key]

    def _of_task(self, row: Row) -> Lanes:
        """The lanes of a row's thread, or task; where nobody knows the task, of all of its user and name."""
        session, task = row["session"], row["task"]
        key = (session, task, row["thread"]) if task is not None else (session, row["uid"], row["name"], row["tgid"])
        if key not in self._lanes:
            process, name = self._process(row), row["name"] or "unknown"
            pid, tid = row["tgid"], row["pid"] if row["thread"] is None else row["thread"]
            if pid is None or tid is None or tid in self._threads:
                first = Track(name, process)
            else:
                self._threads.add(tid)
                first = Track(name, process, pid, tid)
            self._lanes[key] = Lanes(
                lambda lane: first if lane == 0 else Track(f"{name} {lane}", first), nested=task is not None
            )
        return self._lanes[key]

    def _process(self, row: Row) -> Track:
        """A row's process; where nobody knows it, its user."""
        uid, pid = row["uid"], row["tgid"]
        user = "of an unknown user" if uid is None else f"uid {uid}"
        if pid is None:
            return self._root(("app", uid), f"app {user}")
        return self._root(("process", pid), f"{self._names.get(pid, 'unknown')} {user}", pid)


def _closed(time: int, lanes: Lanes, lane: int) -> Event:
    lanes.close(lane)
    return Event(time, END, lanes.track(lane))


def _ending(flows: Sequence[int], last: Sequence[int]) -> tuple[list[int], list[int]]:
    """Those that go on, and those that end here."""
    return [flow for flow in flows if flow not in last], [flow for flow in flows if flow in last]
