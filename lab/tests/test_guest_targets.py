# SPDX-License-Identifier: GPL-2.0-only
"""What FastTrack must reach: stock shows the problem, and it is gone. All in virtual time, so exact."""

from __future__ import annotations

import pytest
from recorded import recorded

from fasttrack_lab import phone, policy, scenario
from fasttrack_lab.runner import RunSpec, Tools, run_many
from fasttrack_lab.specs import spec_of

pytestmark = pytest.mark.guest

SEEDS = (1, 2, 3)
PHONE = "s6"


def cell(front: scenario.Scenario, policy_name: str, behind: str | None, seed: int) -> RunSpec:
    others = [scenario.load_background(behind)] if behind else []
    return spec_of(front, others, phone.load(PHONE), policy.load(policy_name), seed)


def responses(tools: Tools, specs: list[RunSpec]) -> list[float]:
    results = run_many(specs, tools)
    assert all(result.ok for result in results), [result.verdict.error for result in results]
    found = [result.response_s for result in results]
    return [value for value in found if value is not None]


@pytest.mark.parametrize(
    ("front", "behind", "stock_at_least", "fasttrack_at_most"),
    [("gallery-launch", "update", 2.0, 1.5), ("camera-switch", "backup", 3.0, 1.5)],
)
def test_slowdown(tools: Tools, front: str, behind: str, stock_at_least: float, fasttrack_at_most: float) -> None:
    one = scenario.load(front)
    kinds = [("stock", None), ("stock", behind), ("fasttrack", behind)]
    found = responses(tools, [cell(one, name, other, seed) for seed in SEEDS for name, other in kinds])
    for index, seed in enumerate(SEEDS):
        alone, stock, fasttrack = found[3 * index : 3 * index + 3]
        assert stock / alone >= stock_at_least, f"seed {seed}: {stock} s against {alone} s"
        assert fasttrack / alone <= fasttrack_at_most, f"seed {seed}: {fasttrack} s against {alone} s"


def test_replay_comes_at_least_twice_as_close_to_background_free(tools: Tools) -> None:
    front = scenario.from_trace(recorded("mobigen/facebook.mobigen"))
    kinds = [("stock", None), ("stock", "update"), ("fasttrack", "update")]
    alone, stock, fasttrack = responses(tools, [cell(front, name, behind, 1) for name, behind in kinds])
    assert stock > alone
    assert fasttrack - alone <= (stock - alone) / 2
