#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""A ClickHouse server's HTTP interface for tests, as far as clients use it: chDB answers. `clickhouse_http.py` prints
its port, and serves until its standard input ends."""

from __future__ import annotations

import base64
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

USER = "default"
_INSERT = re.compile(r"INSERT INTO [`\"]?(\w+)[`\"]?\s*(?:\((.*?)\))?\s*FORMAT (\w+)", re.DOTALL)


@contextmanager
def served(folder: Path) -> Iterator[int]:
    """The port of a server of its own process, which works in FOLDER."""
    child = subprocess.Popen(
        [sys.executable, str(Path(__file__).resolve())],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdin is not None and child.stdout is not None
    yield int(child.stdout.readline())
    child.stdin.close()
    child.wait(60)


def main() -> None:
    import clickhouse_connect
    from clickhouse_connect.driver.client import Client
    from clickhouse_connect.driver.exceptions import DatabaseError

    sessions: dict[str, Client] = {}
    """Temporary tables are a session's."""

    class Handler(BaseHTTPRequestHandler):
        """One query or insertion a request."""

        def do_POST(self) -> None:
            asked = parse_qs(urlsplit(self.path).query)
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.headers.get("Transfer-Encoding") == "chunked":
                body = b"".join(self._chunks())
            login = self.headers.get("X-ClickHouse-User", USER)
            if "Authorization" in self.headers:
                login = base64.b64decode(self.headers["Authorization"].split()[-1]).decode().partition(":")[0]
            if login != USER:
                self._answer(403, b"Code: 516. DB::Exception: " + login.encode() + b": Authentication failed")
                return
            query = asked.get("query", [""])[0]
            try:
                self._answer(200, self._asked(query or body.decode(), body if query else b"", asked))
            except DatabaseError as error:
                self._answer(404, str(error).encode())

        def _chunks(self) -> Iterator[bytes]:
            while size := int(self.rfile.readline(), 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()

        def _asked(self, query: str, body: bytes, asked: dict[str, list[str]]) -> bytes:
            session = asked.get("session_id", [""])[0]
            if session not in sessions:
                sessions[session] = clickhouse_connect.get_client(interface="chdb")
            client = sessions[session]
            insert = _INSERT.match(query)
            if insert:
                client.raw_insert(insert[1], insert_block=body, fmt=insert[3])
                return b""
            form = re.search(r"\sFORMAT (\w+)\s*$", query)
            bare = query[: form.start()] if form else query
            return client.raw_query(bare, fmt=form[1] if form else asked.get("default_format", ["Native"])[0])

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            if status != 200:
                self.send_header("X-ClickHouse-Exception-Code", "1")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Tests are silent."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(), server.shutdown()), daemon=True).start()
    server.serve_forever()


if __name__ == "__main__":
    main()
