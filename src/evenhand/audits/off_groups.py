"""Groups that are significantly off in an audit, with rules that select them among other rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from evenhand import search
from evenhand._format import in_full
from evenhand._validate import Floats, Ints
from evenhand.columns import Condition, Group, GroupRule, Groups

MOST_SCANNED = 50
"""Most scanned groups that are listed as off with their rules, the smallest p-values first."""


@dataclass(frozen=True)
class OffGroup:
    """Group that is significantly off in an audit.

    Parameters
    ----------
    name : str
        Name in the tables of the audit.
    rule : GroupRule or None
        Rule that selects the group among other rows; None for a mask, and for a learned group that
        no rule describes.
    mass : float or None
        Size of a learned group as in the table `learned`; None for other groups.
    rows : ndarray of int or None
        Row numbers of its members in the given table; None if they are known only by probability.
    ids : tuple of str or None
        Ids of these members; None if none were given.
    """

    name: str
    rule: GroupRule | None
    mass: float | None = None
    rows: Ints | None = field(default=None, compare=False, repr=False)
    ids: tuple[str, ...] | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, groups: Iterable[Group], rows: Ints | None) -> OffGroup:
        """Return one group, or the intersection of several."""
        parts = tuple(groups)
        name = " and ".join(group.name for group in parts)
        has_rule = all(group.column is not None and group.mask is None for group in parts)
        return cls(name, GroupRule.of(*parts) if has_rule else None, rows=rows)


def off_groups(
    named: Groups,
    named_p: Floats,
    scanned: search.Scanned | None,
    scanned_p: Floats,
    level: float,
    kept: Ints,
) -> tuple[OffGroup, ...]:
    """Return the named and scanned groups with adjusted p-values below a level, each name once.

    The audit keeps those that it calls off. `kept` are the audited rows' numbers in the given
    table.
    """
    found = [
        OffGroup.of([named.what(name)], kept[named[name]] if name in named else None)
        for name in _below(list(named.names), named_p, level)
    ]
    if scanned is not None:
        order = np.argsort(scanned_p, kind="stable")[:MOST_SCANNED]
        for i in order[scanned_p[order] < level]:
            found.append(OffGroup.of(scanned.parts(i), kept[scanned.rows(i)]))
    return tuple({group.name: group for group in found}.values())


def off_learned(found: Iterable[search.FoundGroup], kept: Ints) -> Iterator[OffGroup]:
    """Yield the learned groups that may be off: those whose own detection test rejects."""
    for group in found:
        if group.is_significant:
            conditions: tuple[Condition, ...] = tuple(group.conditions)
            rule = GroupRule(conditions) if conditions else None
            name = rule.name if rule else f"learned group of {in_full(group.mass)} of people"
            yield OffGroup(name, rule, group.mass, kept[group.rows])


def marked(
    groups: Iterable[OffGroup], tables: Iterable[pd.DataFrame], learned: pd.DataFrame, column: str
) -> tuple[OffGroup, ...]:
    """Return the groups for which a column is true in the tables that list them.

    Parameters
    ----------
    groups : iterable of OffGroup
        Groups.
    tables : iterable of DataFrame
        Tables of named and scanned groups.
    learned : DataFrame
        Table of learned groups.
    column : {"off", "problem"}
        Decision of the audit.
    """
    names = {name for table in tables for name in table.loc[table[column], "group"]}
    masses = set(learned.loc[learned[column], "mass"])
    return tuple(
        group
        for group in groups
        if (group.name in names if group.mass is None else group.mass in masses)
    )


def with_members(
    groups: Iterable[OffGroup], change: Callable[[OffGroup, Ints], OffGroup]
) -> tuple[OffGroup, ...]:
    """Return the groups, those with known members changed by a function of them and their rows."""
    return tuple(group if group.rows is None else change(group, group.rows) for group in groups)


def member_table(groups: Iterable[OffGroup]) -> pd.DataFrame:
    """Return the members of groups: `group`, `mass`, `row` and `id`."""
    parts = [
        pd.DataFrame(
            {
                "group": group.name,
                "mass": np.nan if group.mass is None else group.mass,
                "row": group.rows,
                # as objects: pandas would convert None to NaN
                "id": pd.Series(group.ids or [None] * group.rows.size, dtype=object),
            }
        )
        for group in groups
        if group.rows is not None
    ]
    empty = pd.DataFrame({"group": [], "mass": [], "row": [], "id": []})
    return pd.concat(parts, ignore_index=True) if parts else empty


def plain_groups(groups: Iterable[OffGroup] | None) -> list[dict[str, Any]] | None:
    """Return the groups as JSON values; None if they are not known."""
    if groups is None:
        return None
    return [
        {
            "group": group.name,
            "mass": group.mass,
            "rule": None if group.rule is None else group.rule.to_state(),
        }
        for group in groups
    ]


def _below(names: Sequence[str], p_values: Floats, level: float) -> list[Any]:
    return [name for name, p_value in zip(names, p_values, strict=True) if p_value < level]
