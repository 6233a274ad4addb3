"""Arguments and options that commands share, with their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand._validate import bad_input

Table = Annotated[Path, typer.Argument(help="csv, parquet, or a folder of such parts")]
Target = Annotated[str, typer.Option(help="column with the outcome")]
Alpha = Annotated[
    float,
    typer.Option(
        help="weight of sharpness, 0 < alpha <= 1; small buys calibration for every group"
    ),
]
Link = Annotated[str, typer.Option(help="entropic, laplace or gaussian")]
Seed = Annotated[int | None, typer.Option(help="makes the run repeatable")]
Id = Annotated[str, typer.Option("--id", help="column that names each person")]
Key = Annotated[Path, typer.Option(help="file with the secret of the draws, at least 16 bytes")]
Context = Annotated[str, typer.Option(help="the decision that the draws are for, such as 2026-11")]
Levels = Annotated[str, typer.Option(help="probabilities of the quantiles to write")]
Moments = Annotated[
    bool,
    typer.Option(
        "--moments",
        help="also write served_mean and served_std, which take long: see the docs, costs",
    ),
]
OutTable = Annotated[
    Path, typer.Option(help="csv or parquet file to write; or a new folder, for a folder of parts")
]

Workers = Annotated[
    int | None, typer.Option(help="processes that share the parts of the table on this machine")
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        help="address of a Dask scheduler whose workers do it, such as tcp://10.0.0.1:8786"
    ),
]
SkipBadParts = Annotated[
    bool,
    typer.Option("--skip-bad-parts", help="go on without parts that cannot be used, and name them"),
]

# as in `RandomizedRegressor`, so that command and library train the same model
DEFAULT_ALPHA = 0.1
DEFAULT_LEVELS = "0.05,0.1,0.25,0.5,0.75,0.9,0.95"


def check_seed(seed: int | None) -> None:
    """Refuse a seed that no generator takes."""
    # the range of NumPy's legacy generator, which scikit-learn uses
    if seed is not None and not 0 <= seed < 2**32:
        raise bad_input("--seed", f"lie between 0 and {2**32 - 1}", seed)
