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
    """Labels of the people of the rows: from --cluster, or else from --id, which must not repeat.

    None without.
    """
    from evenhand import tables
    from evenhand._ids import id_text

    column = id_column if cluster is None else cluster
    if column is None:
        return None
    labels = tables.id_column(data, column, source=source)
    if cluster is None:
        tables.refuse_repeated(labels, column, source=source)
    return [id_text(label) for label in labels]


def chosen_columns(
    option: str, listed: str | None, parts: dict[str, str], present: Sequence[str], source: str
) -> list[str]:
    """Columns that an option lists.

    All of them there, each once, and none that has another part in the audit.
    """
    names = [
        check_column(name, present, source) for name in dict.fromkeys(listed_names(option, listed))
    ]
    for name in names:
        if name in parts:
            is_target = parts[name] == "target"
            remedy = (
                "groups that outcomes define look wrong in any model"
                if is_target
                else "it only names people"
            )
            raise bad_input(option, f"leave out the --{parts[name]} column", repr(name), remedy)
    return names
