# SPDX-License-Identifier: GPL-2.0-only
"""The file system of a block device that nobody has mounted: which one it is, and how to look into it without a write.

A mount replays what a crash left behind, a read-only one too, and that of XFS writes even where there is nothing to
replay. So the file system's own tool is asked first, which only reads, and the mount is told to leave the journal
alone. What cannot be asked is refused.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fasttrack_lab.host import process
from fasttrack_lab.host.errors import LabError

UNCLEAR = "its tool does not say whether it is clean"
MOUNT_IT = "mount it and give a directory there"
MOUNT_ONCE = "mount and unmount it once"
F2FS_REPAIR = f"{MOUNT_ONCE}, or run fsck.f2fs on it"


@dataclass(frozen=True)
class FileSystem:
    """How one type of file system is looked at."""

    name: str
    """As blkid and mount call it."""
    tool: tuple[str, ...]
    """argv of what knows whether it is clean; the device comes last. It only reads."""
    package: str
    """Debian's, with the tool."""
    pending: Callable[[str], str]
    """From what the tool says to what a mount would have to repair; an empty string for nothing."""
    options: str
    """Of a mount that writes nothing."""
    repair: str
    """The way out, where there is something to repair."""


def _ext(said: str) -> str:
    """Of dumpe2fs -h."""
    values = dict(re.findall(r"^([\w ]+):[ \t]*(.*)$", said, re.M))
    features, state = values.get("Filesystem features", "").split(), values.get("Filesystem state", "")
    if not features or not state:
        return UNCLEAR
    if "needs_recovery" in features:
        return "its journal is to be replayed"
    # A mount deletes them, whatever its options.
    if "orphan_present" in features or "First orphan inode" in values:
        return "it has files to delete since a crash"
    return "" if state == "clean" else f"its state is {state!r}"


def _xfs(said: str) -> str:
    """Of xfs_logprint -t."""
    if "state: <DIRTY>" in said:
        return "its log is to be replayed"
    return "" if "state: <CLEAN>" in said else UNCLEAR


F2FS_REPAIRS = frozenset(
    ("sudden-power-off", "orphan_inodes", "fsck", "error", "disabled", "quota_need_fsck", "resizefs")
)
"""Words of a checkpoint's state for which a mount writes."""


def _f2fs(said: str) -> str:
    """Of dump.f2fs."""
    state = re.search(r"^Info: checkpoint state = [0-9a-f]+ :(.*)$", said, re.M)
    words = set(state[1].split()) if state else set()
    if repairs := sorted(F2FS_REPAIRS & words):
        return f"its checkpoint says {', '.join(repairs)}"
    return "" if "unmount" in words else UNCLEAR


def _btrfs(said: str) -> str:
    """Of btrfs inspect-internal dump-super."""
    root = re.search(r"^log_root\s+(\d+)$", said, re.M)
    if not root:
        return UNCLEAR
    return "its log tree is to be replayed" if int(root[1]) else ""


_DUMPE2FS = ("dumpe2fs", "-h")
_E2FSCK = "run e2fsck -p on it"

KINDS = {
    kind.name: kind
    for kind in (
        # ext2 has no journal, and does not know the option.
        FileSystem("ext2", _DUMPE2FS, "e2fsprogs", _ext, "ro", _E2FSCK),
        FileSystem("ext3", _DUMPE2FS, "e2fsprogs", _ext, "ro,noload", _E2FSCK),
        FileSystem("ext4", _DUMPE2FS, "e2fsprogs", _ext, "ro,noload", _E2FSCK),
        FileSystem("xfs", ("xfs_logprint", "-t"), "xfsprogs", _xfs, "ro,norecovery", MOUNT_ONCE),
        FileSystem("f2fs", ("dump.f2fs",), "f2fs-tools", _f2fs, "ro,norecovery", F2FS_REPAIR),
        FileSystem(
            "btrfs",
            ("btrfs", "inspect-internal", "dump-super"),
            "btrfs-progs",
            _btrfs,
            "ro,rescue=nologreplay",
            MOUNT_ONCE,
        ),
    )
}


def _type(device: Path) -> str:
    """What blkid finds on DEVICE itself, not in its cache."""
    try:
        return process.output(["blkid", "-p", "-o", "value", "-s", "TYPE", str(device)]).strip()
    except LabError as error:
        raise LabError(
            f"{device} has no file system that blkid knows, so no file can be made on it: {error}"
        ) from error


def clean(device: Path) -> FileSystem:
    """The file system on DEVICE, which a mount would not have to repair. Else LabError; nothing is written."""
    name = _type(device)
    if name not in KINDS:
        raise LabError(
            f"{device} has {name or 'no file system'}; only {', '.join(KINDS)} can be looked into without a write; "
            f"{MOUNT_IT}"
        )
    kind = KINDS[name]
    if not shutil.which(kind.tool[0]):
        raise LabError(
            f"{device}: {kind.tool[0]} is missing, which says whether its {name} is clean; "
            f"install {kind.package}, or {MOUNT_IT}"
        )
    if why := kind.pending(process.output(["env", "LC_ALL=C", *kind.tool, str(device)])):
        raise LabError(f"{device}: to mount its {name} may write: {why}; {kind.repair}, or {MOUNT_IT}")
    return kind
