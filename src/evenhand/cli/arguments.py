"""Arguments and options shared by several commands, with their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand._validate import bad_input

Table = Annotated[
    Path,
    typer.Argument(metavar="TABLE", help="csv or parquet file, or a folder of such files (parts)"),
]
Target = Annotated[str, typer.Option(help="column with the outcome")]
Mean = Annotated[
    str | None,
    typer.Option(help="forecasts of another model: column with predicted means"),
]
Std = Annotated[
    str | None,
    typer.Option(help="forecasts of another model: column with predicted standard deviations"),
]
Quantiles = Annotated[
    str | None,
    typer.Option(
        help="forecasts of another model: columns with predicted quantiles, such as"
        " q0.05,q0.5,q0.95, or their common prefix q"
    ),
]
Samples = Annotated[
    str | None,
    typer.Option(
        help="forecasts of another model: columns with samples of the predicted distribution, or"
        " their common prefix"
    ),
]
Probability = Annotated[
    str | None,
    typer.Option(
        help="forecasts of another model: column with the predicted probability that a 0/1 outcome"
        " is 1"
    ),
]
Pmf = Annotated[
    str | None,
    typer.Option(
        help="forecasts of another model: columns with the predicted probability of each value of a"
        " count or score, such as p0,p1,p2, or their common prefix p"
    ),
]
ChanceOfZero = Annotated[
    str | None,
    typer.Option(
        help="forecasts of another model: column with the predicted probability that the outcome is"
        " 0; --mean and --std, --quantiles or --samples are then of outcomes above 0"
    ),
]
ForecastOutcome = Annotated[
    str | None,
    typer.Option(
        "--outcome",
        help="count if --mean (with or without --std) or --samples are of counts; the other columns"
        " of forecasts show whether outcomes are continuous, counts, amounts with zeros or 0/1",
    ),
]
SortQuantiles = Annotated[
    bool,
    typer.Option(
        "--sort-quantiles",
        help="sort quantiles that cross in a row, instead of refusing the table",
    ),
]
Alpha = Annotated[
    float,
    typer.Option(
        help="weight of sharpness, 0 < alpha <= 1; a smaller alpha means more randomization and"
        " smaller possible errors in every group"
    ),
]
Link = Annotated[str, typer.Option(help="link family: entropic, laplace or gaussian")]
Seed = Annotated[int | None, typer.Option(help="random seed, for a repeatable run")]
MaxWider = Annotated[
    float | None,
    typer.Option(
        help="instead of --max-group-error: certify as much as possible with 80% prediction"
        " intervals at most so much wider; 0.1 for 10%"
    ),
]
MaxPrice = Annotated[
    float | None,
    typer.Option(
        help="instead of --max-group-error: certify as much as possible for at most this loss"
        " of log score, in nats"
    ),
]
Id = Annotated[str, typer.Option("--id", help="column with the id of each person")]
Context = Annotated[
    str, typer.Option(help="name of the decision; each context has its own draws, e.g. 2026-11")
]
Levels = Annotated[str, typer.Option(help="levels of the quantiles to write, comma-separated")]
Moments = Annotated[
    bool,
    typer.Option(
        "--moments",
        help="also write served_mean and served_std, which is slow (see the docs on costs)",
    ),
]
OutTable = Annotated[
    Path,
    typer.Option(help="csv or parquet file to write, or a new folder if TABLE is a folder"),
]

Workers = Annotated[
    int | None,
    typer.Option(help="number of local processes for a folder of parts"),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        help="address of a Dask scheduler that runs the computation, such as tcp://10.0.0.1:8786"
    ),
]
SkipBadParts = Annotated[
    bool,
    typer.Option("--skip-bad-parts", help="skip parts that cannot be read, and list them"),
]
AsJson = Annotated[bool, typer.Option("--json", help="print JSON instead of text")]
Tables = Annotated[
    Path | None,
    typer.Option(help="folder to write each table to, as a csv file"),
]

# the same as in `RandomizedRegressor`, so that command and library train the same model
DEFAULT_ALPHA = 0.1
DEFAULT_LEVELS = "0.05,0.1,0.25,0.5,0.75,0.9,0.95"


def check_seed(seed: int | None) -> None:
    """Refuse a seed outside the range of NumPy's legacy generator, which scikit-learn uses."""
    if seed is not None and not 0 <= seed < 2**32:
        raise bad_input("--seed", f"lie between 0 and {2**32 - 1}", seed)
