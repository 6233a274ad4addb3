"""Options of the command: fields of dataclasses, which several commands share."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from evenhand.cli.rooms import scale

FORECAST = "Forecasts"
ROWS = "Rows"
TIMES = "Times that may be cut off (censored)"
GROUPS = "Groups"
GATE = "Decision"
MODEL = "Model"
GUARANTEE = "Guarantee for every group"
DRAWS = "Draws"
LOG = "Decision log"
OUTPUT = "Output"
LARGE = "Large tables"
"""Panels of options in help pages."""


def option(
    text: str, panel: str, metavar: str, *, name: str = "", rare: bool = False, **more: Any
) -> Any:
    """Return an option; a rare one is shown by `--help-all` only."""
    names = [name] if name else []
    more |= {"help": text, "rich_help_panel": panel, "metavar": metavar, "hidden": rare}
    return typer.Option(*names, **more)


def flag(name: str, text: str, panel: str, *, rare: bool = False) -> Any:
    """Return an option without a value."""
    return typer.Option(name, help=text, rich_help_panel=panel, hidden=rare)


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each parameter of a command whose type is a dataclass by the fields of the class."""
    signature = inspect.signature(command)
    hints = typing.get_type_hints(command, include_extras=True)
    parameters = []
    groups: dict[str, tuple[Any, list[str]]] = {}
    for name, parameter in signature.parameters.items():
        hint = hints[name]
        if not isinstance(hint, type) or not hasattr(hint, "__dataclass_fields__"):
            parameters.append(parameter.replace(annotation=hint, kind=parameter.KEYWORD_ONLY))
            continue
        types = typing.get_type_hints(hint, include_extras=True)
        groups[name] = hint, [field.name for field in fields(hint)]
        for field in fields(hint):
            default = inspect.Parameter.empty if field.default is MISSING else field.default
            kind = inspect.Parameter.KEYWORD_ONLY
            parameters.append(
                inspect.Parameter(field.name, kind, default=default, annotation=types[field.name])
            )

    @functools.wraps(command)
    def call(**given: Any) -> None:
        for name, (made, names) in groups.items():
            given[name] = made(**{one: given.pop(one) for one in names})
        command(**given)

    # typer reads signature and annotations
    call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in parameters}
    return call


# --- options that commands share

Table = Annotated[
    Path,
    typer.Argument(metavar="TABLE", help="csv or parquet file, or a folder of parts"),
]
FORECAST_HELP = (
    "a model folder, or columns: mean=mu,std=sigma quantiles=q samples=s probability=p pmf=p"
    " survival=s,event=died,horizon=180, also with chance_of_zero=z, outcome=count"
)
Forecast = Annotated[str, option(FORECAST_HELP, FORECAST, "FORECAST")]
Model = Annotated[Path, option("folder of fit, recalibrate or randomize", FORECAST, "FOLDER")]
LargestWeight = Annotated[
    float | None,
    option("largest weight of the design, for guarantees", ROWS, "NUMBER", rare=True),
]
SEEDS: dict[str, Any] = {"min": 0, "max": 2**32 - 1}
"""Range of NumPy's legacy generator, which scikit-learn uses."""

Seed = Annotated[int | None, option("seed, to repeat a run", MODEL, "N", **SEEDS)]
FixedSeed = Annotated[int, option("random seed", OUTPUT, "N", rare=True, **SEEDS)]
KeyFile = Annotated[
    Path | None, option("file with the secret key, 16 bytes or more", DRAWS, "FILE")
]
AsJson = Annotated[bool, flag("--json", "print JSON instead of text", OUTPUT)]
Out = Annotated[Path | None, option("file to write: an .html page, or .json", OUTPUT, "FILE")]
AuditOut = Annotated[
    Path | None, option("file to write: an .html page, .md, or .json", OUTPUT, "FILE")
]
Folder = Annotated[Path, option("model folder to write", OUTPUT, "FOLDER")]
Tables = Annotated[
    Path | None, option("folder for the tables, as csv files", OUTPUT, "FOLDER", rare=True)
]
Log = Annotated[
    str,
    typer.Argument(
        metavar="LOG",
        help="decision log: a .sqlite file, or a URL such as postgresql://USER@HOST/DATABASE",
    ),
]


@dataclass(frozen=True)
class Rows:
    """Columns of rows with outcomes."""

    target: Annotated[str, option("column with the outcome", ROWS, "COLUMN")]
    id: Annotated[str | None, option("column with the id of each person", ROWS, "COLUMN")] = None
    person: Annotated[
        str | None,
        option("ids of people with several rows: one is used", ROWS, "COLUMN"),
    ] = None
    weight: Annotated[str | None, option("column with sampling weights", ROWS, "COLUMN")] = None
    drop_missing: Annotated[
        bool, flag("--drop-missing", "leave out rows without an outcome", ROWS)
    ] = False


@dataclass(frozen=True)
class Times:
    """Columns of times until an event, which may be cut off (outcomes: 5)."""

    event: Annotated[
        str | None,
        option("1 if observed, 0 if the time is cut off", TIMES, "COLUMN", rare=True),
    ] = None
    horizon: Annotated[
        float | None,
        option("time up to which people are followed", TIMES, "TIME", rare=True),
    ] = None
    entered: Annotated[
        str | None,
        option(
            "column with the date at which each person entered, or a number in units of --target:"
            " certificates use those who entered at least a horizon before the end",
            TIMES,
            "COLUMN",
            rare=True,
        ),
    ] = None


@dataclass(frozen=True)
class GroupColumns:
    """Columns that define groups, and columns in which groups are searched."""

    groups: Annotated[
        str | None, option("columns that define groups, such as sex,job", GROUPS, "COLUMNS")
    ] = None
    group_probabilities: Annotated[
        str | None,
        option(
            "columns with each row's probability of membership in a group",
            GROUPS,
            "COLUMNS",
            rare=True,
        ),
    ] = None
    features: Annotated[
        str | None, option("columns to search; by default all others", GROUPS, "COLUMNS")
    ] = None


@dataclass(frozen=True)
class Large:
    """How tables in parts are read."""

    workers: Annotated[
        str | None,
        option(
            "for parts: number of local processes, or address of a Dask scheduler, such as"
            " tcp://10.0.0.1:8786",
            LARGE,
            "N|ADDRESS",
            rare=True,
        ),
    ] = None
    skip_bad_parts: Annotated[
        bool,
        flag("--skip-bad-parts", "skip parts that cannot be read, and list them", LARGE, rare=True),
    ] = False

    def client(self) -> AbstractContextManager[Any]:
        """Return a context with the client of Dask that --workers asks for, if any."""
        is_number = self.workers is not None and self.workers.isdecimal()
        return scale.dask_client(int(self.workers or 0) if is_number else self.workers)


@dataclass(frozen=True)
class Guarantee:
    """What a guarantee for every group shall reach, or may cost; one of the first three."""

    goal: Annotated[
        float | None,
        option("largest error to prove, below 0.5; 0.25 by default", GUARANTEE, "SHARE"),
    ] = None
    max_wider: Annotated[
        float | None,
        option("or: 80% intervals at most so much wider; 0.1 for 10%", GUARANTEE, "SHARE"),
    ] = None
    max_price: Annotated[
        float | None, option("or: largest loss of log score, in nats", GUARANTEE, "NATS")
    ] = None
    group_mass: Annotated[
        float | None,
        option("smallest group, a share of people; 0.2 by default", GUARANTEE, "SHARE"),
    ] = None
    confidence: Annotated[
        float | None, option("confidence of the guarantee; 0.95 by default", GUARANTEE, "SHARE")
    ] = None
    link: Annotated[
        Literal["entropic", "laplace", "gaussian"],
        option("entropic, laplace or gaussian", GUARANTEE, "LINK", rare=True),
    ] = "entropic"
