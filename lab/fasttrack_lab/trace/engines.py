# SPDX-License-Identifier: GPL-2.0-only
"""The engines that answer queries: DuckDB here, ClickHouse or Spark Connect elsewhere; all through Ibis."""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, unquote_plus, urlsplit

from fasttrack_lab.host.errors import LabError, UsageProblem
from fasttrack_lab.trace import lazy_ibis as ibis
from fasttrack_lab.trace import plain_duckdb

DUCKDB = "duckdb"
VALID = "duckdb, chdb, clickhouse://[USER:PASSWORD@]HOST[:PORT][/DATABASE], sc://HOST[:PORT]"
_PORTS = {"clickhouse": 8123, "sc": 15002}
"""Where a server listens if the URL does not say: ClickHouse's HTTP, Spark Connect's gRPC."""
_ANSWERS_S = 10.0
"""How long a server may take to accept a connection: the clients try for minutes."""
_INSTALL = "`./fasttrack` installs it where --engine is given; scripts/setup.sh --dev does, too"


def duckdb(memory: str = plain_duckdb.MEMORY, threads: int | None = None) -> ibis.BaseBackend:
    """A database in memory; see plain_duckdb."""
    return of_plain(plain_duckdb.connect(memory, threads))


def of_plain(plain: plain_duckdb.Connected) -> ibis.BaseBackend:
    """Ibis's, of a database that is there."""
    return ibis.duckdb.from_connection(plain.con)


def connect(url: str | None) -> ibis.BaseBackend:
    """The engine at URL: duckdb or None, chdb, clickhouse://HOST..., or sc://HOST:PORT for Spark Connect, Sail too."""
    if url in (None, DUCKDB):
        return duckdb()
    if url == "chdb":
        with _there(url):
            # It warns of what Ibis says to every client.
            logging.getLogger("clickhouse_connect").setLevel(logging.ERROR)
            return ibis.clickhouse.connect(interface="chdb")
    parts = _parts(url)
    _hide(url, parts)
    with _there(shown(url)):
        if parts.scheme == "clickhouse":
            _answers(parts)
            return ibis.connect(url)
        spark = _spark()
        _answers(parts)
        return ibis.pyspark.connect(spark.builder.remote(url).getOrCreate())


def shown(url: str) -> str:
    """Scheme, host and port of URL: a password may be anywhere else. Of what cannot be read the scheme alone."""
    scheme, there, _ = url.partition("://")
    if not there:
        return url
    try:
        parts = urlsplit(url)
        port = "" if parts.port is None else f":{parts.port}"
    except ValueError:
        return f"{scheme}://..."
    # A slash in a password ends what urlsplit takes for the host.
    host = parts.hostname or ""
    if not host or ";" in host or ("@" in url and not parts.username):
        return f"{scheme}://..."
    return f"{scheme}://{host}{port}"


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        known = parts.scheme in _PORTS and bool(parts.hostname) and parts.port != 0
    except ValueError:  # A port that is no number.
        known = False
    # Of a host that is a piece of a password nobody is told.
    if not known or shown(url).endswith("..."):
        raise UsageProblem(f"unknown engine '{shown(url)}'; valid: {VALID}")
    return parts


_hidden: dict[str, str] = {}
"""What no message shows, with what is shown in its place: URLs that were connected to, and the secrets in these."""

_SECRET = re.compile(r"[?&;]\w*(?:pass|token|secret|key)\w*=([^&;#]+)", re.IGNORECASE)


def _hide(url: str, parts: SplitResult) -> None:
    """Keeps URL and its secrets, as they are written there and as they are meant, from messages."""
    _hidden[url] = shown(url)
    for secret in (parts.password, *_SECRET.findall(url)):
        if secret:
            _hidden.update({secret: "***", unquote_plus(secret): "***"})


def without_secrets(text: str) -> str:
    """A message of an engine's client: these have the URL, or the request that was made of it."""
    for secret in sorted(_hidden, key=len, reverse=True):
        text = text.replace(secret, _hidden[secret])
    return text


def _spark() -> Any:
    import pyspark  # noqa: PLC0415 # installed where it is used

    # The client looks for a whole Spark where it is imported, though it needs none.
    os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
    from pyspark.sql import SparkSession  # noqa: PLC0415

    return SparkSession


def _answers(parts: SplitResult) -> None:
    """Whether somebody listens there."""
    port = parts.port or _PORTS[parts.scheme]
    try:
        socket.create_connection((parts.hostname or "", port), _ANSWERS_S).close()
    except OSError as error:
        where = f"{parts.hostname}:{port}"
        raise LabError(f"nobody answers at {where}: {error}; start the engine, or correct the URL's host") from error


@contextmanager
def _there(url: str) -> Iterator[None]:
    """Says what to do where an engine's package is missing, or the engine refuses."""
    try:
        with told(url):
            yield
    except ImportError as error:
        # Ibis says at length how to install itself.
        lacks = error.__cause__ if isinstance(error.__cause__, ImportError) else error
        raise LabError(f"{url}: the Python package {lacks.name or lacks} is not there; {_INSTALL}") from error
    except (TypeError, ValueError) as error:
        # Of what Ibis or a client makes of the URL's parts.
        raise UsageProblem(f"{url}: the client does not take this URL: {first_line(error)}; valid: {VALID}") from error


@contextmanager
def told(url: str) -> Iterator[None]:
    """Errors of an engine's client as one message."""
    try:
        yield
    except client_errors() as error:
        raise LabError(f"{url}: {first_line(error)}") from error


_ERRORS = {
    "duckdb": "Error",
    "clickhouse_connect.driver.exceptions": "ClickHouseError",
    "pyspark.errors": "PySparkException",
}
"""Module of a client -> its errors."""


def client_errors() -> tuple[type[Exception], ...]:
    """What the clients that are in use raise; nothing is loaded for it."""
    return tuple(getattr(sys.modules[name], error) for name, error in _ERRORS.items() if name in sys.modules)


def first_line(error: Exception) -> str:
    """What an engine says, without the trace of its own, and without passwords."""
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return without_secrets(line)
