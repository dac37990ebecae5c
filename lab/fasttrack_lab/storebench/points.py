# SPDX-License-Identifier: GPL-2.0-only
"""The points of a profile, as tables and curves show them."""

from __future__ import annotations

from fasttrack_lab.inputs.patterns import Pattern
from fasttrack_lab.inputs.profile import Point, Profile


def rate(pattern: Pattern, point: Point) -> float:
    """Throughput in the unit of a pattern."""
    return point.iops if pattern.random else point.mb_s


def unit(pattern: Pattern) -> str:
    """That unit."""
    return "IOPS" if pattern.random else "MB/s"


def best(profile: Profile, pattern: Pattern) -> Point:
    """The point at the best concurrency."""
    wanted = dict(profile.depths.items())[pattern.name]
    return next(point for point in profile.curves[pattern.name] if point.depth == wanted)
