# SPDX-License-Identifier: GPL-2.0-only
"""From raw records to numbers, tables and one page.

Response time is that of a run; slowdown is the response time over that of the same scenario, phone, file system, LRU
and seed without background under the policy `stock`, and with the app idle that was in front before the touch, if there
was one. Throughput of a background app is what it read and wrote, from the cache too, from its own start to the end of
the response. All are derived here, from files, every time anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import polars as pl
from rich import box
from rich.console import Group
from rich.table import Table

from fasttrack_lab.compare import ranking
from fasttrack_lab.compare.records import (
    BASELINE_POLICY,
    Record,
    Request,
    current,
    failures,
    latest,
    over_text,
    plan,
    read,
    read_request,
    took,
)
from fasttrack_lab.inputs.background_sets import called
from fasttrack_lab.inputs.cell import IDLE, NONE, platform_text, scenario_name

RUNS_CSV = "runs.csv"
SUMMARY_CSV = "summary.csv"
PAGE = "report.html"
TEMPLATES = Path(__file__).parent / "templates"

NOTES = (
    "Times are virtual. The processor of the emulated phone is infinitely fast: an app's own computing is a sleep of "
    "fixed length, and contention for the processor is not modelled.",
    "A run depends on the kernel, the guest program, the scenario, the phone, the policy and the seed alone, and gives "
    "the same number on every machine where these are the same.",
    "The storage device is a model, calibrated against published figures; it is not a measurement of a phone.",
)
MEASURES = ("response_s", "slowdown", "background_mb_s")
LEAST = {"response_s": pl.col("over") * pl.col("baseline_s"), "slowdown": pl.col("over")}
"""What a measure of a run is at least that was ended when long."""
_PLATFORM = ["phone", "fs", "lru"]
_GROUP = ["scenario", *_PLATFORM, "policy", "background"]
_RUN_SCHEMA: dict[str, Any] = {
    "scenario": pl.String,
    "phone": pl.String,
    "fs": pl.String,
    "lru": pl.String,
    "policy": pl.String,
    "background": pl.String,
    "seed": pl.Int64,
    "response_s": pl.Float64,
    "foreground_read_mb": pl.Float64,
    "foreground_written_mb": pl.Float64,
    "background_mb": pl.Float64,
    "background_mb_s": pl.Float64,
    "longest_pause_s": pl.Float64,
    "longest_hold_s": pl.Float64,
    "longest_write_wait_s": pl.Float64,
    "kernel": pl.String,
    "error": pl.String,
    "over": pl.Float64,
}

HOLDS = ("pause_max_us", "dispatch_wait_max_us", "dispatch_sync_wait_max_us")
"""Counters of a background task's longest pause in the page cache, and wait for a read or a write in the dispatcher."""

WRITE_WAIT = "write_wait_max_us"
"""The elevator smartio's: how long the writes of a process have waited for reads."""


def _row(record: Record) -> dict[str, Any]:
    """One run as a row."""
    cell = record.cell
    row: dict[str, Any] = dict.fromkeys(_RUN_SCHEMA)
    row |= {
        "scenario": scenario_name(cell.scenario),
        "phone": cell.phone,
        "fs": cell.fs or str((record.result or {}).get("fs", "")),
        "lru": cell.lru,
        "policy": cell.policy,
        "background": cell.background,
        "seed": cell.seed,
        "error": None if record.over else record.error,
        "over": record.over,
    }
    if record.result is None or record.error is not None:
        return row
    result = record.result
    front = list(result["foregrounds"].values())
    apps = list(result["background"].values())
    counters = result.get("counters", {})
    held_us = [int(counters[name]) for name in HOLDS if name in counters]
    waited_us = result.get("elevator", {}).get(WRITE_WAIT)
    row |= {
        "response_s": float(result["response_s"]),
        "foreground_read_mb": sum(app["bytes_read"] for app in front) / 1e6,
        "foreground_written_mb": sum(app["bytes_written"] for app in front) / 1e6,
        "background_mb": sum(app["bytes_read"] + app["bytes_written"] for app in apps) / 1e6,
        "background_mb_s": sum(app["bytes_since_touch"] for app in apps) / 1e6 / float(result["total_s"]),
        "longest_pause_s": max((float(app["longest_pause_s"]) for app in apps), default=0.0),
        "longest_hold_s": max(held_us) / 1e6 if len(held_us) == len(HOLDS) else None,
        "longest_write_wait_s": None if waited_us is None else waited_us / 1e6,
        "kernel": str(result["kernel"]),
    }
    return row


def _alone() -> pl.Expr:
    """Whether no background scenario ran."""
    return pl.col("background").is_in([NONE, IDLE])


def runs(records: Iterable[Record]) -> pl.DataFrame:
    """One row a run, the last record of each cell, with baseline and slowdown."""
    frame = pl.DataFrame([_row(record) for record in latest(records).values()], schema=_RUN_SCHEMA)
    run = ["scenario", *_PLATFORM, "seed"]
    alone = frame.filter((pl.col("policy") == BASELINE_POLICY) & _alone()).sort(pl.col("background") != IDLE)
    baseline = alone.unique(run, keep="first", maintain_order=True).select(
        *run, pl.col("response_s").alias("baseline_s")
    )
    joined = frame.join(baseline, on=run, how="left", maintain_order="left")
    return joined.with_columns((pl.col("response_s") / pl.col("baseline_s")).alias("slowdown"))


def summary(frame: pl.DataFrame, measures: Sequence[str] = MEASURES) -> pl.DataFrame:
    """One row a scenario, phone, file system, LRU, policy and background: mean, lowest and highest over the seeds.

    The mean `…_least` has the runs that were ended when long, with what they are at least.
    """
    spreads = [
        expression
        for name in measures
        for expression in (
            pl.col(name).mean().alias(f"{name}_mean"),
            pl.col(name).min().alias(f"{name}_min"),
            pl.col(name).max().alias(f"{name}_max"),
        )
    ]
    return frame.group_by(_GROUP, maintain_order=True).agg(
        pl.col("response_s").count().alias("runs"),
        pl.col("error").count().alias("failed"),
        pl.col("over").count().alias("over"),
        pl.col("over").max().alias("over_times"),
        *(pl.coalesce(name, least).mean().alias(f"{name}_least") for name, least in LEAST.items()),
        *spreads,
        pl.col("background_mb", "longest_pause_s", "longest_hold_s", "longest_write_wait_s").max(),
    )


def lost(row: Mapping[str, Any]) -> str:
    """How many runs of a summary's row are in no mean of it: those that failed, and those that were ended when long."""
    failed = f", {row['failed']} failed" if row["failed"] else ""
    return failed + (f", {row['over']} {over_text(row['over_times'])}" if row["over"] else "")


def spread(row: dict[str, Any], name: str, digits: int) -> str:
    """Mean and range of a measure, or a dash; of a slowdown whose runs all were ended when long, what it is above."""
    mean, low, high = (row[f"{name}_{part}"] for part in ("mean", "min", "max"))
    if mean is None and name == "slowdown" and row["over"] and not row["failed"]:
        return over_text(row["over_times"])
    if mean is None:
        return "-"
    text = f"{mean:.{digits}f}"
    return text if f"{low:.{digits}f}" == f"{high:.{digits}f}" else f"{text} ({low:.{digits}f}–{high:.{digits}f})"


def _sorted(rows: pl.DataFrame) -> pl.DataFrame:
    """The baseline first, then what else had no background."""
    return rows.sort(pl.col("background") != IDLE, ~_alone(), maintain_order=True)


HEADINGS = (
    "foreground",
    "phone",
    "background",
    "policy",
    "response (s)",
    "slowdown",
    "background (MB/s)",
    "longest call (s)",
    "longest hold (s)",
    "runs",
    "fs",
    "LRU",
)


def table_rows(summed: pl.DataFrame) -> list[tuple[str, ...]]:
    """The summary as text, one tuple a row in the order of `HEADINGS`; baseline rows come first."""
    rows: list[tuple[str, ...]] = []
    for row in _sorted(summed).iter_rows(named=True):
        nothing, longest = ranking.nothing_behind(row), (row["longest_pause_s"], row["longest_hold_s"])
        rows.append(
            (
                row["scenario"],
                row["phone"],
                called(row["background"]),
                row["policy"],
                spread(row, "response_s", 3),
                spread(row, "slowdown", 2),
                "-" if nothing else spread(row, "background_mb_s", 1),
                *("-" if nothing or value is None else f"{value:.2f}" for value in longest),
                f"{row['runs']}{lost(row)}",
                row["fs"],
                row["lru"],
            )
        )
    return rows


_TERMINAL = ("background", "policy", "response", "range", "slowdown", "MB/s", "hold", "runs")
"""Columns of the terminal's table, which fits 80 characters; one table a phone, file system and LRU."""

_LEGEND = (
    "Seconds; MB/s: the background's throughput from the touch on; "
    "hold: the longest that FastTrack made one of its tasks wait."
)


def _terminal_row(row: dict[str, Any]) -> tuple[str, ...]:
    """One row: means, the range of the response time, what the background did."""
    alone, out = ranking.nothing_behind(row), lost(row).removeprefix(", ")
    failed = f" ({out})" if out else ""
    head = (called(row["background"]), row["policy"])
    if row["response_s_mean"] is None:
        return (*head, *"-----", f"{row['runs']}{failed}")
    slowdown = row["slowdown_mean"]
    return (
        *head,
        f"{row['response_s_mean']:.3f}",
        f"{row['response_s_min']:.2f}–{row['response_s_max']:.2f}",
        "-" if slowdown is None else f"{slowdown:.2f}",
        "-" if alone else f"{row['background_mb_s_mean']:.0f}",
        "-" if alone or row["longest_hold_s"] is None else f"{row['longest_hold_s']:.2f}",
        f"{row['runs']}{failed}",
    )


def _platforms(rows: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    """The rows of each phone, file system and LRU, and what to call them."""
    parts = rows.partition_by(_PLATFORM, maintain_order=True, as_dict=True)
    return [(platform_text(*names), part) for names, part in parts.items()]


def terminal(frame: pl.DataFrame) -> Group:
    """For the terminal: the ranks of the policies over several scenarios, or all numbers of one."""
    rows = _sorted(summary(frame))
    return Group(ranking.terminal_table(rows)) if rows["scenario"].n_unique() > 1 else _terminal_tables(rows)


def _terminal_tables(rows: pl.DataFrame) -> Group:
    """The summary of a scenario: one table a phone, file system and LRU."""
    tables = []
    for platform, part in _platforms(rows):
        title = f"{part['scenario'][0]}, phone {platform}"
        table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False)
        for index, heading in enumerate(_TERMINAL):
            table.add_column(heading, justify="left" if index < 2 else "right", no_wrap=index > 0, overflow="fold")
        previous = ""
        for row in part.iter_rows(named=True):
            if previous and row["background"] != previous:
                table.add_section()
            previous = row["background"]
            table.add_row(*_terminal_row(row))
        tables.append(table)
    return Group(*tables, _LEGEND)


def _figures(rows: pl.DataFrame, request: Request) -> list[dict[str, Any]]:
    """The figures of every phone, file system and LRU: a heat map, and bars of each foreground."""
    # Loads matplotlib, which takes a second or two: --help does not wait for it.
    from fasttrack_lab.compare import comparison_plots as plots  # noqa: PLC0415

    columns = [(front.name, group) for front in request.fronts for group in request.groups(front)]
    figures = []
    for platform, mine in _platforms(rows):
        if mine["response_s_mean"].is_null().all():
            continue
        values = plots.values_of(mine)
        figures.append(
            {
                "phone": platform,
                "heat_map": plots.heat_map(values, request.policies, columns),
                "bars": {
                    front.name: plots.bars(values, request.policies, front.name, request.groups(front))
                    for front in request.fronts
                },
            }
        )
    return figures


def render(template: str, **values: Any) -> str:
    """A page from a template."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    return environment.get_template(template).render(**values)


def page(records: Sequence[Record], request: Request) -> str:
    """The page: self-contained HTML."""
    frame = runs(records)
    rows = summary(frame)
    return render(
        "compare.html.j2",
        request=request,
        called=called,
        baselines={front.name: front.baseline for front in request.fronts},
        kernels=sorted(set(frame["kernel"].drop_nulls().to_list())),
        rank_headings=ranking.HEADINGS,
        ranks=[rank.texts(cells=True) for rank in ranking.ranks(rows)],
        rank_legend=ranking.LEGEND,
        headings=HEADINGS,
        rows=table_rows(rows),
        figures=_figures(rows, request),
        notes=NOTES,
        took=took(records),
        failed=failures(latest(records).values()),
        failed_runs=frame["error"].count(),
        total=len(frame),
        missing=len(plan(request)) - len(frame),
        data_files=(RUNS_CSV, SUMMARY_CSV, "raw.jsonl"),
    )


def make(directory: Path) -> pl.DataFrame:
    """Makes a directory's CSV files and page from its raw records. Returns the runs."""
    request = read_request(directory)
    records = current(read(directory), request)
    frame = runs(records)
    frame.write_csv(directory / RUNS_CSV)
    ranking.against_each_other(summary(frame)).write_csv(directory / SUMMARY_CSV)
    (directory / PAGE).write_text(page(records, request), encoding="utf-8")
    return frame


DEMO_PHONE = "s6"
DEMO_POLICIES = ("stock", "fasttrack")
DEMO_PAIRS = (("gallery-launch", "update"), ("camera-switch", "backup"))


def _demo_value(frame: pl.DataFrame, scenario: str, policy: str, background: str) -> dict[str, Any] | None:
    """The summary of one entry of the demo's table."""
    wanted = (pl.col("scenario") == scenario) & (pl.col("policy") == policy) & (pl.col("background") == background)
    rows = summary(frame.filter(wanted & (pl.col("phone") == DEMO_PHONE)))
    return None if rows.is_empty() or rows["response_s_mean"][0] is None else rows.row(0, named=True)


def demo_table(records: Iterable[Record]) -> Table:
    """The demo: stock against fasttrack on s6, the response without background beside them. Lacking runs are dashes."""
    frame = runs(records)
    table = Table(title=f"Response time on {DEMO_PHONE}, seconds (slowdown)", title_justify="left")
    table.add_column("foreground")
    table.add_column("background")
    table.add_column("no background", justify="right")
    for policy in DEMO_POLICIES:
        table.add_column(policy, justify="right")
    for scenario, background in DEMO_PAIRS:
        alone = _demo_value(frame, scenario, BASELINE_POLICY, NONE)
        cells = ["-" if alone is None else f"{alone['response_s_mean']:.3f}"]
        for policy in DEMO_POLICIES:
            value = _demo_value(frame, scenario, policy, background)
            if value is None:
                cells.append("-")
            else:
                slowdown = value["slowdown_mean"]
                ratio = "" if slowdown is None else f" ({slowdown:.2f}x)"
                cells.append(f"{value['response_s_mean']:.3f}{ratio}")
        table.add_row(scenario, background, *cells)
    return table
