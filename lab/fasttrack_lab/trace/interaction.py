# SPDX-License-Identifier: GPL-2.0-only
"""Which interaction a recording of the lab's is of: a file beside its logs, which a trace alone does not say."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from fasttrack_lab.host.errors import InputError
from fasttrack_lab.run.result import Result

FILE = "interaction.json"


@dataclass(frozen=True)
class Interaction:
    """The apps in front and how long the user waited for them. It ends with their last call."""

    title: str
    foreground: tuple[int, ...]
    """User ids."""
    seconds: float
    """From the touch, or the start of a command, to the end of the last operation; virtual."""

    @classmethod
    def of_result(cls, result: Result) -> Interaction | None:
        """That of a run; None of one that failed."""
        guest = result.verdict.guest
        seconds = result.response_s if guest is not None and guest.get("exec") else result.total_s
        if guest is None or seconds is None:
            return None
        cell = result.cell
        behind = " + ".join(cell.backgrounds) or "nothing behind"
        front = tuple(app["uid"] for app in guest["apps"] if app["role"] == "foreground")
        return cls(f"{Path(cell.scenario).name}, {behind}: {cell.phone}, {cell.policy}", front, seconds)

    def write(self, folder: Path) -> None:
        """Into the directory of its logs."""
        (folder / FILE).write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")


def read(folder: Path) -> Interaction | None:
    """What is told in a directory; None where nothing is."""
    path = folder / FILE
    if not path.is_file():
        return None
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        return Interaction(str(told["title"]), tuple(map(int, told["foreground"])), float(told["seconds"]))
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"it says no interaction: {error}", path) from error
