# SPDX-License-Identifier: GPL-2.0-only
"""xfstests' quick tests of ext4 and f2fs under FastTrack, where processes change their class: `make test-xfs`.

Debian has no package of xfstests. One that is built is named by --xfstests. A test of it that fails is tried on stock,
and is a failure if it passes there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from guest_script import KEPT, STOCK, script, setting, write_asked

from fasttrack_lab.host.rundir import run_dir
from fasttrack_lab.inputs import phone
from fasttrack_lab.run.boot.backend import BootSpec
from fasttrack_lab.run.image import storage_params
from fasttrack_lab.run.result import tail
from fasttrack_lab.run.runner import Tools

pytestmark = pytest.mark.guest

KINDS = "ext4", "f2fs"
GROUP = "quick"
AT_ONCE = 24
"""Tests of one guest."""

MEMORY_MIB = 1024
ROOM_MIB = 5120
"""For what tests write."""

LIMIT_S = 1800.0
"""Real time of one guest."""

SPLIT = (
    setting("/sys/block/sda/queue/scheduler", "fasttrack"),
    setting("/sys/module/mflash/parameters/scheduler", "foreground"),
)
BEGINS = re.compile(r"^((?:generic|ext4|f2fs)/\d+)(?=\s)", re.MULTILINE)
ENDS = re.compile(r"^(?:Ran|Interrupted)\b", re.MULTILINE)
PASSED, NOT_RUN = re.compile(r"\s*\d+s\s*"), "[not run]"
DID_NOT_END = "it did not end"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "some" in metafunc.fixturenames:
        where = metafunc.config.getoption("--xfstests")
        parts = _parts(Path(where)) if where else []
        named = [pytest.param(*part, id=f"{part[0]}-{part[1][0]}-{part[1][-1]}") for part in parts]
        none = pytest.param("", [], marks=pytest.mark.skip("needs a built xfstests: make test-xfs XFSTESTS=DIR"))
        metafunc.parametrize(("kind", "some"), named or [none])


def _parts(xfstests: Path) -> list[tuple[str, list[str]]]:
    """The tests of the group, as many as one guest does, on each file system."""
    parts = []
    for kind in KINDS:
        named = [
            f"{where}/{words[0]}"
            for where in ("generic", kind)
            for words in map(str.split, (xfstests / "tests" / where / "group.list").read_text().splitlines())
            if GROUP in words[1:]
        ]
        parts += [(kind, named[at : at + AT_ONCE]) for at in range(0, len(named), AT_ONCE)]
    return parts


def judged(log: str) -> dict[str, str]:
    """What xfstests' check says of each test that has begun: empty, if it passed."""
    said = ENDS.split(log, maxsplit=1)[0]
    words = BEGINS.split(said)[1:]
    return {
        test: "" if PASSED.fullmatch(text) else text.strip() or DID_NOT_END
        for test, text in zip(words[::2], words[1::2], strict=True)
    }


def boot(tools: Tools, xfstests: Path, kind: str, tests: Sequence[str], fasttrack: bool) -> dict[str, str]:
    """What is said of those that one guest has begun. FastTrack must not have ejected itself."""
    with run_dir(MEMORY_MIB + ROOM_MIB) as where:
        asked = {"program": str(xfstests), "kind": kind, "tests": tests, "fasttrack": fasttrack}
        write_asked(where, "some", None, SPLIT if fasttrack else STOCK, **asked)
        params = storage_params(tools.backend, phone.load("s6")) | {"FASTTRACK_KEPT": ":".join([*KEPT, str(xfstests)])}
        spec = BootSpec(
            tools.kernel.image, script("xfs"), MEMORY_MIB, where, LIMIT_S, 1, params, computing_takes_time=True
        )
        outcome = tools.backend.boot(spec)
        log, shown = where / "check.log", where / "shown.json"
        said = log.read_text(errors="replace") if log.exists() else ""
        found = judged(said)
        assert found, f"no test has begun:\n{said}{tail(outcome.console)}"
        if not shown.exists():
            found[list(found)[-1]] += f"\nthe guest died after {outcome.wall_s:.0f} s:\n{tail(outcome.console)}"
        elif fasttrack:
            did = json.loads(shown.read_text())
            assert not did["ejected"], did["ejected"]
            assert did["bios_foreground"] and did["bios_background"], did
            print({name: did[name] for name in ("bios_foreground", "bios_background", "pauses", "promoted")})
        return found


def said_of(tools: Tools, xfstests: Path, kind: str, tests: Sequence[str], fasttrack: bool) -> dict[str, str]:
    """What is said of each; after one by which a guest dies, another guest goes on."""
    found: dict[str, str] = {}
    while left := [test for test in tests if test not in found]:
        found |= boot(tools, xfstests, kind, left, fasttrack)
    return found


def test_quick_group(request: pytest.FixtureRequest, tools: Tools, kind: str, some: list[str]) -> None:
    xfstests = Path(request.config.getoption("--xfstests"))
    split = said_of(tools, xfstests, kind, some, True)
    not_run = [test for test, said in split.items() if said.startswith(NOT_RUN)]
    failed = [test for test, said in split.items() if said and test not in not_run]
    stock = said_of(tools, xfstests, kind, failed, False)
    print(f"{kind}: {len(some) - len(not_run) - len(failed)} passed, {len(not_run)} not run, failed:", *failed)
    worse = [test for test in failed if not stock[test]]
    assert not worse, "\n".join(f"{test} passes on stock:\n{split[test]}" for test in worse)


def test_what_check_says() -> None:
    log = (
        "FSTYP         -- ext4\n\n"
        "generic/001         0s\n"
        "generic/003        [not run] it has no effect on ext4\n"
        "generic/004       - output mismatch (see generic/004.out.bad)\n    +generic/001 0s\n"
        "generic/005         2s\n"
        "generic/006        \n"
        "Ran: generic/001 generic/003\nFailures: generic/004\n"
    )
    assert judged(log) == {
        "generic/001": "",
        "generic/003": "[not run] it has no effect on ext4",
        "generic/004": "- output mismatch (see generic/004.out.bad)\n    +generic/001 0s",
        "generic/005": "",
        "generic/006": DID_NOT_END,
    }
