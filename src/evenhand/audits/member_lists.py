"""Members of groups in the form in which pages embed them."""

from __future__ import annotations

import base64
from collections.abc import Iterable

import numpy as np

from evenhand.audits.off_groups import OffGroup
from evenhand.audits.plain_values import csv_cell
from evenhand.report import MemberList, MemberLists

MOST_PEOPLE = 20_000
"""Most people whose ids a page embeds."""


def member_lists(groups: Iterable[OffGroup]) -> MemberLists | None:
    """Return the members of groups by their ids; None if no ids were given."""
    known = [one for one in groups if one.rows is not None and one.ids is not None]
    if not known:
        return None
    ids = {row: id_ for one in known for row, id_ in zip(one.rows, one.ids, strict=True)}
    rows = np.array(sorted(ids), dtype=np.intp)
    if rows.size > MOST_PEOPLE:
        return MemberLists(rows.size)
    lists = [MemberList(one.name, one.mass, _bits(np.isin(rows, one.rows))) for one in known]
    return MemberLists(rows.size, tuple(csv_cell(ids[row]) for row in rows), tuple(lists))


def _bits(mask: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> str:
    """Return one bit per person, the first as the lowest bit of the first byte, as base64."""
    return base64.b64encode(np.packbits(mask, bitorder="little").tobytes()).decode()
