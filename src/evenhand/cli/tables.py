"""Columns of tables that options name, and the people of the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenhand._validate import bad_input, check_column
from evenhand.cli.options import listed_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd


def people_of(
    data: pd.DataFrame, id_column: str | None, cluster: str | None, source: str
) -> list[str] | None:
    """Return labels of people, from --cluster or else from --id, which must not repeat."""
    from evenhand import tables
    from evenhand._ids import id_text

    column = id_column if cluster is None else cluster
    if column is None:
        return None
    labels = tables.id_column(data, column, source=source)
    # bounds assume independent rows, and two rows of one person are not
    if cluster is None:
        tables.refuse_repeated(labels, column, source=source)
    # the same text that draws are hashed from: 1 and "1" are one person
    return [id_text(label) for label in labels]


def chosen_columns(
    option: str, listed: str | None, parts: dict[str, str], present: Sequence[str], source: str
) -> list[str]:
    """Return the columns that an option lists: present, each once, without those of `parts`."""
    names = [
        check_column(name, present, source) for name in dict.fromkeys(listed_names(option, listed))
    ]
    for name in names:
        if name in parts:
            # selecting by the outcome makes even the true distribution wrong
            defined = "groups that outcomes define look wrong in any model"
            remedy = defined if parts[name] == "target" else "it only names people"
            raise bad_input(option, f"leave out the --{parts[name]} column", repr(name), remedy)
    return names
