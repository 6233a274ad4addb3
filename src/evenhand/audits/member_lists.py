"""Members of groups in the form in which pages embed them."""

from __future__ import annotations

import base64
from collections.abc import Iterable

import numpy as np

from evenhand._validate import Mask
from evenhand.audits.off_groups import OffGroup
from evenhand.audits.plain_values import csv_cell
from evenhand.report import MemberList, MemberLists

MOST_PEOPLE = 20_000
"""Most people whose ids a page embeds."""


def member_lists(groups: Iterable[OffGroup]) -> MemberLists | None:
    """Return the members of groups by their ids; None if no ids were given."""
    known = [(one, one.rows, one.ids) for one in groups]
    listed = [(one, rows, ids) for one, rows, ids in known if rows is not None and ids is not None]
    if not listed:
        return None
    of_row = {row: id_ for _, rows, ids in listed for row, id_ in zip(rows, ids, strict=True)}
    people = np.array(sorted(of_row), dtype=np.intp)
    if people.size > MOST_PEOPLE:
        return MemberLists(people.size)
    lists = [
        MemberList(one.name, one.mass, rows.size, _bits(np.isin(people, rows)))
        for one, rows, _ in listed
    ]
    return MemberLists(people.size, tuple(csv_cell(of_row[row]) for row in people), tuple(lists))


def _bits(mask: Mask) -> str:
    """Return one bit per person, the first as the lowest bit of the first byte, as base64."""
    return base64.b64encode(np.packbits(mask, bitorder="little").tobytes()).decode()
