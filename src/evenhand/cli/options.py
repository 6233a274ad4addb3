"""Options of the command, as docstrings describe them.

The sections of a docstring are the panels of a help page. A parameter has the placeholder of its
value for a type, and is shown by `--help-all` only if it is `rare`. Several commands have the
following parameters, whose panel and text a command may replace.

Arguments
---------
table : TABLE
    csv or parquet file, or a folder of parts
log : LOG
    decision log: a .sqlite file, or a URL such as postgresql://USER@HOST/DATABASE

Forecasts
---------
forecast : FORECAST
    a model folder, or columns: mean=mu,std=sigma quantiles=q samples=s probability=p pmf=p
    survival=s,event=died,horizon=180, also with chance_of_zero=z, outcome=count

Rows
----
target : COLUMN
    column with the outcome
largest_weight : NUMBER, rare
    largest weight of the design, for guarantees

Draws
-----
key_file : FILE
    file with the secret key, 16 bytes or more

Output
------
out : FOLDER
    model folder to write
tables : FOLDER, rare
    folder for the tables, as csv files
seed : N, rare
    random seed
as_json
    print JSON instead of text
"""

from __future__ import annotations

import functools
import inspect
import re
import typing
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, is_dataclass
from typing import Annotated, Any, Literal

import typer

from evenhand._format import option_name
from evenhand.cli.rooms import scale

# --- options from docstrings

if __doc__ is None:
    raise SystemExit("error: options are read from docstrings; run Python without -OO")

SECTION = re.compile(r"^(.+)\n-+$", re.MULTILINE)
ENTRY = re.compile(r"^(\w+)(?: : (.+))?$((?:\n    .*)*)", re.MULTILINE)
EXAMPLE = re.compile(r"^evenhand.*(?:\n    .*)*", re.MULTILINE)

ARGUMENTS = "Arguments"
"""Section of what is given by its place and not by its name."""

NAMES = {"as_json": "json", "n_groups": "groups", "id_column": "id"}
"""Options whose parameters have other names."""

RARE = "rare"
"""Mark of options that only `--help-all` shows."""

SEEDS = {"min": 0, "max": 2**32 - 1}
"""Range of NumPy's legacy generator, which scikit-learn uses."""


def _sections(docstring: str | None) -> tuple[str, dict[str, str]]:
    """Return what stands before the sections of a docstring, and the sections by title."""
    before, *parts = SECTION.split(inspect.cleandoc(docstring or ""))
    return before.strip(), dict(zip(parts[::2], parts[1::2], strict=True))


def _described(docstring: str | None) -> dict[str, Any]:
    """Return the options and arguments in a docstring; those without a text have the shared one."""
    found: dict[str, Any] = {}
    for panel, body in _sections(docstring)[1].items():
        for name, kind, lines in ENTRY.findall(body):
            words = {word for word in kind.split(", ") if word}
            shown: dict[str, Any] = {
                "help": " ".join(lines.split()) or SHARED[name].help,
                "metavar": next(iter(words - {RARE}), None),
            }
            if panel == ARGUMENTS:
                found[name] = typer.Argument(**shown)
                continue
            shown |= {"rich_help_panel": panel, "hidden": RARE in words}
            shown |= SEEDS if name == "seed" else {}
            found[name] = typer.Option(option_name(NAMES.get(name, name)), **shown)
    return found


SHARED = _described(__doc__)
"""Options and arguments of several commands."""


def help_text(docstring: str | None) -> str:
    """Return the help of a command without its options: paragraphs and examples of calls."""
    before, sections = _sections(docstring)
    blocks = [*before.split("\n\n"), "Examples:", *EXAMPLE.findall(sections["Examples"])]
    return "\n\n".join(" ".join(block.split()) for block in blocks)


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Let typer read a command: its parameters get the options that docstrings describe.

    A parameter whose type is a dataclass is replaced by the fields of the class.
    """
    hints = typing.get_type_hints(command)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters = list(_parameters(command))

    @functools.wraps(command)
    def call(**given: Any) -> None:
        for name, made in groups.items():
            names = inspect.signature(made).parameters
            given[name] = made(**{one: given.pop(one) for one in names})
        command(**given)

    # typer reads signature and annotations
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in parameters}
    return call


def _parameters(owner: Any, given: Any = None) -> Iterator[inspect.Parameter]:
    """Yield the parameters of a command, or of a dataclass, as typer reads them.

    The values of an object `given` take the place of the defaults of its class.
    """
    described, hints = SHARED | _described(owner.__doc__), typing.get_type_hints(owner)
    for name, parameter in inspect.signature(owner).parameters.items():
        hint = hints[name]
        if is_dataclass(hint):
            yield from _parameters(hint, parameter.default)
            continue
        shown = hint if hint is typer.Context else Annotated[hint, described[name]]
        default = getattr(given, name, parameter.default)
        kind = inspect.Parameter.KEYWORD_ONLY
        yield parameter.replace(kind=kind, annotation=shown, default=default)


# --- options that commands share, as one object


@dataclass(frozen=True)
class Rows:
    """Columns of rows with outcomes.

    Rows
    ----
    id : COLUMN
        column with the id of each person
    person : COLUMN
        ids of people with several rows: one is used, but models are trained on all
    weight : COLUMN
        column with sampling weights
    drop_missing
        leave out rows without an outcome
    """

    target: str
    id: str | None = None
    person: str | None = None
    weight: str | None = None
    drop_missing: bool = False


@dataclass(frozen=True)
class Times:
    """Columns of times until an event, which may be cut off (outcomes: 5).

    Times that may be cut off (censored)
    ------------------------------------
    event : COLUMN, rare
        1 if observed, 0 if the time is cut off
    horizon : TIME, rare
        time up to which people are followed
    entered : COLUMN, rare
        column with the date at which each person entered, or a number in units of --target:
        certificates use those who entered at least a horizon before the end
    """

    event: str | None = None
    horizon: float | None = None
    entered: str | None = None


@dataclass(frozen=True)
class GroupColumns:
    """Columns that define groups, and columns in which groups are searched.

    Groups
    ------
    groups : COLUMNS
        columns that define groups, such as sex,job
    group_probabilities : COLUMNS, rare
        columns with each row's probability of membership in a group
    features : COLUMNS
        columns to search; by default all others
    """

    groups: str | None = None
    group_probabilities: str | None = None
    features: str | None = None


@dataclass(frozen=True)
class Large:
    """How tables in parts are read.

    Large tables
    ------------
    workers : N|ADDRESS, rare
        for parts: number of local processes, or address of a Dask scheduler, such as
        tcp://10.0.0.1:8786
    skip_bad_parts : rare
        skip parts that cannot be read, and list them
    """

    workers: str | None = None
    skip_bad_parts: bool = False

    def client(self) -> AbstractContextManager[Any]:
        """Return a context with the client of Dask that --workers asks for, if any."""
        is_number = self.workers is not None and self.workers.isdecimal()
        return scale.dask_client(int(self.workers or 0) if is_number else self.workers)


@dataclass(frozen=True)
class Guarantee:
    """What a guarantee for every group shall reach, or may cost; one of the first three.

    Guarantee for every group
    -------------------------
    goal : SHARE
        largest error to prove, below 0.5; 0.25 by default
    max_wider : SHARE
        or: 80% intervals at most so much wider; 0.1 for 10%
    max_price : NATS
        or: largest loss of log score, in nats
    group_mass : SHARE
        smallest group, a share of people; 0.2 by default
    confidence : SHARE
        confidence of the guarantee; 0.95 by default
    link : LINK, rare
        entropic, laplace or gaussian
    """

    goal: float | None = None
    max_wider: float | None = None
    max_price: float | None = None
    group_mass: float | None = None
    confidence: float | None = None
    link: Literal["entropic", "laplace", "gaussian"] = "entropic"
