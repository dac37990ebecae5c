# SPDX-License-Identifier: GPL-2.0-only
"""./fasttrack trace: what traces of I/O origin say."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fasttrack_lab.commands import common
from fasttrack_lab.host import ui
from fasttrack_lab.host.errors import UsageProblem, unknown
from fasttrack_lab.host.units import parse_size
from fasttrack_lab.trace import interval
from fasttrack_lab.trace.interval import Moment

if TYPE_CHECKING:
    from fasttrack_lab.trace.difference import Interval
    from fasttrack_lab.trace.tables import Tables
    from fasttrack_lab.trace.trace_report import Report

_PATHS: common.Decorator = click.argument(
    "paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(path_type=Path)
)
_PAGE = "report.html"
_TIMES = """TIME is seconds of the boot clock (12.5), or what the device's clock showed in its own time zone
(2026-11-27, 2026-11-27T10:00 or 2026-11-27T10:00:30.5), or with a time zone a real time (2026-11-27T09:00Z). What a
clock that was set back showed twice is taken twice."""
"""In the help of commands with an interval."""


def _moment(_context: click.Context, _option: click.Parameter, text: str | None) -> Moment | None:
    return None if text is None else interval.parse(text)


_SINCE: common.Decorator = click.option(
    "--since", metavar="TIME", callback=_moment, help="Only what is not before this time; see below."
)
_UNTIL: common.Decorator = click.option(
    "--until", metavar="TIME", callback=_moment, help="Only what is not after this time; a date alone is its midnight."
)
_INSTALL: common.Decorator = click.option(
    "--install", metavar="ID", help="Only of this installation, a device's random id, where there are several."
)
_ENGINE: common.Decorator = click.option(
    "--engine",
    metavar="URL",
    callback=lambda _context, _option, value: None if value == "duckdb" else value,
    help="Who answers of an archive: duckdb, chdb, clickhouse://[USER:PASSWORD@]HOST[:PORT][/DATABASE], or "
    "sc://HOST[:PORT] (Spark Connect)  [default: duckdb]",
)


@click.group("trace")
def command() -> None:
    """Report, explain, compare, query, draw and archive traces of I/O origin.

    A PATH is a directory of log files (as run --trace and fasttrack-trace record make), a log file, an archive, or a
    file of another tool; import makes a PATH of several such files, and names their formats.
    """


def _opened(paths: Sequence[Path], engine: str | None = None, prefix: str = "") -> Tables:
    # Slow to import, and --help does not need it.
    from fasttrack_lab.trace.sources import open_all  # noqa: PLC0415

    return open_all(paths, engine=engine, prefix=prefix)


def _of_install(tables: Tables, install: str | None) -> Tables:
    """What is of one installation, if one is asked for."""
    if install is not None and install not in (there := tables.installs()):
        raise UsageProblem(unknown("installation", install, there or ["none is known"]))
    return tables.of_install(install)


def _chosen(tables: Tables, install: str | None, since: Moment | None, until: Moment | None) -> Tables:
    """What is of an installation and in an interval."""
    tables.check_clock(since, until)
    return _of_install(tables, install).between(since, until)


@contextmanager
def _told(engine: str | None) -> Iterator[None]:
    """Says what another engine than DuckDB refuses."""
    if engine is None:
        yield
        return
    from fasttrack_lab.trace import engines  # noqa: PLC0415

    with engines.told(engines.shown(engine)):
        yield


@command.command("import")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--out",
    required=True,
    type=common.Directory(),
    metavar="DIR",
    help="The directory to make; one that is an import is made anew.",
)
@click.option("--format", "form", metavar="NAME", help="The format of all files; else it is recognised by content.")
@click.option("--installation", metavar="ID", help="The device's id, by which erase finds it: letters and digits.")
@common.json_option
def import_command(
    sources: tuple[Path, ...], out: Path, form: str | None, installation: str | None, json_path: str | None
) -> None:
    """Make records of other tools' traces, which report, diff, sql and archive read as they read log files.

    A SOURCE is a file or a directory of files; gzip and zstd are unpacked. Formats: blktrace (files of processors),
    blkparse (text), trace.dat (trace-cmd, versions 6 and 7), ftrace (text of tracefs, systrace, atrace, trace-cmd
    report, perf script), perfetto, pixel6a (CSV), most (text), androtrace (.uio).

    What a source does not say is unknown. What cannot be read is told, and is in the report's losses; the rest is
    imported, and the exit status is 3.
    """
    common.check_json_path(json_path)
    from fasttrack_lab.trace.exporting import DAMAGED  # noqa: PLC0415
    from fasttrack_lab.trace.importers.importing import import_all  # noqa: PLC0415
    from fasttrack_lab.trace.importers.shown import told  # noqa: PLC0415

    imported = import_all(sources, out, form, installation)
    common.write_json(json_path, imported.to_json())
    for line in told(imported):
        ui.say(line)
    if imported.damages:
        sys.exit(DAMAGED)


def _row_bytes(_context: click.Context, _option: click.Parameter, told: Sequence[str]) -> dict[str, int]:
    """DATABASE=SIZE, several times."""
    found = {}
    for one in told:
        database, _, size = one.rpartition("=")
        try:
            if not database:
                raise ValueError("it names no database")
            found[database] = parse_size(size)
        except ValueError as error:
            raise UsageProblem(f"--row-bytes '{one}': {error}; valid: DATABASE=SIZE, as /data/x.db=12.5 MiB") from error
    return found


@command.command("report", epilog=_TIMES)
@_PATHS
@_SINCE
@_UNTIL
@_INSTALL
@_ENGINE
@click.option(
    "--row-bytes",
    metavar="DATABASE=SIZE",
    multiple=True,
    callback=_row_bytes,
    help="Bytes of the rows that were written to a database, as its path is in the trace; several times. No trace "
    "knows them: with them SQLite by journal mode has its factor.",
)
@click.option("--out", type=common.Directory(), metavar="DIR", help=f"Write {_PAGE} into this directory.")
@common.json_option
def report_command(
    paths: tuple[Path, ...],
    since: Moment | None,
    until: Moment | None,
    install: str | None,
    engine: str | None,
    row_bytes: dict[str, int],
    out: Path | None,
    json_path: str | None,
) -> None:
    """Say who read and wrote what, who waited, and how much of it is known.

    Each figure has its coverage: the share of what it counts over that it can tell apart. A trace that has lost records
    says so beside each. What needs records that the trace does not have is listed.
    """
    common.check_json_path(json_path)
    with _told(engine):
        report = _reported(paths, engine, row_bytes, install, since, until)
    from rich.console import Console  # noqa: PLC0415

    from fasttrack_lab.trace import trace_shown  # noqa: PLC0415

    common.write_json(json_path, report.to_json())
    if json_path != "-":
        Console(width=None if sys.stdout.isatty() else common.PLAIN_WIDTH).print(trace_shown.terminal(report))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        profile = None
        if len(paths) == 1 and since is None and until is None and not report.is_empty:
            from fasttrack_lab.trace import io_profile_drawn  # noqa: PLC0415

            profile = io_profile_drawn.of_folder(paths[0])
        (out / _PAGE).write_text(trace_shown.page(report, profile), encoding="utf-8")
        ui.say(f"page: {out / _PAGE}")


def _say_unknown(tables: Tables, databases: Collection[str]) -> None:
    """Says which of the databases that --row-bytes names have no I/O in the trace."""
    if not databases:
        return
    found = tables.segments.filter(tables.segments.database.isin(list(databases)))
    there = set(found.select("database").distinct().to_pyarrow().column("database").to_pylist())
    for path in databases:
        if path not in there:
            ui.say(f"--row-bytes {path}: the trace has no I/O of this database")


def _reported(
    paths: Sequence[Path],
    engine: str | None,
    row_bytes: dict[str, int],
    install: str | None,
    since: Moment | None,
    until: Moment | None,
) -> Report:
    """While tables are made, which is the database's work, the queries are."""
    from fasttrack_lab.trace import sources  # noqa: PLC0415

    if engine is not None:
        tables = _chosen(_opened(paths, engine), install, since, until)
        from fasttrack_lab.trace import trace_report  # noqa: PLC0415

        _say_unknown(tables, row_bytes)
        return trace_report.make(replace(tables, row_bytes=row_bytes), map(str, paths))
    # Metrics count neither over the installation nor over the time zone.
    counted = install is None and not interval.is_wall(since, until)
    with ThreadPoolExecutor(1) as worker:
        whole = not row_bytes and (install, since, until) == (None, None, None)
        if whole:
            filling = worker.submit(sources.filled, paths, counted)
            from fasttrack_lab.trace import trace_report  # noqa: PLC0415

            kept = trace_report.ask(None, counted)
            return kept.answered(filling.result(), map(str, paths))
        opening = worker.submit(sources.open_all, paths, counted=counted)
        from fasttrack_lab.trace import trace_report  # noqa: PLC0415

        def chosen(tables: Tables) -> Tables:
            return replace(tables, row_bytes=row_bytes).of_install(install).between(since, until)

        asked = trace_report.ask(chosen, counted)
        tables = opening.result()
        _say_unknown(_chosen(tables, install, since, until), row_bytes)  # Refuses what is not there.
        return asked.answered(tables.engine, map(str, paths))


@command.command("explain", epilog=_TIMES)
@_PATHS
@click.option("-n", "--count", type=click.IntRange(1), metavar="N", help="The N calls that took longest  [default: 1]")
@click.option("--call", metavar="ID|S", help="A call by its id, or one that was under way at S seconds.")
@click.option("--app", metavar="UID|NAME", help="Only calls of a user id, or of tasks of that name.")
@click.option("--file", metavar="TEXT", help="Only calls on files whose path contains this.")
@click.option("--kind", metavar="KIND", help="Only calls of a kind: read, write, fsync, fdatasync, fault, ...")
@click.option("--bio", type=click.IntRange(0), metavar="N", help="Explain a bio by its number, not a call.")
@click.option("--transaction", type=click.IntRange(0), metavar="N", help="Explain a transaction, not a call.")
@click.option(
    "--perfetto",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Also write what took place meanwhile for ui.perfetto.dev, FILE.pftrace.",
)
@_SINCE
@_UNTIL
@_INSTALL
@common.json_option
def explain_command(
    paths: tuple[Path, ...],
    count: int | None,
    call: str | None,
    app: str | None,
    file: str | None,
    kind: str | None,
    bio: int | None,
    transaction: int | None,
    perfetto: Path | None,
    since: Moment | None,
    until: Moment | None,
    install: str | None,
    json_path: str | None,
) -> None:
    """Follow one call through page cache, journal, elevator and device: by default the slowest.

    It says what the call waited for, the transaction with its trigger, payers and carrier, the bios and requests that
    belong to it with queue and device time, and what of its time nobody knows. (?) marks what may be of another thread.
    A trace without calls has its slowest request explained.
    """
    common.check_json_path(json_path)
    if sum(given is not None for given in (count, call, bio, transaction)) > 1:
        raise UsageProblem("--count, --call, --bio and --transaction exclude each other")
    if (bio is not None or transaction is not None) and (app or file or kind):
        raise UsageProblem("--app, --file and --kind choose calls, not a bio or a transaction")
    if perfetto is not None and (bio is not None or transaction is not None):
        raise UsageProblem("--perfetto is of calls, not of a bio or a transaction")
    tables = _chosen(_opened(paths), install, since, until)
    from fasttrack_lab.trace import trace_explain  # noqa: PLC0415
    from fasttrack_lab.trace.explaining import Wanted  # noqa: PLC0415

    if bio is not None:
        told = trace_explain.bio(tables, bio)
    elif transaction is not None:
        told = trace_explain.transaction(tables, transaction)
    else:
        told = trace_explain.calls(tables, Wanted(count or 1, call, app, file, kind))
    common.write_json(json_path, told.json)
    if json_path != "-":
        click.echo("\n".join(told.lines))
    if perfetto is not None:
        done = trace_explain.tracks(tables, told, perfetto)
        ui.say(f"{perfetto}: {done.slices} slices, {done.bytes} bytes")


def _shown(found: Interval) -> str:
    if found.value is None:
        return "-"
    return f"{found.value:.4g} ({found.low:.4g} to {found.high:.4g})"


def _of_one(path: Path, engine: str | None, prefix: str, install: str | None) -> tuple[Tables, dict[str, Any]]:
    """A side of a comparison, and what is to be known of it; several installations and losses are said."""
    tables = _opened([path], engine, prefix)
    if install is None and len(several := tables.installs()) > 1:
        ui.say(f"{path}: {len(several)} installations together: {', '.join(several)}; --install chooses one")
    mine = _of_install(tables, install)
    from fasttrack_lab.trace.difference import losses_in  # noqa: PLC0415

    if losses := losses_in(mine):
        ui.say(f"{path}: {losses} losses: its figures may be too small")
    return mine, {"trace": str(path), "installations": mine.installs(), "losses": losses}


@command.command("diff")
@click.argument("first", metavar="A", type=click.Path(path_type=Path))
@click.argument("second", metavar="B", type=click.Path(path_type=Path))
@click.option(
    "--install",
    "installs",
    metavar="ID",
    multiple=True,
    help="Only of this installation; given twice, A's first and then B's, which may be one archive.",
)
@_ENGINE
@common.json_option
def diff_command(
    first: Path, second: Path, installs: tuple[str, ...], engine: str | None, json_path: str | None
) -> None:
    """Compare two traces, with 95 % confidence intervals by bootstrap over seconds.

    An asterisk: the interval of the difference excludes 0.
    """
    common.check_json_path(json_path)
    from rich import box  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    from fasttrack_lab.trace.difference import compare  # noqa: PLC0415

    if len(installs) > 2:
        raise UsageProblem("--install is given once, or twice: A's and B's")
    with _told(engine):
        of = [installs[0], installs[-1]] if installs else [None, None]
        sides = _of_one(first, engine, "", of[0]), _of_one(second, engine, "second_", of[1])
        found = compare(sides[0][0], sides[1][0])
    figures = {one.figure.title: asdict(one) | {"differs": one.differs} for one in found}
    common.write_json(json_path, {"traces": [told for _, told in sides], **figures})
    if json_path == "-":
        return
    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    for heading in ("figure", "unit", "A", "B", "B - A"):
        table.add_column(heading)
    for one in found:
        mark = " *" if one.differs else ""
        intervals = [_shown(interval) for interval in (one.first, one.second, one.difference)]
        table.add_row(one.figure.title, one.figure.unit, *intervals[:2], intervals[2] + mark)
    common.print_tables(table)


@command.command("sql")
@click.argument("query")
@_PATHS
@_ENGINE
def sql_command(query: str, paths: tuple[Path, ...], engine: str | None) -> None:
    """Answer a QUERY in SQL, a JSON object a line.

    Tables: sessions, io, segments, requests, calls, waits, transactions, shares, files, losses, tasks;
    docs/TRACE-QUERIES.md says what is in them. The dialect is the engine's: DuckDB's by default.
    """
    with _told(engine):
        tables = _opened(paths, engine)
    from fasttrack_lab.trace import engine_tables, engines  # noqa: PLC0415

    try:
        rows = engine_tables.rows_of_sql(tables.engine, query)
    except engines.client_errors() as error:
        raise UsageProblem(f"the query: {engines.without_secrets(' '.join(str(error).split()))}") from error
    for row in rows:
        click.echo(json.dumps(row, ensure_ascii=False, default=str))


@command.command("perfetto", epilog=_TIMES)
@_PATHS
@click.option(
    "-o",
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The file to write, FILE.pftrace; one that is there is replaced when the new one is whole.",
)
@_SINCE
@_UNTIL
@_INSTALL
@click.option("--session", metavar="ID", help="Of this recording alone; needed where there are several boots.")
def perfetto_command(
    paths: tuple[Path, ...],
    out: Path,
    since: Moment | None,
    until: Moment | None,
    install: str | None,
    session: str | None,
) -> None:
    """Write a trace for ui.perfetto.dev and trace_processor.

    Each process has its tasks with their calls, what they waited for within these, and the bios that they sent, with
    flows from the calls to these and to the requests. Each device has its requests, by time in the queue and in the
    device, their number, and its file system's transactions. Each type of files has the blocks that are under way.
    Losses are instants.
    """
    from fasttrack_lab.trace import perfetto_export  # noqa: PLC0415

    done = perfetto_export.write(_chosen(_opened(paths), install, since, until), out, session)
    ui.say(f"{out}: {done.slices} slices, {done.instants} instants, {done.counts} counts, {done.bytes} bytes")
    if not done.flows:
        ui.say("without flows and files: there are too many bios; --since and --until cut them")


@command.command("profile")
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--foreground", "uids", type=int, multiple=True, metavar="UID", help="An app in front; several times.")
@click.option("--seconds", type=click.FloatRange(0, min_open=True), help="How long the interaction took.")
def profile_command(folder: Path, uids: tuple[int, ...], seconds: float | None) -> None:
    """Draw an interaction's I/O as nested spans into DIR/profile.svg, for those in front and those behind.

    Rows are calls, waits in the page cache and in the file system, requests in the block layer and in the device. DIR
    has the logs of a run of the lab's with --trace, which draws it too. Of other logs say who is in front and how long
    the interaction took: it ends with their last call.
    """
    from fasttrack_lab.trace import interaction, io_profile_drawn  # noqa: PLC0415

    told = interaction.read(folder)
    if uids and seconds:
        told = interaction.Interaction(folder.name, uids, seconds)
    if told is None:
        raise UsageProblem(f"{folder}: no run of the lab's has put its logs there; give --foreground and --seconds")
    ui.say(f"profile: {io_profile_drawn.make(folder, told)}")


@command.command("evaluate")
@click.argument("names", metavar="[EVALUATION]...", nargs=-1)
@common.out_option(Path("results") / "evaluations", "recordings, numbers and pictures")
@common.json_option
def evaluate_command(names: tuple[str, ...], out: Path, json_path: str | None) -> None:
    """Make the papers' evaluations again: A2 to A7 of Androtrace's, fig1, fig2, fig3, fig6, fig11 of FastTrack's.

    Records what is lacking (each recording once for a kernel), and prints the paper's numbers beside these, and why
    they differ. A4 to A7 are of the Facebook replay, if $FASTTRACK_DATA/mobigen/facebook.mobigen is there, and of
    pieces of a day of mixed use. A2 needs no recording, but a kernel of its own for QEMU, whose first build takes 10
    minutes or more.
    """
    common.check_json_path(json_path)
    from fasttrack_lab.trace import evaluating  # noqa: PLC0415

    wanted = evaluating.chosen(names)
    common.check_host()
    out.mkdir(parents=True, exist_ok=True)
    made = list(evaluating.make(wanted, out))
    common.write_json(json_path, {one.evaluation.name: one.to_json() for one in made})
    if json_path != "-":
        common.print_tables(evaluating.shown(made))


@command.command("archive")
@click.argument("archive", metavar="ARCHIVE", type=click.Path(path_type=Path))
@_PATHS
def archive_command(archive: Path, paths: tuple[Path, ...]) -> None:
    """Add log files and imports to an ARCHIVE, a directory of Delta tables, made if it is not there.

    A file that is there already changes nothing; one that has grown replaces its rows.
    """
    from fasttrack_lab.trace import delta  # noqa: PLC0415

    done = delta.append(archive, paths)
    ui.say(f"{archive}: {done.new} log files added with {done.rows} rows, {done.known} were there")


@command.command("erase")
@click.argument("archive", metavar="ARCHIVE", type=click.Path(exists=True, path_type=Path))
@click.argument("install", metavar="INSTALLATION")
def erase_command(archive: Path, install: str) -> None:
    """Remove all of an INSTALLATION, a device's random id, from an ARCHIVE, and every byte of it.

    Readers that have the archive open lose it.
    """
    from fasttrack_lab.trace import delta, exporting  # noqa: PLC0415

    if not exporting.is_archive(archive):
        raise UsageProblem(f"{archive}: not an archive")
    rows = delta.erase(archive, install)
    ui.say(f"{archive}: {rows} rows erased" if rows else f"{archive}: there is nothing of {install}: no row erased")
