# SPDX-License-Identifier: GPL-2.0-only
"""An archive is read by every engine, and every metric gives the same on each, in every column."""

from __future__ import annotations

import gc
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import clickhouse_http
import ibis
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable
from trace_generator import write as generate

from fasttrack_lab.commands.trace import command
from fasttrack_lab.host.errors import LabError, UsageProblem
from fasttrack_lab.trace import delta, difference, engine_tables, engines, trace_report
from fasttrack_lab.trace.metrics import METRICS
from fasttrack_lab.trace.tables import COLUMNS, Tables

RECORDS = 20_000
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a trace that has rows for all metrics."""
    folder = tmp_path_factory.mktemp("trace") / "archive"
    generate(folder, RECORDS)
    return folder


@pytest.fixture(scope="module")
def here(archive: Path) -> Tables:
    return delta.read(archive, engines.duckdb())


@pytest.fixture(scope="module")
def expected(here: Tables) -> dict[str, Rows]:
    """What DuckDB says."""
    return answers(here)


def answers(tables: Tables) -> dict[str, Rows]:
    tables = replace(tables, row_bytes={"/data/app/file-0": 1 << 20, "/data/app/file-1": 1 << 18, "/elsewhere": 1})
    return {name: metric(tables).to_pyarrow().to_pylist() for name, metric in METRICS.items()}


@pytest.fixture(scope="module")
def sail() -> Iterator[str]:
    """The URL of Sail, an engine behind Spark Connect, with two workers."""
    spark = pytest.importorskip("pysail.spark")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SAIL_MODE", "local-cluster")
        patch.setenv("SAIL_CLUSTER__WORKER_INITIAL_COUNT", "2")
        patch.setenv("SAIL_CLUSTER__WORKER_MAX_COUNT", "2")
        server = spark.SparkConnectServer()
    server.start(background=True)
    host, port = server.listening_address
    yield f"sc://{host}:{port}"
    # Before the server goes: the client would ask it to end the session, again and again.
    engines.connect(f"sc://{host}:{port}").disconnect()
    server.stop()


@pytest.fixture(scope="module")
def clickhouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a ClickHouse server that does not see the archive: chDB in another process, behind HTTP."""
    pytest.importorskip("chdb")
    with clickhouse_http.served(tmp_path_factory.mktemp("clickhouse")) as port:
        yield f"clickhouse://127.0.0.1:{port}"


@pytest.fixture(params=["chdb", "sail", "clickhouse"])
def url(request: pytest.FixtureRequest, archive: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of each other engine: chDB and Sail read the archive, to ClickHouse its rows are sent."""
    if request.param != "chdb":
        return str(request.getfixturevalue(request.param))
    pytest.importorskip("chdb")
    # It reads files below the working directory alone.
    monkeypatch.chdir(archive.parent)
    return "chdb"


def test_engines_are_equal(
    archive: Path, expected: dict[str, Rows], url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    found = answers(delta.read(archive, engines.connect(url)))
    different = [name for name, rows in expected.items() if found[name] != rows]
    assert different == []
    assert ("does not read" in capfd.readouterr().err) == url.startswith("clickhouse")


def test_every_metric_was_asked(expected: dict[str, Rows]) -> None:
    assert [name for name, rows in expected.items() if not rows] == []
    assert any(row["factor"] for row in expected["sqlite_modes"])
    assert sum(row["count"] for row in expected["reads_writes"]) == round(RECORDS * 0.28)


def test_a_report_is_the_same(archive: Path, here: Tables, url: str, tmp_path: Path) -> None:
    """By the command, with coverage and losses, of an interval."""
    out = tmp_path / "numbers.json"
    asked = ["report", str(archive), "--since", "1", "--until", "12", "--engine", url, "--json", str(out)]
    done = CliRunner().invoke(command, asked, catch_exceptions=False)
    assert done.exit_code == 0 and "Reads and writes" in done.output
    expected = trace_report.make(here.between(1, 12), [str(archive)]).to_json()
    assert json.loads(out.read_text()) == json.loads(json.dumps(expected))


def test_a_comparison_is_the_same(archive: Path, here: Tables, url: str) -> None:
    """Both archives are in one engine."""
    found = [delta.read(archive, engines.connect(url), prefix) for prefix in ("", "second_")]
    assert difference.compare(*found) == difference.compare(here, here)


def test_an_engine_answers_sql(archive: Path, url: str) -> None:
    asked = "SELECT operation, count(*) AS bios FROM io WHERE operation = 'read' GROUP BY operation"
    done = CliRunner().invoke(command, ["sql", asked, str(archive), "--engine", url], catch_exceptions=False)
    (row,) = map(json.loads, done.output.splitlines()[-1:])
    assert row["operation"] == "read" and row["bios"] > 1000
    with pytest.raises(UsageProblem, match="the query: .*nothing"):
        CliRunner().invoke(
            command, ["sql", "SELECT * FROM nothing", str(archive), "--engine", url], catch_exceptions=False
        )


def test_what_an_older_archive_lacks_is_unknown(archive: Path, url: str, tmp_path: Path) -> None:
    """A column, all rows of a table, and a table."""
    older = tmp_path / "older"
    rows = DeltaTable(archive / "io").to_pyarrow_table().drop_columns(["sync"])
    delta.commit(older / "io", rows, [], [])
    delta.commit(older / "calls", DeltaTable(archive / "calls").to_pyarrow_table().slice(0, 0), [], [])
    found = delta.read(older, engines.connect(url))
    assert {name: table.count().to_pyarrow().as_py() for name, table in found if name != "io"} == dict.fromkeys(
        COLUMNS.keys() - {"io"}, 0
    )
    assert found.io.filter(found.io.sync.isnull()).count().to_pyarrow().as_py() == rows.num_rows
    for name, table in found:
        assert dict(zip(table.columns, map(str, table.schema().types), strict=True)) == COLUMNS[name]


@pytest.mark.parametrize(
    "wrong", ["spark", "sqlite://x", "sc://", "clickhouse://", "clickhouse://host:port", "duckdb://x"]
)
def test_an_unknown_engine_is_refused(wrong: str) -> None:
    with pytest.raises(UsageProblem, match=r"unknown engine '.*'; valid: duckdb, chdb, clickhouse://"):
        engines.connect(wrong)


@pytest.mark.parametrize("absent", ["clickhouse://me:secret@127.0.0.1:1", "sc://127.0.0.1:1"])
def test_an_engine_that_is_not_there_is_told(absent: str) -> None:
    with pytest.raises(LabError, match="nobody answers at 127.0.0.1:1") as told:
        engines.connect(absent)
    assert "secret" not in str(told.value)


@pytest.mark.parametrize(
    ("asked", "package"),
    [("chdb", "clickhouse_connect"), ("clickhouse://h", "clickhouse_connect"), ("sc://h", "pyspark")],
)
def test_a_package_that_is_not_there_is_told(asked: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("ibis.backends.clickhouse", package))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(ibis, "clickhouse", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr(engines, "_answers", lambda parts: None)
    with pytest.raises(LabError, match=rf"{package} is not there; `./fasttrack` installs it"):
        engines.connect(asked)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("clickhouse://me:SECRET@host:8123/db", "clickhouse://host:8123"),
        ("clickhouse://me:SEC/RET@host", "clickhouse://..."),
        ("clickhouse://h?password=SECRET", "clickhouse://h"),
        ("clickhouse://[SECRET", "clickhouse://..."),
        ("clickhouse://me:1/SECRET@host", "clickhouse://..."),
        ("sc://h:1/;token=SECRET", "sc://h:1"),
        ("sc://h;token=SECRET", "sc://..."),
        ("chdb", "chdb"),
    ],
)
def test_no_password_is_shown(url: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert engines.shown(url) == shown

    def refuse(*_: object, **__: object) -> None:
        raise LabError("nobody answers")

    monkeypatch.setattr(engines, "_answers", refuse)
    if url != "chdb":
        with pytest.raises((UsageProblem, LabError)) as told:
            engines.connect(url)
        assert "SECRET" not in str(told.value) and "RET@" not in str(told.value)


def test_a_refused_password_is_told(clickhouse: str) -> None:
    """With what the server says, and without the password."""
    with pytest.raises(LabError, match=r"clickhouse://127.*Authentication failed") as told:
        engines.connect(clickhouse.replace("//", "//stranger:secret@"))
    assert "secret" not in str(told.value)


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("clickhouse://me:se%2Fcret+1@127.0.0.1:8123/db", "clickhouse"),
        ("clickhouse://127.0.0.1:8123/db?password=se%2Fcret+1&secure=0", "clickhouse"),
        ("sc://127.0.0.1:15002/;user_id=me;token=se%2Fcret+1", "spark"),
    ],
)
@pytest.mark.parametrize("kind_of_error", ["client's", "TypeError", "ValueError"])
def test_a_clients_message_has_no_password(
    url: str, kind: str, kind_of_error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The URL is refused with a message that repeats it, as it is written and as it is meant."""
    if kind == "spark":
        own = pytest.importorskip("pyspark.errors").PySparkException
    else:
        own = pytest.importorskip("clickhouse_connect.driver.exceptions").OperationalError

    def refuse(*_: object, **__: object) -> None:
        error = {"client's": own, "TypeError": TypeError, "ValueError": ValueError}[kind_of_error]
        raise error(f"cannot open {url}: http://me:se/cret 1@127.0.0.1 (password: se%2Fcret+1)")

    monkeypatch.setattr(engines, "_answers", lambda parts: None)
    monkeypatch.setattr(engines, "_spark", refuse)
    monkeypatch.setattr(ibis, "connect", refuse)
    with pytest.raises(LabError) as told:
        engines.connect(url)
    assert "cret" not in str(told.value) and "cannot open" in str(told.value)
    assert "cret" not in engines.without_secrets(f"query of {url} with se/cret 1")


def test_an_option_that_a_client_does_not_know_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("clickhouse_connect")
    monkeypatch.setattr(engines, "_answers", lambda parts: None)
    with pytest.raises(LabError) as told:
        engines.connect("clickhouse://me:SECRET@127.0.0.1:1/db?bogus=1")
    assert "SECRET" not in str(told.value)


def test_another_engine_reads_archives_alone(tmp_path: Path) -> None:
    (tmp_path / "00000001.ftlog").touch()
    with pytest.raises(UsageProblem, match="another engine than DuckDB reads an archive: `trace archive"):
        CliRunner().invoke(command, ["report", str(tmp_path), "--engine", "chdb"], catch_exceptions=False)


def test_names_of_paths_are_quoted(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("chdb")
    odd = tmp_path / "it's"
    # Not a link, which would be resolved.
    shutil.copytree(archive, odd)
    monkeypatch.chdir(tmp_path)
    found = engine_tables.of_delta(engines.connect("chdb"), "io", odd / "io", {"bytes": "int64"}, ["bytes"])
    assert found is not None
    assert found.count().to_pyarrow().as_py() == round(RECORDS * 0.28)


def test_what_does_not_fit_is_the_users_alone_and_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows have names of files; a name in /tmp that others can foresee, they can take first."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    engine = engines.duckdb("64MB")
    (spill,) = tmp_path.iterdir()
    assert spill.stat().st_mode & 0o777 == 0o700
    assert engine.raw_sql("SELECT current_setting('temp_directory')").fetchone() == (str(spill),)
    engine.raw_sql("CREATE TABLE a AS SELECT hash(range) x, hash(range + 1) y FROM range(10000000)")
    assert any(spill.iterdir())
    engine.disconnect()
    del engine
    gc.collect()
    assert not list(tmp_path.iterdir())
