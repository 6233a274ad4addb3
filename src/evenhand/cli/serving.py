"""Commands that forecast: `predict` and `randomize`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
    from evenhand.scale import Written


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
    asked = serving_options(id_column, key_file, context, levels, moments, skip_bad_parts)
    subject = scale.ModelSubject(store.load(model))
    with scale.dask_client(scheduler, workers) as client:
        done = scale.forecast_parts(subject, table, out, client=client, **asked)
    say_written(done, "forecasts", out)


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
    asked = serving_options(id_column, key_file, context, levels, moments, skip_bad_parts) | {
        "link": make_link(link, alpha)
    }
    with scale.dask_client(scheduler, workers) as client:
        done = scale.forecast_parts(
            scale.ColumnSubject(mean, std), table, out, client=client, **asked
        )
    say_written(done, "randomized forecasts", out)


def serving_options(
    id_column: str, key_file: Path, context: str, levels: str, moments: bool, skip_bad: bool
) -> dict[str, Any]:
    """Return the options that `predict` and `randomize` have in common, checked."""
    if not context.isprintable():
        raise bad_input("--context", "be printable text", ascii(context))
    asked = {
        "id_column": id_column,
        "key": read_key(key_file),
        "context": context,
        "levels": parse_levels(levels),
    }
    return asked | {"moments": moments, "skip_bad": skip_bad, "verbose": True}


def parse_levels(listed: str) -> list[float]:
    """Return the probabilities that an option lists."""
    names = listed_names("--levels", listed)
    try:
        levels = [float(level) for level in names]
    except ValueError as error:
        raise bad_input("--levels", "be numbers with commas between", repr(listed)) from error
    if not all(0 < level < 1 for level in levels) or sorted(set(levels)) != levels:
        remedy = "fractions everywhere: 0.9, not 90"
        raise bad_input(
            "--levels", "increase and lie strictly between 0 and 1", repr(listed), remedy
        )
    return levels


def say_written(done: Written, what: str, out: Path) -> None:
    """Print what was written, and warn of ids that come more than once: their rows share a draw."""
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
    written = (
        f"1 {what.removesuffix('s')} is" if done.n_rows == 1 else f"{done.n_rows:,} {what} are"
    )
    say(f"{written} in {out}; the fingerprint of the key is {done.key}")
