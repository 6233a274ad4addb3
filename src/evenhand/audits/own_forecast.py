"""Groups of an audit by the forecast's own level and spread (verdict: 1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from evenhand._format import plain_number
from evenhand._validate import Floats, Mask
from evenhand.calibration import mid_ranks, own_parts
from evenhand.columns import Condition, Group, GroupRule, Groups

PARTS = (
    "half",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
)
"""Names of the parts that 2 to 10 groups divide people into."""

KEY_COLUMNS = ("key", "part", "n_parts", "lowest", "highest")
"""Columns of groups by the forecast, beside those of other groups."""


@dataclass(frozen=True, eq=False)
class OwnGroup:
    """Group of people whose forecasts have similar values.

    Parameters
    ----------
    key : str
        Name of the value, which rules use as a column.
    part, n_parts : int
        Place among the groups by this value, from 1, and their number.
    lowest, highest : float
        Range of the values.
    rule : GroupRule
        Rule on the value that selects the group among other rows.
    mask : ndarray of bool, shape (n,)
        Its rows.
    """

    key: str
    part: int
    n_parts: int
    lowest: float
    highest: float
    rule: GroupRule
    mask: Mask

    @property
    def name(self) -> str:
        """Name in tables."""
        ends = [plain_number(end) for end in (self.lowest, self.highest)]
        reach = ends[0] if ends[0] == ends[1] else " to ".join(ends)
        return f"{self.key} {reach} ({PARTS[self.n_parts - 2]} {self.part})"


def own_keys(values: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return the values of forecasts that define groups of their own.

    Values that are constant, not finite, or in the order of others before, or its reverse, are left
    out.
    """
    found: dict[str, Floats] = {}
    ranks: list[Floats] = []
    for name, value in values.items():
        if not np.isfinite(value).all():
            continue
        rank = mid_ranks(value)
        if np.ptp(rank) == 0:
            continue
        # the groups by a value in the opposite order are the same ones
        if not any(np.allclose(rank, other) or np.allclose(rank, 1 - other) for other in ranks):
            found[name] = value
            ranks.append(rank)
    return found


def own_groups(keys: Mapping[str, Floats], weights: Floats | None) -> tuple[OwnGroup, ...]:
    """Return the groups by each value of the forecasts; none of too few rows."""
    found: list[OwnGroup] = []
    for key, values in keys.items():
        parts, n_parts = own_parts(values, weights)
        if n_parts == 1:
            continue
        listed = np.unique(parts)
        ends = [(float(values[parts == k].min()), float(values[parts == k].max())) for k in listed]
        for i, k in enumerate(listed):
            low, high = ends[i]
            sides = []
            if i:
                sides.append(Group(key, ">", _between(ends[i - 1][1], low)))
            if i + 1 < listed.size:
                sides.append(Group(key, "<=", _between(high, ends[i + 1][0])))
            if not sides:
                continue
            rule = GroupRule((Condition(tuple(sides)),))
            found.append(OwnGroup(key, int(k) + 1, n_parts, low, high, rule, parts == k))
    return tuple(found)


def _between(last: float, first: float) -> str:
    """Return the shortest number from `last` up to below `first`, of at least two digits."""
    middle = last + (first - last) / 2
    shown = (f"{middle:.{digits}g}" for digits in range(2, 18))
    return next((text for text in shown if last <= float(text) < first), repr(last))


def as_groups(groups: Iterable[OwnGroup]) -> Groups:
    """Return the groups by name."""
    return Groups((Group.given(group.name), group.mask) for group in groups)


def with_keys(table: pd.DataFrame, groups: Sequence[OwnGroup]) -> pd.DataFrame:
    """Return the table of groups by the forecast with the columns that define them."""
    columns = {name: [getattr(group, name) for group in groups] for name in KEY_COLUMNS}
    return table.assign(**columns)
