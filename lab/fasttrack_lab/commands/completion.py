# SPDX-License-Identifier: GPL-2.0-only
"""./fasttrack completion: commands and options by the Tab key."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from fasttrack_lab.commands import COMPLETE_VAR


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print what makes SHELL complete commands and options.

    In bash: eval "$(./fasttrack completion bash)"; in zsh the same with zsh; in fish: ./fasttrack completion fish |
    source.
    """
    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(ctx.find_root().command, {}, "fasttrack", COMPLETE_VAR).source())
