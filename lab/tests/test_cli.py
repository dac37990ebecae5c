# SPDX-License-Identifier: GPL-2.0-only
"""The command line: one line and exit status 2 for what is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import IO

import pytest

from fasttrack_lab.commands import COMMANDS, COMPLETE_VAR
from fasttrack_lab.host.paths import CHECKOUT, GUEST, LAB


def fasttrack(*arguments: str, stdout: int | IO[str] = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONPATH": str(LAB)}
    argv = [sys.executable, "-m", "fasttrack_lab", *arguments]
    return subprocess.run(argv, stdout=stdout, stderr=subprocess.PIPE, text=True, env=env, check=False)


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["run", "gallery-launch", "--phone", "s7"], "n5, n6, s6, p1, ufs31, ufs40"),
        (["run", "gallery-launch", "--policy", "best"], "stock"),
        (["run", "no-such-scenario"], "gallery-launch"),
        (["shell", "--policy", "freeze"], "a shell has no apps; ./fasttrack exec has"),
        (["run", "gallery-launch", "--background", "no-such-app"], "update"),
        (["run", "smartio-browser-lunch"], "did you mean 'smartio-browser-launch'?"),
        (["compare", "install"], "smartio-APP-launch|run|install with APP one of browser, "),
        (["run", "gallery-launch", "--background", "update,,backup"], "names with commas"),
        (["run", "gallery-launch", "--colour", "red"], "--phone, --fs, --lru, --policy, --background, --seed, --json"),
        (["run", "gallery-launch", "--fs", "xfs"], "'ext4', 'f2fs'"),
        (["compare", "gallery-launch", "--fs", "ext4,xfs"], "ext4, f2fs"),
        (["run", "gallery-launch", "--idle"], "sends no app to the background"),
        (["run", "gallery-launch", "--lru", "2q"], "'classic', 'mglru'"),
        (["compare", "gallery-launch", "--lru", "mglru,2q"], "classic, mglru"),
        (["run", "gallery-launch", "--seed", "x"], "x"),
        (["run", "gallery-launch", "--json", "/nonexistent/x.json"], "no directory /nonexistent"),
        (["run", "gallery-launch", "--json", str(LAB)], "that is a directory"),
        (["run", "gallery-launch", "--trace", str(LAB / "pyproject.toml" / "x")], "pyproject.toml is no directory"),
        (["compare", "gallery-launch", "--out", str(LAB / "pyproject.toml" / "x")], "pyproject.toml is no directory"),
        (["cost", "--csv", "/nonexistent/x.csv"], "no directory /nonexistent"),
        (["run"], "--phone"),
        (["exec", "--foreground", " "], "the command is empty"),
        (["matrix", "--front", "sav"], "did you mean 'save'"),
        (["matrix", "--behind", "nobody"], "--behind: unknown kind 'nobody'"),
        (["matrix", "--front-program", "mine"], "must be NAME=CMD"),
        (["matrix", "--front", "save", "--why"], "look into one cell"),
        (["matrix", "--phone", "s7"], "n5, n6, s6, p1, ufs31, ufs40"),
        (["frontier", "--phones", "s6,n6", "--phone", "s6"], "'s6' is given twice"),
        (["frontier", "--kind", "type"], "valid: read, write, commit"),
        (["frontier", "--policies", "stock,stock"], "'stock' is given twice"),
        (["figures", "fig9"], "valid: fig6, fig10, fig11, fig12, fig13, smartio-fig2, smartio-install"),
        (["storebench", "--phone", "s6,s7"], "n5, n6, s6, p1, ufs31, ufs40"),
        (["storebench", "--phone", "s6,s6"], "'s6' is given twice"),
        (["storebench", "--phone", "s6", "--on", "/"], "give one of them"),
        (["storebench", "--size", "1 GiB"], "--size: only with --on"),
        (["storebench", "--on", "/", "--size", "1"], "has no unit"),
        (["storebench", "--on", "/", "--seconds", "0"], "0.01<=x<=600"),
        (["storebench-apply", "x.json"], "--disk"),
        (["trace", "report", "/nonexistent"], "there is no such file or directory"),
        (["trace", "report", str(LAB)], "no log file of fasttrack-trace (*.ftlog) is there, and no archive"),
        (["trace", "erase", str(LAB), "a1"], "not an archive"),
        (["trace", "import", "/nonexistent", "-o", "x"], "there is no such file or directory"),
        (["trace", "import", str(LAB / "pyproject.toml"), "-o", "x"], "name it: trace.dat, blktrace, perfetto, "),
        (["trace", "import", str(LAB / "pyproject.toml"), "-o", "x", "--format", "most text"], "valid: trace.dat, "),
        (["build", "--target", "arm"], "um"),
        (["launch"], "run"),
    ],
)
def test_wrong_input_is_one_line_and_status_2(arguments: list[str], names: str) -> None:
    done = fasttrack(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("fasttrack: ") and names in done.stderr


def test_output_that_nobody_takes_is_one_line() -> None:
    """What no check before the work can foresee."""
    with Path("/dev/full").open("w") as full:
        done = fasttrack("completion", "bash", stdout=full)
    assert done.returncode == 1
    assert done.stderr == "fasttrack: No space left on device\n"


@pytest.mark.parametrize("arguments", [(), ("trace",)])
def test_without_a_command_there_is_help(arguments: tuple[str, ...]) -> None:
    done = fasttrack(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("Usage: ./fasttrack") and "Commands:\n" in done.stderr


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help(name: str) -> None:
    done = fasttrack(name, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith("Usage: ./fasttrack " + name)


def test_help_names_every_command() -> None:
    shown = fasttrack("--help").stdout
    assert all(f"  {name} " in shown for name in COMMANDS)


def test_help_and_version_import_no_command() -> None:
    """Plots, tables and HTTP are slow to import; a person waits for --help."""
    code = (
        "import sys; from fasttrack_lab.commands.cli import cli\n"
        "for option in ('--help', '--version'): cli.main([option], standalone_mode=False)\n"
        "print(sorted(name for name in sys.modules if name.startswith('fasttrack_lab.commands.')))\n"
        "print([name for name in ('rich', 'polars', 'matplotlib', 'http.client') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=LAB, check=True)
    assert done.stdout.splitlines()[-2:] == ["['fasttrack_lab.commands.cli']", "[]"]


def test_a_run_imports_neither_tables_nor_plots_nor_http() -> None:
    code = (
        "import sys; import fasttrack_lab.commands.run\n"
        "print([name for name in ('rich', 'polars', 'matplotlib', 'http.client') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=LAB, check=True)
    assert done.stdout == "[]\n"


def through_the_door(folder: Path, *arguments: str) -> str:
    """What the door gives to Python and, as ASKED, to the setup."""
    python, door = folder / "venv" / "bin" / "python", folder / "fasttrack"
    setup = f"#!/bin/sh\necho ASKED=$* >{folder}/asked\necho {python}\n"
    programs = {python: f"#!/bin/sh\nenv\ncat {folder}/asked\n", folder / "scripts" / "setup.sh": setup}
    for path, text in (programs | {door: (CHECKOUT / "fasttrack").read_text()}).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    env = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([door, *arguments], capture_output=True, text=True, env=env, check=True).stdout


def test_the_door_keeps_compiled_python(tmp_path: Path) -> None:
    """Where people let Python write none: without it a trace's report takes twice as long."""
    shown = through_the_door(tmp_path, "run")
    assert "PYTHONDONTWRITEBYTECODE" not in shown
    assert f"PYTHONPYCACHEPREFIX={tmp_path}/venv/pycache" in shown


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        (["trace", "report"], "--trace"),
        (["run", "x", "--trace", "d"], "--trace"),
        (["run", "x", "--trace=d"], "--trace"),
        (["trace", "report", "x", "--engine", "chdb"], "--dev"),
        ([], ""),
        (["run", "x"], ""),
        (["compare", "trace"], ""),
    ],
)
def test_the_door_asks_for_databases_where_they_are_used(tmp_path: Path, arguments: list[str], asked: str) -> None:
    assert f"ASKED={asked}\n" in through_the_door(tmp_path, *arguments)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_offered_for_each_shell(shell: str) -> None:
    shown = fasttrack("completion", shell)
    assert shown.returncode == 0
    assert COMPLETE_VAR in shown.stdout and "fasttrack" in shown.stdout


def test_a_shell_is_told_commands_and_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(COMPLETE_VAR, "bash_complete")
    for words, expected in (("./fasttrack off", "plain,off-check"), ("./fasttrack run --idl", "plain,--idle")):
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
        assert expected in fasttrack().stdout.splitlines()


def test_there_is_one_version() -> None:
    version = (CHECKOUT / "VERSION").read_text().strip()
    assert fasttrack("--version").stdout == f"./fasttrack {version}\n"
    assert tomllib.loads((GUEST / "Cargo.toml").read_text())["package"]["version"] == version
    assert f"## {version}" in (CHECKOUT / "CHANGELOG.md").read_text()
    assert f"version: {version}" in (CHECKOUT / "CITATION.cff").read_text()
