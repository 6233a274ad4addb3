"""The command `evenhand` with its subcommands.

Results go to standard output, messages to standard error. Exit codes: see `EXIT_CODES`. A gate
exits with the code of its verdict even if the output could not be written.
"""

from __future__ import annotations

import sys
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from evenhand._table import lines_within
from evenhand._version import __version__
from evenhand.cli.auditing import audit
from evenhand.cli.comparing import compare
from evenhand.cli.completion import InstallCompletion, ShowCompletion, prepare_completion
from evenhand.cli.demoing import demo
from evenhand.cli.fitting import fit
from evenhand.cli.help_page import Layout, command_page, short_page, top_page, write
from evenhand.cli.messages import (
    BAD_INPUT,
    code_of,
    end_with,
    fail,
    show,
    stopped_by_signals,
    unknown_command,
    usage_message,
    warn,
)
from evenhand.cli.options import refuse_blank
from evenhand.cli.outcomes import outcomes
from evenhand.cli.planning import plan
from evenhand.cli.randomizing import randomize
from evenhand.cli.recalibrating import recalibrate
from evenhand.cli.replaying import replay
from evenhand.cli.serving import predict
from evenhand.cli.streams import safe_streams
from evenhand.cli.terminal import width_of
from evenhand.cli.watching import watch


class Command(TyperCommand):
    """Subcommand with a help page that fits the terminal."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help page; nothing is left to format."""
        write(command_page(self, ctx, Layout.of_output()))


class Commands(TyperGroup):
    """Group of commands whose errors keep their exit codes.

    Typer would turn some of them into 1, the code of a gate.
    """

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help page; nothing is left to format."""
        write(top_page(self, ctx, Layout.of_output()))

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        try:
            return super().invoke(ctx)
        except (EOFError, OSError, KeyboardInterrupt) as error:
            end_with(error)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Choose the command by the first argument, and refuse empty values."""
        is_option = args[0].startswith("-")
        if not is_option and args[0] not in self.commands and not ctx.resilient_parsing:
            end_with(unknown_command(args[0], self.commands))
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            # flags take no value: the next argument is not theirs
            flags = [one for one in command.params if getattr(one, "is_flag", False)]
            refuse_blank(rest, {option for one in flags for option in one.opts})
        return name, command, rest


EXIT_CODES = (
    "Exit codes: 0 success, 1 a --fail-if condition, --fail-if-worse or --fail-if-alarm is true, or"
    " a replay differs, 2 bad input or a condition that cannot be evaluated, 3 randomize refuses a"
    " promise that is not worth its price, 70 internal error, 74 results could not be written to"
    " standard output, 130 interrupted, 143 terminated (129 by SIGHUP)."
)

app = typer.Typer(
    cls=Commands,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXIT_CODES,
)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        show(f"evenhand {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="print the version and exit"
        ),
    ] = False,
    install_completion: InstallCompletion = None,
    show_completion: ShowCompletion = None,
) -> None:
    pass


# the order of the help
COMMANDS = (
    demo,
    audit,
    compare,
    recalibrate,
    plan,
    randomize,
    fit,
    predict,
    outcomes,
    replay,
    watch,
)
for command in COMMANDS:
    app.command(cls=Command)(command)


def main() -> None:
    """Run the command; errors are printed as one line and have their own exit codes."""
    warnings.showwarning = warn
    # pyarrow prints a traceback in addition to the error that it raises
    sys.unraisablehook = lambda raised: None
    with safe_streams() as out, lines_within(width_of(sys.stdout)):
        try:
            _run()
        except SystemExit as end:
            # only here it is known whether the results were written
            raise SystemExit(code_of(end, out)) from None


def _run() -> None:
    try:
        with stopped_by_signals():
            if prepare_completion() or len(sys.argv) > 1:
                raise SystemExit(app(prog_name="evenhand", standalone_mode=False) or 0)
            write(short_page(Layout.of_output()) + "\n")
            # a call without a command is incomplete
            raise SystemExit(BAD_INPUT)
    except (Exception, KeyboardInterrupt) as error:
        # usage errors of typer, which it would print in a box of several lines
        if hasattr(error, "format_message"):
            fail(usage_message(error))
        end_with(error)
