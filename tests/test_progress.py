"""Progress bars on the streams of the command."""

from __future__ import annotations

import io
import sys

import pytest

from evenhand._progress import progress
from evenhand.cli.output import safe_streams


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_command_shows_a_bar_and_not_its_control_sequences(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with safe_streams(), progress("training", 3) as advance:
        advance(2, "passes")
    shown = terminal.getvalue()
    assert "2/3 passes" in shown
    assert "\x1b[2K" in shown
    assert "u001b[2K" not in shown


def test_a_terminal_without_the_lines_of_tables_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", terminal)
    with safe_streams():
        print("group ── error")
    terminal.seek(0)
    assert terminal.read() == "group ?? error\n"
