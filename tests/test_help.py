"""The help of the command: pages, examples that parse, completion, and results on a terminal."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
import typer.main

from command_outcome import Command
from evenhand.audits import parse_condition
from evenhand.cli import app

COMMANDS: dict[str, Any] = vars(typer.main.get_command(app))["commands"]


def plain(shown: str) -> str:
    """Return text of a help page without its borders and line breaks."""
    return " ".join(re.sub("[│╭╮╰╯─]", " ", shown).split())


def test_help_pages_name_every_option_and_fit_the_terminal(
    evenhand: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for name, command in COMMANDS.items():
        shown = evenhand(name, "--help")
        assert (shown.code, shown.err) == (0, "")
        assert max(map(len, shown.out.splitlines())) <= 80
        assert f"Usage: evenhand {name} " in plain(shown.out)
        for option in command.params:
            assert option.param_type_name == "argument" or option.opts[0] in shown.out


def test_the_top_page_names_commands_and_exit_codes_and_is_that_of_a_call_without_a_command(
    evenhand: Command,
) -> None:
    full = evenhand("-h")
    assert (full.code, full.err) == (0, "")
    places = [full.out.index(f" {name} ") for name in COMMANDS]
    assert places == sorted(places)
    assert "70 internal error" in plain(full.out)
    bare = evenhand()
    assert (bare.code, bare.out, bare.err) == (2, full.out, "")


def examples() -> list[tuple[str, str]]:
    return [
        (name, line)
        for name, command in COMMANDS.items()
        for line in command.help.partition("Examples:")[2].split("\n\n")
        if line
    ]


def test_every_command_has_examples_that_are_calls_with_its_options() -> None:
    assert {name for name, _ in examples()} == set(COMMANDS)
    for name, line in examples():
        program, command, *rest = shlex.split(line)
        assert (program, command) == ("evenhand", name)
        context = COMMANDS[command].make_context(command, rest)
        for condition in context.params.get("fail_if") or ():
            parse_condition(condition)


def test_misspelled_commands_and_options_are_refused_with_similar_names(
    evenhand: Command,
) -> None:
    assert "'audit'" in evenhand("adit", "t.csv").complaint()
    refused = evenhand("audit", "t.csv", "--taget", "y").complaint()
    assert "--target" in refused
    assert refused.endswith("see evenhand audit --help\n")


def test_results_fit_the_terminal_and_json_is_never_broken(
    evenhand: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    args = ["plan", "--rows", "200"]
    wide, as_json = evenhand(*args).out, evenhand(*args, "--json").out
    monkeypatch.setenv("COLUMNS", "60")
    shown = evenhand(*args).out
    assert max(map(len, shown.splitlines())) <= 60
    # the same words as on a wide terminal, in tables too
    assert sorted(shown.replace("─", "").split()) == sorted(wide.replace("─", "").split())
    monkeypatch.setenv("COLUMNS", "30")
    assert max(map(len, as_json.splitlines())) > 30
    assert evenhand(*args, "--json").out == as_json
