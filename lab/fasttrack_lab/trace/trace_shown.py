# SPDX-License-Identifier: GPL-2.0-only
"""A report as people see it: a summary for the terminal, and one page without network."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Group
from rich.markup import escape
from rich.table import Table

from fasttrack_lab.trace.cells import cell
from fasttrack_lab.trace.tables import NO_LOSS
from fasttrack_lab.trace.trace_report import Answer, Report

_TERMINAL = (
    "reads_writes",
    "block_types",
    "apps",
    "sync_share",
    "sync_calls",
    "journals",
    "calls",
    "waits",
    "device_time",
    "known",
)
"""Metrics of the summary."""
_INSTALLS = 8
"""Installations that are named."""
_ROWS = 8
"""Rows of a table in the terminal."""

PAGE_ROWS = 200
"""Rows of a table in the page; JSON has all."""


def coverage(answer: Answer, report: Report) -> str:
    """What stands beside a figure."""
    if not answer.recorded:
        return "not recorded: coverage 0 %"
    lossy = f"; {lost}" if (lost := report.lost(answer)) else ""
    sampled = f"; of a sample, one bio of {report.sample}: not scaled" if report.sampled(answer) else ""
    mixed = f"; {len(report.installs)} installations in one: see --install" if report.mixed(answer) else ""
    return f"coverage {answer.coverage * 100:.1f} %{sampled}{lossy}{mixed}"


def _recordings(count: int) -> str:
    return f"{count} recording" + ("" if count == 1 else "s")


def head(report: Report) -> list[str]:
    """What is reported on, and what is lost: of nothing, whether there was nothing or it is gone."""
    traces = ", ".join(report.traces)
    if report.is_empty:
        lines = [f"{traces}: {'no I/O can be read; records are lost' if report.lossy else 'no I/O was recorded'}"]
    else:
        count = sum(row["count"] for row in report.answers["reads_writes"].rows)
        lines = [f"{traces}: {count} bios in {report.seconds:.1f} s, {_recordings(len(report.sessions))}"]
    if len(report.installs) > 1:
        named = ", ".join(report.installs[:_INSTALLS]) + (", ..." if len(report.installs) > _INSTALLS else "")
        lines.append(f"{len(report.installs)} installations: {named}")
    for row in report.answers["losses"].rows:
        counted = [f"{row['lost']} records"] if row["lost"] else []
        if row["uncounted"]:
            counted.append(f"{row['uncounted']} times nobody knows how many")
        what = "LEFT OUT" if row["reason"] in NO_LOSS else "LOST"
        lines.append(f"{what} ({row['reason']}): {', '.join(counted)}; {row['intervals']} intervals")
    lines += [f"  {loss['what']}" for loss in report.losses if loss["what"]]
    return lines


def terminal(report: Report) -> Group:
    """The summary."""
    parts: list[Any] = [escape(line) for line in head(report)]
    if report.is_empty:
        return Group(*parts)
    for name in _TERMINAL:
        answer = report.answers[name]
        if not answer.rows:
            continue
        table = Table(
            title=f"\n{answer.metric.title} ({coverage(answer, report)})",
            title_justify="left",
            box=box.SIMPLE_HEAD,
            show_edge=False,
        )
        for column, value in answer.rows[0].items():
            table.add_column(column, justify="left" if isinstance(value, str) else "right")
        for row in answer.rows[:_ROWS]:
            table.add_row(*(escape(cell(answer.metric, column, value)) for column, value in row.items()))
        parts.append(table)
    absent = ", ".join(metric.title for metric in report.absent())
    if absent:
        parts.append(f"\nnot recorded, coverage 0: {absent}")
    return Group(*parts)


def page(report: Report, profile: str | None = None) -> str:
    """The page: self-contained HTML. PROFILE: the interaction that the trace is of, as SVG."""
    # Load polars, and matplotlib, which takes a second or two: the terminal's summary does not wait for them.
    from fasttrack_lab.compare.report import render  # noqa: PLC0415
    from fasttrack_lab.trace.trace_plots import draw, left_out  # noqa: PLC0415

    figures = [
        {
            "name": answer.metric.name,
            "metric": answer.metric,
            "coverage": coverage(answer, report),
            "poor": answer.coverage < 0.9 or bool(report.lost(answer)) or report.sampled(answer),
            "svg": draw(answer),
            "left_out": left_out(answer),
            "columns": list(answer.rows[0]) if answer.rows else [],
            "texts": [isinstance(value, str) for value in answer.rows[0].values()] if answer.rows else [],
            "rows": [
                [cell(answer.metric, column, value) for column, value in row.items()] for row in answer.rows[:PAGE_ROWS]
            ],
            "more": max(0, len(answer.rows) - PAGE_ROWS),
        }
        for answer in report.answers.values()
        if answer.recorded
    ]
    shown = {"head": head(report), "figures": figures, "absent": report.absent(), "profile": profile}
    return render("trace.html.j2", report=report, **shown)
