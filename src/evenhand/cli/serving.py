"""Subcommand `predict`: writing of forecasts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import typer

from evenhand._format import count
from evenhand._kinds import OutcomeKind
from evenhand._validate import InputError, bad_input, check_levels, short
from evenhand.cli.checks import check_apart, listed_names, read_key, refuse_without_effect
from evenhand.cli.options import Large, with_options
from evenhand.cli.output import inform, show_result
from evenhand.cli.rooms import draws, forecast_columns, scale, service, store, tables

if TYPE_CHECKING:
    import pandas as pd


# --- forecasts that `predict` adds to a decision log before it writes them

COLUMN = "forecast_id"
"""Column with the ids of forecasts, by which outcomes are recorded."""


@dataclass
class LoggedForecasts:
    """Recorder of forecasts in a decision log, which counts new ones and those logged before."""

    server: service.Service
    where: str
    n_new: int = 0
    n_repeated: int = 0

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the model and of the groups."""
        return self.server.schema.names

    def __call__(self, ids: Sequence[str | int], rows: pd.DataFrame) -> dict[str, Any]:
        """Log the forecasts of people; return the columns of what is logged."""
        served = self.server.forecast_many(ids, rows)
        n_repeated = sum(one.is_repeated for one in served)
        self.n_repeated += n_repeated
        self.n_new += len(served) - n_repeated
        return {**_values(served), COLUMN: [one.id for one in served]}

    def record(self) -> dict[str, Any]:
        """Return what was logged as plain values."""
        names = {"context": self.server.context, "model_sha256": self.server.model_sha256}
        return names | {"n_new": self.n_new, "n_repeated": self.n_repeated}


def _values(served: Sequence[service.Served]) -> dict[str, Any]:
    """Return the columns of logged answers; an earlier answer is not computed anew.

    A level that an earlier answer lacks is left as it was computed.
    """
    if served[0].probability is not None:
        return {"probability": np.array([one.probability for one in served])}
    levels = set.intersection(*(set(one.quantiles) for one in served))
    columns = {"mean": [one.mean for one in served]}
    columns |= {f"q{level}": [one.quantiles[level] for one in served] for level in levels}
    return {name: np.array(values, dtype=float) for name, values in columns.items()}


@dataclass(frozen=True)
class Logging:
    """Decision log to which forecasts are added.

    Decision log
    ------------
    log : LOG
        log to which forecasts are added first: .sqlite file or URL
    groups : COLUMNS
        columns that are logged, for the groups of a watch
    keep_features
        log the features too, and not only their hash
    person : NAMING, rare
        how the log names people: hash (keyed), or id
    """

    log: str | None = None
    groups: str | None = None
    keep_features: bool = False
    person: Literal["hash", "id"] = "hash"

    def recorder(
        self, model: Path, key: bytes | None, context: str, levels: Sequence[float]
    ) -> LoggedForecasts | None:
        """Open the log and the context for the forecasts of a model; None without a log."""
        if self.log is None:
            return None
        if key is None:
            raise InputError(
                "--log needs --key-file: the key belongs to the context, and names people in the"
                " log; name a file with a secret key of at least 16 bytes"
            )
        # without one, a job that forgets it once gives everybody a second draw (outcomes: 6)
        if not context:
            raise InputError(
                "--log needs --context: each context has its own draws; name the decision, such as"
                " 2026-11"
            )
        made = service.Service(
            model,
            draws.KeyedDraws(key, context),
            service.open_log(self.log),
            person=self.person,
            keep_features=self.keep_features,
            groups=listed_names("--groups", self.groups),
            levels=levels,
        )
        return LoggedForecasts(made, self.log)


# --- subcommand `predict`

SCHEMA = "evenhand.forecasts/1"

DEFAULT_LEVELS = "0.05,0.1,0.25,0.5,0.75,0.9,0.95"


@with_options
def predict(
    given: typer.Context,
    table: Path,
    forecast: Path,
    out: Path,
    large: Large,
    id: str | None = None,
    key_file: Path | None = None,
    context: str = "",
    levels: str = DEFAULT_LEVELS,
    moments: bool = False,
    keep: str | None = None,
    *,
    logging: Logging,
    as_json: bool = False,
) -> None:
    """Write the forecasts of a model for the people in a table.

    They are written as audit reads them. With a randomized model, each person's draw is a keyed
    hash of the id, so repeated runs give the same forecasts; it and --log need --id and --key-file.

    With --log, each forecast is in a decision log before it is written, and its id in the column
    forecast_id. A person who is in the log with the same features gets the logged answer.

    Forecasts
    ---------
    forecast : FOLDER
        folder of fit, recalibrate or randomize

    Output
    ------
    out : FILE
        csv or parquet file, or a new folder if TABLE is a folder
    levels : LEVELS
        levels of the quantiles to write
    moments : rare
        also write served_mean and served_std, which is slow (see docs/costs.rst)
    keep : COLUMNS
        columns to write too, such as the outcome

    Rows
    ----
    id : COLUMN
        column with the id of each person, for draws

    Draws
    -----
    context : NAME
        name of the decision: each has its own draws, e.g. 2026-11

    Examples
    --------
    evenhand predict new.csv --forecast repaired --id person --out forecasts.csv
    evenhand predict new.csv --forecast proven --id person --key-file draws.key --context 2026-11
        --log log.sqlite --out served.csv
    """
    check_apart(out, {"the model": forecast, "the table": table, "the key file": key_file})
    # checked before the table is read; the context is in each row, and draws are hashed from it
    if not context.isprintable():
        raise bad_input("context", "be printable text", ascii(context))
    key = None if key_file is None else read_key(key_file)
    wanted, kept = parse_levels(levels), listed_names("--keep", keep)
    if logging.log is None:
        refuse_without_effect(given, [one.name for one in fields(logging)], "without --log")
    else:
        reason = "with --log, to which forecasts are added in the order of the table"
        refuse_without_effect(given, ("workers",), reason)
    subject = scale.as_subject(store.load(forecast))
    parts = tables.open_parts(table, skip_bad=large.skip_bad_parts)
    # missing columns are named before the kind of forecast is read off the first row
    subject.columns(parts.columns, parts.source)
    first = scale.first_forecast(subject, parts)
    is_drawn = first is not None and first.is_randomized
    if is_drawn and key_file is None:
        raise InputError(
            f"--key-file is missing: {forecast} is randomized, and each person's draw comes from a"
            " key; name a file with a secret key of at least 16 bytes"
        )
    if id is None and (is_drawn or logging.log is not None):
        raise InputError(
            "--id is missing: draws and logs need the column with the id of each person; name it"
        )
    if first is not None and not is_drawn:
        # the key and the context of a log name people, also without draws
        unused = ("key_file", "context") if logging.log is None else ()
        reason = f"with {forecast}, whose forecasts are not randomized"
        refuse_without_effect(given, unused, reason)
        if first.outcome_kind is OutcomeKind.BINARY:
            reason = f"with {forecast}, which predicts probabilities"
            refuse_without_effect(given, ("levels", "moments"), reason)
    recorder = logging.recorder(forecast, key, context, wanted)
    with large.client() as client:
        done = scale.forecast_parts(
            subject,
            parts,
            out,
            id_column=id,
            key=None if first is not None and not is_drawn else key,
            context=context,
            levels=wanted,
            moments=moments,
            keep=kept,
            client=client,
            skip_bad=large.skip_bad_parts,
            verbose=True,
            recorder=recorder,
            first=first,
        )
    _inform(done, out, recorder, subject.inner)
    if id is None and not kept:
        inform("they are in the order of the table: copy columns that name the rows with --keep")
    if as_json:
        logged = {} if recorder is None else {"log": recorder.record()}
        show_result(_written(done, out) | logged, "", as_json)


def parse_levels(listed: str) -> tuple[float, ...]:
    """Return the levels of an option."""
    names = listed_names("--levels", listed)
    try:
        levels = [float(level) for level in names]
    except ValueError as error:
        raise bad_input("levels", "be comma-separated numbers", short(listed)) from error
    return check_levels(levels)


def _inform(
    done: scale.Written,
    out: Path,
    recorder: LoggedForecasts | None,
    columns: forecast_columns.ForecastColumns | None,
) -> None:
    """Print a summary of what was written, and warn of repeated ids.

    `columns` are the forecasts that the model changes, which name the event of times.
    """
    # repeated ids are allowed: several rows of one person share the person's draw
    if done.repeated is not None and done.key is not None:
        shared = done.repeated
        others = f"; {shared.n_labels:,} ids are repeated in total" if shared.n_labels > 1 else ""
        inform(
            f"warning: {shared.n_rows:,} rows have the id {shared.label!r} and share one draw; the"
            f" first are {shared.first} and {shared.again}{others}"
        )
    for line in done.unseen.lines():
        inform(f"warning: {line}")
    for why in done.skipped.values():
        inform(f"warning: part skipped: {why}")
    # the fingerprint identifies the key of these draws without revealing it
    key = "" if done.key is None else f"; fingerprint of the key: {done.key}"
    inform(f"{count(done.n_rows, 'forecast')} written to {out}{key}")
    if recorder is not None:
        before = f"; {recorder.n_repeated:,} were in it before" if recorder.n_repeated else ""
        inform(f"{count(recorder.n_new, 'forecast')} added to {recorder.where}{before}")
    if done.forecast is not None:
        times = ""
        if columns is not None and columns.event is not None:
            times = f",event={columns.event}"
            if columns.horizon is not None:
                times += f",horizon={columns.horizon:.15g}"
        inform(f"an audit reads them by --forecast {done.forecast}{times}")


def _written(done: scale.Written, out: Path) -> dict[str, Any]:
    """Return what was written as plain values."""
    shared = done.repeated
    return {
        "schema": SCHEMA,
        "out": str(out),
        "n_rows": done.n_rows,
        "key": done.key,
        "repeated_ids": 0 if shared is None else shared.n_labels,
        "unseen": done.unseen.records(),
        "skipped": list(done.skipped.values()),
    }
