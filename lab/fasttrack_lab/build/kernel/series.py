# SPDX-License-Identifier: GPL-2.0-only
"""The patches one after another: with each more the kernel builds, FastTrack configured on and off.

The overlay is there from the first patch on: files of its that nothing includes or builds yet do no harm. The option
comes with the core's patch, after all hooks that the core needs; before that there is only off.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from fasttrack_lab.build.kernel import config, kbuild
from fasttrack_lab.build.kernel.tree import Changes, WorkTree
from fasttrack_lab.host import cores, ui
from fasttrack_lab.host.errors import LabError, UsageProblem
from fasttrack_lab.host.paths import lock

OPTION = "CONFIG_FASTTRACK"
STRICT = {"CONFIG_WERROR": "y"}


@dataclass(frozen=True)
class Variant:
    """A configuration that is built, in the series' own tree."""

    name: str
    like: kbuild.Target
    options: dict[str, str]
    """What differs from the fragments of LIKE."""
    goals: tuple[str, ...] = ("linux",)

    @property
    def target(self) -> kbuild.Target:
        """LIKE with this tree, and an output directory of the variant's own."""
        return replace(self.like, name=f"series-{self.name}", tree="-series")

    def asked(self) -> dict[str, str]:
        """All options that are asked for."""
        return config.merge(self.like.fragment_paths()) | self.options

    def builds(self, tree: WorkTree, output: Path, last: Path, *, whole: bool) -> bool:
        """Build the tree as it is; False if it has not the option yet that makes FastTrack part of it.

        LAST is the patch that an error names; with WHOLE every option asked for has to be there.
        """
        log, asked = output / "fasttrack.log", self.asked()
        # Options come with the patches: made anew, it has those that the tree has by now.
        (output / ".config").unlink(missing_ok=True)
        try:
            kbuild.configure(self.target, asked, tree.root, output, log)
            built = config.parse((output / ".config").read_text())
            if whole:
                kbuild.check_config(asked, output / ".config")
            elif built.get(OPTION, "n") != asked[OPTION]:
                return False
            goals = (f"-j{cores.count()}", *self.goals)
            kbuild.run_make(kbuild.make_argv(self.target, tree.root, output, *goals), log)
        except LabError as error:
            raise LabError(f"{last.name}, {self.name}: {error}") from error
        return True


ON = Variant("on", kbuild.TARGETS["um"], STRICT)
OFF = Variant("off", kbuild.TARGETS["um-off"], STRICT)
MODULES = Variant(
    "modules",
    kbuild.TARGETS["um"],
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
LOCK = ON.target.lock_name


def parts(changes: Changes) -> Iterator[Changes]:
    """CHANGES with its first patch, with its first two, and so on to all."""
    for count in range(1, len(changes.patches) + 1):
        yield replace(changes, patches=changes.patches[:count])


def check(first: str = "") -> dict[str, int]:
    """Build after each patch; how many builds each variant had. An error names the patch after which one fails.

    FIRST is the beginning of a patch's name: the builds before that are left out.
    """
    changes = Changes.of_checkout()
    todo = [part for part in parts(changes) if part.patches[-1].name >= first]
    if not todo:
        raise UsageProblem(f"the last patch is {changes.patches[-1].name}, which comes before {first}")
    counts = {variant.name: 0 for variant in (ON, OFF, MODULES)}
    with lock(LOCK):
        # One tree, and an output directory for each.
        places = {variant.name: kbuild.work_tree(variant.target) for variant in (ON, OFF, MODULES)}
        tree, _ = places[ON.name]
        with ui.bar("patches", len(todo)) as progress:
            for part in todo:
                tree.sync(part)
                whole = part == changes
                for variant in (ON, OFF, MODULES) if whole else (ON, OFF):
                    _, output = places[variant.name]
                    counts[variant.name] += variant.builds(tree, output, part.patches[-1], whole=whole)
                progress.advance()
    return counts
