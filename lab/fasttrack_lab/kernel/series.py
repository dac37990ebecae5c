# SPDX-License-Identifier: GPL-2.0-only
"""The patches one after another: with each more the kernel builds, FastTrack configured on and off.

The overlay is there from the first patch on: files of its that nothing includes or builds yet do no harm. The option
comes with the core's patch, after all hooks that the core needs; before that there is only off.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from fasttrack_lab import cores, ui
from fasttrack_lab.errors import LabError
from fasttrack_lab.kernel import build, config
from fasttrack_lab.kernel.base import BaseFile, find_archive, unpack
from fasttrack_lab.kernel.tree import Changes, WorkTree
from fasttrack_lab.paths import cache_dir, lock

OPTION = "CONFIG_FASTTRACK"
STRICT = {"CONFIG_WERROR": "y"}


@dataclass(frozen=True)
class Variant:
    """A configuration that is built."""

    name: str
    target: str
    options: dict[str, str]
    """What differs from the target's fragments."""
    goals: tuple[str, ...] = ("linux",)

    def asked(self) -> dict[str, str]:
        """All options that are asked for."""
        return config.merge(build.TARGETS[self.target].fragment_paths()) | self.options


ON = Variant("on", "um", STRICT)
OFF = Variant("off", "um-off", STRICT)
MODULES = Variant(
    "modules",
    "um",
    STRICT
    | {
        "CONFIG_MODULES": "y",
        "CONFIG_EXT4_FS": "m",
        "CONFIG_F2FS_FS": "m",
        "CONFIG_F2FS_FS_COMPRESSION": "y",
        "CONFIG_IOSCHED_FASTTRACK": "m",
        "CONFIG_IOSCHED_SMARTIO": "m",
        "CONFIG_SCSI": "m",
        "CONFIG_BLK_DEV_SD": "m",
        "CONFIG_SCSI_MFLASH": "m",
    },
    ("linux", "modules"),
)
"""Everything that can be a module and calls FastTrack is one: what they call is exported."""


def parts(changes: Changes) -> Iterator[Changes]:
    """CHANGES with its first patch, with its first two, and so on to all."""
    for count in range(1, len(changes.patches) + 1):
        yield replace(changes, patches=changes.patches[:count])


@dataclass(frozen=True)
class Series:
    """A tree of its own, and a build directory for each variant."""

    tree: WorkTree
    outputs: Path

    def builds(self, variant: Variant, last: Path, *, whole: bool) -> bool:
        """Build VARIANT of the tree as it is; False if it has not the option yet that makes FastTrack part of it.

        LAST is the patch that an error names; with WHOLE every option asked for has to be there.
        """
        target = build.TARGETS[variant.target]
        output = self.outputs / f"build-series-{variant.name}"
        output.mkdir(parents=True, exist_ok=True)
        log = output / "fasttrack.log"
        log.write_bytes(b"")
        asked = variant.asked()
        # Options come with the patches: made anew, it has those that the tree has by now.
        (output / ".config").unlink(missing_ok=True)
        try:
            build.configure(target, asked, self.tree.root, output, log)
            built = config.parse((output / ".config").read_text())
            if whole:
                build.check_config(asked, output / ".config")
            elif built.get(OPTION, "n") != asked[OPTION]:
                return False
            goals = (f"-j{cores.count()}", *variant.goals)
            build.run_make(build.make_argv(target, self.tree.root, output, *goals), log)
        except LabError as error:
            raise LabError(f"{last.name}, {variant.name}: {error}") from error
        return True


def check(first: str = "") -> dict[str, int]:
    """Build after each patch; how many builds each variant had. An error names the patch after which one fails.

    FIRST is the beginning of a patch's name: the builds before that are left out.
    """
    changes = Changes.of_checkout()
    todo = [part for part in parts(changes) if part.patches[-1].name >= first]
    if not todo:
        raise LabError(f"the last patch is {changes.patches[-1].name}, which comes before {first}")
    base = BaseFile.load()
    archive = find_archive(base)
    room = cache_dir("kernel")
    counts = {variant.name: 0 for variant in (ON, OFF, MODULES)}
    with lock("kernel-series"):
        source = room / f"tree-{archive.sha256[:12]}-series"
        unpack(archive, base, source)
        series = Series(WorkTree(source), room)
        with ui.bar("patches", len(todo)) as progress:
            for part in todo:
                series.tree.sync(part)
                whole = part == changes
                for variant in (ON, OFF, MODULES) if whole else (ON, OFF):
                    counts[variant.name] += series.builds(variant, part.patches[-1], whole=whole)
                progress.advance()
    return counts
