# SPDX-License-Identifier: GPL-2.0-only
"""Small jobs of our own: scenarios may change, these stay."""

from __future__ import annotations

from typing import Any

from fasttrack_lab.inputs import phone, policy
from fasttrack_lab.inputs.cell import Cell
from fasttrack_lab.run.runner import RunSpec

MIB = 1 << 20


def step(op: str, **fields: Any) -> dict[str, Any]:
    return {"op": op, **fields}


def thread(
    name: str, steps: list[dict[str, Any]], *, after_touch: bool = False, repeat: bool = False
) -> dict[str, Any]:
    return {"name": name, "after_touch": after_touch, "repeat": repeat, "steps": steps}


def two_apps(front: list[dict[str, Any]], behind: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """An app in front that starts at the touch, and one behind it that goes on for ever."""
    return [
        {
            "name": "front",
            "uid": 10101,
            "role": "foreground",
            "start_s": 0.0,
            "threads": [thread("ui", front, after_touch=True)],
        },
        {
            "name": "behind",
            "uid": 10201,
            "role": "background",
            "start_s": 0.0,
            "threads": [thread("w", behind, repeat=True)],
        },
    ]


def reader_and_writer(verify: bool = False) -> dict[str, Any]:
    """A foreground app that reads, writes and syncs while a background app writes."""
    front = [
        step("read", file="a", bytes=0, offset=0, block=128 << 10, order="sequential", think_s=0.0001),
        step("read", file="r", bytes=MIB, offset=0, block=4096, order="random"),
        step("write", file="b", bytes=MIB, offset=0, block=64 << 10, order="sequential", flags=["create"]),
        step("fsync", file="b"),
        step("sqlite", file="c.db", kind="insert", transactions=5, rows=3, row_bytes=200, journal="wal"),
    ]
    behind = [
        step("write", file="big", bytes=4 * MIB, offset=0, block=256 << 10, flags=["create"], think_s=0.002),
        step("fsync", file="big"),
        step("think", s=0.01),
    ]
    return {
        "mode": "play",
        "apps": two_apps(front, behind),
        "files": [
            {"app": "front", "path": "a", "bytes": 16 * MIB, "kind": "data"},
            {"app": "front", "path": "r", "bytes": 32 * MIB, "kind": "data"},
        ],
        "touch_s": 0.5,
        "limit_s": 120.0,
        "verify": verify,
    }


def spec(
    job: dict[str, Any], *, policy_name: str = "stock", phone_name: str = "s6", seed: int = 1, **params: str
) -> RunSpec:
    cell = Cell("test", phone_name, policy_name, ("behind",), seed)
    return RunSpec(cell, phone.load(phone_name), policy.load(policy_name), job, params=params)
