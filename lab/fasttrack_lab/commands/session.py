# SPDX-License-Identifier: GPL-2.0-only
"""./fasttrack session: a launch in a desktop's session, with the daemon finding it out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fasttrack_lab.commands import common
from fasttrack_lab.inputs import phone
from fasttrack_lab.run.runner import Tools
from fasttrack_lab.session import desktop
from fasttrack_lab.session.driver import MODE_ALONE, MODE_LAB

if TYPE_CHECKING:
    from rich.table import Table

UNITS_NOTE = "Times are virtual, in ms. Told: until the kernel has the app in front, and in that its control group."


@click.command("session")
@common.phone_option
@common.fs_option
@click.option(
    "--behind",
    default=",".join(desktop.BACKGROUNDS),
    show_default=True,
    metavar="LIST",
    help="Programs behind, with commas: kinds as of ./fasttrack matrix.",
)
@click.option(
    "--launches",
    type=click.IntRange(1, 100),
    default=3,
    show_default=True,
    help="Launches in each session, each with cold caches.",
)
@click.option(
    "--watchdog",
    is_flag=True,
    help="Also stop the daemon as if it hung, and say after how many virtual seconds systemd has another one running.",
)
@common.seed_option("the random numbers of the guest")
@common.json_option
@common.limit_option
@common.jobs_option
def command(
    phone_name: str,
    fs: str | None,
    behind: str,
    launches: int,
    watchdog: bool,
    seed: int,
    json_path: str | None,
    time_limit: float,
    jobs: int | None,
) -> None:
    """Launch a Wayland client in a desktop's session, from files on the phone, while other programs run.

    systemd, logind, D-Bus, a user's manager and sway run in the guest; each app has a scope. A launch ends when the
    client's window is open: until then it has read 32 MiB of files, its program, libraries and font. It is measured
    with nothing behind (alone); with FastTrack off (stock); so, too, with fasttrackd and its freezer (freeze); told to
    the kernel by the lab as soon as the app has a control group (lab); and found out by fasttrack-agent and fasttrackd
    (daemon). Needs packages, which scripts/setup.sh session installs.
    """
    common.check_json_path(json_path)
    kinds = desktop.known_kinds(common.names_of(behind))
    asked = desktop.Asked(phone.load(phone_name).with_fs(fs), kinds, launches, seed, time_limit, watchdog)
    common.check_host()
    found = desktop.measure(asked, Tools.of_checkout(), jobs=jobs)
    common.write_json(json_path, found)
    if json_path != "-":
        common.print_tables(table(found))
        click.echo(UNITS_NOTE)
        for line in said(found):
            click.echo(line)


def table(found: dict[str, Any]) -> Table:
    """A row a session."""
    from rich.table import Table  # noqa: PLC0415 # slow to import

    made = Table("session", "response", "lowest", "highest", "over alone", "over the lab's", "told", "its group")
    alone, lab = (desktop.mean(found[mode], "response_s") for mode in (MODE_ALONE, MODE_LAB))
    for mode, facts in found.items():
        times = desktop.values_of(facts, "response_s")
        mean = desktop.mean(facts, "response_s")
        told, scope = desktop.mean(facts, "detected_s"), desktop.mean(facts, "scope_s")
        row = [mode, _ms(mean), _ms(min(times)), _ms(max(times)), _over(mean, alone), _over(mean, lab)]
        made.add_row(*row, _ms(told), _ms(scope))
    return made


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value * 1e3:.2f}"


def _over(value: float | None, base: float | None) -> str:
    return f"{value / base:.2f}x" if value and base else "-"


def said(found: dict[str, Any]) -> list[str]:
    """What the daemon and systemd say, in lines."""
    lines = []
    for mode, facts in found.items():
        if "units" in facts:
            status = facts["units"]["status"]
            counters = status["counters"]
            counted = f"{counters.get('reports', 0)} reports, {counters.get('freezes', 0)} freezes"
            lines.append(f"{mode}: fasttrackd's rung is {status['rung']}; {counted}")
            lines += [f"{mode}: error: {error}" for error in status["errors"]]
        if "watchdog" in facts:
            lines.append(f"{mode}: another fasttrackd {facts['watchdog']['after_s']:.1f} s after it was stopped")
    return lines
