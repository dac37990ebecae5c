# SPDX-License-Identifier: GPL-2.0-only
"""What the SmartIO poster shows: launch and run-time delay of twenty apps, and what installing them costs.

The poster does not name its apps, and does not say what wrote beside them. Ours are those of lab/scenarios/smartio.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from fasttrack_lab.compare.records import BASELINE_POLICY as STOCK
from fasttrack_lab.compare.records import FOREGROUND_ONLY
from fasttrack_lab.figures.claims import CHANGE, Claim, Finding, Value, mean, numbers
from fasttrack_lab.figures.figure import Figure
from fasttrack_lab.figures.goals import Goal, at_most
from fasttrack_lab.figures.grid import Grid
from fasttrack_lab.figures.measured import LONGEST_WRITE_WAIT_S, MEAN_TO_STOCK, TO_STOCK, Measured
from fasttrack_lab.figures.plot import Bars, Group
from fasttrack_lab.inputs import phone as phones_of_lab
from fasttrack_lab.inputs import smartio

SOURCE = (
    "Nguyen et al., Towards Reducing Smartphone Application Delay through Read/Write Isolation (MobiSys 2014 poster)"
)
SMARTIO = "smartio"
PHONES = ("n6", "s6")
Where = tuple[str, str, str, str]
"""Scenario, phone, policy and background of runs."""
WRITER, READERS = "install", "readers"
BESIDE = {"launch": WRITER, "run": WRITER, "install": READERS}
"""Kind of scenario -> the background that it is measured beside."""
CALLED = {"launch": "launch", "run": "run time", "install": "installation"}

LAUNCH_CHANGE, RUN_CHANGE, INSTALL_CHANGE = -0.378, -0.296, 0.076
LAUNCH_GOAL, RUN_GOAL, APP_GOAL, INSTALL_GOAL = 0.80, 0.90, 1.05, 1.10
"""Delay over stock's: means over the apps of launch and run time, each app's, and the mean of installations."""
WRITE_WAIT_S = 0.1
"""The poster's bound."""


def _scenarios(kind: str) -> tuple[str, ...]:
    return tuple(smartio.name_of(app, kind) for app in smartio.apps())


def _grid(kind: str) -> Grid:
    return Grid(_scenarios(kind), PHONES, (STOCK, SMARTIO), (BESIDE[kind],))


def _bars(kind: str) -> Bars:
    """Each app's delay over stock's."""
    groups = tuple(Group(app, smartio.name_of(app, kind), BESIDE[kind]) for app in smartio.apps())
    label = f"{CALLED[kind]}\n(stock = 1)"
    return Bars(groups, (FOREGROUND_ONLY, SMARTIO), TO_STOCK, label, reference=STOCK)


def _each(kind: str, phones: Sequence[str], value: Callable[[Where], float]) -> dict[str, float]:
    """The value of each app's runs under smartio on each phone, by what they are called."""
    return {
        f"{CALLED[kind]} of {app} on {phone}": value((smartio.name_of(app, kind), phone, SMARTIO, BESIDE[kind]))
        for phone in phones
        for app in smartio.apps()
    }


def _over_stock(measured: Measured, kind: str, phones: Sequence[str]) -> dict[str, float]:
    """Each app's delay over stock's on each phone, infinite where runs failed; NotMeasured where one is lacking."""
    return _each(kind, phones, lambda where: measured.of_all_seeds(*where, MEAN_TO_STOCK))


def _most(measured: Measured, phones: tuple[str, ...], kind: str, published: float) -> Value:
    """The largest drop that an app has on a phone."""
    lowest = min(_over_stock(measured, kind, phones).values())
    return Value(f"{CALLED[kind]}, most", published, lowest - 1, CHANGE, "poster")


def _s2(measured: Measured, phones: tuple[str, ...]) -> Finding:
    kinds = (("launch", LAUNCH_CHANGE), ("run", RUN_CHANGE))
    return numbers(_most(measured, phones, kind, published) for kind, published in kinds)


def _s3(measured: Measured, phones: tuple[str, ...]) -> Finding:
    change = mean(_over_stock(measured, "install", phones).values()) - 1
    return numbers([Value("mean", INSTALL_CHANGE, change, CHANGE, "poster")])


def _means(kind: str, goal: float, measured: Measured, phones: tuple[str, ...]) -> list[Goal]:
    """The mean over the apps, on every phone."""
    means = {f"on {phone}": mean(_over_stock(measured, kind, [phone]).values()) for phone in phones}
    return [at_most(f"{CALLED[kind]} over stock's, mean of the apps", goal, means)]


def _every_app(measured: Measured, phones: tuple[str, ...]) -> list[Goal]:
    """No app is much slower than under stock."""
    both = _over_stock(measured, "launch", phones) | _over_stock(measured, "run", phones)
    return [at_most("launch or run time over stock's, any app", APP_GOAL, both)]


def _write_waits(kinds: tuple[str, ...], measured: Measured, phones: tuple[str, ...]) -> list[Goal]:
    """No process' writes wait for reads longer than the bound and one request."""

    def longest(where: Where) -> float:
        return measured.of_all_seeds(*where, LONGEST_WRITE_WAIT_S) - phones_of_lab.load(where[1]).longest_request_s

    waits = {name: value for kind in kinds for name, value in _each(kind, phones, longest).items()}
    when = " and ".join(CALLED[kind] for kind in kinds)
    what = f"longest wait of a process' writes for reads less one request of the device, {when}"
    return [at_most(what, WRITE_WAIT_S, waits, " s", digits=3)]


S2 = Claim(
    "S2",
    "Figure 2",
    "Of 20 apps, SmartIO reduces launch delays by up to 37.8 % and run-time delays by up to 29.6 %.",
    "-38 %; -30 %",
    _s2,
    "The writer beside our apps keeps the device busier than theirs may have: the poster does not say what wrote. The "
    "more of a delay is waiting for writes, the more there is to gain.",
)
S3 = Claim(
    "S3",
    "text",
    "While 20 apps are installed, writes are 7.6 % slower on average.",
    "+8 %",
    _s3,
    "The poster does not say what its many processes read.",
)

FIGURES = (
    Figure(
        source=SOURCE,
        name="smartio-fig2",
        title="SmartIO's Figure 2: launch and run-time delay of 20 apps",
        grids=(_grid("launch"), _grid("run")),
        plot=_bars("launch"),
        more=(_bars("run"),),
        claims=(S2,),
        goals=(
            partial(_means, "launch", LAUNCH_GOAL),
            partial(_means, "run", RUN_GOAL),
            _every_app,
            partial(_write_waits, ("launch", "run")),
        ),
        note=f"Beside {WRITER}. At launch every app has five reads to a write, at run time half as many I/Os, as the "
        "poster's apps have on average. The mix at run time is our choice: two reads to a write. Run time begins after "
        "a launch that does not count. Below each app: the seconds it takes under stock.",
    ),
    Figure(
        source=SOURCE,
        name="smartio-install",
        title="SmartIO's cost: installing 20 apps",
        grids=(_grid("install"),),
        plot=_bars("install"),
        claims=(S3,),
        goals=(partial(_means, "install", INSTALL_GOAL), partial(_write_waits, ("install",))),
        note=f"Beside {READERS}: the poster says only that many processes run. The time to install each of the 20 apps "
        "stands for its writes.",
    ),
)
