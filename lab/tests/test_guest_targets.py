# SPDX-License-Identifier: GPL-2.0-only
"""What FastTrack must reach: stock shows the problem, and it is gone. All in virtual time, so exact."""

from __future__ import annotations

import pytest
from recorded import recorded

from fasttrack_lab.inputs import phone, policy, scenario
from fasttrack_lab.inputs.background_sets import MANY_ORDER
from fasttrack_lab.run.runner import RunSpec, Tools, run_many
from fasttrack_lab.run.specs import spec_of

pytestmark = pytest.mark.guest

SEEDS = (1, 2, 3)
PHONE = "s6"
SIX = tuple(sorted(MANY_ORDER))


def cell(front: scenario.Scenario, policy_name: str, behind: tuple[str, ...], seed: int, on: str = PHONE) -> RunSpec:
    others = [scenario.load_background(name) for name in behind]
    return spec_of(front, others, phone.load(on), policy.load(policy_name), seed)


def responses(tools: Tools, specs: list[RunSpec]) -> list[float]:
    results = run_many(specs, tools)
    assert all(result.ok for result in results), [result.verdict.error for result in results]
    found = [result.response_s for result in results]
    return [value for value in found if value is not None]


@pytest.mark.parametrize(
    ("front", "behind", "stock_at_least", "fasttrack_at_most"),
    [("gallery-launch", "update", 2.0, 1.1), ("camera-switch", "backup", 3.0, 1.1)],
)
def test_slowdown(tools: Tools, front: str, behind: str, stock_at_least: float, fasttrack_at_most: float) -> None:
    one = scenario.load(front)
    kinds = [("stock", ()), ("stock", (behind,)), ("fasttrack", (behind,))]
    found = responses(tools, [cell(one, name, other, seed) for seed in SEEDS for name, other in kinds])
    for index, seed in enumerate(SEEDS):
        alone, stock, fasttrack = found[3 * index : 3 * index + 3]
        assert stock / alone >= stock_at_least, f"seed {seed}: {stock} s against {alone} s"
        assert fasttrack / alone <= fasttrack_at_most, f"seed {seed}: {fasttrack} s against {alone} s"


@pytest.mark.parametrize("front", ["gallery-launch", "camera-switch"])
def test_six_apps_behind(tools: Tools, front: str) -> None:
    """On a device without a queue: what is on its way at the touch, and who holds a handle open, is in the way here."""
    one = scenario.load(front)
    alone, six = responses(tools, [cell(one, "stock", (), 1, "n6"), cell(one, "fasttrack", SIX, 1, "n6")])
    assert six / alone <= 1.15


@pytest.mark.parametrize(
    ("front", "seed", "at_most"),
    [
        # A node page that somebody with an operation open waits for.
        ("game-load", 2, 1.15),
        # One that the holder of a folio waits for, and what the flusher has sent later goes past.
        ("gallery-launch", 12, 1.25),
    ],
)
def test_a_checkpoint_does_not_wait_for_writes_of_others(tools: Tools, front: str, seed: int, at_most: float) -> None:
    """On a device that takes 35 ms a write."""
    on, behind = phone.load("n5").with_fs("f2fs"), [scenario.load_background("update")]
    fasttrack = policy.load("fasttrack")
    made = [spec_of(scenario.load(front), others, on, fasttrack, seed) for others in ([], behind)]
    alone, beside = responses(tools, made)
    assert beside / alone <= at_most


def test_replay_comes_at_least_twice_as_close_to_background_free(tools: Tools) -> None:
    front = scenario.from_trace(recorded("mobigen/facebook.mobigen"))
    kinds = [("stock", ()), ("stock", ("update",)), ("fasttrack", ("update",))]
    alone, stock, fasttrack = responses(tools, [cell(front, name, behind, 1) for name, behind in kinds])
    assert stock > alone
    assert fasttrack - alone <= (stock - alone) / 2
