# SPDX-License-Identifier: GPL-2.0-only
"""The same background several times."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from fasttrack_lab.commands.common import behind_of
from fasttrack_lab.host.errors import InputError
from fasttrack_lab.inputs import phone, policy, scenario
from fasttrack_lab.inputs.background_sets import NAMED
from fasttrack_lab.inputs.instances import instances
from fasttrack_lab.inputs.scenario import APP_UIDS, SERVICE_UIDS
from fasttrack_lab.run.runner import RunSpec
from fasttrack_lab.run.specs import spec_of

SIX = ("update", "backup", "download", "scan", "photo-upload", "sync")


def spec(*behind: str, seed: int = 3) -> RunSpec:
    """gallery-launch with these behind it."""
    loaded = [scenario.load_background(name) for name in behind]
    return spec_of(scenario.load("gallery-launch"), loaded, phone.load("s6"), policy.load("stock"), seed)


def app(made: RunSpec, name: str) -> dict[str, Any]:
    """An app of the job."""
    found: dict[str, Any] = next(one for one in made.job["apps"] if one["name"] == name)
    return found


def test_the_first_instance_is_what_one_is() -> None:
    once, twice = spec("update"), spec("update", "update")
    apps = len(once.job["apps"])
    assert json.dumps(twice.job["apps"][:apps]) == json.dumps(once.job["apps"])
    assert twice.job["files"][: len(once.job["files"])] == once.job["files"]


def test_instances_share_nothing() -> None:
    made = spec("update", "update")
    first, second = app(made, "update"), app(made, "update-2")
    assert (first["uid"], second["uid"]) == (10201, 11201)
    assert first["role"] == second["role"] == "background"
    files = [[entry["path"] for entry in made.job["files"] if entry["app"] == name] for name in ("update", "update-2")]
    assert files[0] == files[1] and files[0]
    assert first["start_s"] != second["start_s"]
    assert [thread["name"] for thread in first["threads"]] == [thread["name"] for thread in second["threads"]]
    assert json.dumps(first["threads"]) != json.dumps(second["threads"])
    assert made.cell.backgrounds == ("update", "update")


def test_twelve_are_six_twice() -> None:
    made = spec(*SIX, *SIX)
    behind = [one for one in made.job["apps"] if one["role"] == "background"]
    assert len({one["name"] for one in behind}) == len({one["uid"] for one in behind}) == 12
    assert all(one["uid"] in APP_UIDS for one in behind)
    assert {one["name"] for one in behind} == {name + ending for name in SIX for ending in ("", "-2")}


def test_uids_stay_in_the_range_and_differ() -> None:
    front, update = scenario.load("gallery-launch"), scenario.load("update")
    many = instances(front, [update] * 40)
    uids = [one.app.uid for one in many]
    assert len(set(uids)) == 40 and all(uid in APP_UIDS for uid in uids)
    assert front.app.uid not in uids
    assert [one.app.name for one in many[:3]] == ["update", "update-2", "update-3"]
    assert instances(front, many) == many


def test_an_instance_takes_nobodys_uid() -> None:
    front, update = scenario.load("gallery-launch"), scenario.load("update")
    sitting = replace(front, apps=(replace(front.app, uid=11201),))
    assert [one.app.uid for one in instances(sitting, [update, update])] == [10201, 11202]


def test_a_service_stays_a_service() -> None:
    update = scenario.load("update")
    service = replace(update, apps=(replace(update.app, role="service", uid=9500),))
    made = instances(scenario.load("gallery-launch"), [service] * 3)
    assert [one.app.uid for one in made] == [9500, 1500, 2500]
    assert all(one.app.uid in SERVICE_UIDS for one in made)


def test_two_scenarios_with_one_app_are_still_refused() -> None:
    update = scenario.load("update")
    with pytest.raises(InputError, match="duplicate app: 'update'"):
        spec_of(
            scenario.load("gallery-launch"),
            [update, replace(update, name="other")],
            phone.load("s6"),
            policy.load("stock"),
            1,
        )


@pytest.mark.parametrize("name", NAMED)
def test_a_set_by_its_name_is_its_apps(name: str) -> None:
    assert [one.name for one in behind_of(name)] == NAMED[name].split("+")


def test_none_is_behind() -> None:
    assert behind_of("none") == []
