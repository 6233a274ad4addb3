"""Subcommand `replay`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand._validate import InputError
from evenhand.cli import arguments
from evenhand.cli.log_arguments import Log, anchor_of, draws_of, opened_log
from evenhand.cli.messages import Verdict, fail, show_result

COMPARED = "What is compared"
"""Panel of options in the help page."""


def replay(
    log: Log,
    id: Annotated[str, typer.Argument(metavar="ID", help="id of the forecast")],
    model: Annotated[
        Path,
        typer.Option(metavar="MODEL", rich_help_panel=COMPARED, help="folder of the fitted model"),
    ],
    key_file: arguments.KeyFile = None,
    features: Annotated[
        Path | None,
        typer.Option(
            metavar="TABLE",
            rich_help_panel=arguments.ROWS,
            help="table with the row of the person, unless the log has the features",
        ),
    ] = None,
    id_column: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            rich_help_panel=arguments.ROWS,
            help="column of that table with the ids of people; by default the row is found by the"
            " hash of the features",
        ),
    ] = None,
    person: Annotated[
        str | None,
        typer.Option(
            metavar="ID", rich_help_panel=COMPARED, help="id of the person, to compare the draw"
        ),
    ] = None,
    context: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel=COMPARED,
            help="context that the forecast should have; by default the one in the log",
        ),
    ] = None,
    anchor: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER:SHA",
            rich_help_panel=COMPARED,
            help="last entry of the log at an earlier time, as an earlier replay printed it; shows"
            " a log that was cut off or written anew",
        ),
    ] = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Compute a logged forecast again, and report whether it is equal or what differs.

    First, the hash chain of the whole log is verified.

    Exit codes: 0 equal, 1 something differs, 2 bad input, or nothing differs but the forecast could
    not be computed again without its features. Other versions of libraries alone do not count.
    """
    from evenhand import service

    if id_column is not None and features is None:
        raise InputError("--id has no effect without --features; leave it out, or name the table")
    if context is not None and key_file is None:
        raise InputError(
            "--context has no effect without --key-file; leave it out, or name the key file"
        )
    noted = anchor_of(anchor)
    made = service.loaded(model)
    decisions = opened_log(log)
    entry = service.logged_forecast(decisions, id)
    draws = draws_of(key_file, entry.values["context"] if context is None else context)
    given = _given(decisions, entry, made.forecaster, features, id_column, draws)
    if given is not None and person is None:
        person = given.person
    found = service.replay_forecast(
        decisions,
        id,
        made,
        draws=draws,
        row=None if given is None else given.values,
        person=person,
        anchor=noted,
    )
    show_result(found.to_dict(), found.summary(), as_json)
    if found.status == "incomplete":
        fail(_incomplete(found))
    raise Verdict(0 if found.is_equal else 1)


def _given(
    log: Any, entry: Any, model: Any, features: Path | None, id_column: str | None, draws: Any
) -> Any:
    """Return the row of a forecast in the table of features, if there is one."""
    from evenhand import service, tables

    if features is None:
        return None
    opened = service.context_of(log, entry)
    return service.row_of(
        entry,
        tables.open_parts(features),
        model,
        ids=id_column,
        mode=opened["person"],
        draws=draws,
    )


def _incomplete(found: Any) -> str:
    """Return why a forecast was not computed again, and what to do."""
    why = found.of("values").text
    return (
        f"nothing that was compared differs, but the forecast was not computed again: {why}"
        " (--features TABLE)"
    )
