# SPDX-License-Identifier: GPL-2.0-only
"""What is shown of profiles: tables for the terminal, CSV, and one self-contained page with the curves."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl
from rich import box
from rich.console import Group
from rich.table import Table

from fasttrack_lab.compare import report
from fasttrack_lab.host.paths import write_if_changed
from fasttrack_lab.inputs.patterns import BY_NAME, PATTERNS, Pattern
from fasttrack_lab.inputs.profile import Profile
from fasttrack_lab.storebench import poster
from fasttrack_lab.storebench.plan import BEST_SHARE
from fasttrack_lab.storebench.points import best, rate, unit

PAGE = "storebench.html"
CURVES_CSV = "curves.csv"
SLOWDOWNS_CSV = "slowdowns.csv"

Profiles = Mapping[str, Profile]
"""By what they are called: the phone, or the disk."""

RULE = (
    f"The best concurrency is the smallest depth that reaches {BEST_SHARE:.0%} of the best throughput. "
    "Sequential requests are of 512 KiB, random ones of 4 KiB."
)
BESIDE = (
    "Mean latency of one request at a time: alone, and beside one request at a time of the other direction; "
    "in brackets, by how much that is slower."
)

DEPTH_HEADINGS = ("device", "pattern", "unit", "depth 1", "at best", "speed-up", "best depth")


def depth_rows(profiles: Profiles) -> Iterator[tuple[str, ...]]:
    """One row a device and pattern, in the order of DEPTH_HEADINGS."""
    for name, one in profiles.items():
        for pattern in PATTERNS:
            alone, found = one.curves[pattern.name][0], best(one, pattern)
            yield (
                name,
                pattern.title,
                unit(pattern),
                f"{rate(pattern, alone):,.0f}",
                f"{rate(pattern, found):,.0f}",
                f"{found.mb_s / alone.mb_s:.2f}x",
                str(found.depth),
            )


SLOWDOWN_HEADINGS = ("device", "latency of", "alone (us)", "beside sequential", "beside random")


def _beside(profile: Profile, subject: Pattern, random: bool) -> str:
    """Latency and slowdown of a pattern beside the other direction's sequential or random one."""
    for entry in profile.slowdowns:
        if entry.subject == subject.name and BY_NAME[entry.beside].random == random:
            return f"{entry.beside_us:,.0f} ({entry.percent:+,.0f} %)"
    return "-"


def slowdown_rows(profiles: Profiles) -> Iterator[tuple[str, ...]]:
    """One row a device and pattern, in the order of SLOWDOWN_HEADINGS."""
    for name, one in profiles.items():
        for pattern in PATTERNS:
            alone = f"{one.curves[pattern.name][0].latency_us:,.0f}"
            yield name, pattern.title, alone, _beside(one, pattern, False), _beside(one, pattern, True)


POSTER_HEADINGS = ("device", "read", "beside", "slower by", "poster", "verdict")


def poster_rows(profiles: Profiles) -> Iterator[tuple[str, ...]]:
    """The largest slowdown of a read beside a write, one row a device, in the order of POSTER_HEADINGS."""
    for name, one in profiles.items():
        if worst := poster.worst_read(one):
            subject, beside = BY_NAME[worst.subject].title, BY_NAME[worst.beside].title
            percent = (f"{worst.percent:,.0f} %", f"{poster.WORST_READ_PERCENT} %")
            yield name, subject, beside, *percent, poster.verdict(worst)
        else:
            yield name, "-", "-", "-", f"{poster.WORST_READ_PERCENT} %", "not measured"


def _table(headings: tuple[str, ...], rows: Iterator[tuple[str, ...]], left: int, sections: bool = True) -> Table:
    """A table whose first LEFT columns are texts; SECTIONS: with a line between the devices."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for index, heading in enumerate(headings):
        table.add_column(heading, justify="left" if index < left else "right", no_wrap=True)
    previous = ""
    for row in rows:
        if sections and previous and row[0] != previous:
            table.add_section()
        previous = row[0]
        table.add_row(*row)
    return table


def terminal(profiles: Profiles) -> Group:
    """All tables, of 80 characters."""
    depths = _table(DEPTH_HEADINGS, depth_rows(profiles), 3)
    slow = _table(SLOWDOWN_HEADINGS, slowdown_rows(profiles), 2)
    compared = _table(POSTER_HEADINGS, poster_rows(profiles), 3, sections=False)
    return Group(depths, RULE, "", slow, BESIDE, "", compared, poster.NOTE)


def _curves(profiles: Profiles) -> pl.DataFrame:
    rows = [
        {
            "device": name,
            "pattern": pattern.name,
            **asdict(point),
            "best": point is best(one, pattern),
        }
        for name, one in profiles.items()
        for pattern in PATTERNS
        for point in one.curves[pattern.name]
    ]
    return pl.DataFrame(rows)


def _slowdowns(profiles: Profiles) -> pl.DataFrame:
    rows = [
        {"device": name, **asdict(entry), "percent": entry.percent}
        for name, one in profiles.items()
        for entry in one.slowdowns
    ]
    return pl.DataFrame(rows)


def _csv(frame: pl.DataFrame) -> bytes:
    out = io.BytesIO()
    frame.write_csv(out, float_precision=3)
    return out.getvalue()


def _devices(profiles: Profiles) -> list[dict[str, Any]]:
    # Loads matplotlib, which takes a second or two: --help does not wait for it.
    from fasttrack_lab.storebench.curves import draw  # noqa: PLC0415 # slow to import

    return [
        {
            "name": name,
            "text": one.device.text,
            "elevator": one.elevator,
            "kernel": one.kernel,
            "command": one.command,
            "svg": draw(one),
        }
        for name, one in profiles.items()
    ]


def make(directory: Path, profiles: Profiles) -> None:
    """Write the page and the CSV files of profiles."""
    virtual = all(one.phone for one in profiles.values())
    text = report.render(
        "storebench.html.j2",
        names=list(profiles),
        devices=_devices(profiles),
        tables=[
            (DEPTH_HEADINGS, list(depth_rows(profiles)), RULE),
            (SLOWDOWN_HEADINGS, list(slowdown_rows(profiles)), BESIDE),
            (POSTER_HEADINGS, list(poster_rows(profiles)), poster.NOTE),
        ],
        notes=report.NOTES if virtual else (),
        data_files=(CURVES_CSV, SLOWDOWNS_CSV),
    )
    write_if_changed(directory / PAGE, text.encode())
    write_if_changed(directory / CURVES_CSV, _csv(_curves(profiles)))
    write_if_changed(directory / SLOWDOWNS_CSV, _csv(_slowdowns(profiles)))
