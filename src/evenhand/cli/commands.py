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

from evenhand._version import __version__
from evenhand.cli.auditing import audit
from evenhand.cli.comparing import compare
from evenhand.cli.experiments import demo, reproduce
from evenhand.cli.fitting import fit
from evenhand.cli.messages import (
    BAD_INPUT,
    code_of,
    end_with,
    fail,
    show,
    stopped_by_signals,
    usage_message,
    warn,
)
from evenhand.cli.options import refuse_blank
from evenhand.cli.planning import plan
from evenhand.cli.randomizing import randomize
from evenhand.cli.recalibrating import recalibrate
from evenhand.cli.serving import predict
from evenhand.cli.streams import safe_streams


class Command(TyperCommand):
    """Subcommand whose usage line names arguments plainly: `evenhand audit [MODEL] TABLE`."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line, without typer's braces and hidden arguments."""
        pieces = [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]
        return [piece for piece in pieces if piece != "[]"]


class Commands(TyperGroup):
    """Group of commands whose errors keep their exit codes.

    Typer would turn some of them into 1, the code of a gate.
    """

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        try:
            return super().invoke(ctx)
        except (EOFError, OSError, KeyboardInterrupt) as error:
            end_with(error)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Choose the command by the first argument, and refuse empty values."""
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            # flags take no value: the next argument is not theirs
            flags = [one for one in command.params if getattr(one, "is_flag", False)]
            refuse_blank(rest, {option for one in flags for option in one.opts})
        return name, command, rest


EXIT_CODES = (
    "Exit codes: 0 success, 1 a --fail-if condition or --fail-if-worse is true, 2 bad input or a"
    " condition that cannot be evaluated, 70 internal error, 74 results could not be written to"
    " standard output, 130 interrupted, 143 terminated (129 by SIGHUP)."
)

app = typer.Typer(
    cls=Commands,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Forecasts that are calibrated for each person, not only on average.",
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
) -> None:
    pass


# the order of the help
for command in (demo, plan, fit, predict, recalibrate, randomize, audit, compare, reproduce):
    app.command(cls=Command)(command)


def main() -> None:
    """Run the command; errors are printed as one line and have their own exit codes."""
    warnings.showwarning = warn
    # pyarrow prints a traceback in addition to the error that it raises
    sys.unraisablehook = lambda raised: None
    with safe_streams() as out:
        try:
            _run()
        except SystemExit as end:
            # only here it is known whether the results were written
            raise SystemExit(code_of(end, out)) from None


def _run() -> None:
    try:
        with stopped_by_signals():
            if len(sys.argv) == 1:
                app(["--help"], prog_name="evenhand", standalone_mode=False)
                raise SystemExit(BAD_INPUT)
            raise SystemExit(app(prog_name="evenhand", standalone_mode=False) or 0)
    except (Exception, KeyboardInterrupt) as error:
        # usage errors of typer, which it would print in a box of several lines
        if hasattr(error, "format_message"):
            fail(usage_message(error))
        end_with(error)
