# SPDX-License-Identifier: GPL-2.0-only
"""The archive: repeated files change nothing, grown ones replace their rows, an erased device leaves no byte."""

from __future__ import annotations

import fcntl
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyarrow import parquet
from trace_records import HEAD, INSTALL, SECOND, SESSION, Record, bio, exported, record, write

from fasttrack_lab.commands.trace import command
from fasttrack_lab.host.errors import LabError, UsageProblem
from fasttrack_lab.trace import delta, sources
from fasttrack_lab.trace.tables import COLUMNS


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return tmp_path / "archive"


class Logs:
    """Log files of a device: their content is what tests say, their bytes are anything."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.monkeypatch = folder, monkeypatch
        folder.mkdir()

    def hold(self, records: Sequence[Record], *contents: str) -> Path:
        for number, content in enumerate(contents, 1):
            (self.folder / f"{number:08}.ftlog").write_text(content)
        exported(self.monkeypatch, [*HEAD, *records])
        return self.folder


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Logs:
    return Logs(tmp_path / "logs", monkeypatch)


def count(archive: Path, table: str = "io") -> int:
    return int(sources.open_all([archive]).by_name[table].count().to_pyarrow().as_py())


def test_what_is_archived_is_read(archive: Path, logs: Logs) -> None:
    done = delta.append(archive, [logs.hold([*bio(1, SECOND), *bio(2, 2 * SECOND)], "a")])
    assert (done.new, done.known) == (1, 0)
    tables = sources.open_all([archive])
    assert {name: count(archive, name) for name in ("io", "segments", "files", "calls")} == {
        "io": 2,
        "segments": 2,
        "files": 2,
        "calls": 0,
    }
    for name, table in tables:
        assert dict(zip(table.columns, map(str, table.schema().types), strict=True)) == COLUMNS[name]
    assert {path.name for path in (archive / "io").glob("day=*")} == {"day=2023-11-14"}


def test_repeated_files_change_nothing(archive: Path, logs: Logs) -> None:
    folder = logs.hold(bio(1, SECOND), "a")
    delta.append(archive, [folder])
    versions = {name: DeltaTable(archive / name).version() for name in COLUMNS}
    done = delta.append(archive, [folder, folder / "00000001.ftlog"])
    assert (done.new, done.rows) == (0, 0)
    assert {name: DeltaTable(archive / name).version() for name in COLUMNS} == versions
    assert count(archive) == 1


def test_late_files_are_added(archive: Path, logs: Logs) -> None:
    """The second log file first; the first one's rows are those of its number."""
    second = [
        record("session", SECOND, log=2, install=INSTALL),
        record("clock", SECOND, log=2, real_ns=0, utc_offset_s=0),
    ]
    late = record("bio", 3 * SECOND, log=2, bio=7, operation="read", bytes=512)
    folder = logs.hold([*bio(1, SECOND), *second, late], "a", "b")
    delta.append(archive, [folder / "00000002.ftlog"])
    assert count(archive) == 1
    assert delta.append(archive, [folder]).new == 1
    assert count(archive) == 2


CUT = ("damage", {"path": "/logs/00000001.ftlog", "at": 9, "bytes": 5, "what": "cut", "session": SESSION, "log": 1})


def test_a_file_that_has_grown_replaces_its_rows(archive: Path, logs: Logs) -> None:
    """And what was unreadable in it, where it is whole now."""
    delta.append(archive, [logs.hold([*bio(1, SECOND), CUT], "a")])
    assert sources.open_all([archive]).losses.reason.to_pyarrow().to_pylist() == ["unreadable"]
    delta.append(archive, [logs.hold([*bio(1, SECOND), *bio(2, 2 * SECOND)], "ab")])
    assert count(archive) == 2
    assert sources.open_all([archive]).losses.count().to_pyarrow().as_py() == 0


def test_an_earlier_copy_changes_nothing(archive: Path, logs: Logs) -> None:
    """Of a log file, and of an import of the same session."""
    newer = [*bio(1, SECOND), *bio(2, 2 * SECOND)]
    delta.append(archive, [logs.hold(newer, "ab")])
    done = delta.append(archive, [logs.hold(bio(1, SECOND), "a")])
    assert (done.new, done.known, done.rows, count(archive)) == (0, 1, 0, 2)
    assert delta.append(archive, [logs.hold(newer, "ab")]).new == 0


def test_an_earlier_import_changes_nothing(archive: Path, tmp_path: Path) -> None:
    for name, numbers in (("newer", (1, 2)), ("older", (1,))):
        (tmp_path / name).mkdir()
        write(tmp_path / name, [*HEAD, *(one for number in numbers for one in bio(number, number * SECOND))])
    assert delta.append(archive, [tmp_path / "newer"]).new == 1
    assert delta.append(archive, [tmp_path / "older"]).new == 0
    assert count(archive) == 2


@pytest.mark.parametrize("log_first", [True, False])
@pytest.mark.parametrize("log_is_newer", [True, False])
def test_a_log_file_and_an_import_of_it_are_one(
    archive: Path, logs: Logs, tmp_path: Path, log_first: bool, log_is_newer: bool
) -> None:
    """The one with more rows is in the archive, once, whatever else the bytes of either are."""
    shorter, longer = [*bio(1, SECOND)], [*bio(1, SECOND), *bio(2, 2 * SECOND)]
    (tmp_path / "import").mkdir()
    write(tmp_path / "import", [*HEAD, *(shorter if log_is_newer else longer)])
    folder = logs.hold(longer if log_is_newer else shorter, "x" * (10 if log_is_newer else 100_000))
    for path in (folder, tmp_path / "import") if log_first else (tmp_path / "import", folder):
        delta.append(archive, [path])
    assert {name: count(archive, name) for name in ("io", "segments", "sessions")} == {
        "io": 2,
        "segments": 2,
        "sessions": 1,
    }


@pytest.mark.parametrize("first", [True, False])
def test_of_two_copies_the_longer_is_there(
    archive: Path, logs: Logs, monkeypatch: pytest.MonkeyPatch, first: bool
) -> None:
    """The file grows between two writers' looks, whoever commits first."""
    shorter, longer = (bio(1, SECOND), "a"), ([*bio(1, SECOND), *bio(2, 2 * SECOND)], "ab")
    mine, other = (longer, shorter) if first else (shorter, longer)
    folder = logs.hold(*mine)

    def meanwhile() -> None:
        # Rows have been read; the other's are those of another look.
        delta.append(archive, [logs.hold(*other)])
        logs.hold(*mine)

    in_between(monkeypatch, meanwhile)
    delta.append(archive, [folder])
    assert {name: count(archive, name) for name in ("sessions", "io")} == {"sessions": 1, "io": 2}


def test_a_writer_that_was_killed_goes_on(archive: Path, logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables that have the file are left alone."""
    folder = logs.hold(bio(1, SECOND), "a")
    commit, done = delta.commit, Counter[str]()

    def killed(table: Path, *rest: object) -> bool:
        if table.name == "segments":
            raise KeyboardInterrupt
        return commit(table, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(delta, "commit", killed)
    with pytest.raises(KeyboardInterrupt):
        delta.append(archive, [folder])

    def counts(table: Path, *rest: object) -> bool:
        done[table.name] += 1
        return commit(table, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(delta, "commit", counts)
    delta.append(archive, [folder])
    assert "io" not in done and done["segments"] == 1
    assert (count(archive), count(archive, "segments")) == (1, 1)


def in_between(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]) -> None:
    """Something happens between a writer's look and its commit."""
    write = delta.write_deltalake

    def late(*arguments: object, **options: object) -> None:
        monkeypatch.setattr(delta, "write_deltalake", write)
        meanwhile()
        write(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(delta, "write_deltalake", late)


@pytest.mark.parametrize("made", [True, False])
def test_of_two_writers_of_a_file_one_adds_it(
    archive: Path, logs: Logs, monkeypatch: pytest.MonkeyPatch, made: bool
) -> None:
    """Whether the archive is there or not."""
    if made:
        delta.append(archive, [logs.hold(bio(9, 9 * SECOND), "first")])
    folder = logs.hold(bio(1, SECOND), "a")
    in_between(monkeypatch, lambda: delta.append(archive, [folder]))
    assert delta.append(archive, [folder]).rows == 0
    assert {name: count(archive, name) for name in ("sessions", "io", "files")} == {"sessions": 1, "io": 1, "files": 2}


def test_who_comes_late_with_a_part_is_told(archive: Path, logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of several files are one commit."""
    second = [record("session", SECOND, log=2), record("clock", SECOND, log=2, real_ns=0, utc_offset_s=0)]
    folder = logs.hold([*bio(1, SECOND), *second], "a", "b")
    in_between(monkeypatch, lambda: delta.append(archive, [folder / "00000001.ftlog"]))
    with pytest.raises(LabError, match="somebody else appends the same files; run the same command again"):
        delta.append(archive, [folder])
    delta.append(archive, [folder])
    assert {name: count(archive, name) for name in ("sessions", "io")} == {"sessions": 2, "io": 1}


def test_a_schema_grows(archive: Path, logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    older = {name: dict(columns) for name, columns in COLUMNS.items()}
    del older["io"]["read_ahead"]
    with monkeypatch.context() as before:
        before.setattr("fasttrack_lab.trace.logs.COLUMNS", older)
        delta.append(archive, [logs.hold(bio(1, SECOND), "a")])
    assert "read_ahead" not in DeltaTable(archive / "io").schema().to_arrow().names
    assert sources.open_all([archive]).io.read_ahead.to_pyarrow().to_pylist() == [None]
    (logs.folder / "00000001.ftlog").unlink()
    newer = [("session", dict(HEAD[0][1], log=2)), ("clock", dict(HEAD[1][1], log=2))]
    newer.append(record("bio", 3 * SECOND, log=2, bio=2, operation="read", bytes=1, read_ahead="true"))
    logs.hold(newer, "b")
    (logs.folder / "00000001.ftlog").rename(logs.folder / "00000002.ftlog")
    delta.append(archive, [logs.folder])
    assert sorted(map(str, sources.open_all([archive]).io.read_ahead.to_pyarrow().to_pylist())) == ["None", "True"]


def test_an_erased_device_leaves_no_byte(archive: Path, logs: Logs) -> None:
    other = "ef" * 16
    delta.append(archive, [logs.hold([*bio(1, SECOND), *bio(2, 2 * SECOND), CUT], "a")])
    renamed = [(kind, fields | {"session": "01" * 16}) for kind, fields in [*HEAD, *bio(1, SECOND)]]
    renamed = [(kind, fields | {"install": other} if kind == "session" else fields) for kind, fields in renamed]
    logs.monkeypatch.setattr("trace_records.HEAD", ())
    second = Logs(logs.folder.parent / "other", logs.monkeypatch)
    (second.folder / "00000001.ftlog").write_text("b")
    exported(logs.monkeypatch, renamed)
    delta.append(archive, [second.folder])
    assert count(archive) == 3
    assert delta.erase(archive, INSTALL) == 2 + 2 + 1 + 2 + 2 + 1
    assert count(archive) == 1
    left = sources.open_all([archive]).io.install.to_pyarrow().to_pylist()
    assert left == [other]
    for path in archive.rglob("*"):
        if path.is_file():
            # Parquet is compressed.
            more = str(parquet.read_table(path).to_pydict()).encode() if path.suffix == ".parquet" else b""
            data = path.read_bytes() + more
            assert INSTALL.encode() not in data and SESSION.encode() not in data, path


def test_rows_that_have_their_session_alone_are_erased(archive: Path, logs: Logs) -> None:
    """A segment whose bio is lost."""
    _, segment = bio(7, 2 * SECOND)
    delta.append(archive, [logs.hold([*bio(1, SECOND), segment], "a")])
    assert sorted(map(str, sources.open_all([archive]).segments.install.to_pyarrow().to_pylist())) == ["None", INSTALL]
    delta.erase(archive, INSTALL)
    assert {name: count(archive, name) for name in COLUMNS} == dict.fromkeys(COLUMNS, 0)


def test_who_erases_waits_for_who_appends(archive: Path, logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of an append that is under way are in no commit yet."""
    taken = []

    def meanwhile() -> None:
        with (archive / ".lock").open() as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            with pytest.raises(BlockingIOError), (archive / ".lock").open() as other:
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        taken.append(True)

    in_between(monkeypatch, meanwhile)
    delta.append(archive, [logs.hold(bio(1, SECOND), "a")])
    assert taken


def test_an_erasure_that_fails_is_told(archive: Path, logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    delta.append(archive, [logs.hold(bio(1, SECOND), "a")])

    def refused(*_: object) -> int:
        raise DeltaError("changed")

    monkeypatch.setattr(delta, "_erase", refused)
    with pytest.raises(LabError, match="not all is erased: changed; run the same command again"):
        delta.erase(archive, INSTALL)


def test_an_id_that_is_not_there_is_told(archive: Path, logs: Logs, capsys: pytest.CaptureFixture[str]) -> None:
    delta.append(archive, [logs.hold(bio(1, SECOND), "a")])
    done = CliRunner().invoke(command, ["erase", str(archive), "ef" * 16], catch_exceptions=False)
    assert done.exit_code == 0
    assert f"there is nothing of {'ef' * 16}: no row erased" in capsys.readouterr().err + done.output
    assert count(archive) == 1


def test_only_an_id_is_erased(archive: Path) -> None:
    with pytest.raises(UsageProblem, match="is no id of an installation"):
        delta.erase(archive, "x' OR '1' = '1")
