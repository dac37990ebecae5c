# SPDX-License-Identifier: GPL-2.0-only
"""./fasttrack ratchet: has behaviour moved?"""

from __future__ import annotations

import sys

import click

from fasttrack_lab.commands import common
from fasttrack_lab.compare import ratchet
from fasttrack_lab.host import ui
from fasttrack_lab.run.runner import Tools


@click.command("ratchet")
@click.option("--renew", is_flag=True, help=f"Write what the runs give now to {ratchet.RATCHET.name}.")
def command(renew: bool) -> None:
    """Repeat a few runs whose numbers are on record, and show what moved.

    With the kernel and the inputs of the records, the numbers must be equal to the nanosecond. With others, a number
    may differ by 2 %. Takes some 15 s. The records are in docs/RATCHET.jsonl.
    """
    common.check_host()
    now = ratchet.measure(ratchet.CELLS, Tools.of_checkout())
    pairs = ratchet.compare(ratchet.read(), now) if ratchet.RATCHET.exists() or not renew else []
    if any(pair.moved for pair in pairs):
        common.print_tables(ratchet.table(pairs))
    ui.say(ratchet.said(pairs))
    if renew:
        ratchet.write(now)
    elif errors := ratchet.failures(pairs):
        for error in errors:
            ui.say(error)
        sys.exit(1)
