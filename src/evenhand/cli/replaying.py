"""Subcommands `replay` and `outcomes` of a decision log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from evenhand._format import count
from evenhand._validate import about, counted_from
from evenhand.cli.checks import anchor_of, draws_of, refuse_without_effect
from evenhand.cli.options import with_options
from evenhand.cli.output import Decision, fail, inform, show_result
from evenhand.cli.rooms import monitoring, service, tables


@with_options
def replay(
    given: typer.Context,
    log: str,
    id: str,
    forecast: Path,
    key_file: Path | None = None,
    features: Path | None = None,
    id_column: str | None = None,
    person: str | None = None,
    context: str | None = None,
    anchor: str | None = None,
    as_json: bool = False,
) -> None:
    """Compute a logged forecast again, and report whether it is equal or what differs.

    First, the hash chain of the whole log is verified.

    Exit codes: 0 equal, 1 something differs, 2 bad input, or nothing differs but the forecast could
    not be computed again without its features. Other versions of libraries alone do not count.

    Arguments
    ---------
    id : ID
        id of the forecast

    Forecasts
    ---------
    forecast : FOLDER
        folder of fit, recalibrate or randomize

    Rows
    ----
    features : TABLE
        table with the row of the person, unless the log has the features
    id_column : COLUMN
        column of that table with ids; else found by hash

    What is compared
    ----------------
    person : ID
        id of the person, to compare the draw
    context : NAME
        context that the forecast should have
    anchor : NUMBER:SHA
        last entry of the log at an earlier time, as an earlier replay printed it; shows a log that
        was cut off or written anew

    Examples
    --------
    evenhand replay log.sqlite FORECAST_ID --forecast proven --key-file draws.key --features new.csv
        --id person
    """
    if features is None:
        refuse_without_effect(given, ("id_column",), "without --features")
    if key_file is None:
        refuse_without_effect(given, ("context",), "without --key-file")
    noted = anchor_of(anchor)
    made = service.loaded(forecast)
    decisions = service.open_log(log, create=False)
    entry = service.logged_forecast(decisions, id)
    draws = draws_of(key_file, entry.values["context"] if context is None else context)
    row = None
    who: str | int | None = person
    if features is not None:
        row, found_person = service.row_of(
            entry,
            tables.open_parts(features),
            made.forecaster,
            ids=id_column,
            mode=service.context_of(decisions, entry)["person"],
            draws=draws,
        )
        who = found_person if person is None else person
    found = service.replay_forecast(
        decisions, id, made, draws=draws, row=row, person=who, anchor=noted
    )
    show_result(found.to_dict(), found.summary(), as_json)
    if found.status == "incomplete":
        why = found.of("values").text
        fail(
            "nothing that was compared differs, but the forecast was not computed again:"
            f" {why} (--features TABLE)"
        )
    raise Decision(0 if found.is_equal else 1)


SCHEMA = "evenhand.outcomes/1"


@with_options
def outcomes(
    log: str,
    table: Path,
    id: str,
    target: str,
    context: str | None = None,
    key_file: Path | None = None,
    observed: str | None = None,
    skip_unknown: bool = False,
    as_json: bool = False,
) -> None:
    """Record outcomes of logged forecasts from a table.

    Ids of people, with --context, mean the first forecast of each person. All rows are checked
    before any outcome is recorded. An outcome that is in the log already is not recorded again;
    another value is a correction, and both remain in the log.

    Rows
    ----
    id : COLUMN
        column with ids of forecasts; with --context, of people
    observed : COLUMN
        column with the times at which outcomes were observed

    Decision log
    ------------
    context : NAME
        context of the forecasts in the log
    skip_unknown
        skip ids without a forecast, instead of refusing the table

    Examples
    --------
    evenhand outcomes log.sqlite paid.csv --id forecast_id --target loss
    """
    ids, y, times, places = _columns(tables.open_parts(table), id, target, observed)
    decisions = service.open_log(log, create=False)
    is_by_person = context is not None or key_file is not None
    found = service.record_outcomes(
        decisions,
        ids,
        y,
        context=(context or "") if is_by_person else None,
        draws=draws_of(key_file, context or ""),
        observed=times,
        skip_unknown=skip_unknown,
        places=places,
    )
    if found.unknown:
        skipped = places.listed(found.unknown)
        inform(f"warning: {skipped}: skipped, without a forecast in {decisions.source}")
    values = {
        "schema": SCHEMA,
        "n_first": found.n_first,
        "n_corrections": found.n_corrections,
        "n_repeated": found.n_repeated,
        "n_unknown": len(found.unknown),
    }
    new = count(found.n_first + found.n_corrections, "outcome")
    text = (
        f"{new} recorded, of which {count(found.n_corrections, 'correction')};"
        f" {found.n_repeated:,} in the log already; {count(len(found.unknown), 'row')} skipped"
    )
    show_result(values, text, as_json)


def _columns(
    parts: tables.Parts, id_column: str, target: str, observed: str | None
) -> tuple[list[Any], Any, list[Any] | None, service.RowPlaces]:
    """Return ids, outcomes and times of all rows, and where the rows are."""
    import numpy as np

    wanted = [*filter(None, dict.fromkeys((id_column, target, observed)))]
    ids: list[Any] = []
    y: list[Any] = []
    times: list[Any] = []
    starts = []
    for part, source in enumerate(parts.names):
        starts.append(len(ids))
        for start, block in parts.blocks(part, wanted):
            with counted_from(start):
                ids += tables.id_column(block, id_column, source=source)
                y.append(tables.number_column(block, target, source=source))
            if observed is not None:
                with about(source, start, observed=observed):
                    read = monitoring.as_times("observed", block[observed], allow_missing=True)
                times += read.tolist()
    places = service.RowPlaces(parts.names, tuple(starts))
    return ids, np.concatenate(y), None if observed is None else times, places
