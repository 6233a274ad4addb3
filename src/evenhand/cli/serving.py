"""Writing of forecasts: `predict`, and what it shares with `randomize`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from evenhand._format import count
from evenhand._validate import InputError, bad_input, check_choice, short
from evenhand.cli import arguments
from evenhand.cli.options import (
    check_apart,
    listed_names,
    read_key,
    refuse_without_effect,
)
from evenhand.cli.output import inform, show

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from evenhand.forecast_columns import ForecastColumns
    from evenhand.scale import ModelSubject, Written
    from evenhand.service import Naming, Served, Service
    from evenhand.tables import Parts


# --- forecasts that `predict` adds to a decision log before it writes them

COLUMN = "forecast_id"
"""Column with the ids of forecasts, by which outcomes are recorded."""


class LoggedForecasts:
    """Recorder of forecasts in a decision log.

    Parameters
    ----------
    service : Service
        The service.
    where : str
        The log, for messages.
    """

    def __init__(self, service: Service, where: str) -> None:
        self._service = service
        self.where = where
        self.n_new = 0
        self.n_repeated = 0

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the model and of the groups."""
        return tuple(self._service.schema.names)

    def __call__(self, ids: Sequence[str | int], rows: pd.DataFrame) -> dict[str, Any]:
        """Log the forecasts of people; return the columns of what is logged."""
        served = self._service.forecast_many(ids, rows)
        n_repeated = sum(one.is_repeated for one in served)
        self.n_repeated += n_repeated
        self.n_new += len(served) - n_repeated
        return {**_values(served), COLUMN: [one.id for one in served]}

    def text(self) -> str:
        """Return what was logged as a clause."""
        before = f"; {self.n_repeated:,} were in it before" if self.n_repeated else ""
        return f"{count(self.n_new, 'forecast')} added to {self.where}{before}"

    def record(self) -> dict[str, Any]:
        """Return what was logged as plain values."""
        names = {"context": self._service.context, "model_sha256": self._service.model_sha256}
        return names | {"n_new": self.n_new, "n_repeated": self.n_repeated}


def _values(served: Sequence[Served]) -> dict[str, Any]:
    """Return the columns of logged answers; an earlier answer is not computed anew.

    A level that an earlier answer lacks is left as it was computed.
    """
    if served[0].probability is not None:
        return {"probability": np.array([one.probability for one in served])}
    found: dict[str, Any] = {"mean": np.array([one.mean for one in served], dtype=np.float64)}
    levels = set.intersection(*(set(one.quantiles) for one in served))
    for level in levels:
        column = np.array([one.quantiles[level] for one in served], dtype=np.float64)
        found[f"q{level}"] = column
    return found


def logged_forecasts(
    model: Path,
    where: str,
    key: bytes | None,
    context: str,
    groups: str | None,
    keep_features: bool,
    person: str,
    levels: Sequence[float],
) -> LoggedForecasts:
    """Open the log and the context for the forecasts of a model."""
    from evenhand.draws import KeyedDraws
    from evenhand.service import Service, open_log

    if key is None:
        raise InputError(
            "--log needs --key-file: the key belongs to the context, and names people in the log;"
            " name a file with a secret key of at least 16 bytes"
        )
    # without one, a job that forgets it once gives everybody a second draw (outcomes: 6)
    if not context:
        raise InputError(
            "--log needs --context: each context has its own draws; name the decision, such as"
            " 2026-11"
        )
    naming: Naming = "id" if person == "id" else "hash"
    service = Service(
        model,
        KeyedDraws(key, context),
        open_log(where),
        person=naming,
        keep_features=keep_features,
        groups=listed_names("--groups", groups),
        levels=levels,
    )
    return LoggedForecasts(service, where)


# --- writing of forecasts: `predict`, and what it shares with `randomize`

SCHEMA = "evenhand.forecasts/1"

WRITTEN = ("levels", "moments")
"""Parameters of `predict` for forecasts that are not probabilities of events."""

DRAWING = ("key_file", "context")
"""Parameters of `predict` for randomized forecasts."""

LOGGING = ("groups", "keep_features", "person")
"""Parameters of `predict` for a decision log."""


def predict(
    options: typer.Context,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="model folder written by fit")],
    table: arguments.Table,
    id_column: arguments.Id,
    out: arguments.OutTable,
    key_file: arguments.KeyFile = None,
    context: arguments.Context = "",
    levels: arguments.Levels = arguments.DEFAULT_LEVELS,
    moments: arguments.Moments = False,
    keep: arguments.Keep = None,
    log: Annotated[
        str | None,
        typer.Option(
            metavar="LOG",
            rich_help_panel=arguments.LOG,
            help="decision log to which forecasts are added before they are written: a .sqlite"
            " file, or a URL such as postgresql://USER@HOST/DATABASE",
        ),
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMNS",
            rich_help_panel=arguments.LOG,
            help="columns whose values are logged, for the groups of a watch, comma-separated",
        ),
    ] = None,
    keep_features: Annotated[
        bool,
        typer.Option(
            "--keep-features",
            rich_help_panel=arguments.LOG,
            help="log the features of each person, and not only their hash",
        ),
    ] = False,
    person: Annotated[
        str,
        typer.Option(
            metavar="NAMING",
            rich_help_panel=arguments.LOG,
            help="how the log names people: hash, a keyed hash of the id, or id",
        ),
    ] = "hash",
    as_json: arguments.AsJson = False,
    workers: arguments.Workers = None,
    scheduler: arguments.Scheduler = None,
    skip_bad_parts: arguments.SkipBadParts = False,
) -> None:
    """Write forecasts for the people in a table.

    With a randomized model, each person's draw is a keyed hash of the id, so repeated runs give the
    same forecasts; it and --log need --key-file. For a 0/1 target the probability is written.

    With --log, each forecast is in a decision log before it is written, and its id in the column
    forecast_id. A person who is in the log with the same features gets the logged answer.
    """
    from evenhand import scale, store, tables
    from evenhand.distributions import OutcomeKind

    check_apart(out, {"the model": model, "the table": table, "the key file": key_file})
    # checked before the table is read
    asked = serving_options(id_column, key_file, context, levels, moments, skip_bad_parts)
    asked["keep"] = listed_names("--keep", keep)
    if log is None:
        refuse_without_effect(options, LOGGING, "without --log")
    else:
        check_choice("--person", person, ("hash", "id"))
        reason = "with --log, to which forecasts are added in the order of the table"
        refuse_without_effect(options, ("workers", "scheduler"), reason)
    subject = scale.as_subject(store.load(model))
    parts = tables.open_parts(table, skip_bad=skip_bad_parts)
    # missing columns are named before the kind of forecast is read off the first row
    subject.columns(parts.columns, parts.source)
    first = scale.first_forecast(subject, parts)
    if first is not None and first.is_randomized and key_file is None:
        why = f"the forecasts of {model} depend on draws"
        raise InputError(
            f"--key-file is missing: {why}; name a file with a secret key of at least 16 bytes"
        )
    if first is not None and not first.is_randomized:
        # the key and the context of a log name people, also without draws
        unused = DRAWING if log is None else ()
        refuse_without_effect(options, unused, f"with {model}, whose forecasts are not randomized")
        if first.outcome_kind is OutcomeKind.BINARY:
            refuse_without_effect(options, WRITTEN, f"with {model}, which predicts probabilities")
    if log is not None:
        asked["recorder"] = logged_forecasts(
            model, log, asked["key"], context, groups, keep_features, person, asked["levels"]
        )
    if first is not None and not first.is_randomized:
        asked["key"] = None
    serve(subject, parts, out, asked, workers, scheduler, "forecast", as_json)


def serving_options(
    id_column: str, key_file: Path | None, context: str, levels: str, moments: bool, skip_bad: bool
) -> dict[str, Any]:
    """Return the checked options shared by `predict` and `randomize`."""
    # the context is written in each row, and draws are hashed from it
    if not context.isprintable():
        raise bad_input("--context", "be printable text", ascii(context))
    return {
        "id_column": id_column,
        "key": None if key_file is None else read_key(key_file),
        "context": context,
        "levels": parse_levels(levels),
        "moments": moments,
        "skip_bad": skip_bad,
        "verbose": True,
    }


def parse_levels(listed: str) -> list[float]:
    """Return the levels of an option: increasing fractions."""
    names = listed_names("--levels", listed)
    try:
        levels = [float(level) for level in names]
    except ValueError as error:
        raise bad_input("--levels", "be comma-separated numbers", short(listed)) from error
    # increasing, because columns are written in this order
    if not all(0 < level < 1 for level in levels) or sorted(set(levels)) != levels:
        remedy = "give a fraction: 0.9, not 90"
        rule = "be increasing and strictly between 0 and 1"
        raise bad_input("--levels", rule, short(listed), remedy)
    return levels


def serve(
    subject: ModelSubject | ForecastColumns,
    table: Path | Parts,
    out: Path,
    asked: dict[str, Any],
    workers: int | None,
    scheduler: str | None,
    noun: str,
    as_json: bool,
) -> None:
    """Write the forecasts of a table; print a summary and warn of repeated ids."""
    from evenhand import scale

    with scale.dask_client(scheduler, workers) as client:
        done = scale.forecast_parts(subject, table, out, client=client, **asked)
    # repeated ids are allowed: several rows of one person share the person's draw
    if done.repeated is not None and done.key is not None:
        shared = done.repeated
        others = f"; {shared.n_labels:,} ids are repeated in total" if shared.n_labels > 1 else ""
        inform(
            f"warning: {shared.n_rows:,} rows have the id {shared.label!r} and share one draw; the"
            f" first is in {shared.where}{others}"
        )
    for line in done.unseen.lines():
        inform(f"warning: {line}")
    for why in done.skipped.values():
        inform(f"warning: part skipped: {why}")
    # the fingerprint identifies the key of these draws without revealing it
    key = "" if done.key is None else f"; fingerprint of the key: {done.key}"
    inform(f"{count(done.n_rows, noun)} written to {out}{key}")
    recorder = asked.get("recorder")
    if recorder is not None:
        inform(recorder.text())
    if as_json:
        log = {} if recorder is None else {"log": recorder.record()}
        show(json.dumps(_written(done, out) | log, indent=2))


def _written(done: Written, out: Path) -> dict[str, Any]:
    """Return what was written as plain values."""
    shared = done.repeated
    return {
        "schema": SCHEMA,
        "out": str(out),
        "n_rows": done.n_rows,
        "key": done.key,
        "repeated_ids": 0 if shared is None else shared.n_labels,
        "unseen": done.unseen.records(),
        "skipped": [str(why) for why in done.skipped.values()],
    }
