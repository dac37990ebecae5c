# SPDX-License-Identifier: GPL-2.0-only
"""./fasttrack replay: a recorded trace as the app in front."""

from __future__ import annotations

from pathlib import Path

import click

from fasttrack_lab.commands import common
from fasttrack_lab.host import ui
from fasttrack_lab.inputs import scenario
from fasttrack_lab.inputs.traces import FORMATS
from fasttrack_lab.run.runner import Tools, run
from fasttrack_lab.run.specs import spec_of


@click.command("replay")
@click.argument("recording", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@common.phone_option
@common.fs_option
@common.policy_option
@common.background_option
@common.seed_option()
@common.json_option
@common.limit_option
@common.why_options
@common.trace_option
@click.option(
    "--format", "form", type=click.Choice(FORMATS), help="The recording's format; by default told by its content."
)
@click.option(
    "--start",
    type=click.FloatRange(0),
    default=0.0,
    show_default=True,
    help="Begin of the part to replay, seconds from the first event.",
)
@click.option(
    "--length", type=click.FloatRange(0, min_open=True), help="Length of the part to replay in seconds; by default all."
)
def command(
    recording: Path,
    phone_name: str,
    fs: str | None,
    policy_name: str,
    background: str,
    seed: int,
    json_path: str | None,
    time_limit: float,
    why: bool,
    why_interval: float | None,
    trace_to: Path | None,
    form: str | None,
    start: float,
    length: float | None,
) -> None:
    """Replay the recorded I/O of FILE as the app in front, with its threads and think times.

    It reads system calls (MobiGen) and block I/O (Pixel 6a CSV, blktrace text). The response time is the time that
    its threads spend in their I/O calls; total_s is the whole, with the recorded think times.
    """
    phone, policy = common.load_phone_and_policy(phone_name, fs, policy_name)
    common.check_json_path(json_path)
    common.check_trace(trace_to)
    why_ns = common.why_ns(why, why_interval)
    behind = common.behind_of(background)
    front = scenario.from_trace(recording, form, start, length)
    spec = spec_of(front, behind, phone, policy, seed, limit_s=time_limit, why_interval_ns=why_ns, trace_to=trace_to)
    if front.app.trace is not None:
        ui.say(front.app.trace.load().stats.text())
    common.check_host()
    common.finish_traced(run(spec, Tools.of_checkout()), json_path, trace_to)
