# SPDX-License-Identifier: GPL-2.0-only
"""What a policy gives each app of a run by its place, in front or behind: at the start, and at the touch if it moves.

Until the touch those are in front whom the scenario names for it, from then on its foreground apps. Services have no
place: they keep the kernel's defaults.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fasttrack_lab.inputs.policy import Policy

CGROUPS = "/sys/fs/cgroup"


@dataclass(frozen=True)
class Place:
    """An app, and whether it is in front: until the touch, and from then on."""

    app: str
    before: bool
    after: bool

    @property
    def changes(self) -> bool:
        """Whether the touch moves it."""
        return self.before != self.after


def place_of(app: Mapping[str, Any], before_touch: Sequence[int]) -> Place | None:
    """The place of an app of a job; None for a service. BEFORE_TOUCH: UIDs in front until the touch."""
    if app["role"] == "service":
        return None
    return Place(app["name"], app["uid"] in before_touch, app["role"] == "foreground")


def with_ioprio(app: Mapping[str, Any], place: Place | None, policy: Policy) -> dict[str, Any]:
    """An app of a job with the I/O priorities that the policy gives it."""
    made = dict(app)
    if policy.ioprio and place:
        made["ioprio"] = policy.ioprio.of(place.before)
        if place.changes:
            made["ioprio_touch"] = policy.ioprio.of(place.after)
    return made


def group_files(places: Sequence[Place], policy: Policy, after: bool) -> list[dict[str, str]]:
    """Settings of the apps' control groups, as job.json has them: of all at the start, AFTER the touch of who moves."""
    return [
        {"path": f"{CGROUPS}/app-{place.app}/{one.file}", "value": one.value.of(place.after if after else place.before)}
        for place in places
        if place.changes or not after
        for one in policy.cgroup
    ]
