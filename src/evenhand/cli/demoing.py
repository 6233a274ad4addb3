"""Subcommand without a table of the user: `demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli import arguments
from evenhand.cli.messages import command_line, inform, show_result
from evenhand.cli.options import check_apart, folder_to_write


def demo(
    out: Annotated[
        Path,
        typer.Option(metavar="FOLDER", rich_help_panel=arguments.OUTPUT, help="folder to write to"),
    ] = Path("evenhand-demo"),
    as_json: arguments.AsJson = False,
    seed: Annotated[int, typer.Option(metavar="N", help="seed of tables, training and draws")] = 0,
) -> None:
    """Find, repair and prove on a generated table: the first steps, with all files."""
    from evenhand.demo import run

    arguments.check_seed(seed)
    check_apart(out, {})
    text, values = run(folder_to_write(out), seed, inform, command=command_line())
    show_result(values, text, as_json)
