# SPDX-License-Identifier: GPL-2.0-only
"""Where things are: the checkout, and the cache of everything that is made from it."""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

CHECKOUT = Path(__file__).resolve().parents[3]
LAB = CHECKOUT / "lab"
KERNEL = CHECKOUT / "kernel"
DEVICE = CHECKOUT / "device"
GUEST = LAB / "guest"
PHONES = LAB / "phones"
POLICIES = LAB / "policies"
SCENARIOS = LAB / "scenarios"


def version() -> str:
    """The version of everything in the checkout."""
    return (CHECKOUT / "VERSION").read_text().strip()


RECORDINGS = "FASTTRACK_DATA"
"""Names the directory of recorded inputs. They are data of others, read where they lie: a checkout has none."""


def recording(name: str) -> Path | None:
    """The recording NAME, if it is there."""
    path = Path(os.environ.get(RECORDINGS, CHECKOUT.parent / "shared" / "data")) / name
    return path if path.is_file() else None


def cache_root() -> Path:
    """The cache directory: $FASTTRACK_CACHE, else $XDG_CACHE_HOME/fasttrack, else ~/.cache/fasttrack."""
    own = os.environ.get("FASTTRACK_CACHE")
    if own:
        return Path(own).absolute()
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared).absolute() if shared else Path.home() / ".cache") / "fasttrack"


def cache_dir(*parts: str) -> Path:
    """A directory of the cache, made if it is not there."""
    path = cache_root().joinpath(*parts)
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextmanager
def replaced(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes PATH's place when it is whole; after an error or Ctrl-C nothing is left.

    It is the user's alone until then. A link, a pipe or a device (/dev/stdout) is written to and stays what it is.
    """
    if path.is_symlink() or (path.exists() and not path.is_file()):
        with path.open("wb") as file:
            yield file
        return
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            os.fchmod(handle, 0o666 & ~_umask())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextmanager
def lock(name: str) -> Iterator[None]:
    """Hold the cache's lock NAME, so that two processes do not make the same thing at once."""
    with _lock_file(name) as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextmanager
def try_lock(name: str, shared: bool = False) -> Iterator[bool]:
    """The same without waiting: whether it is held, or somebody else has it. Of those SHARED there can be several."""
    with _lock_file(name) as handle:
        yield try_flock(handle, shared)


def try_flock(file: IO[Any] | int, shared: bool = False) -> bool:
    """Lock an open FILE or directory until it is closed, without waiting: whether it is held now."""
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


IN_USE = "in-use"
"""The lock of a command that uses the cache, shared, and of the one that cleans it."""


def _lock_file(name: str) -> IO[str]:
    return (cache_dir("locks") / name).open("w")


def digest(parts: Iterable[bytes | str]) -> str:
    """Hash of a sequence; the length of each part counts, so that parts cannot run into each other."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        total.update(len(data).to_bytes(8, "little"))
        total.update(data)
    return total.hexdigest()


def tree_parts(root: Path) -> Iterator[bytes | str]:
    """Names and contents of all files below ROOT in a fixed order, for digest()."""
    for path in sorted(p for p in root.rglob("*") if p.is_file() and "target" not in p.relative_to(root).parts[:1]):
        yield str(path.relative_to(root))
        yield path.read_bytes()


def mark_used(path: Path) -> None:
    """Of a store, what was used last stays. In another user's store nothing can be marked, and all can be used."""
    with suppress(PermissionError):
        os.utime(path)


def newest_first(paths: Iterable[Path]) -> list[Path]:
    """Those of PATHS that are there, by the time of their last change. What a store keeps is at the front.

    Others use the store meanwhile: what was listed may be gone, or have got its final name.
    """
    changed = {}
    for path in paths:
        with suppress(FileNotFoundError):
            changed[path] = path.stat().st_mtime
    return sorted(changed, key=lambda path: changed[path], reverse=True)


def file_sha256(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def write_if_changed(path: Path, data: bytes, executable: bool = False) -> bool:
    """Write DATA to PATH unless it is there already; the old file stays whole until the new one is.

    Several may write the same at once.
    """
    if path.is_file() and path.read_bytes() == data:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    try:
        temporary.write_bytes(data)
        if executable:
            temporary.chmod(0o755)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return True
