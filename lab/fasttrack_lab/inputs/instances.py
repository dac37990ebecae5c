# SPDX-License-Identifier: GPL-2.0-only
"""The same background several times: every instance is an app of its own.

The first is the scenario's own, so that a run with one is what it always was. The Nth instance of app NAME is NAME-N:
its directory, its generators of random numbers and its control group follow from the name. Its UID is N - 1 steps above
the first's, or the next that nobody has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fasttrack_lab.host.errors import InputError
from fasttrack_lab.inputs.scenario import APP_UIDS, SERVICE_UIDS, App, Scenario

UID_STEP = 1000
"""Between the UIDs of two instances: more than the apps that one person installs."""


def instances(front: Scenario, behind: Sequence[Scenario]) -> list[Scenario]:
    """BEHIND with every scenario that was there before replaced by its next instance."""
    taken = {app.uid for scenario in (front, *behind) for app in scenario.apps}
    made: list[Scenario] = []
    for index, scenario in enumerate(behind):
        number = 1 + behind[:index].count(scenario)
        apps = scenario.apps if number == 1 else tuple(_instance(app, number, taken) for app in scenario.apps)
        made.append(replace(scenario, apps=apps))
    return made


def _instance(app: App, number: int, taken: set[int]) -> App:
    """The app's instance of that number; its UID is added to TAKEN."""
    uids = SERVICE_UIDS if app.uid in SERVICE_UIDS else APP_UIDS
    wanted = app.uid - uids.start + (number - 1) * UID_STEP
    for step in range(len(uids)):
        uid = uids[(wanted + step) % len(uids)]
        if uid not in taken:
            taken.add(uid)
            return replace(app, name=f"{app.name}-{number}", uid=uid)
    raise InputError(f"no UID from {uids.start} to {uids.stop - 1} is left for app '{app.name}-{number}'")
