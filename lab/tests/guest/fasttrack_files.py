#!/usr/bin/python3 -ESsBu
# SPDX-License-Identifier: GPL-2.0-only
"""FastTrack's files and events: which there are, and what they take."""

from __future__ import annotations

from pathlib import Path

from prologue import DEBUG, FT, QUEUE, TRACE, Shown, read, run, tried, write


def choose(path: str, elevators: dict[str, str]) -> None:
    """The elevator that has a file."""
    if path in elevators:
        write(QUEUE / "scheduler", elevators[path])


def files_and_events(elevators: list[str], systems: list[str]) -> Shown:
    """Mode and content of every file; the format of every event of the systems."""

    def files(root: Path) -> Shown:
        return {str(path): [oct(path.stat().st_mode & 0o777), read(path)] for path in root.iterdir() if path.is_file()}

    found = files(FT) | files(FT / "stats")
    for elevator in elevators:
        write(QUEUE / "scheduler", elevator)
        found |= files(QUEUE / "iosched")
    events = {
        system: {path.name: read(path / "format") for path in (TRACE / "events" / system).iterdir() if path.is_dir()}
        for system in systems
    }
    return {"files": found, "events": events}


def takes(values: dict[str, list[int]], elevators: dict[str, str]) -> Shown:
    """Of each value: what the file said, and what it holds then."""
    shown: Shown = {}
    for path, numbers in values.items():
        choose(path, elevators)
        shown[path] = [[tried(path, str(number)), read(path)] for number in numbers]
    return shown


def refuses(values: dict[str, list[str]], elevators: dict[str, str]) -> Shown:
    """Of each value: the value, what the file said, and what it held before and after."""
    write(FT / "foreground_uids", "10101 10102")
    write(FT / "foreground_tgids", "1")
    shown: Shown = {}
    for path, words in values.items():
        choose(path, elevators)
        before = read(path)
        shown[path] = [[word, tried(path, word), before, read(path)] for word in words]
    return shown


def bounds() -> Shown:
    """What a pause may be beside eject_ms, and eject_ms beside it."""
    pause, eject = FT / "background_pause_ms", FT / "eject_ms"
    said = [tried(pause, "29001"), tried(pause, "29000"), tried(eject, "29999"), tried(eject, "30000")]
    return {"said": said, "hold": [read(pause), read(eject)]}


def throttling() -> Shown:
    """The target of write-back throttling by elevator, each time that one is chosen, and the state of FastTrack's."""
    shown: Shown = {}
    for name in ("mq-deadline", "fasttrack", "kyber", "fasttrack", "none", "fasttrack", "bfq", "mq-deadline"):
        write(QUEUE / "scheduler", name)
        shown.setdefault(name, []).append(int(read(QUEUE / "wbt_lat_usec")))
    write(QUEUE / "scheduler", "fasttrack")
    shown["state"] = read(DEBUG / "block/sda/sched/state").splitlines()
    return shown


if __name__ == "__main__":
    run(files_and_events, takes, refuses, bounds, throttling)
