# SPDX-License-Identifier: GPL-2.0-only
"""./fasttrack matrix: ordinary programs in front of ordinary programs."""

from __future__ import annotations

import shlex
import sys
from itertools import product
from pathlib import Path

import click

from fasttrack_lab.commands import common
from fasttrack_lab.host import ui
from fasttrack_lab.host.errors import UsageProblem
from fasttrack_lab.inputs import phone, policy

FS = "ext4"
WARMUP_S = 4.0
LIMIT_S = 600.0
"""Virtual seconds that the program in front may take; alone it takes ten at most."""


@click.command("matrix")
@click.option("--front", "fronts", multiple=True, metavar="KIND", help="Kind in front, several times  [default: all]")
@click.option("--behind", "behinds", multiple=True, metavar="KIND", help="Kind behind, several times  [default: all]")
@click.option(
    "--front-program", "own_fronts", multiple=True, metavar="NAME=CMD", help="A program of your own in front."
)
@click.option("--behind-program", "own_behinds", multiple=True, metavar="NAME=CMD", help="One of your own behind.")
@common.phones_option(help="Phones, with commas  [default: s6]")
@click.option(
    "--fs",
    "file_systems",
    multiple=True,
    type=click.Choice(phone.FILE_SYSTEMS),
    help=f"File system, several times  [default: {FS}]",
)
@click.option("--policies", default="stock,bfq,cgroup,fasttrack", show_default=True, help="Policies, with commas.")
@click.option(
    "--service",
    is_flag=True,
    help="The programs of --front are a system service's, beside an app in front that reads 64 KiB from the storage "
    "each 10 ms: what the foreground costs others.",
)
@common.warmup_option(WARMUP_S, several=True)
@common.seed_option("where programs that read and write at random do; --warmup moves the moment of the first call")
@common.jobs_option
@common.limit_option
@common.out_option(Path("results") / "matrix", "records and report")
@common.fresh_option
@common.again_failed_option
@common.why_options
@common.trace_option
def command(
    fronts: tuple[str, ...],
    behinds: tuple[str, ...],
    own_fronts: tuple[str, ...],
    own_behinds: tuple[str, ...],
    phones: tuple[str, ...],
    file_systems: tuple[str, ...],
    policies: str,
    service: bool,
    warmups: tuple[float, ...],
    seed: int,
    jobs: int | None,
    time_limit: float,
    out: Path,
    fresh: bool,
    again_failed: bool,
    why: bool,
    why_interval: float | None,
    trace_to: Path | None,
) -> None:
    """Run every kind of program in front beside two of every kind behind, under every policy.

    Times are virtual seconds in the calls of the program in front, over those of the same alone under stock; less than
    a millisecond counts as one. What it meets depends on the moment: with several --warmup the mean of all is shown,
    and the worst.

    --why and --trace run one cell, and show where the program in front waits in it; with --service the one in front is
    the app beside it.
    """
    from fasttrack_lab.compare import comparison  # noqa: PLC0415 # slow to import; --help does not wait for it
    from fasttrack_lab.compare.records import Again  # noqa: PLC0415
    from fasttrack_lab.run.runner import Tools, run  # noqa: PLC0415
    from fasttrack_lab.workloads import behind, calls, front, matrix, matrix_page, programs  # noqa: PLC0415

    rules = common.split_list(policies, "--policies")
    places = tuple(product(phones or ("s6",), file_systems or (FS,)))
    for rule, (name, _) in product(rules, places):
        policy.load(rule).values(phone.load(name).name)
    mine = programs.own(own_fronts, "--front-program", front.KINDS, programs.FRONT_FILES)
    others = programs.own(own_behinds, "--behind-program", behind.KINDS)
    timed = (*(programs.fronts(fronts, seed) if fronts or not mine else ()), *mine)
    if service and any(one.programs for one in timed) and fronts:
        raise UsageProblem(f"--service: a service cannot be {programs.NEEDS_PROGRAMS}; leave it out")
    asked = matrix.Asked(
        fronts=tuple(one for one in timed if not (service and one.programs)),
        behinds=(*(programs.behinds(behinds) if behinds or not others else ()), *others),
        places=places,
        policies=rules,
        seed=seed,
        warmups_s=tuple(dict.fromkeys(warmups or (WARMUP_S,))),
        limits_s=(LIMIT_S, time_limit),
        service=service,
    )
    why_ns = common.why_ns(why, why_interval)
    if why_ns or trace_to:
        common.check_trace(trace_to)
        cell = asked.looked_into(why_ns, trace_to)
        common.check_host()
        common.finish_traced(run(cell, Tools.of_checkout()), None, trace_to)
        return
    common.check_host()
    again = Again.asked(fresh, again_failed)
    records = comparison.run_specs(out, asked.runs(), Tools.of_checkout(), again, "matrix", jobs)
    found = matrix.rows(records, rules)
    matrix.write_csv(out / matrix.CSV, found)
    failed = calls.failures(records)
    said = shlex.join(["./fasttrack", *sys.argv[1:]])
    (out / matrix_page.PAGE).write_text(matrix_page.page(found, asked, records, failed, said), encoding="utf-8")
    common.print_tables(matrix.table(found, rules))
    click.echo(matrix.summary(found, rules))
    ui.say(f"written: {out / matrix.CSV}, {out / matrix_page.PAGE}")
    common.end(records, failed)
