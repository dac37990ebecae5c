# SPDX-License-Identifier: GPL-2.0-only
"""./fasttrack exec: host commands as apps of the phone."""

from __future__ import annotations

from pathlib import Path

import click

from fasttrack_lab.commands import common
from fasttrack_lab.host.errors import UsageProblem
from fasttrack_lab.inputs.cell import Cell
from fasttrack_lab.inputs.exec_job import FOREGROUND, background_name, exec_job
from fasttrack_lab.run.runner import RunSpec, Tools, run

LIMIT_S = 3600.0


@click.command("exec")
@common.phone_option
@common.fs_option
@common.policy_option
@click.option(
    "--files",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Directory whose content is put into the foreground app's directory first.",
)
@common.warmup_option(3.0)
@click.option("--foreground", required=True, metavar="CMD", help="Shell command line of the app in front.")
@click.option(
    "--background",
    "backgrounds",
    multiple=True,
    metavar="CMD",
    help="Shell command line of a background app; may be given several times.",
)
@click.option(
    "--limit",
    type=click.FloatRange(0.001),
    default=LIMIT_S,
    show_default=True,
    help="Virtual seconds that the foreground command may take.",
)
@common.why_options
@common.trace_option
@common.seed_option("the random numbers of the guest")
@common.json_option
@common.limit_option
def command(
    phone_name: str,
    fs: str | None,
    policy_name: str,
    files: Path | None,
    warmup: float,
    foreground: str,
    backgrounds: tuple[str, ...],
    limit: float,
    why: bool,
    why_interval: float | None,
    trace_to: Path | None,
    seed: int,
    json_path: str | None,
    time_limit: float,
) -> None:
    """Run any command of this machine as an app on the phone and time it.

    Each command runs under a UID of its own in its own directory on the phone's /data. response_s is the foreground
    command's virtual time from start to exit, exit_code its status. The backgrounds start first and are ended after it.
    """
    phone, policy = common.load_phone_and_policy(phone_name, fs, policy_name)
    common.check_json_path(json_path)
    common.check_trace(trace_to)
    if not foreground.strip():
        raise UsageProblem("--foreground: the command is empty")
    names = tuple(background_name(index) for index in range(len(backgrounds)))
    cell = Cell("exec", phone.name, policy.name, names, seed)
    job = exec_job(foreground, backgrounds, warmup, limit)
    if why_ns := common.why_ns(why, why_interval):
        job["why_interval_ns"] = why_ns
    spec = RunSpec(cell, phone, policy, job, files_from=files, limit_s=time_limit, trace_to=trace_to)
    common.check_host()
    common.finish_traced(run(spec, Tools.of_checkout(), show_output), json_path, trace_to)


def show_output(where: Path) -> None:
    """Pass what the foreground command printed on to standard error."""
    for ending in ("out", "err"):
        printed = where / f"{FOREGROUND}.{ending}"
        if printed.is_file() and printed.stat().st_size:
            click.echo(printed.read_text(errors="replace"), nl=False, err=True)
