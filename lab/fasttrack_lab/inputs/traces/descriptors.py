# SPDX-License-Identifier: GPL-2.0-only
"""File descriptors of a system-call recording: which calls belong to which, and what each one was.

A descriptor is a file by its name, or, where the recording does not give one, by evidence: pipes and sockets
refuse calls with an offset and fsync. The other way round, transfers of at most 8 bytes are the wake-ups of an
eventfd or a pipe; a read that failed (nothing there yet) or reads and writes in turn are a socket's or a pipe's.
What shows neither is left out too, under its own name.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

FILE = "file, by its name"
FILE_BY_EVIDENCE = "file without a recorded open, by calls with an offset or fsync"
DEVICE = "device node"
KERNEL_FILE = "proc or sys file"
WAKE_UP = "pipe or eventfd, by transfers of 1 to 8 bytes"
STREAM = "pipe or socket, by failed reads or two-way transfers"
UNUSED = "descriptor that is only closed or looked at"
UNKNOWN = "descriptor with neither name nor evidence"
FILES = (FILE, FILE_BY_EVIDENCE)

WAKE_UP_BYTES = 8
"""An eventfd moves 8 bytes; Android's wake pipes move 1 (Looper) or 4."""
_POSITIONED = ("pread", "pwrite", "fsync", "fdatasync", "lseek", "ftruncate")


@dataclass
class Descriptor:
    """One life of a descriptor, from open to close."""

    number: int
    """Unique over the whole recording."""
    path: str | None
    """Name in the app's directory; None where it was opened before the recording or by a call not recorded."""
    flags: str = ""
    calls: Counter[str] = field(default_factory=Counter)
    largest: int = 0
    failed_reads: int = 0

    def note(self, call: str, args: tuple[str | int, ...]) -> None:
        """Takes a call as evidence."""
        self.calls[call] += 1
        if call in ("read", "write"):
            self.largest = max(self.largest, int(args[1]))
            self.failed_reads += int(args[1]) < 0

    @property
    def reads(self) -> bool:
        """Whether anything is read through it."""
        return bool(self.calls["read"] + self.calls["pread"])

    @property
    def writes(self) -> bool:
        """Whether anything is written through it."""
        return bool(self.calls["write"] + self.calls["pwrite"] + self.calls["ftruncate"])

    @property
    def directory(self) -> bool:
        """Whether it is a directory: opened as one, or opened to read and then only fsynced."""
        if "O_DIRECTORY" in self.flags:
            return True
        only_synced = self.calls["fsync"] > 0 and not self.reads and not self.writes
        return only_synced and "O_RDONLY" in self.flags and "O_CREAT" not in self.flags

    def kind(self) -> str:
        """What it is taken for."""
        if self.path is not None:
            first = self.path.split("/", 1)[0]
            return {"dev": DEVICE, "proc": KERNEL_FILE, "sys": KERNEL_FILE}.get(first, FILE)
        if any(self.calls[call] for call in _POSITIONED):
            return FILE_BY_EVIDENCE
        if self.failed_reads or (self.calls["read"] and self.calls["write"]):
            return STREAM
        if 0 < self.largest <= WAKE_UP_BYTES:
            return WAKE_UP
        return UNKNOWN if self.reads or self.writes else UNUSED


def clean_path(name: str) -> str:
    """A recorded name as a path inside the app's directory: quotes, a trailing `/nil` and leading slashes go."""
    bare = name.replace('"', "").removesuffix("/nil").strip("/")
    return "/".join(part for part in bare.split("/") if part not in ("", ".", ".."))


class DescriptorTable:
    """The process' table of descriptors, followed through the recording in the order of time."""

    def __init__(self) -> None:
        """No descriptor is open."""
        self._open: dict[int, Descriptor] = {}
        self._count = 0
        self._journal: dict[int, str] = {}
        self._made: dict[int, str] = {}

    def open(self, fd: int, path: str | None, flags: str) -> Descriptor:
        """A new life; one that was still open ended by a close that was not recorded."""
        self._count += 1
        self._open[fd] = Descriptor(self._count, path, flags)
        return self._open[fd]

    def preopened(self, fd: int) -> Descriptor:
        """A made-up open: it stands for nothing where the table knows the descriptor already."""
        return self._open.get(fd) or self.open(fd, None, "")

    def use(self, fd: int, call: str, args: tuple[str | int, ...]) -> Descriptor:
        """The descriptor of a call. A close ends its life."""
        descriptor = self.preopened(fd)
        descriptor.note(call, args)
        if call == "close":
            del self._open[fd]
        return descriptor

    def look_up(self, thread: int, name: str) -> None:
        """Notes a name that a thread asked about: SQLite looks for its journal before it opens it."""
        if name.strip('"').endswith("-journal"):
            self._journal[thread] = clean_path(name)

    def name_of(self, thread: int, name: str, flags: str) -> str:
        """The path to open. A lost name is the journal just looked up, the thread's last made-up file, or a new one."""
        if name != "data/data":
            return clean_path(name)
        parts = flags.split("|")
        journal = self._journal.pop(thread, None)
        if journal is not None and "O_CREAT" in parts and "O_RDWR" in parts and "O_EXCL" not in parts:
            return journal
        if "O_CREAT" in parts:
            self._made[thread] = f"lost/{thread}-{self._count + 1}"
        return self._made.setdefault(thread, f"lost/{thread}-before")
