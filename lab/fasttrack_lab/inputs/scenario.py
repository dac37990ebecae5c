# SPDX-License-Identifier: GPL-2.0-only
"""Scenarios: what apps do, in TOML, and the part of a job that comes of it.

A scenario file has `description`, optionally `touch` (time from the start of the apps to the user's touch), `limit`
(virtual time from the touch on) and `before_touch` (the app that is in front until then), and one `[[app]]`
or more. An app has `name`, `uid`, `role` and, for its
work, `[[app.thread]]` tables, or `trace`, or `command`; `[[app.file]]` tables are prepared before the run. The
grammar is described with examples in `lab/scenarios/README.md`, the operations in `contract/README.md`.

Two generators keep runs comparable: sizes of prepared files are drawn from the scenario's own name, so that every
seed finds the same files; touch times, starts and think times are drawn from the run's seed.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from fasttrack_lab.host.errors import InputError, unknown
from fasttrack_lab.host.paths import SCENARIOS
from fasttrack_lab.host.toml_tables import Table, boolean, choice, count, relative_path, text, texts
from fasttrack_lab.host.units import Spread, parse_size_spread, parse_time, parse_time_spread
from fasttrack_lab.inputs import smartio, traces
from fasttrack_lab.inputs.scenario_checks import check_files, check_threads
from fasttrack_lab.inputs.steps import Step, parse_step

DIRECTORY = SCENARIOS
ROLES = ("foreground", "background", "service")
FILE_KINDS = ("data", "sqlite")
APP_UIDS = range(10000, 20000)
"""Android gives installed apps the UIDs from 10000 to 19999; system services have lower ones."""
SERVICE_UIDS = range(1000, APP_UIDS.start)
_APP_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
DEFAULT_TOUCH = Spread(2.0, 2.0)
DEFAULT_LIMIT_S = 120.0
IDLE_S = 3600.0
"""How long an idle app sleeps at a time: longer than any scenario."""
FILE_BLOCK = 4096
"""Sizes of prepared files are drawn in whole blocks of content (`contract/README.md`)."""


@dataclass(frozen=True)
class File:
    """A file prepared before the run; one of the files that an `[[app.file]]` stands for."""

    path: str
    bytes: int
    kind: str = "data"
    rows: int = 0
    row_bytes: int = 0

    def to_job(self, app: str) -> dict[str, Any]:
        """The contract's entry of `files`."""
        entry: dict[str, Any] = {"app": app, "path": self.path, "bytes": self.bytes, "kind": self.kind}
        if self.kind == "sqlite":
            entry |= {"rows": self.rows, "row_bytes": self.row_bytes}
        return entry


@dataclass(frozen=True)
class Thread:
    """One thread of an app."""

    name: str
    line: int
    after_touch: bool
    repeat: bool
    steps: tuple[Step, ...]
    copies: int = 1
    """Threads that do the same, named NAME-0, NAME-1...; `{t}` in their file names is the copy's number."""


@dataclass(frozen=True)
class TraceSource:
    """A recording that an app replays. It is read once for each source."""

    path: Path
    format: str | None
    start_s: float
    length_s: float | None

    def load(self) -> traces.Trace:
        """The recording."""
        return _load_trace(self)


@lru_cache(maxsize=8)
def _load_trace(source: TraceSource) -> traces.Trace:
    """Reads the recording of a source."""
    return traces.load(source.path, source.format, source.start_s, source.length_s)


@lru_cache(maxsize=8)
def _trace_text(source: TraceSource) -> str:
    """The normalised recording, one text for all runs that replay it."""
    return source.load().text()


@dataclass(frozen=True)
class App:
    """An app: who it is, what it finds on the phone, what it does."""

    name: str
    uid: int
    role: str
    start: Spread
    """Seconds from the start of the run."""
    lead: Spread | None
    """Instead of a start: seconds by which it starts before the touch, to be in its heavy phase then."""
    files: tuple[File, ...]
    threads: tuple[Thread, ...] = ()
    trace: TraceSource | None = None
    command: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def trace_name(self) -> str:
        """Name of the normalised trace in the run's directory."""
        return f"{self.name}.trace"

    def idle(self) -> App:
        """The same app, which only sleeps."""
        sleep = Step("think", line=0, think=Spread(IDLE_S, IDLE_S))
        thread = Thread("idle", line=0, after_touch=False, repeat=True, steps=(sleep,))
        return replace(self, threads=(thread,), trace=None, command=())


@dataclass(frozen=True)
class Scenario:
    """A scenario file."""

    name: str
    path: Path
    description: str
    apps: tuple[App, ...]
    touch: Spread = DEFAULT_TOUCH
    limit_s: float = DEFAULT_LIMIT_S
    before_touch: str = ""
    """Name of the app that is in front until the touch, if there is one."""

    @property
    def app(self) -> App:
        """The app that the scenario is about: its first."""
        return self.apps[0]

    @property
    def role(self) -> str:
        """foreground or background."""
        return "foreground" if any(app.role == "foreground" for app in self.apps) else "background"

    @property
    def uids_before_touch(self) -> tuple[int, ...]:
        """UIDs in front until the touch."""
        return tuple(app.uid for app in self.apps if app.name == self.before_touch)

    @property
    def left(self) -> str:
        """Name of the app that the touch sends to the background, if there is one."""
        return next((app.name for app in self.apps if app.name == self.before_touch and app.role == "background"), "")

    def idled(self) -> Scenario:
        """The same scenario with the app that the touch sends to the background idle: what its slowdown counts from."""
        if not self.left:
            raise InputError(f"scenario '{self.name}' sends no app to the background, so none can be idle", self.path)
        return replace(self, apps=tuple(app.idle() if app.name == self.left else app for app in self.apps))

    @property
    def prepared_bytes(self) -> int:
        """Bytes of all prepared files."""
        return sum(item.bytes for app in self.apps for item in app.files)


def available(role: str | None = None) -> dict[str, str]:
    """Names and descriptions of the project's scenario files, of one role or of all."""
    loaded = [load_file(path) for path in sorted(DIRECTORY.glob("*.toml"))]
    return {item.name: item.description for item in loaded if role in (None, item.role)}


def load(name_or_path: str) -> Scenario:
    """A scenario by its name, or from a file where the text ends in `.toml` or has a slash."""
    if "/" in name_or_path or name_or_path.endswith(".toml"):
        return load_file(Path(name_or_path))
    path = DIRECTORY / f"{name_or_path}.toml"
    if path.is_file():
        return load_file(path)
    text = smartio.text_of(name_or_path)
    if text is not None:
        return _read(Table.parse(text, smartio.TABLE), name_or_path)
    names = [item.stem for item in sorted(DIRECTORY.glob("*.toml"))]
    problem = unknown("scenario", name_or_path, [*names, *smartio.names()], [*names, smartio.pattern()])
    raise InputError(f"{problem}; or a path to a .toml file")


def load_background(name_or_path: str) -> Scenario:
    """A scenario that may run in the background."""
    loaded = load(name_or_path)
    if loaded.role != "background":
        names = ", ".join(available("background"))
        raise InputError(f"scenario '{loaded.name}' is a foreground one; background scenarios: {names}")
    return loaded


def load_file(path: Path) -> Scenario:
    """Reads and checks a scenario file."""
    return _read(Table.read(path), path.stem)


def _read(table: Table, name: str) -> Scenario:
    """The scenario of a table."""
    scenario = Scenario(
        name=name,
        path=table.path,
        description=table.take("description", text),
        touch=table.take("touch", parse_time_spread, DEFAULT_TOUCH),
        limit_s=table.take("limit", parse_time, DEFAULT_LIMIT_S),
        before_touch=table.take("before_touch", text, ""),
        apps=tuple(_app(item, name) for item in table.tables("app")),
    )
    table.finish()
    if not scenario.apps:
        raise table.error("a scenario has at least one [[app]]")
    _check_before_touch(table, scenario)
    for index, app in enumerate(scenario.apps):
        for other in scenario.apps[:index]:
            for what, mine, its in (("name", app.name, other.name), ("uid", app.uid, other.uid)):
                if mine == its:
                    line = table.lines.of(("app", index, what))
                    raise InputError(
                        f"duplicate app: {what} {mine} is also that of app '{other.name}'", table.path, line
                    )
    return scenario


def _check_before_touch(table: Table, scenario: Scenario) -> None:
    """The app that is in front until the touch is no service, and there is one in front from then on."""
    name, names = scenario.before_touch, [app.name for app in scenario.apps if app.role != "service"]
    if name and name not in names:
        raise table.error(f"before_touch: {unknown('app', name, names)}", "before_touch")
    if name and scenario.role != "foreground":
        raise table.error("before_touch needs a foreground app, which is in front from the touch on", "before_touch")


def _app(table: Table, scenario: str) -> App:
    """One [[app]]."""
    name = table.take("name", _app_name)
    role = table.take("role", choice("role", ROLES))
    uid = table.take("uid", count(SERVICE_UIDS.start))
    if (uid in APP_UIDS) == (role == "service"):
        wanted = f"{APP_UIDS.start} to {APP_UIDS.stop - 1}" if role != "service" else f"below {APP_UIDS.start}"
        raise table.error(f"uid {uid} does not fit the role {role}; valid: {wanted}", "uid")
    files = tuple(item for entry in table.tables("file") for item in _files(entry, f"{scenario}/{name}"))
    kinds = [kind for kind in ("thread", "trace", "command") if table.has(kind)]
    if len(kinds) != 1:
        raise table.error(f"an app has one of thread, trace, command; this one has {len(kinds)}")
    app = App(
        name=name,
        uid=uid,
        role=role,
        lead=_lead(table),
        start=table.take("start", parse_time_spread, Spread(0.0, 0.0)),
        files=files,
        threads=tuple(_thread(item, role) for item in table.tables("thread")),
        trace=_trace(table.table("trace")) if "trace" in kinds else None,
        command=tuple(table.take("command", texts, [])),
        environment=table.take("environment", _environment, {}),
    )
    table.finish()
    check_files(table, app.files)
    check_threads(table, app.threads, {item.path: item.kind for item in app.files}, role == "foreground")
    return app


def _lead(table: Table) -> Spread | None:
    """The `lead` of an app, which takes the place of a `start`."""
    if not table.has("lead"):
        return None
    if table.has("start"):
        raise table.error("'lead' and 'start' exclude each other: a lead counts back from the touch", "lead")
    return table.take("lead", parse_time_spread)


def _app_name(value: Any) -> str:
    """A name that is also that of the app's directory."""
    if not isinstance(value, str) or not _APP_NAME.fullmatch(value):
        raise ValueError(f"{value!r} must be 1 to 32 letters, digits, '-' and '_'")
    return value


def _environment(value: Any) -> dict[str, str]:
    """Environment variables of a command."""
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        raise ValueError("a table of texts is wanted")
    return dict(value)


def _files(table: Table, generator: str) -> Iterator[File]:
    """The files that one [[app.file]] stands for; sizes are drawn from the names of scenario, app and file."""
    pattern = table.take("path", relative_path)
    number = table.take("count", count(1), 1)
    kind = table.take("kind", choice("kind of file", FILE_KINDS), "data")
    if number > 1 and "{i}" not in pattern:
        raise table.error(f"{number} files need '{{i}}' in their path", "path")
    if kind == "sqlite":
        rows, row_bytes = table.take("rows", count(1)), table.take("row_bytes", _whole_bytes)
        table.finish()
        for i in range(number):
            yield File(pattern.replace("{i}", str(i)), rows * row_bytes, kind, rows, row_bytes)
        return
    size = table.take("bytes", parse_size_spread)
    table.finish()
    rng = random.Random(f"{generator}/{pattern}")
    for i in range(number):
        drawn = size.draw(rng)
        whole = int(drawn) if size.low == size.high else round(drawn / FILE_BLOCK) * FILE_BLOCK
        yield File(pattern.replace("{i}", str(i)), whole)


def _whole_bytes(value: Any) -> int:
    """A size without a spread."""
    size = parse_size_spread(value)
    if size.low != size.high or size.low < 1:
        raise ValueError(f"{value!r} must be one size above zero")
    return int(size.low)


def _thread(table: Table, role: str) -> Thread:
    """One [[app.thread]]. A foreground thread waits for the touch unless a `touch` step of its own does."""
    name = table.take("name", text)
    steps = tuple(parse_step(item) for item in table.tables("steps"))
    if not steps:
        raise table.error(f"thread '{name}' has no steps")
    touches = any(inner.op == "touch" for step in steps for inner, _ in step.walk())
    thread = Thread(
        name=name,
        line=table.lines.of(table.place),
        after_touch=table.take("after_touch", boolean, role == "foreground" and not touches),
        repeat=table.take("repeat", boolean, False),
        steps=steps,
        copies=table.take("copies", count(1), 1),
    )
    if thread.after_touch and touches:
        raise table.error(f"thread '{name}' waits for the touch twice: by after_touch and by a touch step")
    table.finish()
    return thread


def _trace(table: Table) -> TraceSource:
    """The `trace` of an app; its path counts from the scenario file's directory."""
    path = Path(table.take("file", text))
    path = path if path.is_absolute() else table.path.parent / path
    if not path.is_file():
        raise table.error(f"trace file {path} is not there", "file")
    length = table.take("length", parse_time, 0.0)
    source = TraceSource(
        path=path,
        format=table.take("format", choice("trace format", traces.FORMATS), "") or None,
        start_s=table.take("start", parse_time, 0.0),
        length_s=length or None,
    )
    table.finish()
    return source


def from_trace(path: Path, format: str | None = None, start_s: float = 0.0, length_s: float | None = None) -> Scenario:
    """A foreground scenario that replays a recording."""
    source = TraceSource(path, format, start_s, length_s)
    app = App(
        name="replay",
        uid=10100,
        role="foreground",
        start=Spread(0.0, 0.0),
        lead=None,
        files=(),
        trace=source,
    )
    limit = DEFAULT_LIMIT_S + 3 * source.load().stats.span_s
    part = path.name if length_s is None else f"{length_s:g} s of {path.name}"
    return Scenario(f"replay-{path.name}", path, f"replay of {part}", (app,), DEFAULT_TOUCH, limit)


def trace_texts(scenarios: Sequence[Scenario]) -> dict[str, str]:
    """The normalised traces that the scenarios' apps replay, by the names that their jobs give."""
    return {
        app.trace_name: _trace_text(app.trace)
        for scenario in scenarios
        for app in scenario.apps
        if app.trace is not None
    }


def build_job(fg: Scenario, backgrounds: Sequence[Scenario], seed: int, phone: object) -> dict[str, Any]:
    """The part of a job that the scenarios decide: apps, files, touch_s, limit_s.

    `phone` is not used: a scenario is the same on every phone.
    """
    del phone
    together = [fg, *backgrounds]
    _check_together(together)
    everyone = [app for scenario in together for app in scenario.apps]
    leads = {app.name: app.lead.draw(_generator(seed, app.name, "lead")) for app in everyone if app.lead is not None}
    touch_s = round(max([fg.touch.draw(_generator(seed, fg.name, "touch")), *leads.values()]), 9)
    files: list[dict[str, Any]] = []
    for app in everyone:
        files += [item.to_job(app.name) for item in app.files]
        if app.trace is not None:
            files += [{"app": app.name, **item} for item in app.trace.load().files]
    apps = [_app_job(app, seed, touch_s - leads[app.name] if app.name in leads else None) for app in everyone]
    return {"apps": apps, "files": files, "touch_s": touch_s, "limit_s": round(touch_s + fg.limit_s, 9)}


def _generator(*names: object) -> random.Random:
    """A generator of its own for every drawn thing, so that one more draw moves no other."""
    return random.Random("/".join(str(name) for name in names))


def _check_together(scenarios: Sequence[Scenario]) -> None:
    """One foreground scenario and background ones, without an app twice."""
    fg, *backgrounds = scenarios
    if fg.role != "foreground":
        raise InputError(f"scenario '{fg.name}' has no foreground app", fg.path)
    for scenario in backgrounds:
        if scenario.role != "background":
            raise InputError(
                f"scenario '{scenario.name}' has a foreground app and cannot be a background", scenario.path
            )
    names: dict[str, str] = {}
    uids: dict[int, str] = {}
    for scenario in scenarios:
        for app in scenario.apps:
            if app.name in names or app.uid in uids:
                other = names.get(app.name) or uids[app.uid]
                raise InputError(f"duplicate app: '{app.name}' (uid {app.uid}) is in '{other}' too", scenario.path)
            names[app.name] = uids[app.uid] = scenario.name


def _app_job(app: App, seed: int, start_s: float | None) -> dict[str, Any]:
    """One app of a job. `start_s` is given where the touch decides it."""
    start = app.start.draw(_generator(seed, app.name, "start")) if start_s is None else start_s
    job: dict[str, Any] = {"name": app.name, "uid": app.uid, "role": app.role, "start_s": round(start, 9)}
    if app.trace is not None:
        job["trace"] = app.trace_name
    elif app.command:
        job |= {"argv": list(app.command), "cwd": ".", "env": app.environment}
    else:
        job["threads"] = [
            item for thread in app.threads for item in _thread_jobs(thread, f"{seed}/{app.name}/{thread.name}")
        ]
    return job


def _thread_jobs(thread: Thread, generator: str) -> Iterator[dict[str, Any]]:
    """The copies of a thread."""
    for copy in range(thread.copies):
        rng = _generator(generator, copy)
        steps = [_with_copy(step.to_job(rng), copy) for step in thread.steps]
        name = thread.name if thread.copies == 1 else f"{thread.name}-{copy}"
        yield {"name": name, "after_touch": thread.after_touch, "repeat": thread.repeat, "steps": steps}


def _with_copy(step: dict[str, Any], copy: int) -> dict[str, Any]:
    """The step with `{t}` in its file names replaced by the copy's number."""
    for key in ("file", "to"):
        if key in step:
            step[key] = step[key].replace("{t}", str(copy))
    for inner in step.get("steps", []):
        _with_copy(inner, copy)
    return step
