# SPDX-License-Identifier: GPL-2.0-only
"""./fasttrack build: the kernel and the guest program."""

from __future__ import annotations

from pathlib import Path

import click

from fasttrack_lab.build import guest_program
from fasttrack_lab.build.kernel import kbuild
from fasttrack_lab.commands import common
from fasttrack_lab.inputs import phone
from fasttrack_lab.run import image
from fasttrack_lab.run.boot import job, uml
from fasttrack_lab.run.boot.backend import BootSpec

BOOT_MIB = 512


@click.command("build")
@click.option(
    "--target",
    type=click.Choice(list(kbuild.TARGETS)),
    default="um",
    show_default=True,
    help="um: the lab's kernel; um-debug: with lock and memory checks; um-stacks: with more file systems; "
    "um-base: without FastTrack; um-off: FastTrack configured off; x86: for QEMU; x86-cost, x86-cost-base: to count "
    "instructions there; x86-cost-phone: with the emulated storage; x86-trace: for make test-trace.",
)
@click.option("--kernel-only", is_flag=True, help="Leave the guest program out.")
@click.option("--boot", is_flag=True, help="Print only the command that boots a run's directory in UML, a word a line.")
def command(target: str, kernel_only: bool, boot: bool) -> None:
    """Build the kernel and the guest program, or find them in the cache; prints where they are."""
    common.check_host()
    kernel = kbuild.build(target)
    if boot:
        click.echo("\n".join(boot_words(kernel.image)))
        return
    click.echo(f"kernel ({target}): {kernel.image}")
    if not kernel_only:
        click.echo(f"guest program: {guest_program.build()}")


def boot_words(kernel: Path) -> list[str]:
    """What boots a job on an s6, for who fills the run's directory and has no lab: the guest program's own tests."""
    backend = uml.Uml()
    params = {"fasttrack_run": backend.run_path("."), "fasttrack_host": "/"}
    params |= image.storage_params(backend, phone.load("s6"))
    spec = BootSpec(kernel, job.INIT, BOOT_MIB, Path(), None, seed=1, params=params, root=job.root(backend))
    environment = [f"{name}={value}" for name, value in uml.ENVIRONMENT.items()]
    return ["env", "-i", *environment, *backend.argv(spec, str(kernel))]
