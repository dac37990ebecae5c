# SPDX-License-Identifier: GPL-2.0-only
"""What several commands share: their options, their checks, how a result is shown."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fasttrack_lab.compare.records import Record, failures, took
from fasttrack_lab.host import preflight, ui
from fasttrack_lab.host.errors import LabError, UsageProblem
from fasttrack_lab.host.paths import IN_USE, cache_root, replaced, try_lock
from fasttrack_lab.inputs import lru, phone, policy, scenario
from fasttrack_lab.inputs.background_sets import NAMED
from fasttrack_lab.inputs.scenario import Scenario
from fasttrack_lab.run import result, why
from fasttrack_lab.run.result import Result

if TYPE_CHECKING:
    from rich.console import RenderableType

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

phone_option: Decorator = click.option(
    "--phone", "phone_name", default="s6", show_default=True, metavar="PHONE", help="n5, n6, s6, p1, ufs31 or ufs40."
)
fs_option: Decorator = click.option(
    "--fs",
    type=click.Choice(phone.FILE_SYSTEMS),
    help="File system of the phone's storage  [default: the phone's own: f2fs on ufs31 and ufs40, else ext4]",
)
lru_option: Decorator = click.option(
    "--lru",
    "lru_name",
    type=click.Choice(lru.CHOICES),
    default=lru.KERNEL_LRU,
    help="How the kernel chooses the memory that it reclaims  "
    f"[default: {lru.KERNEL_LRU}, the kernel's own; mglru is Android's]",
)
policy_option: Decorator = click.option(
    "--policy",
    "policy_name",
    default="stock",
    show_default=True,
    metavar="POLICY",
    help="A file name of lab/policies: stock, none, kyber, bfq, fasttrack, ...",
)
background_option: Decorator = click.option(
    "--background",
    "background",
    default="none",
    show_default=True,
    metavar="LIST",
    help="none; or background scenarios, with commas; or six or twelve, sets of that many. A name that is given twice "
    "is two apps: the second is NAME-2, with its own UID, files and random numbers.",
)
fresh_option: Decorator = click.option("--fresh", is_flag=True, help="Repeat runs that are there already.")
again_failed_option: Decorator = click.option(
    "--again-failed",
    is_flag=True,
    help="Retry all failed runs. Without it only those are retried that the host killed (timeout or out of memory): "
    "with the same kernel and inputs the others would fail again.",
)


def seeds_option(default: int) -> Decorator:
    """--seeds of a command that makes each run with several."""
    help_text = "Runs with seeds 1 to N."
    return click.option("--seeds", default=default, show_default=True, type=click.IntRange(1, 1000), help=help_text)


json_option: Decorator = click.option(
    "--json",
    "json_path",
    metavar="PATH",
    help="Write the result to this file; - is standard output, which then has nothing else.",
)
limit_option: Decorator = click.option(
    "--time-limit",
    type=click.FloatRange(1),
    default=300.0,
    show_default=True,
    help="Real seconds after which a guest counts as hung and is killed.",
)
jobs_option: Decorator = click.option(
    "--jobs", type=click.IntRange(1, 1024), help="Guests at once  [default: one a core of this machine]"
)


class Directory(click.Path):
    """A directory that a command makes or fills. One that cannot be is said before the work, not after it."""

    def __init__(self) -> None:
        super().__init__(file_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path, if what is there of it can be written to."""
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        whole = path.absolute()
        there = next(place for place in (whole, *whole.parents) if place.exists())
        if not there.is_dir():
            self.fail(f"{there} is no directory", param, ctx)
        if not os.access(there, os.W_OK | os.X_OK):
            self.fail(f"{there} cannot be written by this user; name another place", param, ctx)
        return path


def out_option(default: Path, what: str) -> Decorator:
    """The directory for WHAT a command makes."""
    return click.option(
        "--out",
        type=Directory(),
        default=default,
        show_default=True,
        help=f"Directory for {what}.",
    )


def seed_option(decides: str = "touch time, phases and think times") -> Decorator:
    """What is left to chance: the same seed, the same run."""
    return click.option(
        "--seed",
        type=click.IntRange(0, 2**31),
        default=1,
        show_default=True,
        help=f"Decides {decides}.",
    )


def warmup_option(default: float, *, several: bool = False) -> Decorator:
    """How long what is behind is alone: warmup, or of several runs warmups."""
    text = "Virtual seconds that those behind run before the one in front starts"
    number = click.FloatRange(0)
    if several:
        text = f"{text}, several times  [default: {default}]"
        return click.option("--warmup", "warmups", multiple=True, type=number, help=text)
    return click.option("--warmup", type=number, default=default, show_default=True, help=f"{text}.")


PLAIN_WIDTH = 140
"""Columns of a table that does not go to a terminal."""

WHY_MS = 1.0
"""Time between two samples of --why: short beside the waits that matter, tens of milliseconds and more."""


def why_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--why and --why-interval; `why_ns` reads both."""
    flag = click.option("--why", is_flag=True, help="Also show where the response time went: by layer and wait site.")
    interval = click.option(
        "--why-interval",
        type=click.FloatRange(0.01, 1000),
        show_default=f"{WHY_MS:g} with --why",
        metavar="MS",
        help="Virtual milliseconds between two samples, 0.01 to 1000; implies --why.",
    )
    return flag(interval(command))


def why_ns(asked: bool, why_interval: float | None) -> int:
    """Nanoseconds between two samples; 0 for none."""
    if why_interval is None:
        why_interval = WHY_MS if asked else 0.0
    return round(why_interval * 1e6)


trace_option: Decorator = click.option(
    "--trace",
    "trace_to",
    type=Directory(),
    metavar="DIR",
    help="Record the origin of all I/O, and put the logs into this directory, which must be empty or not exist. "
    "fasttrack-trace explain DIR reads them. The names in them are clear text. The interaction is drawn into "
    "DIR/profile.svg: calls, waits in page cache and file system, requests in the block layer and in the device.",
)


def check_trace(trace_to: Path | None) -> None:
    """Logs of two runs in one directory would be one trace."""
    if trace_to and trace_to.is_dir() and any(trace_to.iterdir()):
        raise UsageProblem(f"--trace {trace_to}: the directory is not empty; name another, or empty it")


def check_host() -> None:
    """Say what the host lacks before anything is built; until the command's end nobody cleans the cache."""
    found = preflight.problems(cache_root())
    if found:
        raise LabError("; ".join(found))
    if not click.get_current_context().with_resource(try_lock(IN_USE, shared=True)):
        raise LabError("./fasttrack clean is under way: try again when it has ended")


def names_of(text: str) -> list[str]:
    """Names of a list with commas; "none" is the empty list."""
    names = [name.strip() for name in text.split(",")]
    if names == ["none"]:
        return []
    if any(not name for name in names) or "none" in names:
        raise UsageProblem(f"the list {text!r} must be none, or names with commas")
    return names


def behind_of(background: str) -> list[Scenario]:
    """The background scenarios of --background."""
    names = NAMED[background].split("+") if background in NAMED else names_of(background)
    return [scenario.load_background(name) for name in names]


def load_phone_and_policy(phone_name: str, fs: str | None, policy_name: str) -> tuple[phone.Phone, policy.Policy]:
    """Both, or the error that names the valid ones. FS is None for the phone's own file system.

    A phone without what the policy needs to know of it is an error, too.
    """
    chosen, rule = phone.load(phone_name).with_fs(fs), policy.load(policy_name)
    rule.values(chosen.name)
    return chosen, rule


def check_json_path(json_path: str | None) -> None:
    """A result that cannot be written is said before the run, not after it."""
    if json_path and json_path != "-":
        check_file("--json", Path(json_path))


def check_file(option: str, path: Path) -> None:
    """OPTION's file can be written, or the error that says why not."""
    parent = path.absolute().parent
    if not parent.is_dir():
        raise UsageProblem(f"{option} {path}: there is no directory {parent}")
    if path.is_dir():
        raise UsageProblem(f"{option} {path}: that is a directory; name a file")
    if not os.access(path if path.exists() else parent, os.W_OK):
        raise UsageProblem(f"{option} {path}: it cannot be written by this user; name another place")


def write_json(json_path: str | None, data: dict[str, Any]) -> None:
    """Write DATA where --json says."""
    text = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
    if json_path == "-":
        sys.stdout.write(text)
    elif json_path:
        with replaced(Path(json_path)) as file:
            file.write(text.encode())


def _mb(count: int) -> str:
    return f"{count / 1e6:.1f} MB"


def summary(shown: Result) -> str:
    """A run in a few lines for a person."""
    data = shown.to_json()
    behind = ", ".join(data["backgrounds"]) or "none"
    behind += " (idle)" if data["idle"] else ""
    response = f"{shown.response_s:.6f} s" if shown.response_s is not None else "failed"
    where = f"{data['scenario']} on {data['phone']} ({data['fs']}, {data['lru']}), policy {data['policy']}"
    lines = [f"{where}, background {behind}, seed {data['seed']}: {response}"]
    several = len(data["foregrounds"]) > 1
    for name, front in data["foregrounds"].items():
        own = f" {name}: {front['response_s']:.6f} s," if several else ":"
        moved = f"read {_mb(front['bytes_read'])}, wrote {_mb(front['bytes_written'])}"
        lines.append(f"  foreground (uid {front['uid']}){own} {moved}")
    for name, app in data["background"].items():
        # Of a program nobody counts calls: it has bytes and no operation.
        counted = app["ops"] or not app["bytes"]
        calls = f" in {app['ops']} operations, longest call {app['longest_pause_s']:.3f} s" if counted else ""
        lines.append(f"  {name}: {_mb(app['bytes'])}{calls}")
    return "\n".join(lines)


def finish(shown: Result, json_path: str | None) -> None:
    """Write and show a result; a run that failed ends the command with status 1 and its log."""
    write_json(json_path, shown.to_json())
    if not shown.ok:
        log = Path(shown.kept_log) if shown.kept_log else None
        if log:
            console = log.read_text().split("\n--- result.json", 1)[0]
            ui.say(result.tail(console))
        where = f"; whole log: {log}" if log else ""
        raise LabError(f"the run failed: {shown.verdict.error}{where}")
    if json_path != "-":
        click.echo(summary(shown))
        found = shown.to_json().get("why")
        if found:
            print_tables(why.tables(found, shown.response_s))


def finish_traced(shown: Result, json_path: str | None, trace_to: Path | None) -> None:
    """`finish`; then the I/O of a run that was recorded is drawn."""
    finish(shown, json_path)
    if trace_to is None:
        return
    # Slow to import, and few runs are recorded.
    from fasttrack_lab.trace import io_profile_drawn  # noqa: PLC0415
    from fasttrack_lab.trace.interaction import Interaction  # noqa: PLC0415

    told = Interaction.of_result(shown)
    if told is None:
        return
    told.write(trace_to)
    try:
        ui.say(f"profile: {io_profile_drawn.make(trace_to, told)}")
    except UsageProblem as lacking:
        ui.say(f"no profile is drawn: {lacking}")


def print_tables(tables: RenderableType) -> None:
    """Show one or more tables, as wide as the terminal or, without one, as they are read."""
    from rich.console import Console  # noqa: PLC0415 # slow to import, and most runs show no table

    Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH).print(tables)


def end(records: Sequence[Record], failed: Sequence[str] | None = None) -> None:
    """Say how long runs took, and which FAILED, or whose records say so; the command fails with them."""
    if time := took(records):
        ui.say(time)
    failed = failures(records) if failed is None else failed
    for line in failed:
        ui.say(line)
    if failed:
        sys.exit(1)


def split_list(value: str, what: str) -> tuple[str, ...]:
    """A list with commas: no empty entry, nothing twice."""
    names = [name.strip() for name in value.split(",")]
    if not all(names):
        raise UsageProblem(f"{what}: '{value}' has an empty entry; write names with commas, such as a,b")
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise UsageProblem(f"{what}: '{twice[0]}' is given twice")
    return tuple(names)


def listed(_context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """The callback of an option that may be given several times, each with a list."""
    return split_list(",".join(values), f"--{option.name}") if values else ()


phones_option = partial(click.option, "--phones", "--phone", "phones", multiple=True, callback=listed, metavar="LIST")
"""Phones with commas, or one by one; an option whose help says which without it."""
