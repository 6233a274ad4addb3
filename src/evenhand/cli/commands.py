"""The command `evenhand` with its subcommands.

Results go to standard output, messages to standard error. Exit codes: see `EXIT_CODES`. A gate
exits with the code of its verdict even if the output could not be written.
"""

from __future__ import annotations

import sys
import warnings
from contextvars import copy_context
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from evenhand._table import lines_within
from evenhand._validate import shown_names
from evenhand._version import __version__
from evenhand.cli import options
from evenhand.cli.auditing import audit, compare
from evenhand.cli.checks import check_apart, folder_to_write, refuse_blank
from evenhand.cli.fitting import fit
from evenhand.cli.options import OUTPUT, option, with_options
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

AUDIT = "1. Audit: for whom is it wrong?"
REPAIR = "2. Repair: recalibrate by group"
PROVE = "3. Prove: every group, named or not"
USE = "Train, forecast, log and watch"
"""Panels of commands, in the order of the work."""


@with_options
def demo(
    out: Annotated[Path, option("folder to write to", OUTPUT, "FOLDER")] = Path("evenhand-demo"),
    as_json: options.AsJson = False,
    seed: options.FixedSeed = 0,
) -> None:
    """Find, repair and prove on a generated table: the first steps, with all files."""
    from evenhand.demo import run

    check_apart(out, {})
    text, values = run(folder_to_write(out), seed, inform, command=command_line())
    show_result(values, text, as_json)


COMMANDS: dict[Any, tuple[str, list[str]]] = {
    demo: ("First look", ["demo", "demo --out first-look --seed 1"]),
    audit: (
        AUDIT,
        [
            "audit test.csv --target loss --forecast mean=mu,std=sigma",
            "audit loans.csv --target bad --forecast probability=p --groups sex,job",
            "audit test.csv --target loss --forecast model --fail-if problem",
        ],
    ),
    compare: (
        AUDIT,
        [
            "compare test.csv --target loss --forecast mean=mu,std=sigma --forecast repaired",
            "compare june.json july.json --out compare.html",
        ],
    ),
    recalibrate: (
        REPAIR,
        ["recalibrate past.csv --target loss --forecast mean=mu,std=sigma --by sex --out repaired"],
    ),
    plan: (PROVE, ["plan", "plan --max-wider 0.2 --rows 1000"]),
    randomize: (
        PROVE,
        [
            "randomize past.csv --target loss --forecast mean=mu,std=sigma --out proven",
            "randomize past.csv --target loss --forecast model --max-wider 0.2 --out proven",
        ],
    ),
    fit: (USE, ["fit train.csv --target loss --id person --out model"]),
    predict: (
        USE,
        [
            "predict new.csv --forecast repaired --id person --out forecasts.csv",
            "predict new.csv --forecast proven --id person --key-file draws.key --context 2026-11"
            " --log log.sqlite --out served.csv",
        ],
    ),
    outcomes: (USE, ["outcomes log.sqlite paid.csv --id forecast_id --target loss"]),
    replay: (
        USE,
        [
            "replay log.sqlite FORECAST_ID --forecast proven --key-file draws.key"
            " --features new.csv --id person"
        ],
    ),
    watch: (
        USE,
        [
            "watch log.sqlite --certificate proven --matures-after 365d --state watch.json"
            " --fail-if-alarm --out watch.html"
        ],
    ),
}
"""The commands in the order of the help, each with its panel and examples of calls."""

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


for function, (panel, examples) in COMMANDS.items():
    blocks = [" ".join(text.split()) for text in str(function.__doc__).split("\n\n")]
    blocks += ["Examples:", *(f"evenhand {line}" for line in examples)]
    app.command(help="\n\n".join(blocks), rich_help_panel=panel)(function)


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
