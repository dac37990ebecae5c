# SPDX-License-Identifier: GPL-2.0-only
"""./fasttrack run: one scenario, once."""

from __future__ import annotations

from pathlib import Path

import click

from fasttrack_lab.commands import common
from fasttrack_lab.inputs import scenario
from fasttrack_lab.run.runner import Tools, run
from fasttrack_lab.run.specs import spec_of


@click.command("run")
@click.argument("name", metavar="SCENARIO")
@common.phone_option
@common.fs_option
@common.lru_option
@common.policy_option
@common.background_option
@common.seed_option()
@common.json_option
@common.limit_option
@click.option(
    "--idle",
    is_flag=True,
    help="For a scenario whose touch sends an app to the background: let that app do nothing. "
    "This is the baseline of the scenario's slowdown.",
)
@common.why_options
@common.trace_option
@click.option("--verify", is_flag=True, help="Check the content of everything that is read; slower.")
def command(
    name: str,
    phone_name: str,
    fs: str | None,
    lru_name: str,
    policy_name: str,
    background: str,
    seed: int,
    json_path: str | None,
    time_limit: float,
    idle: bool,
    why: bool,
    why_interval: float | None,
    trace_to: Path | None,
    verify: bool,
) -> None:
    """Play SCENARIO once and measure its response time.

    SCENARIO is a name of lab/scenarios, smartio-APP-launch, -run or -install, or a path to a scenario file. The
    response time is virtual, from the touch to the last operation, and the same for the same seed on every machine.
    """
    phone, policy = common.load_phone_and_policy(phone_name, fs, policy_name)
    common.check_json_path(json_path)
    common.check_trace(trace_to)
    why_ns = common.why_ns(why, why_interval)
    behind = common.behind_of(background)
    front = scenario.load(name)
    spec = spec_of(
        front,
        behind,
        phone,
        policy,
        seed,
        limit_s=time_limit,
        verify=verify,
        lru_name=lru_name,
        idle=idle,
        why_interval_ns=why_ns,
        trace_to=trace_to,
    )
    common.check_host()
    common.finish_traced(run(spec, Tools.of_checkout()), json_path, trace_to)
