# SPDX-License-Identifier: GPL-2.0-only
"""All figures, and the choice of some. The SmartIO poster's are made only when they are named."""

from __future__ import annotations

from collections.abc import Sequence

from fasttrack_lab.figures import paper, smartio_poster
from fasttrack_lab.figures.figure import Figure
from fasttrack_lab.host.errors import UsageProblem, unknown

FIGURES = (*paper.FIGURES, *smartio_poster.FIGURES)


def chosen(names: Sequence[str], phones: Sequence[str]) -> list[Figure]:
    """The figures of these names, or the FastTrack paper's; on these phones.

    One that is named and has none of the phones is refused.
    """
    known = {figure.name: figure for figure in FIGURES}
    for name in names:
        if name not in known:
            raise UsageProblem(unknown("figure", name, known))
    wanted = [known[name] for name in dict.fromkeys(names)] or list(paper.FIGURES)
    narrowed = [figure.narrowed(phones) for figure in wanted]
    for figure, left in zip(wanted, narrowed, strict=True):
        if names and not left.grids:
            raise UsageProblem(f"{figure.name} is of {', '.join(figure.phones)}: --phones has none of them")
    if not any(figure.grids for figure in narrowed):
        raise UsageProblem(f"--phones: no figure is of {', '.join(phones)}; valid: {', '.join(paper.PHONES)}")
    return [figure for figure in narrowed if figure.grids]
