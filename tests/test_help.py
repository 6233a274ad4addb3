"""The help of the command: pages that fit the terminal, examples that run, and completion."""

from __future__ import annotations

import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer.main

from command_outcome import Command
from evenhand._table import folded_command
from evenhand.audits import parse_condition
from evenhand.cli import (
    FORECASTS,
    LARGE,
    OTHERS,
    OUTPUT,
    PAGES,
    START,
    STEPS,
    Layout,
    app,
    command_page,
    has_colour,
    panels_of,
    short_page,
    top_page,
    width_of,
)

ROOT = Path(__file__).parents[1]
GROUP: Any = typer.main.get_command(app)
COMMANDS: dict[str, Any] = GROUP.commands
WIDTHS = (60, 80, 120)


def context_of(name: str) -> Any:
    return COMMANDS[name].make_context(name, [], resilient_parsing=True)


def pages(layout: Layout) -> dict[str, str]:
    """Every help page, by command; that of `evenhand` itself is ""."""
    top = GROUP.make_context("evenhand", [], resilient_parsing=True)
    found = {name: command_page(one, context_of(name), layout) for name, one in COMMANDS.items()}
    return {"": top_page(GROUP, top, layout), "short": short_page(layout)} | found


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_of_any_page_is_wider_than_the_terminal(width: int) -> None:
    for name, page in pages(Layout(width)).items():
        for line in page.splitlines():
            assert len(line) <= width, (name, line)
            assert line.isprintable()


def test_usage_lines_have_names_without_braces_and_the_required_options() -> None:
    for name, page in pages(Layout(100)).items():
        usage = page.partition("\n\n")[0]
        assert not set("{}<>()") & set(usage), name
    audit = command_page(COMMANDS["audit"], context_of("audit"), Layout(100))
    assert audit.startswith("Usage: evenhand audit [MODEL] TABLE --target COLUMN [OPTIONS]\n")
    compare = command_page(COMMANDS["compare"], context_of("compare"), Layout(100))
    assert compare.startswith("Usage: evenhand compare OLD NEW [OPTIONS]\n")


def test_every_option_is_in_a_panel_and_names_its_value() -> None:
    for name, command in COMMANDS.items():
        panels = panels_of(command.get_params(context_of(name)))
        assert {one.name for one in panels[OTHERS]} <= {"help", "seed"}, name
        titles = list(panels)
        assert titles[-1] == OTHERS
        assert OUTPUT in titles, name
        if LARGE in titles:
            assert titles[-3:] == [OUTPUT, LARGE, OTHERS]
        for one in command.params:
            if one.param_type_name == "option" and not one.is_flag:
                assert re.fullmatch("[A-Z:=]+", one.metavar or ""), (name, one.name)
    assert {"mean", "pmf"} <= {one.name for one in panels_of(COMMANDS["audit"].params)[FORECASTS]}


def test_flags_have_no_value_and_defaults_are_named() -> None:
    page = command_page(COMMANDS["audit"], context_of("audit"), Layout(100))
    assert re.search(r"^  --json +print JSON instead of text$", page, re.MULTILINE)
    assert "(default: 0.95)" in page
    assert re.search(r"seed of the draws, the bootstrap and the searches \(default: 0\)", page)


@pytest.mark.parametrize("args", [["-h"], *([name, "-h"] for name in PAGES)])
def test_the_short_option_prints_the_same_help(args: list[str], evenhand: Command) -> None:
    short, full = evenhand(*args), evenhand(*args[:-1], "--help")
    assert (short.code, short.err) == (0, "")
    assert short.out == full.out
    assert short.out.startswith("Usage: evenhand ")


def test_the_top_page_lists_the_commands_in_the_order_of_the_work() -> None:
    assert list(PAGES) == list(COMMANDS)
    page = pages(Layout(100))[""]
    places = [page.index(f"\n{step}\n") for step in STEPS]
    assert places == sorted(places)
    shown = re.findall(r"^  ([a-z]+)  ", page[places[0] :], re.MULTILINE)
    assert shown == list(PAGES)
    assert page.index(START[0].line) < places[0]


def test_a_call_without_a_command_prints_the_short_help(evenhand: Command) -> None:
    shown = evenhand()
    assert (shown.code, shown.err) == (2, "")
    assert shown.out.count("\n") < 20
    for text in (*(one.line for one in START), *PAGES, "evenhand --help"):
        assert text in shown.out


# Examples.


def examples() -> list[tuple[str, str]]:
    return [(name, one.line) for name, page in PAGES.items() for one in page.examples]


def test_every_command_has_examples_and_a_guide_that_exists() -> None:
    for name, page in PAGES.items():
        assert 2 <= len(page.examples) <= 5, name
        assert page.step in STEPS
        if (ROOT / "docs").exists():
            assert (ROOT / page.guide).is_file(), page.guide


@pytest.mark.parametrize(("name", "line"), [*examples(), *(("", one.line) for one in START)])
def test_examples_are_calls_of_their_command_with_its_options(name: str, line: str) -> None:
    program, command, *rest = shlex.split(line)
    assert program == "evenhand"
    assert command == name or not name
    context = COMMANDS[command].make_context(command, rest)
    for condition in context.params.get("fail_if") or ():
        parse_condition(condition)


@pytest.mark.parametrize("width", WIDTHS)
def test_broken_examples_are_the_same_command(width: int) -> None:
    for _, line in examples():
        shown = folded_command(line, width, 4)
        assert max(map(len, shown.splitlines())) <= width
        assert shlex.split(shown.replace("\\\n", " ")) == shlex.split(line)


def test_a_key_that_is_similar_to_a_known_one_is_warned_of(evenhand: Command) -> None:
    args = ("audit", "no.csv", "--mean", "mu", "--std", "sigma", "--target", "y")
    warned = evenhand(*args, "--about", "poplation=adults", "--about", "site=north").err
    assert warned.count("warning") == 1
    assert warned.startswith("warning: --about poplation=... is not one of the known keys")
    assert "did you mean 'population'?" in warned


# The terminal.


class Stream:
    """A stream that may be a terminal."""

    def __init__(self, number: int, *, is_terminal: bool) -> None:
        self._number = number
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal

    def fileno(self) -> int:
        return self._number


def test_colours_are_for_terminals_that_show_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert has_colour(Stream(1, is_terminal=True))
    assert not has_colour(Stream(1, is_terminal=False))
    monkeypatch.setenv("NO_COLOR", "1")
    assert not has_colour(Stream(1, is_terminal=True))
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not has_colour(Stream(1, is_terminal=True))


def test_the_width_is_that_of_the_terminal_unless_columns_is_set(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    with (tmp_path / "file").open("w") as file:
        assert width_of(file) is None
        monkeypatch.setenv("COLUMNS", "72")
        assert width_of(file) == 72
        monkeypatch.setenv("COLUMNS", "wide")
        assert width_of(file) is None


def on_terminal(args: list[str], columns: int, **environment: str) -> str:
    """Return what the command prints on a terminal of a width."""
    import fcntl
    import struct
    import termios

    first, second = pty.openpty()
    fcntl.ioctl(second, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    kept = {
        name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")
    }
    run = subprocess.Popen(
        [sys.executable, "-m", "evenhand", *args],
        stdout=second,
        stderr=second,
        env=kept | {"TERM": "xterm"} | environment,
    )
    os.close(second)
    shown = b""
    # reading fails once the other end is closed
    while True:
        try:
            block = os.read(first, 65536)
        except OSError:
            break
        if not block:
            break
        shown += block
    run.wait()
    os.close(first)
    return shown.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}])
def test_messages_and_help_on_a_terminal_fit_and_are_coloured(environment: dict[str, str]) -> None:
    helped = on_terminal(["plan", "-h"], 60, **environment)
    refused = on_terminal(["plan", "--fit", "0.3", "--link", "none"], 60, **environment)
    for shown in (helped, refused):
        assert ("\x1b[" in shown) == (not environment)
        plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
        assert max(map(len, plain.splitlines())) <= 60
        # escapes of a safe stream would be text
        assert "u001b" not in plain
    assert re.sub(r"\x1b\[[0-9;]*m", "", refused).startswith("error: no such option: --fit; see")


def test_results_fit_the_terminal_and_json_is_never_broken(evenhand: Command) -> None:
    args = ["plan", "--rows", "200"]
    shown = on_terminal(args, 60)
    assert max(map(len, shown.splitlines())) <= 60
    # the same words as on a wide terminal, in tables too
    assert sorted(shown.replace("─", "").split()) == sorted(
        evenhand(*args).out.replace("─", "").split()
    )
    plain = evenhand(*args, "--json").out
    assert max(map(len, plain.splitlines())) > 30
    assert on_terminal([*args, "--json"], 30) == plain


# Completion.


def test_scripts_for_shells_are_printed(evenhand: Command) -> None:
    for shell in ("bash", "zsh", "fish"):
        shown = evenhand("--show-completion", shell)
        assert (shown.code, shown.err) == (0, "")
        assert "_EVENHAND_COMPLETE=complete_" + shell in shown.out
        program = shutil.which(shell)
        if program is not None:
            run = [program, "-n", "-c", shown.out] if shell != "fish" else [program, "-n"]
            # the shell reads the script without running it
            assert subprocess.run(run, input=shown.out, text=True, check=False).returncode == 0


def test_completion_is_installed_where_the_shell_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evenhand: Command
) -> None:
    home = {"HOME": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "-m", "evenhand", "--install-completion", "fish"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | home,
    )
    (script,) = tmp_path.rglob("evenhand.fish")
    assert script.read_text() == evenhand("--show-completion", "fish").out
    assert run.stdout.startswith("completion for fish written to ")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("evenhand re", {"recalibrate", "replay"}),
        ("evenhand audit --me", {"--mean"}),
        ("evenhand plan --link ga", {"gaussian"}),
        ("evenhand fit --outcome ", {"continuous", "count", "hurdle", "binary"}),
    ],
)
def test_shells_complete_commands_options_and_choices(words: str, found: set[str]) -> None:
    asked = {
        "_EVENHAND_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    run = subprocess.run(
        [sys.executable, "-m", "evenhand"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | asked,
    )
    assert set(run.stdout.split()) == found
