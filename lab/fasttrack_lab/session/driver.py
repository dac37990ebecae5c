# SPDX-License-Identifier: GPL-2.0-only
"""Measures in a desktop's session; runs in the guest as a service of root's, with the standard library alone.

Times are of the guest's clock, which is virtual.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

LAB, DATA = Path("/lab"), Path("/data")
CLIENT = DATA / "app/client"
"""A Wayland client with all that it needs, on the phone's storage."""
DATA_FILES, DATA_BYTES = 32, 1 << 20
"""What the client reads before it opens its window, besides its program and libraries, of 10 MiB."""
USER = 1000
RUNTIME = f"/run/user/{USER}"
SWAY = f"{RUNTIME}/sway.sock"
DISPLAY = "wayland-1"
SLICE = f"/user.slice/user-{USER}.slice/user@{USER}.service/app.slice"
CGROUPS = Path("/sys/fs/cgroup")
DAEMONS = CGROUPS / "system.slice/fasttrackd.service/cgroup.procs"
"""The daemon and its guard."""
KNOBS = Path("/sys/kernel/fasttrack")
TRACEFS = Path("/sys/kernel/tracing")
MODE_ALONE, MODE_STOCK, MODE_FREEZE, MODE_LAB, MODE_DAEMON = "alone", "stock", "freeze", "lab", "daemon"
MODE_PACKAGE = "package"
"""The daemon and the agent come with their Debian package: packaged.py."""
MODE_KILLED = "killed"
"""The daemon, its guard and the agent are killed and stopped: killed.py."""
WITH_DAEMON = (MODE_FREEZE, MODE_DAEMON, MODE_KILLED)

COME_UP_S = 60.0
"""Anything that must come up has this long, s: the processor is infinitely fast, so nothing takes it."""
LAUNCHING_S = 11.0
"""What has begun is launching for the daemon for 10 s; apps behind must have begun before that."""
WINDOW_S = 600.0
"""A launch may take so long, s."""
LOOK_S = 0.0001
"""How often it is looked whether something is there, s: an order below what is measured."""
TOP_S = 5
"""Between two pictures of top, s: a launch takes a tenth of it."""
QUIET_S = 2.0
"""After the last app's end everything has been told within this time, s."""
SETTLED_S, IDLE_S = 30.0, 60
"""After the last app's end all is written and forgotten within the first, s: what launches is for 10 s, a thread of the
daemon's that has nothing to do ends after 10. The second is the time in which nobody is to wake up."""
SOON_S, LATER_S = 0.1, 0.01
"""A daemon that has not told the kernel so soon, s, is looked at less often: each look takes real time."""
WATCHDOG_S = 60.0
"""Of fasttrackd.service."""


class Failed(Exception):
    """The session is not what it should be."""


def until(what: str, holds: Callable[[], Any], limit_s: float = COME_UP_S, look_s: float = 0.01) -> Any:
    """What HOLDS gives when it gives something; Failed after LIMIT_S."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if found := holds():
            return found
        time.sleep(look_s)
    raise Failed(f"{what}: waited {limit_s:g} s for it in vain")


def output(*argv: str) -> str:
    """What a program prints; Failed where it fails."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(f"{' '.join(argv)}: exit status {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def as_user(*argv: str) -> list[str]:
    """A command line as the user's, who can reach the user's manager."""
    environment = [f"XDG_RUNTIME_DIR={RUNTIME}", f"WAYLAND_DISPLAY={DISPLAY}", f"SWAYSOCK={SWAY}", "HOME=/home/user"]
    environment += [f"FONTCONFIG_FILE={CLIENT}/fonts.conf", "LANG=C.UTF-8", "XDG_CACHE_HOME=/home/user"]
    ids = [f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
    return ["setpriv", *ids, "env", "-i", "PATH=/usr/bin:/bin", *environment, *argv]


def properties(*argv: str) -> dict[str, str]:
    """Properties of a unit, as systemctl shows them."""
    return dict(line.split("=", 1) for line in output(*argv).splitlines() if "=" in line)


def show(unit: str) -> dict[str, str]:
    """Of the system's manager."""
    return properties("systemctl", "show", unit)


def show_of_user(unit: str) -> dict[str, str]:
    """Of the user's manager."""
    return properties(*as_user("systemctl", "--user", "show", unit))


# --- sway's socket


def order(connection: socket.socket, kind: int, text: str = "") -> None:
    """Sends a message."""
    connection.sendall(b"i3-ipc" + struct.pack("=II", len(text), kind) + text.encode())


def whole(connection: socket.socket, count: int) -> bytes:
    """So many bytes."""
    found = b""
    while len(found) < count:
        part = connection.recv(count - len(found))
        if not part:
            raise Failed("sway has closed its socket")
        found += part
    return found


def message(connection: socket.socket) -> Any:
    """The next message."""
    length, _ = struct.unpack("=II", whole(connection, 14)[6:])
    return json.loads(whole(connection, length))


def connected() -> socket.socket | None:
    """A connection to sway, if it is there."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(SWAY)
    except OSError:
        connection.close()
        return None
    return connection


def tree() -> str:
    """All that sway shows, as JSON."""
    connection = until("sway", connected)
    order(connection, 4)
    return json.dumps(message(connection))


def windows(connection: socket.socket) -> Iterator[str]:
    """Application ids of windows, each when it opens."""
    order(connection, 2, '["window"]')
    message(connection)
    while True:
        event = message(connection)
        if event.get("change") == "new":
            yield str(event["container"].get("app_id"))


# --- what is in the session


def libraries(program: str) -> list[Path]:
    """The libraries that a program is linked with, the loader among them."""
    words = output("ldd", program).split()
    return sorted({Path(word) for word in words if word.startswith("/")})


def put_client() -> None:
    """Puts the client, its libraries and its font on the phone."""
    for name in ("bin", "lib", "fonts"):
        (CLIENT / name).mkdir(parents=True, exist_ok=True)
    shutil.copy("/usr/bin/foot", CLIENT / "bin")
    for path in libraries("/usr/bin/foot"):
        shutil.copy(path, CLIENT / "lib")
    for font in Path("/usr/share/fonts/truetype/dejavu").glob("*.ttf"):
        shutil.copy(font, CLIENT / "fonts")
    (CLIENT / "data").mkdir(exist_ok=True)
    for number in range(DATA_FILES):
        (CLIENT / f"data/{number:02}").write_bytes(os.urandom(DATA_BYTES))
    (CLIENT / "fonts.conf").write_text(f"<fontconfig><dir>{CLIENT}/fonts</dir></fontconfig>\n")
    for path in [CLIENT, *CLIENT.rglob("*")]:
        os.chown(path, USER, USER)
    os.sync()


def client(app_id: str) -> list[str]:
    """The client's command line: nothing of it but its locale comes from elsewhere than the phone."""
    loader = next(path for path in sorted((CLIENT / "lib").iterdir()) if path.name.startswith("ld-linux"))
    program = [str(loader), "--library-path", f"{CLIENT}/lib", f"{CLIENT}/bin/foot", "--config=/dev/null"]
    program += [f"--app-id={app_id}", "sleep", "100000"]
    return ["sh", "-c", 'cat data/* >/dev/null && exec "$@"', "sh", *program]


def note(what: str) -> None:
    """Says how far it is, in the log that is shown where the session fails."""
    print(f"{time.monotonic():.3f} s: {what}", flush=True)


def scope(name: str, argv: list[str], where: Path) -> subprocess.Popen[bytes]:
    """Starts a program in a scope of its own, as desktops do."""
    place = ["systemd-run", "--user", "--scope", "--quiet", "--collect", "--slice=app.slice", f"--unit={name}"]
    log = (LAB / f"{name}.log").open("wb")
    return subprocess.Popen(as_user(*place, "--", *argv), cwd=where, stdout=log, stderr=log)


def start_backgrounds(kinds: list[str], seed: int) -> list[subprocess.Popen[bytes]]:
    """Starts the programs behind, each in a directory of its own."""
    started = []
    for index, kind in enumerate(kinds):
        where = DATA / "app" / f"background-{index + 1}"
        where.mkdir(exist_ok=True)
        os.chown(where, USER, USER)
        argv = ["/usr/bin/python3", "/lab/behind.py", kind, str(seed * 100 + index)]
        started.append(scope(f"app-lab-{kind}-{index + 1}.scope", argv, where))
    return started


def knob(name: str, value: str) -> None:
    """Writes a file of the kernel's part."""
    (KNOBS / name).write_text(value)


# --- a launch


class Watch:
    """Looks when a control group comes, and when the kernel is told that it is in front; in the mode lab, tells it."""

    def __init__(self, path: str, tells: bool) -> None:
        self.path, self.tells = path, tells
        self.came: float | None = None
        self.told: float | None = None
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.look)
        self.thread.start()

    def look(self) -> None:
        """Until it is told, or over."""
        folder, list_of_kernel = CGROUPS / self.path.lstrip("/"), KNOBS / "foreground_cgroups"
        while not self.over.is_set() and self.told is None:
            if self.came is None and folder.exists():
                self.came = time.monotonic()
                if self.tells:
                    knob("foreground_cgroups", self.path)
            if self.path in list_of_kernel.read_text().split():
                self.told = time.monotonic()
            time.sleep(LOOK_S if self.came is None or time.monotonic() < self.came + SOON_S else LATER_S)

    def end(self) -> None:
        """No more looking."""
        self.over.set()
        self.thread.join()


def launch(number: int, mode: str, opened: Iterator[str]) -> dict[str, float | None]:
    """Launches the client with cold caches; how long until its window, and until the kernel knew."""
    app_id = f"client{number}"
    name, argv = f"app-lab-{app_id}-1.scope", client(app_id)
    Path("/proc/sys/vm/drop_caches").write_text("3")
    note(f"launch {number}")
    watch = Watch(f"{SLICE}/{name}", mode == MODE_LAB)
    touch = time.monotonic()
    child = scope(name, argv, CLIENT)
    try:
        found = next(opened)
        end = time.monotonic()
        if found != app_id:
            raise Failed(f"the window of {found} has opened in place of that of {app_id}")
    finally:
        watch.end()
    end_scope(name, child)

    def since(moment: float | None) -> float | None:
        return None if moment is None else moment - touch

    return {"response_s": end - touch, "scope_s": since(watch.came), "detected_s": since(watch.told)}


def launch_by_key(opened: Iterator[str]) -> dict[str, Any]:
    """Has sway start the client by a binding: it begins in sway's own control group."""
    program = LAB / "bound.sh"
    program.write_text(f"#!/bin/sh\ncd {CLIENT}\nexec {shlex.join(client('bound'))}\n")
    program.chmod(0o755)
    connection = until("sway", connected)
    for command in (f"bindsym --whole-window button9 exec {program}", "seat seat0 cursor press button9"):
        Path("/proc/sys/vm/drop_caches").write_text("3")
        order(connection, 0, command)
        (answer,) = message(connection)
        if not answer["success"]:
            raise Failed(f"sway does not take {command!r}: {answer.get('error')}")

    def told() -> list[str]:
        paths = (KNOBS / "foreground_cgroups").read_text().split()
        return [path for path in paths if path.startswith(f"{SLICE}/app-fasttrack-")]

    (path,) = until("the scope of what a key has started", told, look_s=LOOK_S)
    read = Path(f"{CGROUPS}{path}/cgroup.procs").read_text().split()
    facts = {"scope": path.rsplit("/", 1)[1], "processes": len(read), "window_later": "bound" not in tree()}
    if next(opened) != "bound":
        raise Failed("another window has opened")
    subprocess.run(as_user("systemctl", "--user", "stop", facts["scope"]), check=False)
    return facts


def top_meanwhile(holds: Callable[[], Any]) -> tuple[Any, dict[str, Any]]:
    """What HOLDS gives, and what top shows of apps and of their pauses from before until after it."""
    # The unit that does this elsewhere is masked: root.sh.
    output("mount", "-t", "tracefs", "tracefs", str(TRACEFS))
    argv = ["fasttrackctl", "--json", "top", "--interval", str(TOP_S), "--count", "2"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as top:
        assert top.stdout is not None and top.stderr is not None
        first = top.stdout.readline()
        given = holds()
        second, said = top.stdout.read(), top.stderr.read()
    if top.returncode:
        raise Failed(f"fasttrackctl top: exit status {top.returncode}: {said.strip()}")
    instances = [path.name for path in TRACEFS.glob("instances/*")]
    return given, {"before": json.loads(first), "after": json.loads(second), "instances": instances}


def end_scope(name: str, child: subprocess.Popen[bytes]) -> None:
    """Ends an app."""
    subprocess.run(as_user("systemctl", "--user", "stop", name), check=False)
    child.wait()


# --- units


def said_by(match: str) -> list[str]:
    """The lines of a unit in the journal."""
    return output("journalctl", "--output=cat", match).splitlines()


def unit_facts() -> dict[str, Any]:
    """What systemd made of the units, and what the daemon may do."""
    daemon, agent = show("fasttrackd.service"), show_of_user("fasttrack-agent.service")
    pid = daemon["MainPID"]
    status = dict(
        line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line
    )
    mounts = [line.split() for line in Path(f"/proc/{pid}/mounts").read_text().splitlines()]
    return {
        "daemon": {name: daemon[name] for name in ("ActiveState", "Type", "WatchdogUSec", "NRestarts", "ControlGroup")},
        "agent": {name: agent[name] for name in ("ActiveState", "ControlGroup", "NRestarts")},
        "capabilities": status["CapBnd"].strip(),
        "no_new_privileges": status["NoNewPrivs"].strip(),
        "seccomp": status["Seccomp"].strip(),
        "read_only": sorted({place for _, place, _, options, *_ in mounts if options.split(",")[0] == "ro"}),
        "writable": sorted({place for _, place, _, options, *_ in mounts if options.split(",")[0] == "rw"}),
        "status": json.loads(output("fasttrackctl", "--json", "status")),
        "daemon_says": said_by("_SYSTEMD_UNIT=fasttrackd.service"),
        "agent_says": said_by("_SYSTEMD_USER_UNIT=fasttrack-agent.service"),
    }


def switches(pid: str) -> int:
    """How often a process has been switched to or from, all its threads."""
    texts = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/status")]
    return sum(int(line.split()[1]) for text in texts for line in text.splitlines() if "ctxt_switches" in line)


def quiet_facts() -> dict[str, Any]:
    """How often the agent runs while nothing happens."""
    time.sleep(QUIET_S)
    pid = show_of_user("fasttrack-agent.service")["MainPID"]
    before = switches(pid)
    time.sleep(QUIET_S)
    return {"s": QUIET_S, "switches": switches(pid) - before}


def pids() -> dict[str, int]:
    """Of the three processes."""
    daemon = int(show("fasttrackd.service")["MainPID"])
    (guard,) = (pid for pid in map(int, DAEMONS.read_text().split()) if pid != daemon)
    agent = int(show_of_user("fasttrack-agent.service")["MainPID"])
    return {"daemon": daemon, "guard": guard, "agent": agent}


def idle_facts() -> dict[str, int]:
    """In how many seconds of IDLE_S each of the three runs while no app does."""
    os.sync()
    time.sleep(SETTLED_S)
    of = pids()
    ran = dict.fromkeys(of, 0)
    before = {name: switches(str(pid)) for name, pid in of.items()}
    for _ in range(IDLE_S):
        time.sleep(1)
        after = {name: switches(str(pid)) for name, pid in of.items()}
        for name in of:
            ran[name] += after[name] != before[name]
        before = after
    return ran


def watchdog_facts() -> dict[str, Any]:
    """Stops the daemon, as if it hung: systemd must end it and start another."""
    pid = int(show("fasttrackd.service")["MainPID"])
    begin = time.monotonic()
    note("the daemon is stopped")
    os.kill(pid, signal.SIGSTOP)
    until("the end of the stopped fasttrackd", lambda: not Path(f"/proc/{pid}").exists(), 4 * WATCHDOG_S, 1.0)
    note("it has ended")
    again = until("another fasttrackd", lambda: restarted(pid), COME_UP_S, 0.5)
    return {"after_s": time.monotonic() - begin, "restarts": int(again["NRestarts"]), "state": again["ActiveState"]}


def restarted(pid: int) -> dict[str, str] | None:
    """The daemon's unit, once it is active with another process."""
    found = show("fasttrackd.service")
    return found if found["ActiveState"] == "active" and found["MainPID"] not in ("0", str(pid)) else None


# --- all of it


def set_up(mode: str, elevator: str, mount: list[str]) -> socket.socket:
    """The phone, the compositor, and in some modes the daemon and its agent."""
    output("mount", *mount, str(DATA))
    Path("/sys/block/sda/queue/scheduler").write_text(elevator)
    put_client()
    connection = until("sway", connected)
    assert isinstance(connection, socket.socket)
    variables = [f"WAYLAND_DISPLAY={DISPLAY}", f"SWAYSOCK={SWAY}", "XDG_CURRENT_DESKTOP=sway"]
    output(*as_user("systemctl", "--user", "set-environment", *variables))
    if mode in WITH_DAEMON:
        output("systemctl", "start", "fasttrackd.service")
    if mode in (*WITH_DAEMON, MODE_PACKAGE):
        output(*as_user("systemctl", "--user", "start", "lab-session.target"))
    if mode in WITH_DAEMON:
        until("the agent's first report", heard)
    if mode == MODE_LAB:
        knob("app_cgroups", SLICE)
        knob("enabled", "1")
    return connection


def heard() -> bool:
    """Whether the daemon has heard the agent."""
    return bool(json.loads(output("fasttrackctl", "--json", "status"))["sessions"])


def measure(config: dict[str, Any]) -> dict[str, Any]:
    """Everything that is asked for."""
    mode = config["mode"]
    opened = windows(set_up(mode, config["elevator"], config["mount"]))
    kinds = [] if mode == MODE_ALONE else config["backgrounds"]
    note("the session is up")
    behind = start_backgrounds(kinds, config["seed"])
    time.sleep(LAUNCHING_S)
    for child, kind in zip(behind, kinds, strict=True):
        if child.poll() is not None:
            raise Failed(f"the background program {kind} has ended with status {child.returncode}")
    note(f"{len(kinds)} programs run")
    found: dict[str, Any] = {"launches": [launch(number, mode, opened) for number in range(config["launches"])]}
    note("all launches are done")
    if mode == MODE_DAEMON:
        found["by_key"], found["top"] = top_meanwhile(lambda: launch_by_key(opened))
    if mode in WITH_DAEMON:
        found["quiet"] = quiet_facts()
        found["units"] = unit_facts()
    for index, (child, kind) in enumerate(zip(behind, kinds, strict=True)):
        end_scope(f"app-lab-{kind}-{index + 1}.scope", child)
    if mode == MODE_DAEMON and config["watchdog"]:
        found["idle"] = idle_facts()
        found["watchdog"] = watchdog_facts()
    return found
