# SPDX-License-Identifier: GPL-2.0-only
"""From followed MobiGen calls to the normalised trace, and the files that must be there before it starts."""

from __future__ import annotations

from fasttrack_lab.inputs.traces.descriptors import FILES, Descriptor, clean_path
from fasttrack_lab.inputs.traces.model import Call, NeededFile, Stats

_FLAG_BITS = {
    "O_RDONLY": 0,
    "O_WRONLY": 1,
    "O_RDWR": 2,
    "O_CREAT": 0o100,
    "O_EXCL": 0o200,
    "O_TRUNC": 0o1000,
    "O_APPEND": 0o2000,
    "O_DSYNC": 0o10000,
    "O_SYNC": 0o4010000,
    "O_DIRECTORY": 0o200000,
}
"""Values of x86-64 Linux. Other recorded flags (O_LARGEFILE, O_CLOEXEC...) change nothing here."""
_LOOKUPS = ("access", "stat", "stat64", "lstat", "lstat64")
_NO_IO = ("fstat", "fstat64")
_DIRECTORY_KEEPER = ".keep"
"""An empty file that makes its directory exist."""


class Emitter:
    """Collects normalised calls, and what they need of each file."""

    def __init__(self, stats: Stats) -> None:
        """Counts what it leaves out in `stats`."""
        self.calls: list[Call] = []
        self._stats = stats
        self._opened: set[int] = set()
        self._positions: dict[int, int] = {}
        self._sizes: dict[str, int] = {}
        self._made: set[str] = set()
        self._directories: set[str] = set()

    def outside(self, descriptor: Descriptor | None, call: str) -> None:
        """A call outside the window: only a close of a descriptor in use is replayed no more."""
        self._stats.left_out["outside the window"] += 1
        if descriptor is not None and call == "close":
            self._opened.discard(descriptor.number)

    def call(self, thread: int, us: int, call: str, args: tuple[str | int, ...], descriptor: Descriptor | None) -> None:
        """One call of the recording."""
        if descriptor is None:
            self._by_path(thread, us, call, args)
        elif (kind := descriptor.kind()) not in FILES:
            self._stats.left_out[f"calls on: {kind}"] += 1
        elif call in _NO_IO:
            self._stats.left_out["fstat calls, which do no I/O"] += 1
        elif call in ("read", "write") and int(args[1]) < 0:
            self._stats.left_out["reads and writes that failed in the recording"] += 1
        elif call == "open":
            self._open(thread, us, descriptor)
        else:
            if descriptor.number not in self._opened:
                self._open(thread, us, descriptor, before=True)
            self._by_descriptor(thread, us, call, args, descriptor)

    def _emit(self, thread: int, us: int, name: str, *args: str | int) -> None:
        """Appends one call."""
        self.calls.append(Call(thread, us, name, args))

    def _path(self, descriptor: Descriptor) -> str:
        """The file of a descriptor."""
        return descriptor.path or f"before/{descriptor.number}"

    def _open(self, thread: int, us: int, descriptor: Descriptor, before: bool = False) -> None:
        """An open, recorded, or made up for a descriptor that was open before."""
        path = self._path(descriptor)
        bits = 0
        for flag in descriptor.flags.split("|"):
            bits |= _FLAG_BITS.get(flag, 0)
        if descriptor.directory:
            self._directories.add(path)
            bits = _FLAG_BITS["O_DIRECTORY"]
        else:
            bits = self._file_flags(descriptor, bits, before)
            if bits & _FLAG_BITS["O_CREAT"] and bits & (_FLAG_BITS["O_TRUNC"] | _FLAG_BITS["O_EXCL"]):
                self._create(path)
            elif not bits & _FLAG_BITS["O_CREAT"]:
                self._want(path, 0)
        self._opened.add(descriptor.number)
        self._positions[descriptor.number] = 0
        self._emit(thread, us, "open", path, bits, descriptor.number)

    def _file_flags(self, descriptor: Descriptor, bits: int, before: bool) -> int:
        """The flags with an access mode that allows what the descriptor does later."""
        access = bits & 3
        use = (descriptor.reads, descriptor.writes)
        allowed = {0: (True, False), 1: (False, True), 2: (True, True)}.get(access, (False, False))
        if (use[0] and not allowed[0]) or (use[1] and not allowed[1]):
            access = {(True, False): 0, (False, True): 1}.get(use, 2)
        bits = bits & ~3 | access
        if before:
            bits &= ~(_FLAG_BITS["O_TRUNC"] | _FLAG_BITS["O_EXCL"])
            bits |= _FLAG_BITS["O_CREAT"] if descriptor.writes else 0
        return bits

    def _create(self, path: str) -> None:
        """From here on the replay itself makes the file; what it needed before stays."""
        if path not in self._sizes:
            self._made.add(path)

    def _want(self, path: str, size: int) -> None:
        """The file must have so many bytes before the replay, unless the replay has made it."""
        if path not in self._made:
            self._sizes[path] = max(size, self._sizes.get(path, 0))

    def _by_descriptor(
        self, thread: int, us: int, call: str, args: tuple[str | int, ...], descriptor: Descriptor
    ) -> None:
        """A call on an open file."""
        fd, path = descriptor.number, self._path(descriptor)
        if call in ("read", "write"):
            size = int(args[1])
            self._positions[fd] += size
            self._transfer(call, path, size, self._positions[fd])
            self._emit(thread, us, call, fd, size)
        elif call in ("pread", "pwrite"):
            offset, size = int(args[1]), int(args[2])
            if size < 0:
                self._stats.left_out["reads and writes that failed in the recording"] += 1
                return
            self._transfer(call.removeprefix("p"), path, size, offset + size)
            self._emit(thread, us, call, fd, size, offset)
        elif call == "lseek":
            self._positions[fd] = max(0, int(args[2]))
            self._emit(thread, us, call, fd, self._positions[fd], 0)
        elif call == "ftruncate":
            self._emit(thread, us, call, fd, int(args[1]))
        else:
            if call == "close":
                self._opened.discard(fd)
            self._emit(thread, us, call, fd)

    def _transfer(self, call: str, path: str, size: int, end: int) -> None:
        """Counts the bytes; what is read must be there."""
        if call == "read":
            self._stats.bytes_read += size
            self._want(path, end)
        else:
            self._stats.bytes_written += size

    def _by_path(self, thread: int, us: int, call: str, args: tuple[str | int, ...]) -> None:
        """A call that names its file. A failed open costs a lookup, as a stat does."""
        path, worked = clean_path(str(args[0])), int(args[-1]) == 0
        if path == "" or path.split("/", 1)[0] in ("dev", "proc", "sys"):
            self._stats.left_out["lookups of the root, device nodes, proc and sys files"] += 1
        elif call in _LOOKUPS or call == "open":
            if worked:
                self._want(path, 0)
            self._emit(thread, us, "stat", path)
        elif not worked:
            self._stats.left_out[f"{call} calls that failed in the recording"] += 1
        elif call == "rename":
            self._want(path, 0)
            self._create(clean_path(str(args[1])))
            self._emit(thread, us, call, path, clean_path(str(args[1])))
        elif call == "mkdir":
            self._emit(thread, us, call, path)
        elif call == "rmdir":
            self._stats.left_out["rmdir calls"] += 1
        else:
            self._want(path, 0)
            if call == "unlink":
                self._made.add(path)
            self._emit(thread, us, call, path, *(args[1:-1] if call == "truncate" else ()))

    def needed(self) -> list[NeededFile]:
        """The files to prepare. A path that has others below it is a directory, not a file."""
        parents = {
            "/".join(parts[:depth])
            for parts in (path.split("/") for path in [*self._sizes, *self._made])
            for depth in range(1, len(parts))
        }
        directories = self._directories | parents
        files = [NeededFile(path, size) for path, size in self._sizes.items() if path not in directories]
        keepers = [NeededFile(f"{path}/{_DIRECTORY_KEEPER}", 0) for path in directories if path]
        return sorted([*files, *keepers], key=lambda item: item.path)
