# SPDX-License-Identifier: GPL-2.0-only
"""Debian's kernel as it is, from its package into the cache, and a machine that starts with it.

Its drivers are modules: an initrd of busybox loads those that the tests need, and goes on with the host's file system
as its root, as guests of the lab have it.
"""

from __future__ import annotations

import lzma
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from fasttrack_lab.build import stored
from fasttrack_lab.host.errors import LabError
from fasttrack_lab.host.paths import digest

KERNEL = "linux-image-6.12.117+deb12-amd64"
"""The flavour that has f2fs."""

BUSYBOX = "busybox-static"
STORED = 2
MODULES = (
    "virtio_scsi",
    "sd_mod",
    "9pnet_virtio",
    "9p",
    "crc32c_generic",
    "crc32_generic",
    "ext4",
    "f2fs",
    "null_blk",
    "xts",
    "dm_crypt",
)

INIT = """#!/bin/sh
/bin/busybox mount -t proc proc /proc
for module in $(/bin/busybox cat /modules/order); do
	/bin/busybox insmod "/modules/$module" || echo "fasttrack-guest: error: module $module"
done
for word in $(/bin/busybox cat /proc/cmdline); do
	case $word in init=*) init=${word#init=} ;; esac
done
/bin/busybox umount /proc
/bin/busybox mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=262144,cache=loose root /root
/bin/busybox mount -t devtmpfs devtmpfs /root/dev
exec /bin/busybox switch_root /root "$init"
"""


def fetch(package: str, to: Path) -> None:
    """What a Debian package has, unpacked; nothing is installed."""
    done = subprocess.run(
        ["apt-get", "download", "--quiet", package], cwd=to, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise LabError(
            f"apt-get could not download {package}: {done.stderr}. Is there a network, and Debian's archive?"
        )
    (archive,) = to.glob("*.deb")
    subprocess.run(["dpkg-deb", "-x", str(archive), str(to)], check=True)
    archive.unlink()


def unpacked(package: str) -> Path:
    """The package in the cache."""
    return stored.folder("stock", package, STORED, lambda to: fetch(package, to))


def image() -> Path:
    """The kernel."""
    return unpacked(KERNEL) / "boot" / KERNEL.replace("linux-image", "vmlinuz")


def needs(module: bytes) -> list[str]:
    """Modules that a module says it needs."""
    found = re.search(rb"\0depends=([^\0]*)\0", module)
    return [name for name in (found[1].decode().split(",") if found else []) if name]


def in_order(folder: Path, wanted: tuple[str, ...]) -> dict[str, bytes]:
    """Modules with all that they need, which comes first."""
    paths = {path.name.removesuffix(".ko.xz").replace("-", "_"): path for path in folder.rglob("*.ko.xz")}
    found: dict[str, bytes] = {}

    def add(name: str) -> None:
        name = name.replace("-", "_")
        if name in found:
            return
        if name not in paths:
            raise LabError(f"{KERNEL} has no module {name}")
        content = lzma.decompress(paths[name].read_bytes())
        for needed in needs(content):
            add(needed)
        found[name] = content

    for name in wanted:
        add(name)
    return found


def archive(files: dict[str, tuple[int, bytes]]) -> bytes:
    """A cpio archive, as kernels read it: name -> mode and content; a folder has none."""

    def entries() -> Iterator[bytes]:
        for number, (name, (mode, content)) in enumerate([*files.items(), ("TRAILER!!!", (0, b""))]):
            fields = (number + 1, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0)
            head = b"070701" + b"".join(b"%08x" % field for field in fields) + name.encode() + b"\0"
            yield head + bytes(-len(head) % 4)
            yield content + bytes(-len(content) % 4)

    return b"".join(entries())


def _make_initrd(to: Path) -> None:
    files: dict[str, tuple[int, bytes]] = dict.fromkeys(("bin", "dev", "modules", "proc", "root", "sys"), (16877, b""))
    busybox = (unpacked(BUSYBOX) / "bin" / "busybox").read_bytes()
    files["bin/busybox"] = files["bin/sh"] = (0o100755, busybox)
    modules = in_order(unpacked(KERNEL) / "lib" / "modules", MODULES)
    files |= {f"modules/{name}": (0o100644, content) for name, content in modules.items()}
    files["modules/order"] = (0o100644, "\n".join(modules).encode())
    files["init"] = (0o100755, INIT.encode())
    (to / "initrd").write_bytes(archive(files))


def initrd() -> Path:
    """What the kernel starts with."""
    key = digest([KERNEL, BUSYBOX, INIT, *MODULES])[:16]
    return stored.folder("stock-initrd", key, STORED, _make_initrd) / "initrd"
