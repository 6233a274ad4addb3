"""Completion of commands, options and file names in shells."""

from __future__ import annotations

import importlib
import os
from typing import Annotated, Any

import typer

from evenhand._validate import check_choice
from evenhand.cli.messages import show

SHELLS = ("bash", "zsh", "fish", "powershell", "pwsh")

REQUEST = "_EVENHAND_COMPLETE"
"""Environment variable with which the script in a shell asks for completions."""


def prepare_completion() -> bool:
    """Prepare typer for a request of a shell; return whether there is one."""
    if not os.environ.get(REQUEST):
        return False
    _typer().completion_init()
    return True


def _install(context: typer.Context, parameter: Any, shell: str | None) -> None:
    if shell is None or context.resilient_parsing:
        return
    check_choice("--install-completion", shell, SHELLS)
    name, path = _typer().install(shell=shell, prog_name="evenhand", complete_var=REQUEST)
    show(f"completion for {name} written to {path}; it works in new terminals")
    raise typer.Exit


def _show(context: typer.Context, parameter: Any, shell: str | None) -> None:
    if shell is None or context.resilient_parsing:
        return
    check_choice("--show-completion", shell, SHELLS)
    script = _typer().get_completion_script(prog_name="evenhand", complete_var=REQUEST, shell=shell)
    show(script)
    raise typer.Exit


def _typer() -> Any:
    """Return typer's module of completions, which help and commands do not load."""
    return importlib.import_module("typer.completion")


InstallCompletion = Annotated[
    str | None,
    typer.Option(
        "--install-completion",
        metavar="SHELL",
        is_eager=True,
        callback=_install,
        help=f"install completion for a shell and exit: {', '.join(SHELLS)}",
    ),
]
ShowCompletion = Annotated[
    str | None,
    typer.Option(
        "--show-completion",
        metavar="SHELL",
        is_eager=True,
        callback=_show,
        help="print the completion script of a shell and exit",
    ),
]
