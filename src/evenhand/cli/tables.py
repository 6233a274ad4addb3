"""Table columns named by options, and the labels of people."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from evenhand._validate import InputError, check_column
from evenhand.cli.messages import inform
from evenhand.cli.options import listed_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    import typer

    from evenhand._validate import Floats
    from evenhand.audits import Note
    from evenhand.scale import ColumnSubject


def people_of(
    data: pd.DataFrame, id_column: str | None, cluster: str | None, target: str, source: str
) -> list[str] | None:
    """Return labels of people, from --cluster or else from --id, whose values must be unique."""
    from evenhand import tables
    from evenhand._ids import id_text

    column = id_column if cluster is None else cluster
    if column is None:
        return None
    # one row per person would be one row per outcome
    if column == target:
        raise InputError(
            f"{source}: column {column!r} is the target and does not identify people; name another"
            " column"
        )
    labels = tables.id_column(data, column, source=source)
    # bounds assume independent rows, but two rows of one person are dependent
    if cluster is None:
        tables.refuse_repeated(labels, column, source=source)
    # the text that draws are hashed from: 1 and "1" are the same person
    return [id_text(label) for label in labels]


def with_outcomes(
    data: pd.DataFrame, target: str, drop_missing: bool, source: str
) -> tuple[pd.DataFrame, Floats, str, list[Note]]:
    """Return rows and outcomes, the name of the rows in messages, and a note if some are left out.

    Messages then count the rows that are returned; their index has the numbers of the table.
    """
    from evenhand import audits, tables

    notes = []
    missing = tables.column_of(data, target, source).isna().to_numpy()
    if drop_missing and missing.any() and not missing.all():
        notes = [audits.Note(audits.NoteKind.NO_OUTCOME, numbers=(int(missing.sum()), len(data)))]
        inform(f"warning: {source}: {notes[0]}")
        data, source = data[~missing], f"{source} without rows that lack {target!r}"
    option = "" if drop_missing else "--drop-missing"
    y = tables.number_column(data, target, source=source, option=option)
    return data, y, source, notes


def chosen_columns(
    option: str, listed: str | None, parts: dict[str, str], present: Sequence[str], source: str
) -> list[str]:
    """Return the columns that an option lists, without duplicates.

    They must be present, and must not be among `parts`: columns with another role, by their role.
    """
    names = [
        check_column(name, present, source) for name in dict.fromkeys(listed_names(option, listed))
    ]
    for name in names:
        if name in parts:
            # in groups selected by outcome even the true distribution is miscalibrated
            reason = (
                "groups defined by the outcome are miscalibrated under any model"
                if parts[name] in ("target", "event")
                else "it only identifies people"
            )
            raise InputError(
                f"{option} contains {name!r}, the --{parts[name]} column: {reason}; leave it out"
            )
    return names


def column_subject(options: typer.Context) -> ColumnSubject:
    """Return the columns of another model's forecasts that options name; they may be none.

    Raises InputError if options contradict each other.
    """
    from evenhand import scale

    given = options.params
    # an option without effect is refused, because its user expects an effect
    if given["sort_quantiles"] and given["quantiles"] is None:
        raise InputError(
            "--sort-quantiles has no effect without --quantiles; leave it out, or name the columns"
        )
    names = [field.name for field in fields(scale.ColumnSubject)]
    return scale.ColumnSubject(**{name: given[name] for name in names})


def refuse_without_forecasts(
    subject: ColumnSubject, what: str, remedy: str = "name columns of the table"
) -> None:
    """Refuse a table without columns of forecasts.

    Parameters
    ----------
    subject : ColumnSubject
        The named columns.
    what : str
        Beginning of the message, such as "t.csv: no forecasts to audit".
    remedy : str, default "name columns of the table"
        Remedy, which the options for columns are appended to.
    """
    from evenhand.scale import FORMS

    if not subject.named:
        raise InputError(f"{what}; {remedy}: {FORMS}")
