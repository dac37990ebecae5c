# SPDX-License-Identifier: GPL-2.0-only
"""Every scenario of the project in a guest, with what is read back verified; with `--kernel um-debug` under lockdep and
KASAN."""

from __future__ import annotations

import pytest

from fasttrack_lab.figures.smartio_poster import BESIDE
from fasttrack_lab.inputs import lru, phone, policy, scenario, smartio
from fasttrack_lab.inputs.background_sets import SIX
from fasttrack_lab.run.runner import Tools, run
from fasttrack_lab.run.specs import spec_of

pytestmark = pytest.mark.guest

PLATFORMS = [("ext4", "mglru"), ("f2fs", "classic")]
"""Each file system and each LRU."""


FIRST_CALL_S = 2.0
"""Of a background app among twelve: a read goes after a second (twice background_expire_ms), several taking turns."""


def plays(tools: Tools, front: str, behind: list[str], policy_name: str, fs: str, lru_name: str) -> None:
    """The run is clean, its foreground has ended, and no background app has waited in its first call for too long."""
    spec = spec_of(
        scenario.load(front),
        [scenario.load_background(name) for name in behind],
        phone.load("s6").with_fs(fs),
        policy.load(policy_name),
        1,
        verify=True,
        lru_name=lru_name,
    )
    shown = run(spec, tools).to_json()
    assert shown["ok"], shown["error"]
    assert shown["response_s"] > 0
    assert len(shown["background"]) >= len(behind)
    waiting = {name: app for name, app in shown["background"].items() if not app["ops"]}
    assert all(0 < app["longest_pause_s"] < FIRST_CALL_S for app in waiting.values()), waiting


@pytest.mark.parametrize(("fs", "lru_name"), PLATFORMS)
@pytest.mark.parametrize("front", scenario.available("foreground"))
def test_every_foreground_beside_every_background(tools: Tools, front: str, fs: str, lru_name: str) -> None:
    assert set(lru.CHOICES) == {one for _, one in PLATFORMS}
    others = [name for name in scenario.available("background") if name not in SIX.split("+")]
    assert others == ["install", "readers"]
    plays(tools, front, [*SIX.split("+"), *others], "fasttrack", fs, lru_name)


@pytest.mark.parametrize("policy_name", ["smartio", "fasttrack"])
@pytest.mark.parametrize("kind", BESIDE)
def test_smartios_apps_beside_their_backgrounds(tools: Tools, kind: str, policy_name: str) -> None:
    plays(tools, smartio.name_of(smartio.apps()[0], kind), [BESIDE[kind]], policy_name, "ext4", "classic")
