"""The command `evenhand` with its subcommands.

Results go to standard output, messages to standard error. Exit codes: see `EXIT_CODES`. A gate
exits with the code of its verdict even if the output could not be written.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from contextvars import copy_context
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from evenhand._table import lines_within
from evenhand._validate import shown_names
from evenhand._version import __version__
from evenhand.cli.auditing import audit, compare
from evenhand.cli.checks import check_apart, folder_to_write, refuse_blank
from evenhand.cli.fitting import fit
from evenhand.cli.options import help_text, with_options
from evenhand.cli.output import (
    BAD_INPUT,
    code_of,
    command_line,
    end_with,
    fail,
    inform,
    safe_streams,
    show,
    show_result,
    stopped_by_signals,
    terminal_width,
    usage_message,
    warn,
)
from evenhand.cli.repairing import plan, randomize, recalibrate
from evenhand.cli.replaying import outcomes, replay
from evenhand.cli.serving import predict
from evenhand.cli.watching import watch

STORY = (
    "Shows for whom the uncertainty of a model is wrong, repairs it and, where someone needs it,"
    " proves that it is right for every group, named or not."
)

EXIT_CODES = (
    "Exit codes: 0 success, 1 a --fail-if condition, --fail-if-worse or --fail-if-alarm is true, or"
    " a replay differs, 2 bad input or a condition that cannot be evaluated, 3 randomize refuses a"
    " promise that is not worth its price, 70 internal error, 74 results could not be written to"
    " standard output, 130 interrupted, 143 terminated (129 by SIGHUP)."
)


@with_options
def demo(out: Path = Path("evenhand-demo"), as_json: bool = False, seed: int = 0) -> None:
    """Find, repair and prove on a generated table: the first steps, with all files.

    Output
    ------
    out : FOLDER
        folder to write to

    Examples
    --------
    evenhand demo
    evenhand demo --out first-look --seed 1
    """
    from evenhand.demo import run

    check_apart(out, {})
    text, values = run(folder_to_write(out), seed, inform, command=command_line())
    show_result(values, text, as_json)


PANELS: dict[str, list[Callable[..., None]]] = {
    "First look": [demo],
    "1. Audit: for whom is it wrong?": [audit, compare],
    "2. Repair: recalibrate by group": [recalibrate],
    "3. Prove: every group, named or not": [plan, randomize],
    "Train, forecast, log and watch": [fit, predict, outcomes, replay, watch],
}
"""The commands, in the order of the work."""

ALL = "--help-all"


class Commands(TyperGroup):
    """Group of commands whose errors keep their exit codes.

    Typer would turn some of them into 1, the code of a gate.
    """

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        try:
            # names of options are set for this call only
            return copy_context().run(super().invoke, ctx)
        except (EOFError, OSError, KeyboardInterrupt) as error:
            end_with(error)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Choose the command by the first argument, and refuse empty values."""
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            options: list[Any] = [one for one in command.params if one.param_type_name == "option"]
            shown_names.set({str(one.name): one.opts[0] for one in options})
            rare = [one for one in options if one.hidden]
            if ALL in rest:
                rest = [*rest[: rest.index(ALL)], "--help"]
                for one in rare:
                    one.hidden = False
            elif rare:
                names = " ".join(one.opts[0] for one in rare)
                command.epilog = f"{ALL} names {len(rare)} more: {names}"
            with_value = [one for one in options if not getattr(one, "is_flag", False)]
            refuse_blank(rest, [name for one in with_value for name in one.opts])
        return name, command, rest


app = typer.Typer(
    cls=Commands,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=STORY,
    epilog=EXIT_CODES,
)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        show(f"evenhand {__version__}")
        raise typer.Exit


@app.callback()
def _general(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="print the version and exit"
        ),
    ] = False,
) -> None:
    pass


for panel, commands in PANELS.items():
    for command in commands:
        app.command(help=help_text(command.__doc__), rich_help_panel=panel)(command)


def main() -> None:
    """Run the command; errors are printed as one line and have their own exit codes."""
    warnings.showwarning = warn
    with safe_streams() as out, lines_within(terminal_width()):
        try:
            _run(sys.argv[1:])
        except SystemExit as end:
            # only here it is known whether the results were written
            raise SystemExit(code_of(end, out)) from None


def _run(args: list[str]) -> None:
    try:
        with stopped_by_signals():
            code = app(args or ["--help"], prog_name="evenhand", standalone_mode=False) or 0
            # a call without a command is incomplete
            raise SystemExit(code if args else BAD_INPUT)
    except (Exception, KeyboardInterrupt) as error:
        # usage errors of typer, which it would print in a box of several lines
        if hasattr(error, "format_message"):
            fail(usage_message(error))
        end_with(error)
