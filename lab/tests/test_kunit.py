# SPDX-License-Identifier: GPL-2.0-only
"""KTAP, as the kernel prints it between its other lines."""

from __future__ import annotations

from pathlib import Path

from fasttrack_lab.build.kernel import kunit
from fasttrack_lab.build.kernel.tree import Changes

GOOD = """Linux version 6.12
KTAP version 1
1..2
    KTAP version 1
    # Subtest: mflash_nand
    # module: mflash
    1..2
    ok 1 read_time
some line of the kernel
    # a_case: pass:1 fail:0 skip:0 total:1
    ok 2 suspend # SKIP no dies
# mflash_nand: pass:1 fail:0 skip:1 total:2
# Totals: pass:1 fail:0 skip:1 total:2
ok 1 mflash_nand
    KTAP version 1
    # Subtest: fasttrack_core
    1..1
        KTAP version 1
        # Subtest: ranges
        ok 1 10000
        ok 2 19999
    ok 1 ranges
ok 2 fasttrack_core
"""


def test_good_suites() -> None:
    suites = kunit.parse(GOOD)
    assert [(s.name, s.passed, s.skipped, s.problem) for s in suites] == [
        ("mflash_nand", 1, ["suspend"], None),
        ("fasttrack_core", 1, [], None),
    ]
    assert kunit.problems(suites, ["fasttrack_core", "mflash_nand"]) == []


def test_failed_test_is_named() -> None:
    suites = kunit.parse(
        GOOD.replace("    ok 1 read_time", "    not ok 1 read_time").replace("ok 1 mflash", "not ok 1 mflash")
    )
    assert kunit.problems(suites, []) == ["mflash_nand: failed read_time"]


def test_what_a_test_expected_is_said() -> None:
    said = """    # read_time: EXPECTATION FAILED at mflash/nand-kunit.h:12
    Expected next == 4, but
        next == 5 (0x5)
    not ok 1 read_time"""
    suites = kunit.parse(GOOD.replace("    ok 1 read_time", said).replace("ok 1 mflash", "not ok 1 mflash"))
    (problem,) = kunit.problems(suites, [])
    assert problem.splitlines() == [
        "mflash_nand: failed read_time",
        "    # read_time: EXPECTATION FAILED at mflash/nand-kunit.h:12",
        "    Expected next == 4, but",
        "    next == 5 (0x5)",
    ]


def test_crash_in_the_middle() -> None:
    suites = kunit.parse(GOOD.split("some line", maxsplit=1)[0] + "Kernel panic - not syncing: Oops\n")
    assert kunit.problems(suites, ["mflash_nand"]) == ["mflash_nand: crashed or was cut short"]


def test_lost_line_is_seen_by_the_plan() -> None:
    suites = kunit.parse(GOOD.replace("    ok 1 read_time\n", ""))
    assert kunit.problems(suites, []) == ["mflash_nand: 1 of 2 tests reported"]


def test_missing_suite_is_a_problem() -> None:
    assert kunit.problems(kunit.parse(GOOD), ["mflash_ftl"]) == ["mflash_ftl: did not run"]
    assert kunit.problems([], ["mflash_ftl"]) == ["mflash_ftl: did not run"]


def test_time_stamps_are_passed_over() -> None:
    stamped = "\n".join(f"[    0.10000{i % 10}] {line}" for i, line in enumerate(GOOD.splitlines()))
    assert [s.name for s in kunit.parse(stamped)] == ["mflash_nand", "fasttrack_core"]


def test_expected_suites_come_from_the_overlay(tmp_path: Path) -> None:
    source = tmp_path / "overlay" / "drivers" / "x"
    source.mkdir(parents=True)
    (source / "x-kunit.h").write_text('static struct kunit_suite x_suite = {\n\t.name = "x_core",\n};\n')
    (tmp_path / "patches").mkdir()
    assert kunit.expected(Changes.of_checkout(tmp_path)) == ["x_core"]
