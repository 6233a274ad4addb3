"""Subcommand `outcomes`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand._format import count
from evenhand.cli import arguments
from evenhand.cli.log_arguments import LOG, Log, LogContext, draws_of, opened_log
from evenhand.cli.messages import inform, show_result

if TYPE_CHECKING:
    from evenhand.service import Recorded, RowPlaces
    from evenhand.tables import Parts

SCHEMA = "evenhand.outcomes/1"


def outcomes(
    log: Log,
    table: arguments.Table,
    id_column: Annotated[
        str,
        typer.Option(
            "--id",
            metavar="COLUMN",
            rich_help_panel=arguments.ROWS,
            help="column with the ids of forecasts; with --context, the ids of people",
        ),
    ],
    target: arguments.Target,
    context: LogContext = None,
    key_file: arguments.KeyFile = None,
    observed: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            rich_help_panel=arguments.ROWS,
            help="column with the times at which outcomes were observed",
        ),
    ] = None,
    skip_unknown: Annotated[
        bool,
        typer.Option(
            "--skip-unknown",
            rich_help_panel=LOG,
            help="skip ids without a forecast in the log, instead of refusing the table",
        ),
    ] = False,
    as_json: arguments.AsJson = False,
) -> None:
    """Record outcomes of logged forecasts from a table.

    Ids of people, with --context, mean the first forecast of each person. All rows are checked
    before any outcome is recorded. An outcome that is in the log already is not recorded again;
    another value is a correction, and both remain in the log.
    """
    from evenhand import service, tables

    parts = tables.open_parts(table)
    ids, y, times, places = _columns(parts, id_column, target, observed)
    decisions = opened_log(log)
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
    show_result(_values(found), _text(found), as_json)


def _columns(
    parts: Parts, id_column: str, target: str, observed: str | None
) -> tuple[list[Any], Any, list[Any] | None, RowPlaces]:
    """Return ids, outcomes and times of all rows, and where the rows are."""
    import numpy as np

    from evenhand import service, tables
    from evenhand._validate import check_column

    wanted = [id_column, target, *([] if observed is None else [observed])]
    for name in wanted:
        check_column(name, parts.columns, parts.source)
    ids: list[Any] = []
    y: list[Any] = []
    times: list[Any] = []
    starts = []
    for part, source in enumerate(parts.names):
        starts.append(len(ids))
        for start, block in parts.blocks(part, list(dict.fromkeys(wanted))):
            ids += tables.id_column(block, id_column, source=source, start=start)
            y.append(tables.number_column(block, target, source=source, start=start))
            if observed is not None:
                times += block[observed].tolist()
    places = service.RowPlaces(parts.names, tuple(starts))
    return ids, np.concatenate(y), None if observed is None else times, places


def _values(found: Recorded) -> dict[str, Any]:
    """Return what was recorded as plain values."""
    return {
        "schema": SCHEMA,
        "n_first": found.n_first,
        "n_corrections": found.n_corrections,
        "n_repeated": found.n_repeated,
        "n_unknown": len(found.unknown),
    }


def _text(found: Recorded) -> str:
    """Return what was recorded as a sentence."""
    new = found.n_first + found.n_corrections
    return (
        f"{count(new, 'outcome')} recorded, of which {count(found.n_corrections, 'correction')};"
        f" {found.n_repeated:,} in the log already; {count(len(found.unknown), 'row')} skipped"
    )
