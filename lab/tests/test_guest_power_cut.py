# SPDX-License-Identifier: GPL-2.0-only
"""The power is cut at random commands while FastTrack holds the background back; what was acknowledged must be there.

Two apps write records and fsync them, one in front and one behind, and a third, behind, only dirties pages. The first
boot prints each record's number after its fsync returned. The console goes to the host at once, so what it shows was
acknowledged before the cut. The second boot mounts (which replays the journal, or rolls forward), reads every
acknowledged record back, unmounts and checks the file system.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial

import pytest
from guest_script import Data, ask, script, write_asked

from fasttrack_lab.host.rundir import run_dir
from fasttrack_lab.host.side_by_side import each
from fasttrack_lab.inputs import phone
from fasttrack_lab.run.boot.backend import BootSpec
from fasttrack_lab.run.image import storage_params
from fasttrack_lab.run.result import judge_boot, judge_power_cut, tail
from fasttrack_lab.run.runner import Tools

pytestmark = pytest.mark.guest

CUTS = 100
"""On each file system as phones make it."""

OTHER_CUTS = 20
"""On ext4 with fast commits, and on f2fs while an archive is unpacked."""

LAST_COMMAND = 700
"""Counted from the writers' start."""

MEMORY_MIB = 256
STORAGE_MIB = 1024
"""Small, because fsck.f2fs takes its time by the size."""

SEED = 20180711


@dataclass(frozen=True)
class Cut:
    """Where and how the power goes."""

    fs: str
    features: str
    """What the file system is made with beside what phones have."""
    command: int
    seed: int
    persist: int
    unpacks: bool = False
    """The third app writes small files instead of one large, and records go into a file of many nodes too."""


@dataclass(frozen=True)
class Answer:
    """What came of a cut."""

    error: str | None
    """The first thing that went wrong."""
    acknowledged: tuple[int, ...]
    """Records of each writer."""
    pauses: int
    """Of background tasks, before the last record."""
    held: int
    """Requests that the dispatcher held back, before the last record."""
    fast_commits: int
    """Of ext4, before the last record."""


def cuts(fs: str, features: str, count: int, unpacks: bool) -> list[Cut]:
    draw = random.Random(f"{SEED} {fs}{features}")
    return [
        Cut(fs, features, draw.randrange(1, LAST_COMMAND), index, draw.choice([0, 0, 30, 70]), unpacks)
        for index in range(count)
    ]


def written(console: str, error: str | None) -> Answer:
    """What the first boot's writers printed."""
    line = r"^acked (\d) (\d+) pauses (\d+) dispatch_held (\d+) fast (\d+)\r?$"
    lines = re.findall(line, console, re.MULTILINE)
    said = [tuple(map(int, line)) for line in lines]
    return Answer(
        error,
        tuple(max((number + 1 for who, number, *_ in said if who == writer), default=0) for writer in range(2)),
        *(max((one[column] for one in said), default=0) for column in (2, 3, 4)),
    )


def cut_and_check(tools: Tools, cut: Cut) -> Answer:
    """Two boots: the writing one ends in the cut, the other reads what it left."""
    s6 = phone.load("s6").with_fs(cut.fs)
    program, *arguments = s6.format
    made = [program, *(["-O", cut.features] if cut.features else []), *arguments]
    mounted = {"fs": s6.fs, "options": s6.mount_options}
    params = storage_params(tools.backend, s6)
    params |= {"mflash.size_mb": str(STORAGE_MIB), "mflash.seed": str(cut.seed)}
    power = {"mflash.power_cut_persist": str(cut.persist)}
    with run_dir(MEMORY_MIB + STORAGE_MIB) as where:
        boot = partial(BootSpec, tools.kernel.image, script("power_cut"), MEMORY_MIB, where, 120.0, cut.seed)
        write_asked(where, "write_records", **mounted, argv=made, command=cut.command, unpacks=cut.unpacks)
        outcome = tools.backend.boot(boot(params | power))
        answer = written(outcome.console, judge_power_cut(outcome))
        if not answer.error:
            write_asked(where, "check_records", **mounted, acknowledged=answer.acknowledged)
            outcome = tools.backend.boot(boot(params))
            error = judge_boot(outcome)
            wrong = [] if error else json.loads((where / "shown.json").read_text())["wrong"]
            if error or wrong:
                answer = replace(answer, error=f"{error}, {wrong}")
    return replace(answer, error=f"{cut}: {answer.error}\n{tail(outcome.console)}") if answer.error else answer


@pytest.mark.parametrize(
    ("fs", "features", "count", "unpacks"),
    [
        ("ext4", "", CUTS, False),
        ("f2fs", "", CUTS, False),
        ("ext4", "fast_commit", OTHER_CUTS, False),
        ("f2fs", "", OTHER_CUTS, True),
    ],
    ids=["ext4", "f2fs", "ext4-fast_commit", "f2fs-unpack"],
)
def test_nothing_that_was_synced_is_lost(tools: Tools, fs: str, features: str, count: int, unpacks: bool) -> None:
    planned = cuts(fs, features, count, unpacks)
    answers = each(planned, lambda cut: cut_and_check(tools, cut), f"power cuts on {fs}")
    failures = [answer.error for answer in answers if answer.error]
    assert not failures, "\n".join(failures)
    for writer in range(2):
        assert sum(answer.acknowledged[writer] > 0 for answer in answers) > count // 2
    assert sum(answer.pauses > 0 for answer in answers) > count // 2
    assert sum(answer.held > 0 for answer in answers) > count // 2
    fast = sum(answer.fast_commits > 0 for answer in answers)
    assert fast > count // 2 if features else fast == 0
    assert len({cut.command for cut in planned}) > count // 2


@pytest.mark.parametrize("fs", ["ext4", "f2fs"])
def test_a_flush_follows_what_it_makes_durable(tools: Tools, fs: str) -> None:
    """Each fsync's writes have ended before its flush begins, or the flush need not cover them.

    f2fs forgot to wait for the first node after a checkpoint (0146).
    """
    event = re.compile(r"block_rq_(issue|complete): \S+ (\S+) ")
    seen: list[list[tuple[str, str]]] = []
    inside = False
    for line in ask(tools, "fsync_order.fsyncs", data=Data(fs))["lines"]:
        if ": begin " in line:
            seen.append([])
        inside = ": begin " in line or (inside and ": end " not in line)
        if inside and (found := event.search(line)):
            seen[-1].append((found[1], found[2]))
    assert len(seen) == 6
    for one in seen:
        flush = next(at for at, (what, how) in enumerate(one) if what == "issue" and how.startswith("F"))
        before = Counter(what for what, how in one[:flush] if "W" in how)
        # Data and node; or data alone, and the journal's blocks.
        assert before["issue"] == before["complete"] >= 2, one
