# SPDX-License-Identifier: GPL-2.0-only
"""./fasttrack frontier: latency in front against throughput behind."""

from __future__ import annotations

from pathlib import Path

import click

from fasttrack_lab.commands import common
from fasttrack_lab.host import ui
from fasttrack_lab.inputs import phone, policy

PHONES = ("s6", "n6", "ufs31")
POLICIES = "stock,bfq,cgroup,fasttrack-minus,fasttrack"
WARMUP_S, WINDOW_S = 3.0, 8.0
QUICK_THINKS, QUICK_APPS, QUICK_POLICIES = (0.0, 10.0, 100.0), (2,), "stock,fasttrack"


@click.command("frontier")
@common.phones_option(help="Phones, with commas  [default: s6,n6,ufs31]")
@click.option(
    "--fs", type=click.Choice(phone.FILE_SYSTEMS), help="File system of all phones  [default: each phone's own]"
)
@click.option("--kind", "kinds", multiple=True, help="read, write, commit: calls in front  [default: all]")
@click.option(
    "--think",
    "thinks",
    multiple=True,
    type=click.FloatRange(0),
    metavar="MS",
    help="Virtual milliseconds after each call, several times  [default: 0, 1, 3, 10, 30, 100]",
)
@click.option("--behind", "behinds", multiple=True, help="Kind behind: write, read; several times  [default: both]")
@click.option(
    "--apps", multiple=True, type=click.IntRange(1, 32), help="Programs behind, several times  [default: 1, 2, 6]"
)
@click.option("--policies", help=f"Policies, with commas  [default: {POLICIES}]")
@click.option("--quick", is_flag=True, help="Fewer where nothing is given: s6, three pauses, two apps, two policies.")
@common.warmup_option(WARMUP_S)
@click.option(
    "--window",
    type=click.FloatRange(0.1),
    default=WINDOW_S,
    show_default=True,
    help="Virtual seconds in which the program in front begins calls.",
)
@common.seed_option("the order in which cold files are read")
@common.jobs_option
@common.limit_option
@common.out_option(Path("results") / "frontier", "records, table and plots")
@common.fresh_option
@common.again_failed_option
def command(
    phones: tuple[str, ...],
    fs: str | None,
    kinds: tuple[str, ...],
    thinks: tuple[float, ...],
    behinds: tuple[str, ...],
    apps: tuple[int, ...],
    policies: str | None,
    quick: bool,
    warmup: float,
    window: float,
    seed: int,
    jobs: int | None,
    time_limit: float,
    out: Path,
    fresh: bool,
    again_failed: bool,
) -> None:
    """Measure calls in front with pauses after each, against what writers or readers behind get done meanwhile.

    Latency is over the same alone, throughput over that under stock in the same cell: beside the same program in front,
    with the same pauses. Where the program in front uses little of the device, the background shall have nearly all
    that it has there; these points are filled in the plots.
    """
    from fasttrack_lab.compare import comparison  # noqa: PLC0415 # slow to import; --help does not wait for it
    from fasttrack_lab.compare.records import Again  # noqa: PLC0415
    from fasttrack_lab.run.runner import Tools  # noqa: PLC0415
    from fasttrack_lab.workloads import calls, frontier, frontier_plot, programs  # noqa: PLC0415

    rules = common.split_list(policies or (QUICK_POLICIES if quick else POLICIES), "--policies")
    chosen = [phone.load(name).with_fs(fs) for name in phones or (PHONES[:1] if quick else PHONES)]
    for rule in rules:
        for one in chosen:
            policy.load(rule).values(one.name)
    asked = frontier.Asked(
        kinds=programs.known("--kind", kinds, frontier.KINDS),
        thinks_ms=tuple(dict.fromkeys(thinks)) or (QUICK_THINKS if quick else frontier.THINKS_MS),
        behinds=programs.known("--behind", behinds, frontier.BEHIND),
        apps=tuple(dict.fromkeys(apps)) or (QUICK_APPS if quick else frontier.APPS),
        places=tuple((one.name, one.fs) for one in chosen),
        policies=rules,
        seed=seed,
        times_s=(warmup, window, time_limit),
    )
    common.check_host()
    again = Again.asked(fresh, again_failed)
    records = comparison.run_specs(out, asked.runs(), Tools.of_checkout(), again, "frontier", jobs)
    found = frontier.rows(records, asked)
    frontier.write_csv(out / frontier.CSV, found)
    common.print_tables(frontier.table(found, rules))
    for line in frontier.summary(found):
        click.echo(line)
    for name, drawn in frontier_plot.draw(found, rules):
        (out / name).write_text(drawn, encoding="utf-8")
        ui.say(f"written: {out / name}")
    ui.say(f"written: {out / frontier.CSV}")
    common.end(records, calls.failures(records))
