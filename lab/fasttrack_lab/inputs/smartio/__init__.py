# SPDX-License-Identifier: GPL-2.0-only
"""SmartIO's twenty apps: scenarios by parameter, reachable by name like those of lab/scenarios.

`table` reads the rows of lab/scenarios/smartio/apps.toml, `mix` says how many operations of each kind a row stands for,
`generate` makes the text of a scenario file of them.
"""

from __future__ import annotations

from fasttrack_lab.inputs.smartio import generate
from fasttrack_lab.inputs.smartio.table import TABLE, rows

__all__ = ["KINDS", "TABLE", "apps", "name_of", "names", "pattern", "text_of"]

KINDS = {"launch": generate.launch, "run": generate.run, "install": generate.install}


def apps() -> tuple[str, ...]:
    """The apps, in the table's order."""
    return tuple(rows())


def name_of(app: str, kind: str) -> str:
    """The scenario's name."""
    return f"smartio-{app}-{kind}"


def names() -> list[str]:
    """All scenarios' names."""
    return [name_of(app, kind) for app in apps() for kind in KINDS]


def pattern() -> str:
    """The names in one line."""
    return f"smartio-APP-{'|'.join(KINDS)} with APP one of {', '.join(apps())}"


def text_of(name: str) -> str | None:
    """The scenario file of that name, or None where the table has no such app."""
    for app, row in rows().items():
        for kind, make in KINDS.items():
            if name == name_of(app, kind):
                return make(row)
    return None
