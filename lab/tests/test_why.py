# SPDX-License-Identifier: GPL-2.0-only
"""Where the response time went: layers and sites of synthetic stacks, and a guest whose foreground waits."""

from __future__ import annotations

import re
import subprocess
from typing import Any

import pytest
from jobs import MIB, spec, step, two_apps
from rich.console import Console

from fasttrack_lab.commands import common
from fasttrack_lab.host.paths import cache_root
from fasttrack_lab.inputs.cell import Cell
from fasttrack_lab.inputs.exec_job import exec_job
from fasttrack_lab.run import why
from fasttrack_lab.run.result import Result, Verdict
from fasttrack_lab.run.runner import Tools, run

READ = (
    "io_schedule folio_wait_bit_common filemap_update_page filemap_get_pages filemap_read ext4_file_read_iter vfs_read"
)
FSYNC = "schedule jbd2_log_wait_commit jbd2_complete_transaction ext4_sync_file vfs_fsync_range do_fsync"
UPDATES = "schedule jbd2_journal_wait_updates jbd2_journal_commit_transaction+0x1c4 kjournald2 kthread"
IDLE = "schedule kjournald2 kthread"
INSTALL = "io_schedule blk_mq_get_tag __blk_mq_alloc_requests blk_mq_submit_bio ext4_do_writepages"


@pytest.mark.parametrize(
    ("stack", "layer"),
    [
        (READ, why.READ),
        ("io_schedule folio_wait_bit_common __folio_lock_killable filemap_fault __do_fault", why.READ),
        ("schedule rwsem_down_read_slowpath down_read filemap_fault __do_fault", why.LOCK),
        ("io_schedule blk_mq_get_tag blk_mq_submit_bio read_pages filemap_get_pages filemap_read", why.TAG),
        ("io_schedule rq_qos_wait wbt_wait __rq_qos_throttle blk_mq_submit_bio ext4_writepages", why.TAG),
        ("io_schedule_timeout balance_dirty_pages generic_perform_write ext4_file_write_iter", why.THROTTLE),
        ("io_schedule folio_wait_bit_common __folio_lock __filemap_get_folio ext4_file_write_iter", why.FOLIO),
        ("io_schedule folio_wait_writeback mpage_prepare_extent_to_map file_write_and_wait_range", why.FOLIO),
        ("io_schedule folio_wait_writeback __filemap_fdatawait_range file_write_and_wait_range", why.WRITE),
        ("io_schedule __iomap_dio_rw ext4_file_write_iter", why.WRITE),
        ("io_schedule __iomap_dio_rw ext4_file_read_iter", why.READ),
        (FSYNC, why.JOURNAL),
        ("schedule wait_transaction_locked add_transaction_credits start_this_handle jbd2__journal_start", why.JOURNAL),
        ("schedule __mutex_lock.constprop.0 mutex_lock_io __jbd2_log_wait_for_space start_this_handle", why.JOURNAL),
        ("schedule rwsem_down_write_slowpath down_write ext4_file_write_iter", why.LOCK),
        ("schedule_timeout wait_for_completion_io submit_bio_wait blkdev_issue_flush ext4_sync_file", why.FLUSH),
        ("io_schedule __wait_on_buffer ext4_read_bh ext4_bread", why.READ),
        ("io_schedule folio_wait_writeback shrink_folio_list shrink_node try_to_free_pages filemap_fault", why.MEMORY),
        ("io_schedule jbd2_log_wait_commit evict shrink_slab __alloc_pages_slowpath", why.MEMORY),
        ("schedule_hrtimeout ft_pause __fasttrack_segment filemap_read", why.PAUSE),
        ("schedule do_nanosleep hrtimer_nanosleep", why.THINK),
        ("schedule something_else", why.OTHER),
        ("", why.OTHER),
    ],
)
def test_layer_of_a_stack(stack: str, layer: str) -> None:
    assert why.layer_of([f"{function}+0x1e" for function in stack.split()]) == layer


def test_site_is_the_innermost_functions_that_say_something() -> None:
    assert why.site_of(READ.split()) == "filemap_update_page < filemap_get_pages < filemap_read < ext4_file_read_iter"
    assert why.site_of(["schedule+0x1", "start_this_handle.isra.0+0x2f"]) == "start_this_handle"
    assert why.site_of(UPDATES.split()).startswith("jbd2_journal_wait_updates < jbd2_journal_commit_transaction+0x1c4")
    assert why.site_of([]) == "(running)"


@pytest.mark.parametrize(
    ("stack", "stage"),
    [
        (UPDATES, "waits for open handles"),
        (IDLE, "idle"),
        ("io_schedule blk_mq_get_tag submit_bio jbd2_journal_commit_transaction kjournald2", "waits for a tag"),
        (
            "io_schedule __wait_on_buffer jbd2_journal_commit_transaction kjournald2",
            "waits for log blocks or the commit record",
        ),
        ("schedule jbd2_journal_commit_transaction kjournald2", "commits"),
    ],
)
def test_stage_of_the_journal(stack: str, stage: str) -> None:
    assert why.stage_of(stack.split()) == stage


def test_who_keeps_a_transaction_open() -> None:
    write_back = "io_schedule blk_mq_get_tag ext4_bio_write_folio mpage_submit_folio mpage_map_and_submit_buffers"
    assert why.holds_handle(write_back.split())
    assert not why.holds_handle(INSTALL.split())
    assert not why.holds_handle(["schedule", "start_this_handle", "jbd2__journal_start", "__ext4_new_inode"])


def wait(stack: int, journal: int | None, count: int, install: int) -> dict[str, Any]:
    """A place of the foreground, one of the journal, and so many ticks with a background thread at work."""
    behind = {"role": "background", "name": "update/install-0", "stack": 4, "count": install}
    return {"stack": stack, "journal": journal, "count": count, "beside": [behind] if install else []}


def samples() -> dict[str, Any]:
    """Of two threads: ui reads for 3 ms, waits for the journal for 5 ms, thinks for 2 ms; loader ends before it."""
    ui = [wait(0, 3, 3, 1), wait(1, 2, 4, 4), wait(1, 3, 1, 0)]
    return {
        "interval_ns": 1_000_000,
        "samples": 10,
        "missed": 0,
        "stacks": [stack.split() for stack in (READ, FSYNC, UPDATES, IDLE, INSTALL)],
        "threads": [
            {"app": "a", "thread": "ui", "finished_ns": 20, "thinking": 2, "waits": ui},
            {"app": "a", "thread": "loader", "finished_ns": 10, "thinking": 0, "waits": [wait(0, 2, 4, 0)]},
        ],
    }


def test_the_last_threads_time_is_the_response() -> None:
    shown = why.digest(samples())
    assert shown["thread"] == "a/ui" and shown["interval_s"] == 0.001
    assert shown["layers"] == {why.JOURNAL: 0.005, why.READ: 0.003, why.THINK: 0.002}
    assert [(row["layer"], row["samples"]) for row in shown["sites"]] == [(why.JOURNAL, 5), (why.READ, 3)]
    assert [(row["stage"], row["seconds"]) for row in shown["journal"]] == [
        ("waits for open handles", 0.004),
        ("idle", 0.001),
    ]
    # An idle journal is nobody who holds a read up.
    beside = [(row["layer"], row["stage"], row["name"], row["samples"]) for row in shown["beside"]]
    assert beside == [
        (why.JOURNAL, "waits for open handles", "update/install-0", 4),
        (why.READ, "", "update/install-0", 1),
    ]
    assert shown["threads"]["a/loader"] == {why.READ: 0.004}


def test_a_recordings_response_is_all_threads_calls() -> None:
    shown = why.digest(samples(), recording=True)
    assert shown["thread"] is None
    assert shown["layers"] == {why.READ: 0.007, why.JOURNAL: 0.005}
    assert [(row["role"], row["name"]) for row in shown["beside"] if row["layer"] == why.READ] == [
        ("journal", "waits for open handles"),
        ("background", "update/install-0"),
    ]
    assert shown["threads"]["a/ui"][why.THINK] == 0.002


def test_without_an_end_all_threads_count() -> None:
    raw = samples()
    raw["threads"][0]["finished_ns"] = None
    shown = why.digest(raw)
    assert shown["thread"] is None and shown["layers"][why.READ] == 0.007


def test_tables_show_layers_journal_and_holders() -> None:
    console = Console(width=140)
    with console.capture() as captured:
        console.print(why.tables(why.digest(samples()), 0.01))
    text = captured.get()
    assert "response of a/ui" in text and "10 samples, 1 ms apart" in text and "missed" not in text
    assert re.search(rf"{why.JOURNAL}.*\b5\b.*0\.005.*50\.0%", text)
    assert re.search(r"waits for open handles.*80\.0%", text)
    assert re.search(rf"{why.JOURNAL}, which.*background.*update/install-0.*blk_mq_get_tag.*100\.0%", text)
    assert re.search(rf"a/loader.*{why.READ} 0\.004", text)


def test_result_has_why_only_if_it_was_asked_for() -> None:
    guest = {"ok": True, "touch_ns": 0, "end_ns": 10_000_000, "apps": []}
    cell = Cell("x", "s6", "stock", (), 1)

    def shown(of: dict[str, Any]) -> dict[str, Any]:
        return Result(cell, Verdict(True, None, (), of), "6.12", 1.0).to_json()

    assert "why" not in shown(guest)
    assert shown(guest | {"why": samples()})["why"]["layers"][why.JOURNAL] == 0.005


def test_interval_option() -> None:
    assert common.why_ns(False, None) == 0
    assert common.why_ns(True, None) == 1_000_000
    assert common.why_ns(False, 0.5) == 500_000


def behind_a_writer() -> dict[str, Any]:
    """The foreground appends and fsyncs while a background app writes and fsyncs much more."""
    front = [
        step(
            "repeat",
            times=5,
            cycle=0,
            steps=[
                step("write", file="log", bytes=16 << 10, offset=0, block=4096, flags=["create", "append"]),
                step("fsync", file="log"),
                step("think", s=0.005),
            ],
        ),
    ]
    behind = [
        step("write", file="big", bytes=32 * MIB, offset=0, block=MIB, flags=["create", "truncate"]),
        step("fsync", file="big"),
        step("think", s=0.001),
    ]
    return {"mode": "play", "apps": two_apps(front, behind), "files": [], "touch_s": 0.5, "limit_s": 60.0}


def test_a_commands_shares_are_its_response() -> None:
    raw = samples()
    for thread, shares in zip(raw["threads"], ((3_000_000, 2_000_000, 1_000_000), (2_000_000,)), strict=True):
        thread["finished_ns"] = None
        for one, share_ns in zip(thread["waits"], shares, strict=True):
            one["share_ns"] = share_ns
    raw["commands"] = [{"app": "a", "idle": 2}]
    shown = why.digest(raw)
    assert shown["layers"] == {why.READ: 0.005, why.JOURNAL: 0.003, why.THINK: 0.002}
    assert [(row["stage"], row["seconds"]) for row in shown["journal"]] == [
        ("waits for open handles", 0.002),
        ("idle", 0.001),
    ]
    journal = [row for row in shown["beside"] if row["layer"] == why.JOURNAL]
    assert [(row["name"], row["samples"], row["seconds"]) for row in journal] == [("update/install-0", 2, 0.002)]
    assert shown["threads"]["a/loader"] == {why.READ: 0.004}


def two_children() -> dict[str, Any]:
    """A command of two processes: one reads a cold file, the other writes a file and syncs it."""
    line = "cat cold > /dev/null & dd if=/dev/zero of=new bs=64k count=64 conv=fsync & wait"
    job = exec_job(line, ("while :; do dd if=/dev/zero of=big bs=1M count=8 conv=fsync; done",), 0.5, 60.0)
    return job | {"files": [{"app": "foreground", "path": "cold", "bytes": 16 * MIB, "kind": "data"}]}


@pytest.mark.guest
def test_a_command_of_two_processes(tools: Tools) -> None:
    alone = run(spec(two_children()), tools).to_json()
    shown = run(spec(two_children() | {"why_interval_ns": 100_000}), tools).to_json()
    assert shown["ok"], shown["error"]
    found = shown["why"]
    cat, dd, shell = (found["threads"][f"foreground/{name}"] for name in ("cat", "dd", "sh"))
    assert max(cat, key=lambda layer: cat[layer]) == why.READ
    assert dd[why.JOURNAL] + dd.get(why.WRITE, 0) + dd.get(why.FLUSH, 0) > 0.5 * sum(dd.values())
    assert shell[why.THINK] > 0.9 * shown["response_s"]
    assert abs(sum(found["layers"].values()) - shown["response_s"]) <= 2 * found["interval_s"]
    assert found["layers"][why.READ] == pytest.approx(cat[why.READ], rel=0.6)
    assert any(row["name"] == "background-1/dd" for row in found["beside"])
    assert shown["response_s"] == pytest.approx(alone["response_s"], rel=0.02)


@pytest.mark.guest
def test_a_foreground_fsync_behind_a_writer(tools: Tools) -> None:
    plain, sampled = behind_a_writer(), behind_a_writer() | {"why_interval_ns": 100_000}
    alone = run(spec(plain), tools).to_json()
    shown = run(spec(sampled), tools).to_json()
    assert shown["ok"], shown["error"]
    found = shown["why"]
    assert found["thread"] == "front/ui" and found["missed"] == 0
    assert abs(sum(found["layers"].values()) - shown["response_s"]) <= found["interval_s"]
    assert found["layers"][why.THINK] == pytest.approx(0.025, abs=5 * found["interval_s"])
    assert found["layers"].get(why.JOURNAL, 0) + found["layers"].get(why.WRITE, 0) > 0.5 * shown["response_s"]
    assert any(row["name"] == "behind/w" for row in found["beside"])
    assert shown["response_s"] == pytest.approx(alone["response_s"], rel=0.01)


def test_the_layers_functions_are_in_the_kernel() -> None:
    trees = (path for path in cache_root().glob("kernel/tree-*") if re.fullmatch(r"tree-\w+", path.name))
    tree = next((path for path in trees if (path / "mm" / "filemap.c").is_file()), None)
    if tree is None:
        pytest.skip("no kernel source is unpacked here; ./fasttrack build does it")
    lists = [*why.LAYERS.values(), *why.GENERIC.values(), why.LOCKS, why.RECLAIM, why.HANDLES, tuple(why.STAGES)]
    names = {name.replace("*", r"\w+") for one in lists for name in one}
    where = [str(tree / part) for part in ("block", "fs", "kernel", "mm")]
    search = ["grep", "-rohwE", "--include=*.c", "|".join(sorted(names)), *where]
    found = set(subprocess.run(search, capture_output=True, text=True, check=True).stdout.split())
    assert [name for name in sorted(names) if not any(re.fullmatch(name, one) for one in found)] == []
