# SPDX-License-Identifier: GPL-2.0-only
"""Numbers, tables and the page, from raw records on disk."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

from fasttrack_lab.compare import records, report
from fasttrack_lab.compare.records import Front, Record, Request
from fasttrack_lab.host.errors import InputError
from fasttrack_lab.inputs.cell import Cell

RESPONSE = {
    ("stock", ""): 0.8,
    ("stock", "update"): 2.4,
    ("fasttrack", "update"): 1.0,
    ("stock", "backup+update"): 4.0,
    ("fasttrack", "backup+update"): 1.2,
}


def record(
    policy: str, background: str, seed: int, error: str | None = None, scenario: str = "gallery-launch"
) -> Record:
    """A run; seeds differ by a tenth."""
    names = tuple(filter(None, background.split("+")))
    response = RESPONSE[policy, background] * (1 + (seed - 1) / 10)
    moved = {"bytes_read": 10_000_000, "bytes_written": 90_000_000, "bytes_since_touch": 60_000_000}
    app = {**moved, "longest_pause_s": 0.25, "ops": 5}
    result = {
        "response_s": response,
        "total_s": response,
        "foregrounds": {"front": {"uid": 10101, "bytes_read": 70_000_000, "bytes_written": 500_000}},
        "background": dict.fromkeys(names, app),
        "kernel": "6.12.117-test",
        "counters": dict.fromkeys(report.HOLDS, 0)
        | ({"pause_max_us": 900_000, "dispatch_wait_max_us": 100_000 * seed} if policy == "fasttrack" else {}),
    }
    return Record(Cell(scenario, "s6", policy, names, seed), "i", "k", None if error else result, error)


def all_records() -> list[Record]:
    """Three seeds of everything."""
    return [record(policy, background, seed) for policy, background in RESPONSE for seed in (1, 2, 3)]


REQUEST = Request(
    command="./fasttrack compare gallery-launch --seeds 3",
    fronts=(Front("gallery-launch", "foreground, <read-dominant>"),),
    phones=("s6",),
    policies=("stock", "fasttrack"),
    backgrounds=(("update",), ("backup", "update")),
    seeds=3,
    kernel="k",
)


def filled(directory: Path, made: list[Record]) -> Path:
    """A comparison's directory."""
    records.write_request(directory, REQUEST)
    for item in made:
        records.append(directory, item)
    return directory


def test_records_survive_the_disk(tmp_path: Path) -> None:
    filled(tmp_path, all_records())
    assert records.read(tmp_path) == all_records()
    assert records.read_request(tmp_path) == REQUEST


def test_a_torn_last_record_is_cut_off(tmp_path: Path) -> None:
    filled(tmp_path, all_records())
    raw = tmp_path / records.RAW
    torn = raw.read_text()[:-40]
    raw.write_text(torn)
    assert records.read(tmp_path) == all_records()[:-1]
    assert raw.read_text() == torn, "who reads writes nothing"
    records.append(tmp_path, all_records()[-1])
    assert records.read(tmp_path) == all_records()


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    filled(tmp_path, all_records()[:1])
    with (tmp_path / records.RAW).open("a") as out:
        out.write("{}\n")
    with pytest.raises(InputError, match=r"raw\.jsonl:2: not a raw record"):
        records.read(tmp_path)


def test_slowdown_counts_from_the_same_seed_under_stock() -> None:
    frame = report.runs(all_records())
    rows = frame.filter((pl.col("policy") == "fasttrack") & (pl.col("background") == "update")).sort("seed")
    assert rows["slowdown"].to_list() == pytest.approx([1.25] * 3)
    assert rows["baseline_s"].to_list() == pytest.approx([0.8, 0.88, 0.96])


def test_each_file_system_and_lru_counts_from_its_own_baseline() -> None:
    def on(fs: str, lru: str, policy: str, background: str, factor: float) -> Record:
        made = record(policy, background, 1)
        assert made.result is not None
        result = made.result | {"response_s": made.result["response_s"] * factor}
        return replace(made, cell=replace(made.cell, fs=fs, lru=lru), result=result)

    made = [
        on(fs, lru, policy, background, factor)
        for fs, lru, factor in (("ext4", "classic", 1.0), ("f2fs", "classic", 3.0), ("f2fs", "mglru", 5.0))
        for policy, background in (("stock", ""), ("stock", "update"))
    ]
    frame = report.runs(made)
    assert frame["fs"].to_list() == ["ext4"] * 2 + ["f2fs"] * 4
    assert frame["slowdown"].to_list() == pytest.approx([1.0, 3.0] * 3)
    text = shown(report.terminal(frame))
    assert "gallery-launch, phone s6, ext4" in text and "gallery-launch, phone s6, f2fs, mglru" in text
    assert [row[-2:] for row in report.table_rows(report.summary(frame))[:3]] == [
        ("ext4", "classic"),
        ("f2fs", "classic"),
        ("f2fs", "mglru"),
    ]


def test_an_app_switch_counts_from_the_idle_app(tmp_path: Path) -> None:
    def switch(policy: str, response: float, idle: bool = False) -> Record:
        made = record("stock", "", 1)
        moved = {"bytes_read": 0, "bytes_written": 0 if idle else 90_000_000, "bytes_since_touch": 0}
        editor = {**moved, "longest_pause_s": 0.5, "ops": 5}
        assert made.result is not None
        result = made.result | {"response_s": response, "total_s": response, "background": {"editor": editor}}
        return replace(made, cell=replace(made.cell, policy=policy, idle=idle), result=result)

    front = Front("gallery-launch", left="editor")
    asked = replace(REQUEST, backgrounds=((),), seeds=1, fronts=(front,))
    records.write_request(tmp_path, asked)
    for item in (switch("stock", 2.0), switch("fasttrack", 0.6), switch("stock", 0.5, idle=True)):
        records.append(tmp_path, item)
    frame = report.make(tmp_path)
    assert frame["background"].to_list() == ["idle", "none", "none"]
    assert frame["slowdown"].to_list() == pytest.approx([1.0, 4.0, 1.2])
    rows = report.table_rows(report.summary(frame))
    assert [row[6] for row in rows] == ["-", "0.0", "0.0"]
    page = (tmp_path / report.PAGE).read_text()
    assert "editor, the app in front before the touch, idle" in page and page.count('<tr class="baseline">') == 1


def test_throughput_counts_from_the_touch() -> None:
    frame = report.runs([record("stock", "backup+update", 1)])
    assert frame["background_mb"][0] == pytest.approx(200.0)
    assert frame["background_mb_s"][0] == pytest.approx(120.0 / 4.0)
    assert frame["slowdown"][0] is None


def test_what_all_apps_in_front_moved_counts() -> None:
    made = record("stock", "", 1)
    assert made.result is not None
    one = made.result["foregrounds"]["front"]
    frame = report.runs([replace(made, result=made.result | {"foregrounds": {"left": one, "right": one}})])
    assert frame["foreground_read_mb"][0] == pytest.approx(140.0)
    assert report.runs([made])["foreground_read_mb"][0] == pytest.approx(70.0)


def test_the_last_record_of_a_cell_counts() -> None:
    frame = report.runs([record("stock", "", 1, error="panic"), record("stock", "", 1)])
    assert frame.height == 1
    assert frame["error"][0] is None


def test_failed_runs_are_in_no_number() -> None:
    made = [*all_records(), record("fasttrack", "update", 2, error="kernel log: panic")]
    row = report.summary(report.runs(made)).filter(
        (pl.col("policy") == "fasttrack") & (pl.col("background") == "update")
    )
    assert (row["runs"][0], row["failed"][0]) == (2, 1)
    assert row["response_s_mean"][0] == pytest.approx((1.0 + 1.2) / 2)


def test_table_has_baseline_first_and_ranges() -> None:
    rows = report.table_rows(report.summary(report.runs(all_records())))
    assert rows[0][:4] == ("gallery-launch", "s6", "none", "stock")
    assert rows[0][6:9] == ("-", "-", "-")
    stock = next(row for row in rows if row[2:4] == ("update", "stock"))
    assert stock[4] == "2.640 (2.400–2.880)"
    assert stock[5] == "3.00"
    assert stock[7:10] == ("0.25", "0.00", "3")
    fasttrack = next(row for row in rows if row[2:4] == ("update", "fasttrack"))
    assert fasttrack[7:10] == ("0.25", "0.90", "3")


class Page(HTMLParser):
    """What is asked of a page: its text, its addresses, its figures."""

    def __init__(self) -> None:
        """Nothing seen."""
        super().__init__()
        self.addresses: list[str] = []
        self.figures = 0
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Counts figures and collects addresses."""
        self.figures += tag == "svg"
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href", "srcset")]

    def handle_data(self, data: str) -> None:
        """Collects text."""
        self.text += data


def test_page_is_self_contained_and_says_what_was_run(tmp_path: Path) -> None:
    filled(tmp_path, [*all_records(), record("fasttrack", "backup+update", 3, error="the guest hung")])
    report.make(tmp_path)
    text = (tmp_path / report.PAGE).read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    assert page.figures == 2
    assert all(address.startswith("#") for address in page.addresses)
    assert not re.search(r"url\((?!#)|@import", text)
    assert REQUEST.command in page.text
    assert "foreground, <read-dominant>" in page.text
    assert "6.12.117-test" in page.text
    assert "contention for the processor is not modelled" in page.text
    assert "the guest hung" in page.text
    assert "1 of 15 runs failed" in page.text


def test_reports_can_be_made_again(tmp_path: Path) -> None:
    filled(tmp_path, all_records())
    report.make(tmp_path)
    names = [report.PAGE, report.RUNS_CSV, report.SUMMARY_CSV]
    first = [(tmp_path / name).read_bytes() for name in names]
    for name in names:
        (tmp_path / name).unlink()
    report.make(tmp_path)
    assert [(tmp_path / name).read_bytes() for name in names] == first
    assert pl.read_csv(tmp_path / report.SUMMARY_CSV).height == len(RESPONSE)
    assert pl.read_csv(tmp_path / report.RUNS_CSV).height == 3 * len(RESPONSE)


def test_a_page_of_failures_alone_can_be_made(tmp_path: Path) -> None:
    filled(tmp_path, [record("stock", "", 1, error="panic")])
    report.make(tmp_path)
    assert "1 of 1 runs failed" in (tmp_path / report.PAGE).read_text()


def test_records_of_another_kernel_or_request_do_not_count(tmp_path: Path) -> None:
    other = [replace(item, kernel="other") for item in all_records()]
    fourth = record("stock", "", 4)
    filled(tmp_path, [*all_records()[::-1], *other, fourth])
    assert records.current(records.read(tmp_path), REQUEST) == all_records()
    assert report.make(tmp_path).height == len(all_records())


def test_an_interrupted_comparison_says_so(tmp_path: Path) -> None:
    filled(tmp_path, all_records()[:5])
    report.make(tmp_path)
    assert "10 more runs are planned" in (tmp_path / report.PAGE).read_text()


def test_not_a_comparison(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no compare\.json here"):
        report.make(tmp_path)


def shown(table: object) -> str:
    """A table as it looks without colours."""
    console = Console(file=io.StringIO(), width=80, no_color=True)
    console.print(table)
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def test_demo_table() -> None:
    made = [item for item in all_records() if item.cell.background in ("none", "update")]
    text = shown(report.demo_table(made))
    line = next(line for line in text.splitlines() if "gallery-launch" in line)
    assert re.split(r"\s*[│|]\s*", line.strip("│| \n")) == [
        "gallery-launch",
        "update",
        "0.880",
        "2.640 (3.00x)",
        "1.100 (1.25x)",
    ]
    lacking = next(line for line in text.splitlines() if "camera-switch" in line)
    assert lacking.count(" - ") == 3


def test_terminal_table_has_every_row() -> None:
    text = shown(report.terminal(report.runs(all_records())))
    assert text.startswith("gallery-launch, phone s6")
    rows = [line.split() for line in text.splitlines() if re.match(r"\s*(none|update|backup)", line)]
    assert len(rows) == len(RESPONSE)
    assert rows[0] == ["none", "stock", "0.880", "0.80–0.96", "1.00", "-", "-", "3"]
    assert max(map(len, text.splitlines())) <= 80
