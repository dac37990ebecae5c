# SPDX-License-Identifier: GPL-2.0-only
"""README's picture is the one that the records make."""

from __future__ import annotations

from fasttrack_lab.commands.results import RESULTS
from fasttrack_lab.compare import archive
from fasttrack_lab.figures import picture


def test_the_picture_is_of_the_records() -> None:
    drawn = picture.draw(archive.read(archive.beside(RESULTS)))
    assert drawn == RESULTS.with_name(picture.NAME).read_text(encoding="utf-8"), (
        "./fasttrack results --no-runs makes it"
    )
    for policy in picture.POLICIES:
        assert policy in drawn
