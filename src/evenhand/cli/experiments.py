"""Subcommands without a table of the user: `demo` and `reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand._validate import InputError, bad_input
from evenhand.cli.arguments import OUTPUT, AsJson, check_seed
from evenhand.cli.messages import inform
from evenhand.cli.options import check_apart, check_not_among, folder_to_write
from evenhand.cli.reports import command_line, show_result
from evenhand.cli.terminal import text_width

SCHEMA = "evenhand.study/1"

STUDY = "Study"


def demo(
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", rich_help_panel=OUTPUT, help="folder to write to")
    ] = Path("evenhand-demo"),
    as_json: AsJson = False,
    seed: Annotated[int, typer.Option(metavar="N", help="seed of tables, training and draws")] = 0,
) -> None:
    """Find, repair and prove on a generated table: the first steps, with all files."""
    from evenhand.demo import run

    check_seed(seed)
    check_apart(out, {})
    done = run(folder_to_write(out), seed, inform, command=command_line(), width=text_width())
    show_result(done.values, done.text, as_json)


def reproduce(
    name: Annotated[str, typer.Argument(help="toy, crime or credit", metavar="STUDY")],
    out: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER",
            rich_help_panel=OUTPUT,
            help="folder to write to; an interrupted run resumes from its files",
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=STUDY,
            help="crime: the file communities.data, if it cannot be downloaded; credit: the"
            " training file from Kaggle",
        ),
    ] = None,
    splits: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            rich_help_panel=STUDY,
            help="crime: number of random splits, 10 by default; credit: number of roll-outs, 8 by"
            " default",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            rich_help_panel=STUDY,
            help="crime, credit: splits or roll-outs run in parallel, 2 by default",
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            metavar="N",
            rich_help_panel=STUDY,
            help="seed of the first split or roll-out (toy: of the whole study)",
        ),
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Rerun an experiment of the paper; write figures, tables and a verdict on each claim."""
    from evenhand._validate import check_choice, check_count
    from evenhand.studies import check_folder, run_credit, run_crime, run_toy

    check_choice("STUDY", name, ("toy", "crime", "credit"))
    check_seed(seed)
    given = {"data": data, "splits": splits, "jobs": jobs}
    # defaults differ between studies, which define them
    options: dict[str, Any] = {
        option: value for option, value in given.items() if value is not None
    }
    if name == "toy" and options:
        raise InputError(
            f"--{next(iter(options))} applies only to crime and credit, as toy simulates its data"
            " in one run; leave it out"
        )
    for option in ("splits", "jobs"):
        if option in options:
            check_count(f"--{option}", options[option])
    if splits == 1:
        remedy = "claims have intervals over splits or roll-outs, which one run cannot give"
        raise bad_input("--splits", "be an integer of at least 2", splits, remedy)
    if data is not None and not data.is_file():
        raise InputError(f"--data {data} is not a file; pass the data file of the {name} study")
    check_apart(out, {})
    out = folder_to_write(out)
    check_not_among("--data", data, out)
    # runs resume from their folder, which must not belong to another study
    check_folder(out, name)
    if name == "toy":
        text = run_toy(out, seed, inform)
    else:
        run = run_crime if name == "crime" else run_credit
        text = run(out, seed, inform, **options)
    files = sorted(path.name for path in out.iterdir() if path.is_file())
    values = {"schema": SCHEMA, "study": name, "out": str(out), "files": files}
    show_result(values | {"findings": text.splitlines()}, text, as_json)
