# SPDX-License-Identifier: GPL-2.0-only
"""./fasttrack shell: a shell on the phone."""

from __future__ import annotations

import sys

import click

from fasttrack_lab.commands import common
from fasttrack_lab.host.errors import UsageProblem
from fasttrack_lab.host.rundir import run_dir
from fasttrack_lab.inputs.cell import Cell
from fasttrack_lab.run.runner import RunSpec, Tools, laid_out, need_mib, phone_image


@click.command("shell")
@common.phone_option
@common.fs_option
@common.policy_option
@common.seed_option("the random numbers of the guest")
def command(phone_name: str, fs: str | None, policy_name: str, seed: int) -> None:
    """Boot the phone and open a shell on it, with /data mounted and the policy set. Leaving the shell ends the guest.

    Time is virtual: it stands still while you type, and jumps while all wait.
    """
    phone, policy = common.load_phone_and_policy(phone_name, fs, policy_name)
    if policy.detector:
        raise UsageProblem(
            f"--policy {policy.name}: fasttrackd tells who is in front, and a shell has no apps; ./fasttrack exec has"
        )
    common.check_host()
    if not sys.stdin.isatty():
        raise UsageProblem("a shell needs a terminal; ./fasttrack exec runs a command without one")
    tools = Tools.of_checkout()
    job = {"mode": "shell", "apps": [], "files": [], "limit_s": 1e9}
    spec = RunSpec(Cell("shell", phone.name, policy.name, (), seed), phone, policy, job, limit_s=None)
    with phone_image(spec, tools) as prepared, run_dir(need_mib(spec, tools, prepared)) as where:
        tools.backend.boot(laid_out(spec, tools, where, prepared, interactive=True))
