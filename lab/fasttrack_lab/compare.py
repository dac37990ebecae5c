# SPDX-License-Identifier: GPL-2.0-only
"""`./fasttrack compare`: scenarios on phones, under policies, beside backgrounds, with seeds."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from time import monotonic

import click
from rich.console import Console

from fasttrack_lab import lru, phone, policy, report, runner, scenario, smartio, specs, ui
from fasttrack_lab.background_sets import NAMED
from fasttrack_lab.commands import common
from fasttrack_lab.errors import UsageProblem
from fasttrack_lab.paths import RECORDINGS, digest, recording
from fasttrack_lab.records import (
    NONE,
    Again,
    Cell,
    Front,
    Record,
    Request,
    append,
    duration_text,
    finished,
    plan,
    read,
    recording_part,
    write_request,
)
from fasttrack_lab.result import Result
from fasttrack_lab.scenario import Scenario

ALL = "all"
SCENARIOS = ("gallery-launch", "camera-switch", "game-load")
RECORDING, RECORDING_S = "mobigen/facebook.mobigen", 20
"""What is compared where no scenario is given, the first seconds of the recording if it is there, with these phones and
backgrounds. All of the recording, two minutes, would make most of the comparison's runs take minutes."""
PHONES = "s6,n6"
BACKGROUNDS = "update,backup,six"
ONE_PHONE = "s6"
ONE_BACKGROUNDS = "update,backup"
"""Phones and backgrounds of scenarios that are given."""


def split_list(value: str, what: str) -> tuple[str, ...]:
    """A list with commas: no empty entry, nothing twice."""
    names = [name.strip() for name in value.split(",")]
    if not all(names):
        raise UsageProblem(f"{what}: '{value}' has an empty entry; write names with commas, such as a,b")
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise UsageProblem(f"{what}: '{twice[0]}' is given twice")
    return tuple(names)


def split_policies(value: str) -> tuple[str, ...]:
    """Names with commas; `all` stands for every policy, stock first."""
    return tuple(policy.names()) if value == ALL else split_list(value, "--policies")


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


_background, _phone, _policy = cache(scenario.load_background), cache(phone.load), cache(policy.load)
# A comparison has hundreds of runs of a few files: each is read once.


@cache
def load_front(given: str) -> Scenario:
    """A foreground: a scenario, or a recording to replay, which is a file of any other ending than .toml.

    FILE:SECONDS is the first so many seconds of a recording.
    """
    if Path(given).suffix in ("", ".toml"):
        return scenario.load(given)
    path, length_s = (given, None) if Path(given).exists() else recording_part(given)
    return scenario.from_trace(Path(path), length_s=length_s)


def standard() -> tuple[str, ...]:
    """The foregrounds that are compared where none is given."""
    replayed = recording(RECORDING)
    return SCENARIOS if replayed is None else (*SCENARIOS, f"{replayed}:{RECORDING_S}")


def spec_of(cell: Cell) -> runner.RunSpec:
    """The run of a cell."""
    behind = [_background(name) for name in cell.backgrounds]
    device = _phone(cell.phone).with_fs(cell.fs or None)
    front, rule = load_front(cell.scenario), _policy(cell.policy)
    return specs.spec_of(front, behind, device, rule, cell.seed, lru_name=cell.lru, idle=cell.idle)


def inputs_key(spec: runner.RunSpec) -> str:
    """Hash of all that a run is made from, save the kernel: the job with its settings, the traces, the phone."""
    job = json.dumps(runner.full_job(spec), sort_keys=True)
    described = repr((spec.phone, spec.policy))
    texts = [f"{name}\n{text}" for name, text in sorted(spec.traces.items())]
    return digest([job, described, *texts])[:16]


Runs = Mapping[Cell, tuple[runner.RunSpec, str]]
"""The run of each cell, and what its record has as inputs."""


def runs_of(cells: Iterable[Cell], tools: runner.Tools) -> Runs:
    """The runs of cells, in their order."""
    specs = ((cell, spec_of(cell)) for cell in cells)
    return {cell: (spec, inputs_key(spec) + tools.guest_key[:8]) for cell, spec in specs}


def run_missing(directory: Path, runs: Runs, tools: runner.Tools, again: Again, title: str) -> list[Record]:
    """Makes the runs that the directory lacks, and those to be made AGAIN; adds each as it ends. TITLE is the bar's.

    Returns the records of all, in their order.
    """
    kernel = tools.kernel.key
    wanted = {cell: (cell, key, kernel) for cell, (_, key) in runs.items()}
    done = finished(read(directory), again)
    missing = {cell: runs[cell] for cell in runs if wanted[cell] not in done}
    if len(missing) < len(runs):
        failed = sum(key in done and done[key].error is not None for key in wanted.values())
        kept = f", {failed} of them failed: --again-failed runs these again" if failed else ""
        ui.say(f"{len(runs) - len(missing)} of {len(runs)} runs are in {directory} already{kept}")
    by_spec = {id(spec): (cell, key) for cell, (spec, key) in missing.items()}
    begun_s = ended_s = monotonic()

    def keep(spec: runner.RunSpec, result: Result) -> None:
        """Adds the record of a run that has ended."""
        nonlocal ended_s
        before_s, ended_s = ended_s, monotonic()
        cell, key = by_spec[id(spec)]
        error = None if result.ok else result.verdict.error or "failed without a reason"
        starts = {app["name"]: float(app["start_s"]) for app in spec.job["apps"]}
        touch_s = float(spec.job["touch_s"])
        real_s = round(ended_s - before_s, 3)
        append(directory, Record(cell, key, kernel, touch_s, result.to_json(), error, starts, real_s))

    if missing:
        runner.run_many([spec for spec, _ in missing.values()], tools, title=title, on_result=keep)
        if len(missing) < len(runs):
            ui.say(f"{len(missing)} more in {duration_text(ended_s - begun_s)} of real time")
    found = {record.key: record for record in read(directory)}
    return [found[wanted[cell]] for cell in runs]


def compare(directory: Path, request: Request, again: Again = Again.HOST) -> list[Record]:
    """Runs what is missing and makes the directory's report. Returns the records of the comparison."""
    directory.mkdir(parents=True, exist_ok=True)
    tools = runner.Tools.of_checkout()
    runs = runs_of(plan(request), tools)
    request = replace(request, kernel=tools.kernel.key, inputs=tuple(key for _, key in runs.values()))
    write_request(directory, request)
    found = run_missing(directory, runs, tools, again, request.title)
    report.make(directory)
    return found


def file_systems(phones: Sequence[str], value: str | None) -> dict[str, tuple[str, ...]]:
    """The file systems of each phone: those of the list, or each phone's own."""
    if value is None:
        return {name: (phone.load(name).fs,) for name in phones}
    names = split_list(value, "--fs")
    for name in phones:
        for fs in names:
            phone.load(name).with_fs(fs)
    return dict.fromkeys(phones, names)


def fronts(names: Sequence[str]) -> tuple[Front, ...]:
    """The foregrounds of a comparison; each has a name of its own."""
    found: list[Front] = []
    for given in names:
        loaded = load_front(given)
        if loaded.role != "foreground":
            valid = ", ".join([*scenario.available("foreground"), smartio.pattern()])
            raise UsageProblem(f"scenario '{given}' is a background one; foreground scenarios: {valid}")
        front = Front(given, loaded.description, loaded.left)
        if any(front.name == other.name for other in found):
            raise UsageProblem(f"SCENARIO: '{front.name}' is given twice")
        found.append(front)
    return tuple(found)


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
    "'update+update' one with two apps that both update; 'six' and 'twelve' are so many apps together. "
    "'none' under stock is always run: slowdown counts from it. Where an app is in front before the touch, it counts "
    f"from 'idle': that app does nothing.  [default: {ONE_BACKGROUNDS}; without a SCENARIO {BACKGROUNDS}]",
)
@common.seeds_option(3)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
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
    """Compare policies: run every SCENARIO on every phone, under every policy, beside every set of backgrounds.

    A SCENARIO is a name of lab/scenarios, smartio-APP-launch, -run or -install, a scenario file, or a recording that is
    replayed (FILE:SECONDS: its first seconds); without one, the three of the FastTrack paper are compared, and the
    replay of the first 20 s of a Facebook session if $FASTTRACK_DATA/mobigen/facebook.mobigen is there.

    Times are virtual seconds. Prints a table; writes raw.jsonl (one record a run), runs.csv, summary.csv and
    report.html. What is there already, made by the same kernel and inputs, is not run again, so that a comparison
    that was interrupted goes on; nor is what failed, unless it was the host that ended it.
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
        ui.say(f"without the recording {RECORDING}: {RECORDINGS} does not name its directory")
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
