# SPDX-License-Identifier: GPL-2.0-only
"""The command ./fasttrack: one file a subcommand in commands/, errors in one line, exit status 2 for wrong input."""

from __future__ import annotations

import ast
import importlib
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import click

from fasttrack_lab.commands import COMMANDS, COMPLETE_VAR
from fasttrack_lab.host import process, ui
from fasttrack_lab.host.errors import Interrupted, LabError
from fasttrack_lab.host.paths import version


def summary(place: str) -> str:
    """The first paragraph of the help of the command at MODULE:FUNCTION, read from its source, which is fast."""
    module, function = place.split(":")
    spec = find_spec(module)
    assert spec is not None and spec.origin is not None
    for node in ast.parse(Path(spec.origin).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            text = ast.get_docstring(node) or ""
            return " ".join(text.split("\n\n", 1)[0].split())
    raise AssertionError(f"{place} is no function")


class LazyGroup(click.Group):
    """The group of all commands; each is imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """All names."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import one."""
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name].split(":")
        found = getattr(importlib.import_module(module), attribute)
        assert isinstance(found, click.Command)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The commands with a line each, none of them imported."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary(place)) for name, place in sorted(COMMANDS.items())])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """An unknown command names the known ones."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise click.UsageError(f"there is no command {args[0]!r}; commands: {', '.join(sorted(COMMANDS))}", ctx)
        return super().resolve_command(ctx, args)


@click.version_option(version(), message="%(prog)s %(version)s")
@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
def cli() -> None:
    """FastTrack's lab: the patched kernel as a process, with an emulated phone's storage, in virtual time.

    Times are in seconds of virtual time and sizes in bytes unless a help text says otherwise.
    """


def _options(error: click.UsageError) -> str:
    context = error.ctx
    if context is None:
        return ""
    options = [parameter for parameter in context.command.get_params(context) if isinstance(parameter, click.Option)]
    names = [name for option in options for name in option.opts if name.startswith("--")]
    return f"; options of {context.info_name}: {', '.join(names)}"


def describe(error: click.ClickException) -> str:
    """One line for a wrong command line, with what would be right."""
    text = " ".join(error.format_message().split()).rstrip(".")
    if isinstance(error, click.NoSuchOption | click.MissingParameter):
        text += _options(error)
    return text


def main() -> NoReturn:
    """Entry point: runs the command, turns errors into one line and an exit status."""
    process.catch_signals()
    try:
        status = cli.main(standalone_mode=False, prog_name="./fasttrack", complete_var=COMPLETE_VAR)
        sys.stdout.flush()
    except click.exceptions.Exit as left:
        sys.exit(left.exit_code)
    except click.exceptions.NoArgsIsHelpError as bare:
        bare.show()
        sys.exit(bare.exit_code)
    except click.ClickException as error:
        ui.say(f"fasttrack: {describe(error)}")
        sys.exit(2 if isinstance(error, click.UsageError) else error.exit_code)
    except (Interrupted, click.Abort, KeyboardInterrupt):
        process.stop_all()
        ui.say("fasttrack: interrupted; every guest is ended and its files are removed")
        sys.exit(Interrupted.exit_code)
    except LabError as error:
        ui.say(f"fasttrack: {error}")
        sys.exit(error.exit_code)
    except OSError as error:
        # No space left, a directory that is gone: whoever sees it can act, and needs no traceback.
        where = f"{error.filename}: " if error.filename else ""
        ui.say(f"fasttrack: {where}{error.strerror or error}")
        # Python would write what is left of the output once more as it ends, and end with another status.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(LabError.exit_code)
    sys.exit(status if isinstance(status, int) else 0)
