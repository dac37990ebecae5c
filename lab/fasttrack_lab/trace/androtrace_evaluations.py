# SPDX-License-Identifier: GPL-2.0-only
"""Androtrace's evaluations (INFLOW 2015), in kind: its numbers are of users' phones over days."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fasttrack_lab.cost import counting
from fasttrack_lab.cost.costs import TRACES
from fasttrack_lab.host.errors import LabError
from fasttrack_lab.host.paths import LAB
from fasttrack_lab.trace import most_way
from fasttrack_lab.trace.evaluation import TOLERANCE, Evaluation, Found, Outcome, share
from fasttrack_lab.trace.metrics import METRICS
from fasttrack_lab.trace.recordings import FACEBOOK, Recording, logs_of
from fasttrack_lab.trace.sources import open_all
from fasttrack_lab.trace.tables import Tables, counted, rows_of

PAPER = "Lim et al., Androtrace (INFLOW 2015)"
REPLAY = Recording(FACEBOOK)
DAY = (
    Recording("gallery-launch", ("sync",)),
    Recording("camera-switch", ("photo-upload",)),
    Recording("game-load", ("download",)),
    Recording("app-switch", ("sync",)),
    Recording("smartio-chat-run", ("sync",)),
    Recording("smartio-maps-launch", ("scan",)),
    Recording("smartio-browser-run", ("sync",)),
)
"""A day of mixed use, as far as scenarios are one: a piece of each."""
MINUTES = tuple(Recording("", ("sync", "scan"), minutes=minutes) for minutes in (1, 3, 5))
BLKTRACE = "trace-blktrace"
ON_PAR = 0.05
"""The paper draws bars and says that they are on par."""
_KIND = (
    "reproduced in kind: the paper counts days of users' phones, here it is one session of one app, and pieces of a "
    "day that somebody chose. "
)

Row = dict[str, Any]


def _asked(out: Path, there: Sequence[Recording]) -> Iterator[tuple[str, Tables]]:
    """The tables of the replay and of the day, as far as they are there."""
    for name, wanted in (("facebook replay", [REPLAY]), ("mixed use", list(DAY))):
        folders = logs_of([one for one in wanted if one in there], out)
        if folders:
            yield name, open_all(folders)


def _rows(tables: Tables, metric: str) -> list[Row]:
    return rows_of(tables.engine, METRICS[metric](tables))


def reads_and_writes(out: Path, there: Sequence[Recording]) -> Outcome:
    """A4."""
    found = []
    for of, tables in _asked(out, there):
        count = {row["operation"]: row["count"] for row in _rows(tables, "reads_writes")}
        reads, writes = count.get("read", 0), count.get("write", 0)
        ratio = writes / reads if reads else float("inf")
        found.append(Found(of, "writes over reads, by count", "at least 2x", f"{ratio:.1f}x", ratio >= 2))
    return Outcome(found)


def sync_share(out: Path, there: Sequence[Recording]) -> Outcome:
    """A5."""
    asked = ((of, _rows(tables, "sync_share")[0]) for of, tables in _asked(out, there))
    return Outcome([share(of, "synchronous, of writes", 0.73, row["sync_share"]) for of, row in asked])


def sync_calls(out: Path, there: Sequence[Recording]) -> Outcome:
    """A6."""
    found = []
    for of, tables in _asked(out, there):
        shares = {row["cause"]: row["count_share"] for row in _rows(tables, "sync_calls")}
        for call, paper in (("fsync", 0.16), ("fdatasync", 0.56)):
            found.append(share(of, f"{call}, of synchronous writes", paper, shares.get(call, 0.0) if shares else None))
        rest = 1 - sum(shares.get(call, 0.0) for call in ("fsync", "fdatasync"))
        found.append(share(of, "others", 0.28, rest if shares else None))
    return Outcome(found)


def journals(out: Path, there: Sequence[Recording]) -> Outcome:
    """A7."""
    found = []
    for of, tables in _asked(out, there):
        rows = {row["journal"]: row for row in _rows(tables, "journals")}
        for name, count, size in (("SQLite's, of data", 0.41, 0.25), ("the file system's, of all", 0.24, 0.40)):
            row = rows.get(name, {})
            found.append(share(of, f"journal: {name}, by count", count, row.get("count_share")))
            found.append(share(of, f"journal: {name}, by volume", size, row.get("bytes_share")))
    return Outcome(found)


def tracing_slows(out: Path, there: Sequence[Recording]) -> Outcome:
    """A2."""
    del out, there
    by_state = counting.writes(("off", *TRACES))
    found, most = [], 0.0
    for pattern, untraced in by_state["off"].items():
        for state, tracer in TRACES.items():
            slower = by_state[state][pattern].ns / untraced.ns - 1
            paper, agrees = ("on par", slower < ON_PAR) if state == "trace-origin" else ("", None)
            rate = untraced.size / untraced.ns * 1000
            of = f"{pattern.replace('-', ', ')}, {rate:.0f} MB/s"
            found.append(Found(of, tracer, paper, f"{slower * 100:+.1f} %", agrees))
            most = max(most, slower) if state == BLKTRACE else most
    said = f"{most * 100:+.1f} %"
    found.append(Found("all patterns", f"{TRACES[BLKTRACE]}, at most", "+72 %", said, abs(most - 0.72) <= TOLERANCE))
    return Outcome(found)


def _report_s(folder: Path) -> float:
    """Real time of the command that makes a report, from its start to its end."""
    begin = time.perf_counter()
    argv = [sys.executable, "-m", "fasttrack_lab", "trace", "report", str(folder.absolute())]
    done = subprocess.run(argv, cwd=LAB, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise LabError(f"the report of {folder} failed: {done.stderr.strip()}")
    return time.perf_counter() - begin


def post_processing(out: Path, there: Sequence[Recording]) -> Outcome:
    """A3."""
    found = []
    for one in there:
        folder = one.folder(out)
        of, seconds = f"{one.minutes} min", _report_s(folder)
        tables = open_all([folder])
        told = f"{seconds:.1f} s for {counted(tables.io)} bios"
        found.append(Found(of, "from the trace's end to its report", "none", told))
        with tempfile.TemporaryDirectory(prefix="fasttrack-most-") as where:
            most_s, asked, whole = most_way.seconds(tables, Path(where))
        paper = one.minutes * 60 * 2
        said = f"{most_s:.0f} s, from {asked} of {whole} blocks"
        found.append(Found(of, "MOST's way, debugfs for each block", f"about {paper} s", said))
    return Outcome(found)


EVALUATIONS = (
    Evaluation(
        "A2",
        "how much slower a file is written while it is traced",
        PAPER,
        (),
        tracing_slows,
        "In QEMU's counting mode on the Galaxy S6 model: an instruction is a nanosecond, as on a processor that "
        "executes a thousand million a second, and the device takes what its model says. The file has 64 MiB, of which "
        "random writes of 4 KiB change 16 MiB; the paper's has 512 MiB. What is counted is what the traced task and "
        "the kernel pay: nobody reads the trace meanwhile, while the paper's blktrace writes it to the same storage. "
        "blktrace's instructions are few beside the device's time; `./fasttrack cost` counts them without that.",
    ),
    Evaluation(
        "A3",
        "time from the end of a trace to its report",
        PAPER,
        MINUTES,
        post_processing,
        "Real time of this machine, not virtual, and more where others use it. Androtrace needs no step after tracing; "
        "a report here is one command. MOST asked debugfs on the phone about each block; here on this machine, on a "
        "file system that has as many files as the trace, and of some blocks, so it is an estimate.",
    ),
    Evaluation(
        "A4",
        "writes against reads",
        PAPER,
        (REPLAY, *DAY),
        reads_and_writes,
        _KIND
        + "Each piece begins with a cold cache and reads all that it needs; a user's phone has much of it in memory "
        "for days. The replay's files are made anew, so most of its reads find them in memory.",
    ),
    Evaluation(
        "A5",
        "the synchronous share of writes",
        PAPER,
        (REPLAY, *DAY),
        sync_share,
        _KIND
        + "The recorded app and most of the scenarios sync what they write; what a user's apps write without syncs, "
        "caches and logs, is hardly there. Write-back merges it into few large bios.",
    ),
    Evaluation(
        "A6",
        "synchronous writes by call",
        PAPER,
        (REPLAY, *DAY),
        sync_calls,
        _KIND + "The recording has fsyncs and no fdatasync, and the lab's SQLite is built without fdatasync, as "
        "upstream's is by default: what is fdatasync in the paper is fsync here. Writes of the file system's journal "
        "are among the others, whichever call asks for them.",
    ),
    Evaluation(
        "A7",
        "SQLite's journals and the file system's",
        PAPER,
        (REPLAY, *DAY),
        journals,
        _KIND
        + "A count is of runs of blocks with one file and owner; the paper's is of requests. Its tracer takes for the "
        "journal only blocks that begin with the journal's magic: the blocks that are logged are metadata there.",
    ),
)
