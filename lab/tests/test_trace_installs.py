# SPDX-License-Identifier: GPL-2.0-only
"""Several phones in one archive are kept apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from trace_records import HEAD, INSTALL, SECOND, bio, of_another, record, write

from fasttrack_lab.commands.trace import command
from fasttrack_lab.host.errors import UsageProblem
from fasttrack_lab.trace import delta
from fasttrack_lab.trace.metrics import METRICS

OTHER = "ef" * 16
READ = {"operation": "read", "cause": "read", "sync": "false"}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two phones: one writes three times in 2 s, the other reads twice, in 10 s."""
    where = tmp_path_factory.mktemp("installs")
    lost = record("loss", 5 * SECOND, reason="ring_overrun", cpu=1, since=4 * SECOND, count=17)
    mine = [*bio(1, SECOND), *bio(2, 2 * SECOND), *bio(3, 3 * SECOND)]
    other = of_another([*bio(1, SECOND, **READ), *bio(2, 11 * SECOND, bytes=8192, **READ), lost], OTHER, "01" * 16)
    for name, records in (("mine", [*HEAD, *mine]), ("other", other)):
        (where / name).mkdir()
        write(where / name, records)
    delta.append(where / "archive", [where / "mine", where / "other"])
    return where / "archive"


def asked(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments, catch_exceptions=False)


def reported(archive: Path, *more: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(asked("report", str(archive), "--json", "-", *more).stdout)
    return found


def counts(report: dict[str, Any]) -> dict[str, int]:
    return {row["operation"]: row["count"] for row in report["metrics"]["reads_writes"]["rows"]}


def test_a_report_says_of_which_it_is(archive: Path) -> None:
    """And beside each figure that makes no sense of several."""
    text = " ".join(asked("report", str(archive)).output.split())
    assert f"2 installations: {INSTALL}, {OTHER}" in text
    lost = "records are lost, so this may be too small"
    assert f"Apps by synchronous writes (coverage 100.0 %; {lost}; 2 installations in one" in text
    assert reported(archive)["installs"] == [INSTALL, OTHER]
    assert counts(reported(archive)) == {"read": 2, "write": 3}


@pytest.mark.parametrize("engine", ["duckdb", "chdb"])
def test_one_is_chosen(archive: Path, engine: str) -> None:
    """A loss of the other one is none of it."""
    if engine == "chdb":
        pytest.importorskip("chdb")
    mine, other = (reported(archive, "--install", name, "--engine", engine) for name in (INSTALL, OTHER))
    assert (counts(mine), counts(other)) == ({"write": 3}, {"read": 2})
    assert (mine["lossy"], other["lossy"]) == (False, True)
    assert (mine["installs"], other["installs"]) == ([INSTALL], [OTHER])
    assert "in one" not in asked("report", str(archive), "--install", INSTALL).output


def test_rates_are_an_installation_s(archive: Path) -> None:
    rows = {row["install"]: row for row in reported(archive)["metrics"]["installations"]["rows"]}
    assert {name: (row["recordings"], row["bios"], row["seconds"]) for name, row in rows.items()} == {
        INSTALL: (1, 3, 2.0),
        OTHER: (1, 2, 10.0),
    }
    assert (rows[INSTALL]["written_rate"], rows[OTHER]["read_rate"]) == (3 * 4096 / 2, (4096 + 8192) / 10)


def test_two_of_one_archive_are_compared(archive: Path) -> None:
    done = asked("diff", str(archive), str(archive), "--install", INSTALL, "--install", OTHER, "--json", "-")
    told = json.loads(done.stdout)
    assert told["traces"] == [
        {"trace": str(archive), "installations": [name], "losses": losses}
        for name, losses in ((INSTALL, 0), (OTHER, 1))
    ]
    read = told["read"]
    assert (read["first"]["value"], read["second"]["value"]) == (0.0, (4096 + 8192) / 2)
    assert f"{archive}: 1 losses: its figures may be too small" in done.stderr
    both = asked("diff", str(archive), str(archive))
    assert f"2 installations together: {INSTALL}, {OTHER}; --install chooses one" in both.stderr


def test_databases_of_one_path_are_two(tmp_path: Path) -> None:
    """Each phone has its own; a path that no trace has is told."""
    for name, install, session in (("mine", INSTALL, "1" * 32), ("other", OTHER, "2" * 32)):
        (tmp_path / name).mkdir()
        call = record("call", SECOND, kind="fsync", file=2, task=2, duration_ns=1000)
        write(tmp_path / name, of_another([*bio(1, SECOND), call], install, session))
    done = asked(
        "report", *(str(tmp_path / name) for name in ("mine", "other")), "--row-bytes", "/no=1 KiB", "--json", "-"
    )
    (row,) = json.loads(done.stdout)["metrics"]["sqlite_modes"]["rows"]
    assert (row["databases"], row["syncs"]) == (2, 2)
    assert "--row-bytes /no: the trace has no I/O of this database" in done.stderr
    assert METRICS["sqlite_modes"].of_one


def test_one_that_is_not_there_is_told(archive: Path) -> None:
    for command_line in (["report"], ["explain"], ["perfetto", "-o", str(archive.parent / "out")]):
        with pytest.raises(UsageProblem, match=f"unknown installation 'nobody'; valid: {INSTALL}, {OTHER}"):
            asked(*command_line, str(archive), "--install", "nobody")
