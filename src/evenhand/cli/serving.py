"""Commands that forecast: `predict` and `randomize`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand._format import count
from evenhand._validate import bad_input
from evenhand.cli.arguments import (
    DEFAULT_ALPHA,
    DEFAULT_LEVELS,
    Alpha,
    Context,
    Id,
    Key,
    Levels,
    Link,
    Moments,
    OutTable,
    Scheduler,
    SkipBadParts,
    Table,
    Workers,
)
from evenhand.cli.keys import read_key
from evenhand.cli.messages import say
from evenhand.cli.options import check_apart, listed_names

if TYPE_CHECKING:
    from evenhand.scale import ColumnSubject, ModelSubject


def predict(
    model: Annotated[Path, typer.Argument(help="model folder")],
    table: Table,
    id_column: Id,
    key_file: Key,
    out: OutTable,
    context: Context = "",
    levels: Levels = DEFAULT_LEVELS,
    moments: Moments = False,
    workers: Workers = None,
    scheduler: Scheduler = None,
    skip_bad_parts: SkipBadParts = False,
) -> None:
    """Forecast each person of a table.

    A person's draw is a keyed hash of the id, the same every time.
    """
    from evenhand import scale, store

    check_apart(out, {"the model": model, "the table": table, "the key file": key_file})
    asked = _serving_options(id_column, key_file, context, levels, moments, skip_bad_parts)
    subject = scale.ModelSubject(store.load(model))
    _serve(subject, table, out, asked, workers, scheduler, "forecast")


def randomize(
    table: Table,
    mean: Annotated[str, typer.Option(help="column with the means")],
    std: Annotated[str, typer.Option(help="column with the standard deviations")],
    id_column: Id,
    key_file: Key,
    out: OutTable,
    alpha: Alpha = DEFAULT_ALPHA,
    link: Link = "entropic",
    context: Context = "",
    levels: Levels = DEFAULT_LEVELS,
    moments: Moments = False,
    workers: Workers = None,
    scheduler: Scheduler = None,
    skip_bad_parts: SkipBadParts = False,
) -> None:
    """Randomize the forecasts of another model, given as columns of a table."""
    from evenhand import scale
    from evenhand.links import make_link

    check_apart(out, {"the table": table, "the key file": key_file})
    asked = _serving_options(id_column, key_file, context, levels, moments, skip_bad_parts)
    asked["link"] = make_link(link, alpha)
    subject = scale.ColumnSubject(mean, std)
    _serve(subject, table, out, asked, workers, scheduler, "randomized forecast")


def _serving_options(
    id_column: str, key_file: Path, context: str, levels: str, moments: bool, skip_bad: bool
) -> dict[str, Any]:
    """Return the options that `predict` and `randomize` have in common, checked."""
    # the context stands in each row of the result, and is part of what draws are hashed from
    if not context.isprintable():
        raise bad_input("--context", "be printable text", ascii(context))
    return {
        "id_column": id_column,
        "key": read_key(key_file),
        "context": context,
        "levels": _parse_levels(levels),
        "moments": moments,
        "skip_bad": skip_bad,
        "verbose": True,
    }


def _parse_levels(listed: str) -> list[float]:
    names = listed_names("--levels", listed)
    try:
        levels = [float(level) for level in names]
    except ValueError as error:
        raise bad_input("--levels", "be numbers with commas between", repr(listed)) from error
    # in rising order, so that the columns of the result are
    if not all(0 < level < 1 for level in levels) or sorted(set(levels)) != levels:
        remedy = "give a fraction: 0.9, not 90"
        raise bad_input(
            "--levels", "increase and lie strictly between 0 and 1", repr(listed), remedy
        )
    return levels


def _serve(
    subject: ModelSubject | ColumnSubject,
    table: Path,
    out: Path,
    asked: dict[str, Any],
    workers: int | None,
    scheduler: str | None,
    noun: str,
) -> None:
    """Write the forecasts of a table, and print what was written and which ids share a draw."""
    from evenhand import scale

    with scale.dask_client(scheduler, workers) as client:
        done = scale.forecast_parts(subject, table, out, client=client, **asked)
    # a repeated id is no error here: one person may have several rows, and then one draw
    if done.repeated is not None:
        shared = done.repeated
        others = f"; repeated ids in all: {shared.n_labels:,}" if shared.n_labels > 1 else ""
        say(
            f"warning: {shared.n_rows:,} rows share the id {shared.label!r} and so one draw, the"
            f" first in {shared.where}{others}"
        )
    for line in done.unseen.lines():
        say(f"warning: {line}")
    for why in done.skipped.values():
        say(f"warning: part left out: {why}")
    verb = "is" if done.n_rows == 1 else "are"
    # the fingerprint shows later which key made these draws, without showing the key
    say(f"{count(done.n_rows, noun)} {verb} in {out}; the fingerprint of the key is {done.key}")
