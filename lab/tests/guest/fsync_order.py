#!/usr/bin/python3 -ESsBu
# SPDX-License-Identifier: GPL-2.0-only
"""Fsyncs of a file, each the first after a checkpoint or commit of others, with the block layer's events."""

from __future__ import annotations

import os

from prologue import BLOCK, DATA, PATTERN, TRACE, Shown, enable, make, run, write

FSYNCS = 6


def fsyncs() -> Shown:
    make("file", 1)
    os.sync()
    handle = os.open(DATA / "file", os.O_WRONLY | os.O_APPEND)
    for event in ("block/block_rq_issue", "block/block_rq_complete"):
        enable(event)
    for number in range(FSYNCS):
        (DATA / f"other{number}").write_bytes(PATTERN[:BLOCK])
        os.sync()
        write(TRACE / "trace_marker", f"begin {number}")
        os.write(handle, PATTERN[:BLOCK])
        os.fsync(handle)
        write(TRACE / "trace_marker", f"end {number}")
    return {"lines": (TRACE / "trace").read_text().splitlines()}


if __name__ == "__main__":
    run(fsyncs)
