# SPDX-License-Identifier: GPL-2.0-only
"""The documents: lines and cells that can be read, and links, paths and commands that are there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from test_guest_origin import UNKNOWN_AT_MOST

from fasttrack_lab.build.kernel import kunit
from fasttrack_lab.build.kernel.tree import Changes
from fasttrack_lab.commands import COMMANDS
from fasttrack_lab.host.paths import CHECKOUT
from fasttrack_lab.inputs import policy

README_WORDS = 1000
COLUMNS = 120
CELL = 200

ROOTS = (
    "",
    "kernel/overlay/",
    "kernel/overlay/mm/fasttrack/",
    "kernel/overlay/block/",
    "kernel/overlay/drivers/scsi/mflash/",
    "kernel/overlay/Documentation/ABI/testing/",
    "kernel/",
    "lab/",
    "lab/fasttrack_lab/",
    "lab/guest/src/",
    "lab/scenarios/",
    "lab/tests/",
    "device/",
    "device/daemon/src/",
    "device/trace/src/",
)
"""Where a path in a document may begin, besides the document's own folder."""

NOT_OURS = re.compile(
    r"""
    /.* | ~.* | \$.* | \.\./shared.* | \./?                         # of the machine
    | results/.* | stats/ | iosched/\* | raw\.jsonl | (job|result)\.json     # made by a run
    | Documentation/ABI/testing/                                    # a folder of the kernel's
    """,
    re.VERBOSE,
)
"""What looks like a path of the checkout and is none."""

TOP = ("contract/", "device/", "docs/", "kernel/", "lab/", "scripts/")
SUFFIXES = (".c", ".h", ".py", ".rs", ".md", ".toml", ".json", ".sh", ".txt", ".xz", ".svg", ".cff", ".lock", ".patch")


def documents() -> list[str]:
    """All documents, by their paths in the checkout."""
    rooms = [CHECKOUT / name for name in ("docs", "contract", "device")]
    folders = [CHECKOUT, *rooms, *sorted((CHECKOUT / "lab").iterdir())]
    found = [path for folder in folders if folder.is_dir() for path in sorted(folder.glob("*.md"))]
    return [str(path.relative_to(CHECKOUT)) for path in found]


@cache
def text_of(path: str) -> str:
    return (CHECKOUT / path).read_text(encoding="utf-8")


def numbered(path: str) -> Iterator[tuple[int, str, bool]]:
    """Lines with their numbers, and whether they are code."""
    code = False
    for number, line in enumerate(text_of(path).splitlines(), 1):
        if line.startswith("```"):
            code = not code
        yield number, line, code


def cells(row: str) -> list[str]:
    """The cells of a row of a table."""
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def prose(path: str) -> str:
    """A document without its code."""
    return "\n".join(line for _, line, code in numbered(path) if not code and not line.startswith("```"))


def links(path: str) -> list[str]:
    """The targets of relative links and pictures."""
    found = re.findall(r"\]\(([^)\s]+)\)", prose(path))
    return [target for target in found if "://" not in target]


def anchors(path: str) -> set[str]:
    """The names by which the headings of a document can be linked."""
    headings = re.findall(r"^#+ (.*)$", prose(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def is_there(path: str, base: Path = CHECKOUT) -> bool:
    """Whether a path, or a pattern, names at least one file below BASE."""
    where = base / path
    inside = where.resolve()
    if not inside.is_relative_to(CHECKOUT):
        return False
    return where.exists() or any(base.glob(path))


def spans(path: str) -> list[str]:
    """What is in back quotes."""
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose(path))]


def paths(path: str) -> list[str]:
    """What is in back quotes and looks like a path of the checkout."""
    found = []
    for span in spans(path):
        if re.search(r"[\s(){}<>$=:…]", span) or NOT_OURS.fullmatch(span):
            continue
        if span.endswith((*SUFFIXES, "/")) or span.startswith(TOP):
            found.append(span)
    return found


def commands(text: str) -> list[str]:
    """The names of commands after ./fasttrack."""
    return re.findall(r"\./fasttrack ([a-z][a-z-]*)", text)


@pytest.mark.parametrize("path", documents())
def test_lines_and_cells_can_be_read(path: str) -> None:
    long, wide = [], []
    for number, line, code in numbered(path):
        if line.startswith("|") and not code:
            wide += [f"{path}:{number}" for cell in cells(line) if len(cell) > CELL]
        elif len(line) > COLUMNS:
            long.append(f"{path}:{number}")
    assert (long, wide) == ([], [])


def test_readme_is_short() -> None:
    assert len(text_of("README.md").split()) <= README_WORDS


@pytest.mark.parametrize("path", documents())
def test_links_lead_somewhere(path: str) -> None:
    broken = []
    for target in links(path):
        file, _, anchor = target.partition("#")
        base = (CHECKOUT / path).parent
        if file and not is_there(file, base):
            broken.append(target)
        elif anchor:
            there = str((base / file).resolve().relative_to(CHECKOUT)) if file else path
            broken += [target] if anchor not in anchors(there) else []
    assert broken == []


@pytest.mark.parametrize("path", documents())
def test_paths_are_there(path: str) -> None:
    bases = [(CHECKOUT / path).parent, *(CHECKOUT / root for root in ROOTS)]
    lost = [name for name in paths(path) if not any(is_there(name, base) for base in bases)]
    assert lost == []


@pytest.mark.parametrize("path", [*documents(), "docs/man/fasttrack.1"])
def test_commands_are_there(path: str) -> None:
    assert [name for name in commands(text_of(path)) if name not in COMMANDS] == []


def test_every_command_has_its_place() -> None:
    """In the page of commands and in the manual page."""
    page = commands(text_of("docs/COMMANDS.md"))
    manual = text_of("docs/man/fasttrack.1").replace("\\-", "-")
    assert [name for name in COMMANDS if name not in page] == []
    entries = "\n".join(re.findall(r"^\.(?:B|BI|BR) .*$", manual, re.MULTILINE))
    assert [name for name in COMMANDS if not re.search(rf"(?<![\w-]){name}(?![\w-])", entries)] == []


def test_the_tolerance_of_owners_is_that_of_the_test() -> None:
    text = " ".join((CHECKOUT / "docs" / "TRACE.md").read_text(encoding="utf-8").split())
    for fs, share in UNKNOWN_AT_MOST.items():
        assert f" {100 * share:g} % on {fs} " in text


def test_versions_agree() -> None:
    version = text_of("VERSION").strip()
    assert re.search(rf"^version: {re.escape(version)}$", text_of("CITATION.cff"), re.MULTILINE)
    assert f"\n## {version}" in text_of("CHANGELOG.md")
    assert re.search(rf'^version = "{re.escape(version)}"$', text_of("device/Cargo.toml"), re.MULTILINE)
    assert text_of("debian/changelog").startswith(f"fasttrack ({version}) ")
    pages = sorted((CHECKOUT / "docs" / "man").glob("*.[158]"))
    assert [page.name for page in pages if f'"FastTrack {version}"' not in page.read_text(encoding="utf-8")] == []


def test_the_map_has_every_patch_tracepoint_and_suite() -> None:
    """ARCHITECTURE's table of mechanisms is complete."""
    text = text_of("ARCHITECTURE.md")
    table = text.split("## Mechanisms", 1)[1].split("\n## ", 1)[0]
    for first, last in re.findall(r"\b(\d{4}) to (\d{4})\b", table):
        table += " ".join(f"{number:04}" for number in range(int(first), int(last) + 1))
    hooks = {path.name[:4] for path in (CHECKOUT / "kernel" / "patches").glob("0[123]*.patch")}
    # The options of the core: its map is the table itself.
    assert sorted(name for name in hooks - {"0127"} if name not in table) == []
    assert sorted(hooks) == sorted(hooks | set(re.findall(r"\b0[123]\d\d\b", table)))
    traced = re.findall(r"^\[\w+\.(\w+)\]$", text_of("contract/tracepoints.toml"), re.MULTILINE)
    assert [name for name in traced if f"`{name}`" not in table] == []
    assert [name for name in kunit.expected(Changes.of_checkout()) if f"`{name}`" not in table] == []


def test_every_long_patch_is_named() -> None:
    """CONTRIBUTING says how long a patch is, and which are longer."""
    ((most, named),) = re.findall(r"at most (\d+) added\s+lines, more [^(]*\(([^)]*)\)", text_of("CONTRIBUTING.md"))
    patches = (CHECKOUT / "kernel" / "patches").glob("01*.patch")
    added = {path.name[:4]: len(re.findall(r"^\+(?!\+)", path.read_text(), re.MULTILINE)) for path in patches}
    assert sorted(name for name, lines in added.items() if lines > int(most)) == named.split(", ")


def test_the_policies_and_runs_of_a_comparison_are_counted() -> None:
    published = len(policy.published())
    (others,) = re.findall(r"(\d+) other\s+policies", text_of("README.md"))
    assert int(others) == published - 1
    (said,) = re.findall(
        r"all (\d+) policies and with three seeds these are (\d+) runs(?:.|\n)*?there are (\d+) runs",
        text_of("docs/COMMANDS.md"),
    )
    phones, backgrounds, seeds = 2, 3, 3
    # Alone, all policies are one.
    a_scenario = phones * seeds * (published * backgrounds + 1)
    assert [int(number) for number in said] == [published, 3 * a_scenario, 4 * a_scenario]
