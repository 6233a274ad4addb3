"""Row numbers and ids of the people that an audit lists: examples and members of groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand._ids import id_text
from evenhand._validate import Ints, bad_input
from evenhand.audits.off_groups import with_members

if TYPE_CHECKING:
    from evenhand.audits.result import Audit

LISTED = ("examples", "learned_rows")
"""Tables of an audit with the columns `row` and `id`."""


def check_people(ids: Any, n: int) -> list[str] | None:
    """Return ids of people as texts; None if none are given.

    Examples
    --------
    >>> check_people([17, "ada"], 2)
    ['17', 'ada']
    """
    if ids is None:
        return None
    found = list(ids)
    if len(found) != n:
        remedy = "pass the ids of all rows, in their order"
        raise bad_input("ids", f"have one id per row ({n})", len(found), remedy)
    return [id_text(one) for one in found]


def with_people(found: Audit, ids: Sequence[object]) -> Audit:
    """Add ids to examples and members of groups; `ids` are those of all rows of the table."""
    listed: dict[str, Any] = {
        key: table.assign(id=[str(ids[row]) for row in table["row"]])
        for key, table in _tables(found).items()
    }
    if found.off_groups is not None:
        listed["off_groups"] = with_members(
            found.off_groups,
            lambda group, rows: replace(group, ids=tuple(str(ids[row]) for row in rows)),
        )
    return replace(found, **listed)


def with_rows(found: Audit, numbers: Ints) -> Audit:
    """Number examples and members of groups by `numbers`, those of the audited rows."""
    listed: dict[str, Any] = {
        key: table.assign(row=numbers[table["row"].to_numpy(dtype=np.intp)])
        for key, table in _tables(found).items()
    }
    if found.off_groups is not None:
        listed["off_groups"] = with_members(
            found.off_groups, lambda group, rows: replace(group, rows=numbers[rows])
        )
    return replace(found, **listed)


def without_rows(found: Audit) -> Audit:
    """Leave out the values of single rows and all ids."""
    listed: dict[str, Any] = {
        key: table.assign(id=None) for key, table in _tables(found).items() if "id" in table
    }
    groups = found.off_groups
    if groups is not None:
        groups = with_members(groups, lambda group, _: replace(group, ids=None))
    return replace(found, rows=None, off_groups=groups, **listed)


def _tables(found: Audit) -> dict[str, Any]:
    return {key: getattr(found, key) for key in LISTED if not getattr(found, key).empty}
