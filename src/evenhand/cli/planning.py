"""Subcommands without a table of the user: `plan` and `demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand._validate import bad_input, check_count, short
from evenhand.cli import arguments
from evenhand.cli.certifying import check_goal, check_target
from evenhand.cli.options import check_apart, folder_to_write, listed_names
from evenhand.cli.output import command_line, inform, show_result

TABLES = "Rows and groups"


def plan(
    max_group_error: arguments.MaxGroupError = None,
    max_wider: arguments.MaxWider = None,
    max_price: arguments.MaxPrice = None,
    group_mass: arguments.GroupMass = None,
    confidence: arguments.Confidence = None,
    link: arguments.Link = "entropic",
    rows: Annotated[
        str,
        typer.Option(
            metavar="NUMBERS",
            rich_help_panel=TABLES,
            help="numbers of certifying rows, comma-separated",
        ),
    ] = "200,500,1000,2000,5000,10000,100000",
    groups: Annotated[
        int,
        typer.Option(
            metavar="N",
            rich_help_panel=TABLES,
            help="number of groups that are tested together, for the power of the test",
        ),
    ] = 20,
    as_json: arguments.AsJson = False,
) -> None:
    """Plan a guarantee before there are any rows: its price, or what can be proven for a price.

    For each number of certifying rows, and for the rows of a group with which a test detects its
    error. The numbers are those of a model that is calibrated before the randomization.
    """
    from evenhand import selection

    goals = {"max_group_error": max_group_error, "max_wider": max_wider, "max_price": max_price}
    check_goal(None, goals, {})
    check_target(goals, group_mass, confidence)
    arguments.checked_link(link, 1.0)
    asked: dict[str, Any] = goals | {"group_mass": group_mass, "confidence": confidence}
    found = selection.plan(
        **{name: value for name, value in asked.items() if value is not None},
        link=link,
        rows=[_count(number) for number in listed_names("--rows", rows)],
        n_groups=check_count("--groups", groups),
    )
    show_result(found.to_dict(), found.summary(), as_json)


def _count(number: str) -> int:
    try:
        rows = int(number)
    except ValueError:
        remedy = "separate the numbers by commas, such as 500,1000"
        raise bad_input("--rows", "be a list of whole numbers", short(number), remedy) from None
    return check_count("--rows", rows)


def demo(
    out: Annotated[
        Path,
        typer.Option(metavar="FOLDER", rich_help_panel=arguments.OUTPUT, help="folder to write to"),
    ] = Path("evenhand-demo"),
    as_json: arguments.AsJson = False,
    seed: arguments.FixedSeed = 0,
) -> None:
    """Find, repair and prove on a generated table: the first steps, with all files."""
    from evenhand.demo import run

    arguments.check_seed(seed)
    check_apart(out, {})
    text, values = run(folder_to_write(out), seed, inform, command=command_line())
    show_result(values, text, as_json)
