# SPDX-License-Identifier: GPL-2.0-only
"""./fasttrack storebench: a device's best concurrency; ./fasttrack storebench-apply: give it to the I/O scheduler."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

import click
from rich.console import Console

from fasttrack_lab.commands import common
from fasttrack_lab.commands.common import split_list
from fasttrack_lab.host import ui
from fasttrack_lab.host.errors import UsageProblem
from fasttrack_lab.host.units import parse_size
from fasttrack_lab.inputs import phone, profile
from fasttrack_lab.run.runner import Tools
from fasttrack_lab.storebench import apply, profile_page, real_device
from fasttrack_lab.storebench import phones as on_phones
from fasttrack_lab.storebench.disk import Files
from fasttrack_lab.storebench.plan import MIB

RESULTS = Path("results")
SIZE = "1 GiB"
SECONDS = 2.0


def _size(text: str) -> int:
    """Whole MiB of --size, in bytes."""
    try:
        return parse_size(text) // MIB * MIB
    except ValueError as error:
        raise UsageProblem(f"--size: {error}") from error


def _finish(found: Mapping[str, profile.Profile], profiles: Path, shown: Path) -> None:
    """Save and show what was measured."""
    for name, one in found.items():
        profile.save(one, profiles / f"{name}.json")
    profile_page.make(shown, found)
    Console().print(profile_page.terminal(found))
    ui.say(f"profiles: {', '.join(str(profiles / f'{name}.json') for name in found)}")
    ui.say(f"page: {shown / profile_page.PAGE}")


def _phones(names: str, out: Path | None) -> None:
    known = phone.phones()
    chosen = list(known.values()) if names == "all" else [phone.load(name) for name in split_list(names, "--phone")]
    common.check_host()
    found = on_phones.measure_all(chosen, Tools.of_checkout())
    _finish(found, out or profile.PROFILES, out or RESULTS / "storebench")


def _real(on: Path, size: int, seconds: float, out: Path | None) -> None:
    command = shlex.join(
        ["./fasttrack", "storebench", "--on", str(on), "--size", f"{size // MIB} MiB", "--seconds", f"{seconds:g}"]
    )
    name, found = real_device.measure_at(on, size, seconds, command)
    directory = out or RESULTS / f"storebench-{name}"
    _finish({name: found}, directory, directory)


@click.command("storebench")
@click.option(
    "--phone",
    "names",
    metavar="LIST",
    help="Emulated phones, in virtual time: names with commas, or all.  [default: s6]",
)
@click.option(
    "--on",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="A real device, in real time: a directory or a new file name on it; an existing file, which is only read; or "
    "an unused block device with a clean file system, which is mounted for the measurement (as root).",
)
@click.option(
    "--size", metavar="SIZE", help=f"With --on: size of the file that is made, 64 MiB or more.  [default: {SIZE}]"
)
@click.option(
    "--seconds",
    type=click.FloatRange(0.01, 600),
    help=f"With --on: real seconds for each of 33 measurements, fewer on a short queue.  [default: {SECONDS:g}]",
)
@click.option(
    "--out",
    type=common.Directory(),
    help="Directory for everything  [default: phones: profiles to lab/phones/profiles, the rest to "
    "./results/storebench; a real device: ./results/storebench-DISK]",
)
def command(names: str | None, on: Path | None, size: str | None, seconds: float | None, out: Path | None) -> None:
    """Find a storage device's best concurrency, and what its reads and writes cost each other.

    Measures throughput with 1, 2, 4, ... requests at once, to the device's queue depth and 32 at most: sequential reads
    and writes of 512 KiB, random ones of 4 KiB. The best concurrency is the smallest depth that reaches 95 % of the
    best throughput. Then the latency of each kind of read while each kind of write runs, and the other way round.

    Writes a profile (JSON), storebench.html with the curves, curves.csv and slowdowns.csv; storebench-apply takes the
    profile. On a real device all writes go to one file, which is made for it and is gone afterwards, however the
    command ends; it takes a minute or two. The I/O scheduler stays as it is, and is named in the profile.
    """
    if on is None:
        given = [name for name, value in (("--size", size), ("--seconds", seconds)) if value is not None]
        if given:
            raise UsageProblem(f"{', '.join(given)}: only with --on; phones are measured by a plan of their own")
        _phones(names or "s6", out)
    elif names is not None:
        raise UsageProblem("--phone and --on: give one of them")
    else:
        _real(on, _size(size or SIZE), seconds or SECONDS, out)


@click.command("storebench-apply")
@click.argument("path", metavar="PROFILE", type=click.Path(path_type=Path))
@click.option("--disk", required=True, metavar="NAME", help="The disk's name in /sys/block: sda, mmcblk0, nvme0n1.")
@click.option(
    "--same-device",
    is_flag=True,
    help="Confirm that this disk is the one that was measured. Needed for disks without a model and a serial number "
    "(virtio, loop, device mapper).",
)
@click.option("--dry-run", is_flag=True, help="Check everything and print what would be written; write nothing.")
def apply_command(path: Path, disk: str, same_device: bool, dry_run: bool) -> None:
    """Give the numbers of a saved profile to the I/O scheduler smartio of a disk.

    Writes sequential_read_depth, random_read_depth, sequential_write_depth and random_write_depth (requests at once; 0
    is no limit) below /sys/block/NAME/queue/iosched: all four, or none. Refuses a profile that is damaged or was made
    for another device (vendor, model, size, serial number), and a disk whose I/O scheduler is not smartio.
    """
    files = Files()
    planned = apply.writes(profile.load(path), path, files, disk, same_device)
    if not dry_run:
        apply.put(files, planned)
    for file, value in planned:
        click.echo(f"echo {value} > /{file}" if dry_run else f"/{file}: {value}")
