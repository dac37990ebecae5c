# SPDX-License-Identifier: GPL-2.0-only
"""What may stand in braces in a policy's values, and what it becomes in a run.

{uid} are the UIDs in front, {apps} those of all apps of the run, services too; with blanks between.
{profile.random_read_depth} and its like are the best concurrency of the phone's storage, as its saved profile has it:
requests at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from fasttrack_lab.host.errors import LabError
from fasttrack_lab.inputs import profile
from fasttrack_lab.inputs.patterns import PATTERNS

Values = Mapping[str, str]
"""What placeholders become, by name."""

UID, APPS = "uid", "apps"
DEPTHS = {f"profile.{pattern.name}_depth": pattern.name for pattern in PATTERNS}
"""Placeholder -> pattern."""

_BRACES = re.compile(r"\{([^{}]*)\}")


def names(text: str) -> list[str]:
    """The placeholders in a text, in its order."""
    return _BRACES.findall(text)


def filled(text: str, values: Values) -> str:
    """The text with VALUES in the place of its placeholders, all of which they have."""
    return _BRACES.sub(lambda found: values[found[1]], text)


def of_phone(used: Iterable[str], name: str, directory: Path = profile.PROFILES) -> Values:
    """What those of the USED placeholders become that depend on the phone NAME alone.

    The phone's profile is read only where they ask for it. LabError where it is lacking or cannot be used.
    """
    wanted = [placeholder for placeholder in used if placeholder in DEPTHS]
    if not wanted:
        return {}
    found = profile.for_phone(name, directory)
    if found is None:
        raise LabError(
            f"{{{wanted[0]}}}: the phone {name} has no profile {directory / name}.json; "
            f"measure it first: ./fasttrack storebench --phone {name}"
        )
    depths = dict(found.depths.items())
    return {placeholder: str(depths[pattern]) for placeholder, pattern in DEPTHS.items()}
