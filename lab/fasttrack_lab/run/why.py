# SPDX-License-Identifier: GPL-2.0-only
"""Where the foreground's response time went: the guest's stack samples, by layer and by wait site.

A sample is the kernel stack of a foreground thread that does not think, innermost function first; it stands for one
sampling interval. `layer_of` finds its layer:

1. A function of memory reclaim anywhere in the stack: memory, whatever reclaim itself waits for.
2. From the innermost function outwards, the first that is in a layer's list. A lock's own functions are passed over
   if the journal takes the lock, because then the journal is what is waited for.
3. Else the waits for a folio or a buffer, which say little without their caller, and the calls themselves.

Of a scenario, the response is the life of the thread that ended last, and its samples add up to it. Of a recording it
is the time inside I/O calls of all threads: all samples but the layer think, to which waiting for each other belongs.
Of a command, whose threads come and go, the guest shares each tick among those that do not rest: the shares add up to
the response, and the ticks that no thread took are the layer think.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

THINK = "think"
MEMORY = "page cache: memory"
THROTTLE = "page cache: dirty throttling"
FOLIO = "page cache: folio lock or write-back"
JOURNAL = "file system: journal"
LOCK = "file system: lock"
TAG = "block: tag or throttle"
READ = "device: own read"
WRITE = "device: own write"
FLUSH = "device: flush"
PAUSE = "FastTrack pause"
OTHER = "other"

RECLAIM = (
    "__alloc_pages_slowpath",
    "try_to_free_pages",
    "try_to_free_mem_cgroup_pages",
    "throttle_direct_reclaim",
    "reclaim_throttle",
    "shrink_node",
    "shrink_slab",
    "mempool_alloc_noprof",
)
"""Layer memory, anywhere in the stack."""

LAYERS: dict[str, tuple[str, ...]] = {
    THINK: ("hrtimer_nanosleep", "futex_wait"),
    PAUSE: ("fasttrack_*", "__fasttrack_*"),
    THROTTLE: ("balance_dirty_pages",),
    TAG: ("blk_mq_get_tag", "rq_qos_wait", "wbt_wait", "blk_queue_enter", "__bio_queue_enter"),
    FLUSH: ("blkdev_issue_flush", "f2fs_issue_flush"),
    JOURNAL: (
        "jbd2_*",
        "__jbd2_*",
        "start_this_handle",
        "add_transaction_credits",
        "wait_transaction_locked",
        "wait_transaction_switching",
        "do_get_write_access",
        "ext4_fc_commit",
        "f2fs_issue_checkpoint",
        "f2fs_write_checkpoint",
    ),
    WRITE: ("__filemap_fdatawait_range", "__sync_dirty_buffer", "f2fs_wait_on_node_pages_writeback"),
    READ: (
        "filemap_read",
        "filemap_fault",
        "__bread_gfp",
        "ext4_bread",
        "ext4_bread_batch",
        "ext4_read_bh",
        "ext4_sb_bread",
        "ext4_read_inode_bitmap",
        "ext4_wait_block_bitmap",
        "f2fs_get_node_page",
        "f2fs_get_read_data_page",
    ),
}
"""Functions of a layer; a name that ends in * stands for all that begin so."""

LOCKS = (
    "rwsem_down_read_slowpath",
    "rwsem_down_write_slowpath",
    "down_read",
    "down_read_killable",
    "down_write",
    "down_write_killable",
    "percpu_rwsem_wait",
    "__percpu_down_read",
    "__mutex_lock",
    "__mutex_lock_slowpath",
    "__mutex_lock_killable_slowpath",
    "mutex_lock",
    "mutex_lock_killable",
    "mutex_lock_io",
)
"""A lock's own functions: layer lock."""

GENERIC: dict[str, tuple[str, ...]] = {
    FOLIO: (
        "folio_wait_bit_common",
        "folio_wait_bit",
        "folio_wait_writeback",
        "folio_wait_stable",
        "__folio_lock",
        "__folio_lock_killable",
        "__folio_lock_or_retry",
    ),
    READ: ("__wait_on_buffer", "__lock_buffer", "ext4_file_read_iter", "f2fs_file_read_iter"),
    WRITE: ("ext4_file_write_iter", "f2fs_file_write_iter"),
}
"""Functions that decide only where no other does: waits of many callers, calls of many waits."""

SKIPPED = frozenset(
    (
        "__switch_to",
        "__schedule",
        "schedule",
        "schedule_timeout",
        "schedule_timeout_uninterruptible",
        "schedule_preempt_disabled",
        "schedule_hrtimeout_range",
        "schedule_hrtimeout_range_clock",
        "io_schedule",
        "io_schedule_timeout",
        "bit_wait",
        "bit_wait_io",
        "__wait_on_bit",
        "__wait_on_bit_lock",
        "out_of_line_wait_on_bit",
        "out_of_line_wait_on_bit_lock",
        "folio_wait_bit_common",
        "folio_wait_bit",
        "__wait_for_common",
        "wait_for_completion",
        "wait_for_completion_io",
        "wait_for_completion_io_timeout",
        "submit_bio_wait",
        "do_nanosleep",
        "rq_qos_wait",
        "__rq_qos_throttle",
        "__blk_mq_alloc_requests",
        "blk_mq_submit_bio",
        "__submit_bio",
        "submit_bio_noacct_nocheck",
        "submit_bio_noacct",
        "submit_bio",
        "ext4_io_submit",
        "do_writepages",
        "filemap_fdatawrite_wbc",
        "__filemap_fdatawrite_range",
        "generic_file_read_iter",
        "__do_fault",
        "__handle_mm_fault",
        "jbd2_journal_get_write_access",
        "__ext4_journal_get_write_access",
        "rwsem_down_read_slowpath",
        "rwsem_down_write_slowpath",
        "__mutex_lock",
        "__mutex_lock_slowpath",
    )
)
"""Mechanics of sleeping and of passing requests on, the same in many stacks: not part of a site."""

SITE_FUNCTIONS = 4
"""Functions that a site shows; fewer do not tell a page fault's read from a call's."""

COMMIT = "jbd2_journal_commit_transaction"
"""The journal's commit waits in many places of this one function: its sites keep the offset. Of the waits for a buffer,
the last in the source is for the commit record, whose write makes the device flush its cache."""

IDLE = "idle"
UPDATES = "waits for open handles"

STAGES: dict[str, str] = {
    "blk_mq_get_tag": "waits for a tag",
    "rq_qos_wait": "is throttled",
    "jbd2_journal_wait_updates": UPDATES,
    "ext4_journal_submit_inode_data_buffers": "writes ordered data",
    "jbd2_journal_finish_inode_data_buffers": "waits for ordered data",
    "blkdev_issue_flush": "waits for the device's flush",
    "__jbd2_update_log_tail": "moves the log's tail",
    "__wait_on_buffer": "waits for log blocks or the commit record",
    COMMIT: "commits",
    "f2fs_write_checkpoint": "writes a checkpoint",
    "kjournald2": IDLE,
    "issue_checkpoint_thread": IDLE,
}
"""What the journal's thread is doing, by the innermost of these functions."""

HANDLES = (
    "__ext4_journal_get_write_access",
    "__ext4_mark_inode_dirty",
    "__ext4_new_inode",
    "ext4_convert_unwritten_extents",
    "ext4_mb_new_blocks",
    "mpage_map_and_submit_buffers",
)
"""Functions that run with a journal handle open: what sleeps below them holds the transaction open. ext4's write-back
sends its bios from the last of them."""

NEW_HANDLE = "start_this_handle"
"""What sleeps here has no handle yet."""

HOLDER = " (handle open)"

TOP_SITES = 4
TOP_BESIDE = 4
LEAST_SHARE = 0.005
"""What the tables leave out: sites and layers below this part of the response. The JSON has all."""

NS_PER_S = 1e9


def _pattern(names: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(name).replace(r"\*", ".*") for name in names))


_LAYERS = {layer: _pattern(names) for layer, names in LAYERS.items()}
_GENERIC = {layer: _pattern(names) for layer, names in GENERIC.items()}


def function_of(place: str) -> str:
    """The function of a place in a stack: `name.isra.0+0x1e` is in `name`."""
    return re.split(r"[+.]", place, maxsplit=1)[0]


def _listed(function: str, lists: Mapping[str, re.Pattern[str]]) -> str | None:
    return next((layer for layer, pattern in lists.items() if pattern.fullmatch(function)), None)


def layer_of(stack: Sequence[str]) -> str:
    """The layer in which a thread with this stack (innermost first) waits."""
    functions = [function_of(place) for place in stack]
    if not set(functions).isdisjoint(RECLAIM):
        return MEMORY
    locked = False
    for function in functions:
        if function in LOCKS:
            locked = True
            continue
        layer = _listed(function, _LAYERS)
        if locked:
            return JOURNAL if layer == JOURNAL else LOCK
        if layer:
            return layer
    found = (_listed(function, _GENERIC) for function in functions)
    return LOCK if locked else next((layer for layer in found if layer), OTHER)


def site_of(stack: Sequence[str]) -> str:
    """The innermost functions of a stack that say something, such as `filemap_fault < __do_fault`."""
    shown = []
    for place in stack:
        function = function_of(place)
        if function not in SKIPPED:
            shown.append(place if function == COMMIT else function)
    return " < ".join(shown[:SITE_FUNCTIONS]) or "(running)"


def holds_handle(stack: Sequence[str]) -> bool:
    """Whether a thread with this stack keeps a transaction of the journal open."""
    functions = {function_of(place) for place in stack}
    return NEW_HANDLE not in functions and not functions.isdisjoint(HANDLES)


def stage_of(stack: Sequence[str]) -> str:
    """What the journal's thread is doing."""
    functions = map(function_of, stack)
    return next((STAGES[function] for function in functions if function in STAGES), "works")


@dataclass(frozen=True)
class Samples:
    """The guest's `why`, as contract/README.md describes it."""

    raw: Mapping[str, Any]

    @property
    def interval_s(self) -> float:
        """Virtual time that a sample stands for."""
        return float(self.raw["interval_ns"] / NS_PER_S)

    def stack(self, index: int) -> list[str]:
        """A stack, innermost place first."""
        stack: list[str] = self.raw["stacks"][index]
        return stack

    def last(self) -> Mapping[str, Any] | None:
        """The thread that ended last; none if one has not ended."""
        threads = self.raw["threads"]
        if any(thread["finished_ns"] is None for thread in threads):
            return None
        found: Mapping[str, Any] = max(threads, key=lambda thread: thread["finished_ns"])
        return found

    def whole_ns(self, count: int) -> int:
        """Virtual time of so many samples, in ns."""
        return int(count * self.raw["interval_ns"])

    def share_ns(self, wait: Mapping[str, Any], count: int) -> int:
        """The response's part of COUNT samples of a wait, in ns: of a command by its share, else all."""
        share = wait.get("share_ns")
        return self.whole_ns(count) if share is None else int(share * count // wait["count"])

    def idle_ns(self) -> int:
        """Virtual time at which all threads of a command rested, in ns."""
        return self.whole_ns(sum(command["idle"] for command in self.raw.get("commands", ())))

    def layers(self, threads: Iterable[Mapping[str, Any]]) -> dict[str, float]:
        """Seconds of the life of threads by layer, most first."""
        found: Counter[str] = Counter()
        for thread in threads:
            if thread["thinking"]:
                found[THINK] += self.whole_ns(thread["thinking"])
            for wait in thread["waits"]:
                found[layer_of(self.stack(wait["stack"]))] += self.whole_ns(wait["count"])
        return {layer: _seconds(ns) for layer, ns in _by_count(found)}

    def response(self, threads: Iterable[Mapping[str, Any]], think: bool) -> dict[str, float]:
        """Seconds of the response by layer, most first; THINK: with that one."""
        idle_ns = self.idle_ns()
        found: Counter[str] = Counter({THINK: idle_ns} if idle_ns else {})
        for thread in threads:
            if thread["thinking"] and not self.raw.get("commands"):
                found[THINK] += self.whole_ns(thread["thinking"])
            for wait in thread["waits"]:
                found[layer_of(self.stack(wait["stack"]))] += self.share_ns(wait, wait["count"])
        if not think:
            found.pop(THINK, None)
        return {layer: _seconds(ns) for layer, ns in _by_count(found)}


def _seconds(ns: int) -> float:
    return round(ns / NS_PER_S, 9)


def _name(thread: Mapping[str, Any]) -> str:
    return f"{thread['app']}/{thread['thread']}"


def _by_count(counted: Counter[Any]) -> list[tuple[Any, int]]:
    return sorted(counted.items(), key=lambda item: (-item[1], item[0]))


@dataclass
class _Counts:
    """Virtual time by what the result shows, in ns."""

    samples: Samples
    sites: Counter[tuple[str, ...]] = field(default_factory=Counter)
    journal: Counter[tuple[str, ...]] = field(default_factory=Counter)
    beside: Counter[tuple[str, ...]] = field(default_factory=Counter)

    def add(self, wait: Mapping[str, Any]) -> None:
        """One place of a thread. An idle journal is nobody who holds anything up but the journal's own waits."""
        stack, ns = self.samples.stack(wait["stack"]), self.samples.share_ns(wait, wait["count"])
        layer, stage = layer_of(stack), ""
        self.sites[layer, site_of(stack)] += ns
        if wait["journal"] is not None:
            its = self.samples.stack(wait["journal"])
            doing = stage_of(its)
            if layer == JOURNAL:
                stage = doing
                self.journal[doing, site_of(its)] += ns
            elif doing != IDLE:
                self.beside[layer, stage, "journal", doing, site_of(its)] += ns
        for other in wait["beside"]:
            its = self.samples.stack(other["stack"])
            place = site_of(its) + (HOLDER if holds_handle(its) else "")
            self.beside[layer, stage, other["role"], other["name"], place] += self.samples.share_ns(
                wait, other["count"]
            )

    def rows(self, counted: Counter[tuple[str, ...]], *keys: str) -> list[dict[str, Any]]:
        """Counters as rows with these keys, most first."""
        interval_ns = self.samples.whole_ns(1)
        return [
            dict(zip(keys, key, strict=True)) | {"samples": round(ns / interval_ns), "seconds": _seconds(ns)}
            for key, ns in _by_count(counted)
        ]


def digest(raw: Mapping[str, Any], recording: bool = False) -> dict[str, Any]:
    """The part `why` of a run's result: times in virtual seconds, most first.

    RECORDING: the response is the time of all threads in I/O calls. Else it is the life of the thread that ended last,
    or where one has not ended, of all.
    """
    samples = Samples(raw)
    last = None if recording else samples.last()
    chosen = raw["threads"] if last is None else [last]
    counts = _Counts(samples)
    for wait in (wait for thread in chosen for wait in thread["waits"]):
        counts.add(wait)
    return {
        "interval_s": samples.interval_s,
        "samples": raw["samples"],
        "missed": raw["missed"],
        "thread": _name(last) if last else None,
        "layers": samples.response(chosen, think=not recording),
        "sites": counts.rows(counts.sites, "layer", "site"),
        "journal": counts.rows(counts.journal, "stage", "site"),
        "beside": counts.rows(counts.beside, "layer", "stage", "role", "name", "site"),
        "threads": {_name(thread): samples.layers([thread]) for thread in raw["threads"]},
    }


def _shares(rows: Iterable[Mapping[str, Any]], whole_s: float) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Rows that are not too small to show, with their part of the whole in per cent."""
    for row in rows:
        if row["seconds"] >= LEAST_SHARE * whole_s:
            yield row, f"{row['seconds'] / whole_s:.1%}"


def _table(title: str, texts: Sequence[str], numbers: Sequence[str]) -> Table:
    from rich.table import Table  # noqa: PLC0415 # slow to import, and most runs show none

    table = Table(title=title, title_justify="left")
    for name in texts:
        table.add_column(name, overflow="fold")
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _layers_table(why: Mapping[str, Any], response_s: float) -> Table:
    """Layers, each with its first sites."""
    of = why["thread"] or "all foreground threads"
    missed = f", {why['missed']} missed" if why["missed"] else ""
    title = f"Where the response of {of} went: {why['samples']} samples, {why['interval_s'] * 1e3:g} ms apart{missed}"
    table = _table(title, ("layer", "wait site, innermost function first"), ("samples", "seconds", "of response"))
    per_sample = why["interval_s"]
    for layer, seconds in why["layers"].items():
        total = {"seconds": seconds, "samples": round(seconds / per_sample)}
        for row, share in _shares([total], response_s):
            table.add_row(layer, "", str(row["samples"]), f"{seconds:.3f}", share, style="bold")
        sites = [row for row in why["sites"] if row["layer"] == layer][:TOP_SITES]
        for row, share in _shares(sites, response_s):
            table.add_row("", row["site"], str(row["samples"]), f"{row['seconds']:.3f}", share)
    return table


def _journal_table(why: Mapping[str, Any]) -> Table:
    """What the journal's thread did while the foreground waited for it."""
    total = sum(row["seconds"] for row in why["journal"])
    table = _table("Meanwhile the journal's thread", ("doing", "site"), ("samples", "seconds", "of the wait"))
    for row, share in _shares(why["journal"], total):
        table.add_row(row["stage"], row["site"], str(row["samples"]), f"{row['seconds']:.3f}", share)
    return table


def _beside_table(why: Mapping[str, Any], response_s: float) -> Table:
    """Who else was at work, by the layer that the foreground waited in."""
    title = "Who else was at work while the foreground waited"
    columns = ("foreground waits in", "who", "is at")
    table = _table(title, columns, ("samples", "seconds", "of the wait"))
    for (layer, stage), seconds in _waits(why).items():
        if seconds < LEAST_SHARE * response_s:
            continue
        shown = f"{layer}, which {stage}" if stage else layer
        others = [row for row in why["beside"] if (row["layer"], row["stage"]) == (layer, stage)]
        if stage == UPDATES:
            others.sort(key=lambda row: not row["site"].endswith(HOLDER))
        for row, share in _shares(others[:TOP_BESIDE], seconds):
            who = f"{row['role']} {row['name']}"
            table.add_row(shown, who, row["site"], str(row["samples"]), f"{row['seconds']:.3f}", share)
            shown = ""
    return table


def _waits(why: Mapping[str, Any]) -> Counter[tuple[str, str]]:
    """Seconds of the layers outside of thinking, the journal's by its stages."""
    found: Counter[tuple[str, str]] = Counter()
    for row in why["journal"]:
        found[JOURNAL, row["stage"]] += row["seconds"]
    for layer, seconds in why["layers"].items():
        if layer not in (THINK, JOURNAL):
            found[layer, ""] = seconds
    return found


def _others_table(why: Mapping[str, Any]) -> Table:
    """The foreground's other threads, each with its own time: those of a command with one name together."""
    table = _table("The foreground's other threads", ("thread", "layers, seconds"), ())
    for name, layers in why["threads"].items():
        if name != why["thread"]:
            table.add_row(name, ", ".join(f"{layer} {seconds:.3f}" for layer, seconds in layers.items()))
    return table


def tables(why: Mapping[str, Any], response_s: float | None) -> Group:
    """What `digest` gives, for a person."""
    from rich.console import Group  # noqa: PLC0415 # slow to import, and most runs show none

    whole_s = response_s or sum(why["layers"].values())
    shown = [_layers_table(why, whole_s)]
    if why["journal"]:
        shown.append(_journal_table(why))
    shown.append(_beside_table(why, whole_s))
    if why["thread"] and len(why["threads"]) > 1:
        shown.append(_others_table(why))
    return Group(*shown)
