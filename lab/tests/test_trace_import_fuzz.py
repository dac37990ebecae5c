# SPDX-License-Identifier: GPL-2.0-only
"""Readers of other tools' traces are fuzzed: for longer with FASTTRACK_FUZZ_SECONDS, as the device's parsers."""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from trace_imported import taken, written
from trace_samples import SAMPLES

from fasttrack_lab.host.errors import InputError
from fasttrack_lab.trace import sources
from fasttrack_lab.trace.importers.formats import of_file
from fasttrack_lab.trace.importers.importing import import_all


def mutations(whole: bytes, seed: int, count: int) -> list[bytes]:
    """Bytes changed, cut out, doubled and put in."""
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        data = bytearray(whole)
        for _ in range(chance.choice((1, 1, 2, 8, 40))):
            at = chance.randrange(len(data) + 1)
            match chance.randrange(4):
                case 0 if data:
                    data[at % len(data)] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
                case 1:
                    del data[at : at + chance.randrange(1, 64)]
                case 2:
                    data[at:at] = data[at : at + chance.randrange(1, 200)]
                case _:
                    data[at:at] = chance.randbytes(chance.randrange(1, 16))
        found.append(bytes(data))
    return found


CORPUS = Path(__file__).parent / "corpus"
"""A folder of each sample's name: inputs that a reader has failed with once, which are tried first for ever."""

FUZZED_S = float(os.environ.get("FASTTRACK_FUZZ_SECONDS", "0"))
"""For so long each sample is mutated after that, and differently each time."""


def inputs(sample: str, whole: bytes) -> Iterator[bytes]:
    """The corpus, and mutations."""
    yield from (path.read_bytes() for path in sorted((CORPUS / sample).glob("*")))
    yield from mutations(whole, len(sample), 150)
    end = time.monotonic() + FUZZED_S
    while time.monotonic() < end:
        yield from mutations(whole, random.getrandbits(64), 50)


@contextmanager
def kept(sample: str, data: bytes) -> Iterator[None]:
    """What a reader fails with is kept."""
    try:
        yield
    except Exception as error:
        path = Path(tempfile.gettempdir()) / f"fasttrack-fuzz-{sample}-{zlib.crc32(data):08x}"
        path.write_bytes(data)
        error.add_note(f"with {path}: put it into {CORPUS / sample}")
        raise


@pytest.mark.parametrize("sample", SAMPLES)
def test_mutations(tmp_path: Path, sample: str) -> None:
    """No reader raises anything; all that it says can be written."""
    form, write = SAMPLES[sample]
    for number, data in enumerate(inputs(sample, write(tmp_path)[0].read_bytes())):
        path = written(tmp_path, "mutant", data)
        with kept(sample, data):
            found = taken(form, path, tmp_path / "taken")
            assert all(damage.at >= 0 and damage.bytes >= 0 for damage in found.damages)
            if number % 50 == 0:
                import_all([path], tmp_path / "out", form)
                assert sources.open_all([tmp_path / "out"]).losses.count().to_pyarrow().as_py() >= 0


def test_what_fails_is_kept_and_tried_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(KeyError) as failed, kept("ftrace", b"spoilt"):
        raise KeyError("a reader's")
    (path,) = tmp_path.glob("fasttrack-fuzz-ftrace-*")
    assert str(path) in failed.value.__notes__[0]
    folder = tmp_path / "corpus" / "ftrace"
    folder.mkdir(parents=True)
    path.rename(folder / "once")
    monkeypatch.setattr(sys.modules[__name__], "CORPUS", tmp_path / "corpus")
    assert next(inputs("ftrace", b"whole")) == b"spoilt"


@pytest.mark.parametrize("sample", SAMPLES)
def test_mutations_are_a_format_or_an_input_error(tmp_path: Path, sample: str) -> None:
    whole = SAMPLES[sample][1](tmp_path)[0].read_bytes()
    for data in mutations(whole, 7, 100):
        of_file(written(tmp_path, "mutant", data))
    for data in mutations(whole[:40], 8, 5):
        try:
            import_all([written(tmp_path, "mutant", data)], tmp_path / "out")
        except InputError as error:
            assert "mutant" in str(error)
