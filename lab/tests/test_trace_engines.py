# SPDX-License-Identifier: GPL-2.0-only
"""Every metric gives the same on every engine, in every column."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pyarrow.parquet
import pytest
from trace_generator import chunks

from fasttrack_lab.trace import engines
from fasttrack_lab.trace.metrics import METRICS
from fasttrack_lab.trace.tables import COLUMNS, Tables, schema

RECORDS = 20_000
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace without transactions, and with all else, as Parquet files."""
    where = tmp_path_factory.mktemp("trace")
    made: dict[str, list[pa.Table]] = {name: [] for name in COLUMNS}
    for name, rows in chunks(RECORDS):
        made[name].append(rows)
    for name, parts in made.items():
        shape = schema(name).to_pyarrow()
        pa.parquet.write_table(pa.concat_tables(parts) if parts else shape.empty_table(), where / f"{name}.parquet")
    return where


@pytest.fixture(scope="module")
def expected(folder: Path) -> dict[str, Rows]:
    """What DuckDB says."""
    return answers(engines.load(folder, engines.duckdb()))


def answers(tables: Tables) -> dict[str, Rows]:
    return {name: metric(tables).to_pyarrow().to_pylist() for name, metric in METRICS.items()}


@pytest.fixture(scope="module", params=["chdb", "sail"])
def other(request: pytest.FixtureRequest) -> Iterator[ibis.BaseBackend]:
    """ClickHouse in this process; Sail, an engine behind Spark Connect, with two workers."""
    if request.param == "chdb":
        pytest.importorskip("chdb")
        yield engines.connect("chdb")
        return
    spark = pytest.importorskip("pysail.spark")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SAIL_MODE", "local-cluster")
        patch.setenv("SAIL_CLUSTER__WORKER_INITIAL_COUNT", "2")
        patch.setenv("SAIL_CLUSTER__WORKER_MAX_COUNT", "2")
        server = spark.SparkConnectServer()
    server.start(background=True)
    host, port = server.listening_address
    engine = engines.connect(f"sc://{host}:{port}")
    yield engine
    # Before the server goes: the client would ask it to end the session, again and again.
    engine.disconnect()
    server.stop()


def test_engines_are_equal(folder: Path, expected: dict[str, Rows], other: ibis.BaseBackend) -> None:
    found = answers(engines.load(folder, other))
    different = [name for name, rows in expected.items() if found[name] != rows]
    assert different == []


def test_every_metric_was_asked(expected: dict[str, Rows]) -> None:
    """Save those of records that the generator has none of."""
    assert {name for name, rows in expected.items() if not rows} == {"transactions", "payers", "losses"}
    assert sum(row["count"] for row in expected["reads_writes"]) == round(RECORDS * 0.28)
