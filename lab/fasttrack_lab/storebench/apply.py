# SPDX-License-Identifier: GPL-2.0-only
"""Give a profile's numbers to the elevator `smartio` of a disk: all four, or none."""

from __future__ import annotations

from pathlib import Path

from fasttrack_lab.host.errors import LabError, UsageProblem
from fasttrack_lab.inputs.profile import Profile, check_device, check_parameters
from fasttrack_lab.storebench import disk
from fasttrack_lab.storebench.disk import Files

ELEVATOR = "smartio"
"""What a profile is for."""

Write = tuple[str, str]
"""A file below / and what is written to it."""


def knob(name: str, pattern: str) -> str:
    """The elevator's file for a pattern's depth. 0 in it is no limit."""
    return f"sys/block/{name}/queue/iosched/{pattern}_depth"


def _check_disk(files: Files, name: str) -> None:
    if "/" in name or not files.path(f"sys/class/block/{name}").exists():
        known = ", ".join(files.entries("sys/block")) or "none"
        raise UsageProblem(f"there is no disk {name!r}; disks: {known}")
    if (on := disk.whole(files, name)) != name:
        raise UsageProblem(f"{name} is a partition, the I/O scheduler is its disk's: give {on}")


def _check_elevator(files: Files, name: str) -> None:
    chosen, known = disk.elevator(files, name)
    if chosen == ELEVATOR:
        return
    if ELEVATOR not in known:
        raise LabError(
            f"the kernel has no I/O scheduler {ELEVATOR} for {name} (it has {', '.join(known) or 'none'}); "
            "build it with CONFIG_IOSCHED_SMARTIO; if it is a module, modprobe smartio-iosched"
        )
    file = f"/sys/block/{name}/queue/scheduler"
    raise LabError(
        f"{name} has the I/O scheduler {chosen or 'none'}; choose {ELEVATOR} first: echo {ELEVATOR} > {file}"
    )


def _check_known(one: Profile, files: Files, name: str, path: Path) -> None:
    """Refuse a disk that nothing tells from others of its size."""
    if disk.says_its_model(files, name) or (one.device.serial and disk.device(files, name).serial):
        return
    raise LabError(
        f"{path}: {name} says neither its model nor its serial number, so any {one.device.model} of its size would fit "
        "the profile; if it is the device that was measured, say so with --same-device"
    )


def writes(one: Profile, path: Path, files: Files, name: str, same_device: bool = False) -> list[Write]:
    """What is to be written, in order, after all checks of the profile at PATH and the disk NAME.

    SAME_DEVICE is the user's word that NAME was measured, for one that cannot be told from others.
    """
    _check_disk(files, name)
    check_device(one, disk.device(files, name), path)
    if one.parameters:
        check_parameters(one, path)
    if not same_device:
        _check_known(one, files, name, path)
    _check_elevator(files, name)
    return [(knob(name, pattern), str(depth)) for pattern, depth in one.depths.items()]


def _set(files: Files, file: str, value: str) -> None:
    """Write a value and see that it is there."""
    try:
        files.write(file, value)
        found = files.read(file)
    except PermissionError as error:
        raise LabError(f"/{file} cannot be written by this user: run this as root") from error
    except OSError as error:
        raise LabError(f"/{file}: {value} was not taken: {error.strerror}") from error
    if found != value:
        raise LabError(f"/{file}: {value} was written, {found} is there")


def _read_all(files: Files, planned: list[Write]) -> list[Write]:
    """What is in the files now."""
    try:
        return [(file, files.read(file)) for file, _ in planned]
    except OSError as error:
        raise LabError(f"the I/O scheduler lacks a knob: /{error.filename or ''}: {error.strerror}") from error


def _restore(files: Files, old: list[Write], problem: LabError) -> LabError:
    """Write back what was there, the last first, where something else is now; the error to end with."""
    failed = []
    for file, value in reversed(old):
        try:
            if files.get(file) != value:
                _set(files, file, value)
        except LabError as error:
            failed.append(str(error))
    left = f"not everything could be put back: {'; '.join(failed)}" if failed else "the old values are back"
    return LabError(f"{problem}; {left}")


def put(files: Files, planned: list[Write]) -> None:
    """Write all. If one is not taken, those before it get their old values again, and LabError says why."""
    old = _read_all(files, planned)
    try:
        for file, value in planned:
            _set(files, file, value)
    except LabError as error:
        raise _restore(files, old, error) from error
