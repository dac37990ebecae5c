# SPDX-License-Identifier: GPL-2.0-only
"""The engines that answer queries: DuckDB here, ClickHouse or Spark Connect elsewhere; all through Ibis."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import ibis

from fasttrack_lab.host.errors import UsageProblem
from fasttrack_lab.trace.tables import COLUMNS, Tables

MEMORY = "800MB"
"""Of DuckDB: what a report may take is 1 GB, and Python and Arrow take the rest."""


def duckdb(memory: str = MEMORY, threads: int | None = None) -> ibis.BaseBackend:
    """A database in memory; what does not fit goes to a temporary directory."""
    spill = Path(tempfile.gettempdir()) / f"fasttrack-trace-{os.getpid()}"
    return ibis.duckdb.connect(
        memory_limit=memory,
        threads=threads or len(os.sched_getaffinity(0)),
        temp_directory=str(spill),
        preserve_insertion_order=False,
    )


def connect(url: str) -> ibis.BaseBackend:
    """The engine at URL: duckdb, chdb, clickhouse://HOST..., or sc://HOST:PORT for Spark Connect, Sail too."""
    if url == "duckdb":
        return duckdb()
    if url == "chdb":
        return ibis.clickhouse.connect(interface="chdb")
    if url.startswith("clickhouse://"):
        return ibis.connect(url)
    if url.startswith("sc://"):
        import pyspark  # noqa: PLC0415 # installed where it is used

        # The client looks for a whole Spark where it is imported, though it needs none.
        os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
        from pyspark.sql import SparkSession  # noqa: PLC0415

        return ibis.pyspark.connect(SparkSession.builder.remote(url).getOrCreate())
    raise UsageProblem(f"unknown engine '{url}'; valid: duckdb, chdb, clickhouse://HOST:PORT/DATABASE, sc://HOST:PORT")


def load(folder: Path, engine: ibis.BaseBackend) -> Tables:
    """Tables that are Parquet files in a folder, in any engine that sees it."""
    by_name = {}
    for name in COLUMNS:
        files = str(folder / f"{name}.parquet")
        if engine.name == "clickhouse":
            engine.raw_sql(
                f"CREATE TABLE {name} ENGINE = MergeTree ORDER BY tuple() AS SELECT * FROM file('{files}', Parquet)"
            )
            by_name[name] = engine.table(name)
        else:
            by_name[name] = engine.read_parquet(files, table_name=name)
    return Tables(by_name, engine)
