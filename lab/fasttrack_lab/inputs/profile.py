# SPDX-License-Identifier: GPL-2.0-only
"""A profile: what was measured of one device, as a JSON file that is either whole or refused.

The file ends in a SHA-256 over the rest of it, as JSON with sorted keys and without blanks.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Set
from dataclasses import MISSING, asdict, astuple, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from fasttrack_lab.host.errors import LabError, UsageProblem
from fasttrack_lab.host.paths import PHONES, version, write_if_changed
from fasttrack_lab.inputs import phone as phones_of_lab
from fasttrack_lab.inputs import phone_digest
from fasttrack_lab.inputs.device import Device
from fasttrack_lab.inputs.patterns import BY_NAME, MAX_DEPTH, PATTERNS

FORMAT = 1
"""Grows with every change after which an older reader would be wrong."""

PROFILES = PHONES / "profiles"
PHONE_VENDOR = "MFLASH"
"""What the emulated storage names as its vendor; its model is the phone's name."""

AGAIN = "measure again with ./fasttrack storebench"
CHECKSUM = "sha256"
PARAMETERS, SERIAL = "parameters", "serial"
"""What a file has only if it is known."""
DIGITS = 3
"""Of what is measured, in the file: microseconds and MB/s to the thousandth."""


@dataclass(frozen=True)
class Depths:
    """The best concurrency of each pattern: requests at once, 1 or more."""

    sequential_read: int
    random_read: int
    sequential_write: int
    random_write: int

    def items(self) -> Iterator[tuple[str, int]]:
        """Names and depths, in the order of the patterns."""
        return iter(asdict(self).items())


@dataclass(frozen=True)
class Point:
    """One pattern at one depth."""

    depth: int
    mb_s: float
    """10^6 bytes a second."""
    iops: float
    latency_us: float
    """Mean time of a request, from its submission to its end."""


@dataclass(frozen=True)
class Slowdown:
    """Mean latency of one request at a time, alone and beside a stream of one request at a time."""

    subject: str
    beside: str
    alone_us: float
    beside_us: float

    @property
    def percent(self) -> float:
        """By how much it is longer, in per cent of the latency alone."""
        return (self.beside_us / self.alone_us - 1) * 100


@dataclass(frozen=True)
class Profile:
    """What storebench found out about a device."""

    device: Device
    elevator: str
    """It was measured under."""
    depths: Depths
    curves: Mapping[str, tuple[Point, ...]]
    """By the patterns' names."""
    slowdowns: tuple[Slowdown, ...]
    command: str
    tool: str
    kernel: str
    parameters: str = ""
    """Digest of the emulated phone's parameters, see `model`; empty for a real device."""

    @property
    def phone(self) -> str:
        """The emulated phone that it was measured on; empty for a real device."""
        return self.device.model if self.device.vendor == PHONE_VENDOR else ""


def tool_version() -> str:
    """This program's name and version."""
    return f"fasttrack-lab {version()}"


def _rounded(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: round(value, DIGITS) if isinstance(value, float) else value for name, value in values.items()}


def _body(one: Profile) -> dict[str, Any]:
    device = {name: value for name, value in asdict(one.device).items() if name != SERIAL or value}
    return {
        "format": FORMAT,
        "tool": one.tool,
        "command": one.command,
        "kernel": one.kernel,
        "device": device,
        **({PARAMETERS: one.parameters} if one.parameters else {}),
        "elevator": one.elevator,
        "depths": asdict(one.depths),
        "curves": {name: [_rounded(asdict(point)) for point in curve] for name, curve in one.curves.items()},
        "slowdowns": [_rounded(asdict(entry) | {"percent": entry.percent}) for entry in one.slowdowns],
    }


def checksum(body: Mapping[str, Any]) -> str:
    """Of everything in a profile save the checksum itself."""
    rest = {key: value for key, value in body.items() if key != CHECKSUM}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def save(one: Profile, path: Path) -> None:
    """Write a profile; the old one stays whole until the new one is."""
    body = _body(one)
    text = json.dumps(body | {CHECKSUM: checksum(body)}, indent=1) + "\n"
    write_if_changed(path, text.encode())


class _Damaged(Exception):
    """What is wrong, without the file's name."""


Value = TypeVar("Value")


def _keys(value: Any, wanted: set[str], where: str, optional: Set[str] = frozenset()) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _Damaged(f"{where} is no object")
    for what, names in (("lacks", wanted - set(value)), ("has the unknown", set(value) - wanted - optional)):
        if names:
            raise _Damaged(f"{where} {what} {', '.join(sorted(names))}")
    return value


def _checked(value: Any, kind: type[Value], where: str) -> Value:
    """A value of a type; a number may be written without a point, but true is none."""
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise _Damaged(f"{where} is {value!r}, must be {kind.__name__}")
    return value


KINDS = {"str": str, "int": int, "float": float}


def _object(value: Any, kind: type[Value], where: str, *more: str) -> Value:
    """A dataclass of plain fields from its object, which has MORE keys that follow from them; defaults may lack."""
    known = fields(kind)  # type: ignore[arg-type]
    types: dict[str, Any] = {field.name: KINDS[str(field.type)] for field in known}
    optional = {field.name for field in known if field.default is not MISSING}
    found = _keys(value, (set(types) | set(more)) - optional, where, optional)
    return kind(**{name: _checked(found[name], types[name], f"{where}.{name}") for name in types if name in found})


def _positive(values: Any, where: str) -> None:
    for value in values:
        if not isinstance(value, str) and not 0 < value < float("inf"):
            raise _Damaged(f"{where} has {value}, must be above 0")


def _device(value: Any) -> Device:
    found = _object(value, Device, "device")
    _positive([found.size_bytes, found.queue_depth + 1], "device")
    return found


def _curve(value: Any, name: str) -> tuple[Point, ...]:
    where = f"curves.{name}"
    if not isinstance(value, list) or not value:
        raise _Damaged(f"{where} has no points")
    found = tuple(_object(entry, Point, f"{where}[{index}]") for index, entry in enumerate(value))
    for point in found:
        _positive(astuple(point), where)
    depths = [point.depth for point in found]
    if depths != sorted(set(depths)) or depths[0] != 1 or depths[-1] > MAX_DEPTH:
        raise _Damaged(f"{where} has the depths {depths}, must rise from 1 to {MAX_DEPTH} at most")
    return found


def _depths(value: Any, curves: Mapping[str, tuple[Point, ...]]) -> Depths:
    found = _object(value, Depths, "depths")
    for name, depth in found.items():
        if depth not in [point.depth for point in curves[name]]:
            raise _Damaged(f"depths.{name} is {depth}, which is no depth of its curve")
    return found


def _slowdown(value: Any, index: int) -> Slowdown:
    where = f"slowdowns[{index}]"
    found = _object(value, Slowdown, where, "percent")
    if {found.subject, found.beside} - set(BY_NAME):
        raise _Damaged(f"{where} names {found.subject} beside {found.beside}; patterns: {', '.join(BY_NAME)}")
    _positive(astuple(found), where)
    _checked(value["percent"], float, f"{where}.percent")
    return found


def _parse(body: dict[str, Any]) -> Profile:
    curves = _keys(body["curves"], set(BY_NAME), "curves")
    parsed = {pattern.name: _curve(curves[pattern.name], pattern.name) for pattern in PATTERNS}
    slowdowns = _checked(body["slowdowns"], list, "slowdowns")
    return Profile(
        device=_device(body["device"]),
        depths=_depths(body["depths"], parsed),
        curves=parsed,
        slowdowns=tuple(_slowdown(entry, index) for index, entry in enumerate(slowdowns)),
        parameters=_checked(body.get(PARAMETERS, ""), str, PARAMETERS),
        **{name: _checked(body[name], str, name) for name in ("elevator", "command", "tool", "kernel")},
    )


BODY = {"format", "tool", "command", "kernel", "device", "elevator", "depths", "curves", "slowdowns", CHECKSUM}


def _whole(text: str) -> dict[str, Any]:
    """The object of a file whose format is known and whose checksum is right."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _Damaged(f"it is no JSON: {error}") from error
    if not isinstance(body, dict) or "format" not in body:
        raise _Damaged("it has no format")
    if body["format"] != FORMAT or isinstance(body["format"], bool):
        raise UsageProblem(f"its format is {body['format']!r}, this program reads {FORMAT}; {AGAIN}")
    _keys(body, BODY, "it", {PARAMETERS})
    if body[CHECKSUM] != checksum(body):
        raise _Damaged("its checksum does not fit what it says")
    return body


def load(path: Path) -> Profile:
    """The profile in a file. One that is damaged, or of another format, is an error that says why."""
    try:
        return _parse(_whole(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageProblem(f"{path}: the profile cannot be read: {error}") from error
    except _Damaged as error:
        raise UsageProblem(f"{path}: the profile is damaged: {error}; {AGAIN}") from error
    except LabError as error:
        raise UsageProblem(f"{path}: the profile cannot be used: {error}") from error


IDENTITY = ("vendor", "model", "size_bytes")
"""Of a Device; beside its serial number, where both have one."""


def check_device(one: Profile, here: Device, path: Path) -> None:
    """Refuse a profile that was made for another device."""
    compared = (*IDENTITY, SERIAL) if one.device.serial and here.serial else IDENTITY
    other = [
        f"{name.replace('_', ' ')} is {getattr(here, name)!r}, not {getattr(one.device, name)!r}"
        for name in compared
        if getattr(here, name) != getattr(one.device, name)
    ]
    if other:
        raise UsageProblem(f"{path}: the profile was made for another device: here, {', '.join(other)}; {AGAIN}")


def check_parameters(one: Profile, path: Path, source: Path = phone_digest.SOURCE) -> None:
    """Refuse a profile of an emulated phone whose parameters, in SOURCE, have changed since."""
    phone = phones_of_lab.load(one.phone)
    if (one.parameters, one.device.queue_depth) != (phone_digest.digest(phone.name, source), phone.queue_depth):
        raise LabError(
            f"{path}: the profile is stale: it was measured with other parameters than those that {phone.name} "
            f"has now in {source} and phones.toml; {AGAIN} --phone {phone.name}"
        )


def for_phone(name: str, directory: Path = PROFILES, source: Path = phone_digest.SOURCE) -> Profile | None:
    """The saved profile of a phone of the lab; None if it was never measured. A wrong or a stale one is an error.

    SOURCE has the phones' parameters.
    """
    known = phones_of_lab.load(name)
    path = directory / f"{name}.json"
    if not path.is_file():
        return None
    found = load(path)
    check_device(found, Device(PHONE_VENDOR, name, found.device.size_bytes, known.queue_depth), path)
    check_parameters(found, path, source)
    return found
