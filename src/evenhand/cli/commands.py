"""The command `evenhand`: parses, calls one thing below, prints.

Results go to standard output, messages to standard error. Exit codes: see `EXIT_CODES`. A gate has
the code of its verdict whatever becomes of the streams.
"""

from __future__ import annotations

import sys
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from evenhand._escape import single_line
from evenhand._version import __version__
from evenhand.cli.auditing import audit
from evenhand.cli.experiments import demo, reproduce
from evenhand.cli.fitting import fit
from evenhand.cli.messages import code_of, end_with, show, stopped_by_signals, warn
from evenhand.cli.options import refuse_blank
from evenhand.cli.serving import predict, randomize
from evenhand.cli.streams import safe_streams


class Commands(TyperGroup):
    """Group of commands whose errors keep their exit codes.

    Typer would turn some of them into 1, the code of a gate.
    """

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was chosen."""
        try:
            return super().invoke(ctx)
        except (EOFError, OSError, KeyboardInterrupt) as error:
            end_with(error)
        except Exception as error:
            # typer's errors name arguments, such as file names, which may hold control characters
            if isinstance(getattr(error, "message", None), str):
                error.message = single_line(error.message)  # type: ignore[attr-defined]
            raise

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Choose the command by the first argument; refuse values that are empty."""
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            # flags take no value: what follows one is an argument
            flags = [one for one in command.params if getattr(one, "is_flag", False)]
            refuse_blank(rest, {option for one in flags for option in one.opts})
        return name, command, rest


EXIT_CODES = (
    "Exit codes: 0 done, 1 a --fail-if condition holds, 2 bad input or a condition that cannot be"
    " judged, 70 a fault of evenhand, 74 results that cannot be written to standard output, 130"
    " interrupted, 143 terminated (129 by SIGHUP)."
)

app = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
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


# in the order of the help
for command in (demo, fit, predict, randomize, audit, reproduce):
    app.command()(command)


def main() -> None:
    """Run the command; whatever ends it early is one line and an exit code of its own."""
    warnings.showwarning = warn
    # pyarrow prints a traceback beside the error that it raises
    sys.unraisablehook = lambda raised: None
    with safe_streams() as out:
        try:
            _run()
        except SystemExit as end:
            # only here is it known whether the results were written
            raise SystemExit(code_of(end, out)) from None


def _run() -> None:
    try:
        with stopped_by_signals():
            app()
    except (Exception, KeyboardInterrupt) as error:
        end_with(error)
