# SPDX-License-Identifier: GPL-2.0-only
"""The figures of the FastTrack paper: the runs of each, its plot, and the statements about it.

What the paper leaves open is our choice, and each figure's note says it.
"""

from __future__ import annotations

from fasttrack_lab.compare.records import BASELINE_POLICY as STOCK
from fasttrack_lab.compare.records import FOREGROUND_ONLY
from fasttrack_lab.figures import statements as said
from fasttrack_lab.figures.figure import Figure
from fasttrack_lab.figures.grid import Grid
from fasttrack_lab.figures.measured import RESPONSE_S, TO_ALONE, TO_STOCK
from fasttrack_lab.figures.plot import Bars, Group, Lines
from fasttrack_lab.figures.statements import BACKUP, FASTTRACK, LAUNCH, LOAD, MINUS, SWITCH, UPDATE, UPLOAD
from fasttrack_lab.inputs.background_sets import MANY, MANY_ORDER

PHONES = ("n5", "n6", "s6", "p1")
SCENARIOS = (LAUNCH, SWITCH, LOAD)
BACKGROUNDS = (UPDATE, BACKUP)
PARTS = (said.PA, said.PR, said.ID)


def _group(scenario: str, background: str) -> Group:
    return Group(f"{scenario}\n+ {background}", scenario, background)


FIGURES = (
    Figure(
        name="fig6",
        title="Figure 6: foreground writes against background reads",
        grids=(Grid((SWITCH,), ("s6",), (STOCK,), (BACKUP,)),),
        plot=Bars(
            groups=(_group(SWITCH, BACKUP),),
            policies=(FOREGROUND_ONLY, STOCK),
            measure=RESPONSE_S,
            label="response time (s)",
            paper={(0, policy): value for policy, value in said.READS_AGAINST_WRITES_S.items()},
        ),
        claims=(said.F9,),
        note="The background that reads is backup.",
    ),
    Figure(
        name="fig10",
        title="Figure 10: FastTrack's parts, alone and together",
        grids=(Grid(SCENARIOS, PHONES, (STOCK, *PARTS, MINUS, FASTTRACK), BACKGROUNDS),),
        plot=Bars(
            groups=tuple(_group(scenario, background) for scenario, background in said.COMBINATIONS),
            policies=(FOREGROUND_ONLY, *PARTS, MINUS, FASTTRACK),
            measure=TO_STOCK,
            label="response time\n(stock = 1)",
            reference=STOCK,
        ),
        claims=(said.F10, said.F11, said.F12, said.F13),
        note="Averages are over the six combinations and all phones shown. pa and pr run with mq-deadline; promotion "
        "on wait counts as part of the dispatcher (id). Below each combination: the seconds it takes under stock.",
    ),
    Figure(
        name="fig11",
        title="Figure 11, from slides 30 and 31: launch beside update, switch beside photo upload",
        grids=(
            Grid((LAUNCH,), ("s6",), (STOCK, MINUS), (UPDATE,)),
            Grid((SWITCH,), ("s6",), (STOCK, MINUS), (UPLOAD,)),
        ),
        plot=Bars(
            groups=(_group(LAUNCH, UPDATE), _group(SWITCH, UPLOAD)),
            policies=(FOREGROUND_ONLY, MINUS),
            measure=TO_STOCK,
            label="response time\n(stock = 1)",
            reference=STOCK,
            paper={(0, MINUS): 1 + said.SLIDES_CHANGE[LAUNCH], (1, MINUS): 1 + said.SLIDES_CHANGE[SWITCH]},
        ),
        claims=(said.F14,),
        note="The paper's own Figure 11 is not made here. This is what the authors' slides (NVRAMOS 2018) compare; "
        "they do not name the phone, s6 is our choice.",
    ),
    Figure(
        name="fig12",
        title="Figure 12: with and without the device's scheduler",
        grids=(Grid((SWITCH,), ("n6",), (STOCK, MINUS, FASTTRACK), BACKGROUNDS),),
        plot=Bars(
            groups=tuple(_group(SWITCH, background) for background in BACKGROUNDS),
            policies=(MINUS, FASTTRACK, FOREGROUND_ONLY),
            measure=RESPONSE_S,
            label="response time (s)",
            paper={(0, policy): value for policy, value in said.CAMERA_UPDATE_S.items()},
        ),
        claims=(said.F15, said.F16),
        note="The paper's Camera is camera-switch here.",
    ),
    Figure(
        name="fig13",
        title="Figure 13: two to six background apps",
        grids=(Grid((SWITCH,), ("s6",), (STOCK, FASTTRACK), tuple(MANY.values())),),
        plot=Lines(
            points=tuple((count, Group(str(count), SWITCH, names)) for count, names in MANY.items()),
            policies=(STOCK, FASTTRACK),
            measure=TO_ALONE,
            across="background apps",
            label="response time (foreground-only = 1)",
            paper={(STOCK, 6): said.SIX_STOCK_TO_ALONE}
            | {(FASTTRACK, count): value for count, value in said.MANY_TO_ALONE.items()},
        ),
        claims=(said.F17, said.F18),
        note=f"The foreground is camera-switch. The paper does not name the background apps; ours come in this order: "
        f"{', '.join(MANY_ORDER)}.",
    ),
)
