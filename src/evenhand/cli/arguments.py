"""Arguments and options shared by several commands, with their help."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenhand._validate import bad_input, check_choice, check_fraction

if TYPE_CHECKING:
    from evenhand.links import Link as AnyLink

ROWS = "Rows"
FORECASTS = "Forecasts of another model"
TIMES = "Times that may be cut off (censored)"
GROUPS = "Groups"
GATE = "Gate"
MODEL = "Model"
RANDOMIZATION = "Randomization"
GUARANTEE = "Guarantee for every group"
DRAWS = "Draws"
LOG = "Decision log"
OUTPUT = "Output"
LARGE = "Large tables"
"""Panels of options in help pages."""

Table = Annotated[
    Path,
    typer.Argument(metavar="TABLE", help="csv or parquet file, or a folder of such files (parts)"),
]
Target = Annotated[
    str, typer.Option(metavar="COLUMN", rich_help_panel=ROWS, help="column with the outcome")
]
PersonId = Annotated[
    str | None,
    typer.Option(
        "--id", metavar="COLUMN", rich_help_panel=ROWS, help="column with the id of each person"
    ),
]
Person = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        rich_help_panel=ROWS,
        help="column with the ids of people who have several rows; bounds use one row per person",
    ),
]
DropMissing = Annotated[
    bool,
    typer.Option(
        "--drop-missing",
        rich_help_panel=ROWS,
        help="leave out rows without an outcome, such as loans that are not due",
    ),
]
Mean = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", rich_help_panel=FORECASTS, help="column with predicted means"),
]
Std = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        rich_help_panel=FORECASTS,
        help="column with predicted standard deviations",
    ),
]
Quantiles = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMNS",
        rich_help_panel=FORECASTS,
        help="columns with predicted quantiles, such as q0.05,q0.5,q0.95, or their common prefix q",
    ),
]
Samples = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMNS",
        rich_help_panel=FORECASTS,
        help="columns with samples of the predicted distribution, or their common prefix",
    ),
]
Survival = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMNS",
        rich_help_panel=FORECASTS,
        help="columns with the predicted probability that a time is beyond each of several times,"
        ' as "30=s30,60=s60", by names that end in their time, or by their common prefix s',
    ),
]
Probability = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        rich_help_panel=FORECASTS,
        help="column with the predicted probability that a 0/1 outcome is 1",
    ),
]
Pmf = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMNS",
        rich_help_panel=FORECASTS,
        help="columns with the predicted probability of each value of a count or score, such as"
        " p0,p1,p2, or their common prefix p",
    ),
]
ChanceOfZero = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        rich_help_panel=FORECASTS,
        help="column with the predicted probability that the outcome is 0; --mean and --std,"
        " --quantiles or --samples are then of outcomes above 0",
    ),
]
ForecastOutcome = Annotated[
    str | None,
    typer.Option(
        "--outcome",
        metavar="KIND",
        rich_help_panel=FORECASTS,
        help="count if --mean (with or without --std) or --samples are of counts; the other columns"
        " of forecasts show whether outcomes are continuous, counts, amounts with zeros or 0/1",
    ),
]
SortQuantiles = Annotated[
    bool,
    typer.Option(
        "--sort-quantiles",
        rich_help_panel=FORECASTS,
        help="sort quantiles that cross in a row, instead of refusing the table",
    ),
]
Link = Annotated[
    str,
    typer.Option(
        metavar="LINK",
        rich_help_panel=RANDOMIZATION,
        help="link family: entropic, laplace or gaussian",
    ),
]
Seed = Annotated[int | None, typer.Option(metavar="N", help="random seed, for a repeatable run")]
FixedSeed = Annotated[int, typer.Option(metavar="N", help="random seed")]
Event = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        rich_help_panel=TIMES,
        help="column with 1 where the event was observed and 0 where the time is cut off, so that"
        " --target is when the person was last seen without the event",
    ),
]
Horizon = Annotated[
    float | None,
    typer.Option(
        metavar="TIME",
        rich_help_panel=TIMES,
        help="time up to which outcomes are followed, in units of --target: the outcome is the time"
        " or the horizon, whichever is first",
    ),
]
Entered = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        rich_help_panel=TIMES,
        help="column with the date at which each person entered (--target is then in days), or a"
        " number in units of --target: certificates use the people who entered at least a horizon"
        " before the end of follow-up",
    ),
]
MaxGroupError = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        rich_help_panel=GUARANTEE,
        help="largest group error to certify, below 0.5; by default 0.25, except in fit",
    ),
]
MaxWider = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        rich_help_panel=GUARANTEE,
        help="instead of --max-group-error: certify as much as possible with 80% prediction"
        " intervals at most so much wider; 0.1 for 10%",
    ),
]
MaxPrice = Annotated[
    float | None,
    typer.Option(
        metavar="NATS",
        rich_help_panel=GUARANTEE,
        help="instead of --max-group-error: certify as much as possible for at most this loss of"
        " log score, in nats",
    ),
]
GroupMass = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        rich_help_panel=GUARANTEE,
        help="smallest certified group size, as a share of people; 0.2 by default",
    ),
]
Confidence = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        rich_help_panel=GUARANTEE,
        help="confidence of the certificate; 0.95 by default",
    ),
]
Features = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMNS",
        rich_help_panel=GROUPS,
        help="columns in which groups are searched, known before the outcome, comma-separated; by"
        " default the features of the model, or all other columns",
    ),
]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel=DRAWS,
        help="file with the secret key of the draws, at least 16 bytes",
    ),
]
Id = Annotated[
    str,
    typer.Option(
        "--id", metavar="COLUMN", rich_help_panel=ROWS, help="column with the id of each person"
    ),
]
Context = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        rich_help_panel=DRAWS,
        help="name of the decision; each context has its own draws, e.g. 2026-11",
    ),
]
Levels = Annotated[
    str,
    typer.Option(
        metavar="LEVELS",
        rich_help_panel=OUTPUT,
        help="levels of the quantiles to write, comma-separated",
    ),
]
Moments = Annotated[
    bool,
    typer.Option(
        "--moments",
        rich_help_panel=OUTPUT,
        help="also write served_mean and served_std, which is slow (see docs/costs.rst)",
    ),
]
Keep = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMNS",
        rich_help_panel=OUTPUT,
        help="columns of the table to write too, comma-separated, such as the outcome of an audit",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", rich_help_panel=OUTPUT, help="file to write: an .html page, or .json"
    ),
]
OutByTarget = Annotated[
    Path,
    typer.Option(
        metavar="PATH",
        rich_help_panel=OUTPUT,
        help="with --target: folder to write; otherwise a csv or parquet file, or a new folder if"
        " TABLE is a folder",
    ),
]
OutTable = Annotated[
    Path,
    typer.Option(
        metavar="FILE",
        rich_help_panel=OUTPUT,
        help="csv or parquet file to write, or a new folder if TABLE is a folder",
    ),
]

Workers = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        rich_help_panel=LARGE,
        help="number of local processes for a folder of parts",
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        rich_help_panel=LARGE,
        help="address of a Dask scheduler that runs the computation, such as tcp://10.0.0.1:8786",
    ),
]
SkipBadParts = Annotated[
    bool,
    typer.Option(
        "--skip-bad-parts",
        rich_help_panel=LARGE,
        help="skip parts that cannot be read, and list them",
    ),
]
Log = Annotated[
    str,
    typer.Argument(
        metavar="LOG",
        help="decision log: a .sqlite file, or a URL such as postgresql://USER@HOST/DATABASE",
    ),
]
LogContext = Annotated[
    str | None,
    typer.Option(
        "--context",
        metavar="NAME",
        rich_help_panel=LOG,
        help="context of the forecasts in the log",
    ),
]
AsJson = Annotated[
    bool,
    typer.Option("--json", rich_help_panel=OUTPUT, help="print JSON instead of text"),
]
Tables = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        rich_help_panel=OUTPUT,
        help="folder to write each table to, as a csv file",
    ),
]

# the same as in `RandomizedRegressor`, so that command and library train the same model
DEFAULT_ALPHA = 0.1
DEFAULT_LEVELS = "0.05,0.1,0.25,0.5,0.75,0.9,0.95"


def checked_link(name: str, alpha: float) -> AnyLink:
    """Return the link of the options --link and --alpha."""
    from evenhand.links import LINKS, make_link

    check_choice("--link", name, tuple(LINKS))
    return make_link(name, check_fraction("--alpha", alpha, high_open=False))


def seed_of(seed: int | None) -> int:
    """Return a checked seed, or a random one, so that every run can be repeated."""
    check_seed(seed)
    return secrets.randbelow(2**32) if seed is None else seed


def check_seed(seed: int | None) -> None:
    """Refuse a seed outside the range of NumPy's legacy generator, which scikit-learn uses."""
    if seed is not None and not 0 <= seed < 2**32:
        raise bad_input("--seed", f"lie between 0 and {2**32 - 1}", seed)
