# SPDX-License-Identifier: GPL-2.0-only
"""Recordings that the evaluations of the papers need: runs of the lab's with a trace, made once and kept by inputs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from fasttrack_lab.host import ui
from fasttrack_lab.host.errors import LabError
from fasttrack_lab.host.paths import RECORDINGS, recording
from fasttrack_lab.inputs import phone, policy, scenario
from fasttrack_lab.inputs.scenario import Scenario
from fasttrack_lab.run import runner
from fasttrack_lab.run.specs import spec_of
from fasttrack_lab.trace import exporting
from fasttrack_lab.trace.interaction import Interaction

FACEBOOK = "mobigen/facebook.mobigen"
_MADE = "recording.json"
_LIMIT_S = 1800.0
"""Real time."""

_IDLE = """description = "nobody does anything for {minutes} min"
touch = "2 s"
limit = "{limit} s"
[[app]]
name = "clock"
uid = 10109
role = "foreground"
[[app.file]]
path = "clock"
bytes = "4 KiB"
[[app.thread]]
name = "ui"
steps = [{{ op = "think", time = "{minutes} min" }}, {{ op = "read", file = "clock" }}]
"""


@dataclass(frozen=True)
class Recording:
    """A run with a trace. Without a scenario it is so many MINUTES of what is behind."""

    front: str
    behind: tuple[str, ...] = ()
    phone: str = "s6"
    policy: str = "stock"
    minutes: int = 0

    @property
    def name(self) -> str:
        """Of its directory."""
        front = f"{self.minutes}-min" if self.minutes else Path(self.front).stem
        return "-".join((front, *(self.behind or ("alone",)), self.phone, self.policy))

    def folder(self, out: Path) -> Path:
        """Where its logs are."""
        return out / "recordings" / self.name

    def lacking(self) -> str | None:
        """Why it cannot be made; None if it can."""
        if self.front == FACEBOOK and recording(FACEBOOK) is None:
            return f"the recording {FACEBOOK} is not there: {RECORDINGS} names the directory of recorded inputs"
        return None

    def _front(self, folder: Path) -> Scenario:
        if self.front == FACEBOOK:
            found = recording(FACEBOOK)
            assert found is not None
            return scenario.from_trace(found, None, 0.0, None)
        if self.minutes:
            file = folder / "clock.toml"
            file.write_text(_IDLE.format(minutes=self.minutes, limit=self.minutes * 60 + 60))
            return scenario.load(str(file))
        return scenario.load(self.front)

    def make(self, out: Path, tools: runner.Tools) -> None:
        """Runs it, unless it is there with the same kernel."""
        folder, inputs = self.folder(out), asdict(self) | {"kernel": tools.kernel.key, "guest": tools.guest_key}
        inputs["behind"] = list(self.behind)
        made = folder / _MADE
        if made.is_file() and json.loads(made.read_text()) == inputs:
            return
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        ui.say(f"recording {self.name}")
        spec = spec_of(
            self._front(folder),
            [scenario.load_background(name) for name in self.behind],
            phone.load(self.phone),
            policy.load(self.policy),
            1,
            limit_s=_LIMIT_S,
            trace_to=folder,
        )
        result = runner.run(spec, tools)
        told = Interaction.of_result(result)
        if told is None:
            raise LabError(f"the recording {self.name} failed: {result.verdict.error}; log: {result.kept_log}")
        told.write(folder)
        made.write_text(json.dumps(inputs) + "\n")


def make_all(wanted: Iterable[Recording], out: Path) -> None:
    """All that are lacking, one after another."""
    tools = runner.Tools.of_checkout()
    for one in dict.fromkeys(wanted):
        one.make(out, tools)


def logs_of(wanted: Iterable[Recording], out: Path) -> list[Path]:
    """Their directories."""
    return [folder for one in wanted if exporting.is_logs(folder := one.folder(out))]
