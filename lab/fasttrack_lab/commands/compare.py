# SPDX-License-Identifier: GPL-2.0-only
"""./fasttrack compare and report: policies against each other."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import click
from rich.console import Console

from fasttrack_lab.commands import common
from fasttrack_lab.commands.common import split_list
from fasttrack_lab.compare import report
from fasttrack_lab.compare.comparison import RECORDING, compare, fronts, standard
from fasttrack_lab.compare.records import Again, Request, plan
from fasttrack_lab.host import ui
from fasttrack_lab.host.errors import UsageProblem
from fasttrack_lab.host.paths import RECORDINGS, recording
from fasttrack_lab.inputs import lru, phone, policy, scenario
from fasttrack_lab.inputs.background_sets import NAMED
from fasttrack_lab.inputs.cell import NONE

ALL = "all"
PHONES = "s6,n6"
BACKGROUNDS = "update,backup,six"
ONE_PHONE = "s6"
ONE_BACKGROUNDS = "update,backup"
"""Phones and backgrounds of scenarios that are given."""


def split_policies(value: str) -> tuple[str, ...]:
    """Names with commas; `all` stands for every policy, stock first."""
    return tuple(policy.published()) if value == ALL else split_list(value, "--policies")


def split_backgrounds(value: str) -> tuple[tuple[str, ...], ...]:
    """Sets of backgrounds: commas part the sets, `+` joins apps that run together; `none` is the empty set.

    `six` and `twelve` are the sets of that name.

    A name that is there twice in a set is two apps.
    """
    sets: list[tuple[str, ...]] = []
    for entry in split_list(value, "--backgrounds"):
        names = () if entry == NONE else tuple(sorted(NAMED.get(entry, entry).split("+")))
        if not all(names):
            raise UsageProblem(f"--backgrounds: '{entry}' must be names joined by '+'")
        if names not in sets:
            sets.append(names)
    return tuple(sets)


def file_systems(phones: Sequence[str], value: str | None) -> dict[str, tuple[str, ...]]:
    """The file systems of each phone: those of the list, or each phone's own."""
    if value is None:
        return {name: (phone.load(name).fs,) for name in phones}
    names = split_list(value, "--fs")
    for name in phones:
        for fs in names:
            phone.load(name).with_fs(fs)
    return dict.fromkeys(phones, names)


def _check(request: Request) -> None:
    """Refuses unknown names, and policies that a phone lacks something for, before anything is built."""
    lru.check(request.lrus)
    for name, on in product(request.policies, request.phones):
        policy.load(name).values(on)
    for name in dict.fromkeys(name for names in request.backgrounds for name in names):
        scenario.load_background(name)


@click.command("compare")
@click.argument("names", metavar="[SCENARIO]...", nargs=-1)
@click.option("--phones", help=f"Phones, with commas  [default: {ONE_PHONE}; without a SCENARIO {PHONES}]")
@click.option("--fs", help="File systems, with commas: ext4, f2fs  [default: each phone's own]")
@click.option(
    "--lru",
    "lrus",
    default=lru.KERNEL_LRU,
    help=f"LRUs, with commas: {', '.join(lru.CHOICES)}  [default: {lru.KERNEL_LRU}, the kernel's own]",
)
@click.option(
    "--policies", default="stock,fasttrack", show_default=True, help=f"Policies, with commas, or '{ALL}' of them."
)
@click.option(
    "--backgrounds",
    help="Sets of background apps: 'update,backup' are two comparisons, 'update+backup' is one with both together, "
    "'update+update' one with two apps that both update; 'six' and 'twelve' are sets of that many apps. "
    "'none' under stock is always run: it is the baseline of the slowdown. Where an app is in front before the touch, "
    f"'idle' is: that app does nothing.  [default: {ONE_BACKGROUNDS}; without a SCENARIO {BACKGROUNDS}]",
)
@common.seeds_option(3)
@click.option(
    "--out",
    type=common.Directory(),
    help="Directory for records and report  [default: ./results/SCENARIO, of several ./results/compare]",
)
@common.fresh_option
@common.again_failed_option
def command(
    names: tuple[str, ...],
    phones: str | None,
    fs: str | None,
    lrus: str,
    policies: str,
    backgrounds: str | None,
    seeds: int,
    out: Path | None,
    fresh: bool,
    again_failed: bool,
) -> None:
    """Compare policies: run every SCENARIO on every phone, under every policy, with every set of backgrounds.

    A SCENARIO is a name of lab/scenarios, smartio-APP-launch, -run or -install, a scenario file, or a recording that is
    replayed (FILE:SECONDS: its first seconds); without one, the three of the FastTrack paper are compared, and the
    replay of the first 20 s of a Facebook session if $FASTTRACK_DATA/mobigen/facebook.mobigen is there.

    Times are virtual seconds. Prints a table; writes raw.jsonl (one record a run), runs.csv, summary.csv and
    report.html. Runs that are there already, made by the same kernel and inputs, are not repeated: run the same
    command to resume. Failed runs are not retried, unless the host killed them.
    """
    behind = (ONE_BACKGROUNDS if names else BACKGROUNDS) if backgrounds is None else backgrounds
    phone_names = split_list((ONE_PHONE if names else PHONES) if phones is None else phones, "--phones")
    request = Request(
        command=shlex.join(["./fasttrack", *sys.argv[1:]]),
        fronts=fronts(names or standard()),
        phones=phone_names,
        policies=split_policies(policies),
        backgrounds=split_backgrounds(behind),
        seeds=seeds,
        file_systems=file_systems(phone_names, fs),
        lrus=split_list(lrus, "--lru"),
    )
    _check(request)
    if not names and recording(RECORDING) is None:
        ui.say(f"the recording {RECORDING} is left out: {RECORDINGS} does not name its directory")
    common.check_host()
    directory = out or Path("results") / (request.title if len(request.fronts) == 1 else "compare")
    ui.say(f"{len(plan(request))} runs: {request.title}")
    records = compare(directory, request, Again.asked(fresh, again_failed))
    Console().print(report.terminal(report.runs(records)))
    ui.say(f"report: {directory / report.PAGE}")
    common.end(records)


@click.command("report")
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
def report_command(directory: Path) -> None:
    """Make the CSV files and the page of a comparison's DIRECTORY again, from its raw records."""
    Console().print(report.terminal(report.make(directory)))
    ui.say(f"report: {directory / report.PAGE}")
