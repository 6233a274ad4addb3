"""Commands that need no table: `demo` and `reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand._validate import InputError, bad_input
from evenhand.cli.arguments import check_seed
from evenhand.cli.messages import say, show
from evenhand.cli.options import check_not_among, folder_to_write
from evenhand.cli.reports import command_line


def demo(
    out: Annotated[Path, typer.Option(help="folder to write to")] = Path("evenhand-demo"),
    seed: Annotated[int, typer.Option(help="of the split, the training and the draws")] = 0,
) -> None:
    """Train, audit and save on a real table that is bundled, end to end."""
    from evenhand.demo import run

    check_seed(seed)
    show(run(folder_to_write(out), seed, say=say, command=command_line()))


def reproduce(
    name: Annotated[str, typer.Argument(help="toy, crime or credit", metavar="STUDY")],
    out: Annotated[
        Path, typer.Option(help="folder to write to; a stopped run goes on from what lies there")
    ],
    data: Annotated[
        Path | None,
        typer.Option(
            help=(
                "crime: communities.data, where it cannot be fetched; credit: the training file"
                " from Kaggle"
            )
        ),
    ] = None,
    splits: Annotated[
        int | None,
        typer.Option(help="crime: random splits, 10 by default; credit: roll-outs, 8 by default"),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(help="crime, credit: computed at the same time, 2 by default")
    ] = None,
    seed: Annotated[int, typer.Option(help="of the first split or roll-out, or of the task")] = 0,
) -> None:
    """Rerun an experiment of the paper, with figures, tables and a verdict on each claim."""
    from evenhand._validate import check_choice, check_count
    from evenhand.studies import check_folder, run_credit, run_crime, run_toy

    check_choice("STUDY", name, ("toy", "crime", "credit"))
    check_seed(seed)
    given = {"data": data, "splits": splits, "jobs": jobs}
    # defaults differ between studies and stay with them
    options: dict[str, Any] = {
        option: value for option, value in given.items() if value is not None
    }
    if name == "toy" and options:
        raise InputError(
            f"--{next(iter(options))} belongs to crime and credit: the toy makes its data, in one"
            " piece"
        )
    for option in ("splits", "jobs"):
        if option in options:
            check_count(f"--{option}", options[option])
    if data is not None and not data.is_file():
        raise bad_input("--data", f"be the data file of {name}", data)
    out = folder_to_write(out)
    check_not_among("--data", data, out)
    # a stopped run goes on from its folder, which must not be that of another study
    check_folder(out, name)
    if name == "toy":
        show(run_toy(out, seed, say))
    else:
        run = run_crime if name == "crime" else run_credit
        show(run(out, seed, say, **options))
