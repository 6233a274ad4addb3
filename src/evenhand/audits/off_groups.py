"""Groups that are significantly off in an audit, with rules that select them among other rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from evenhand import search
from evenhand._format import in_full
from evenhand._validate import Floats
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
    """

    name: str
    rule: GroupRule | None
    mass: float | None = None

    @classmethod
    def of(cls, groups: Iterable[Group]) -> OffGroup:
        """Return one group, or the intersection of several."""
        parts = tuple(groups)
        name = " and ".join(group.name for group in parts)
        has_rule = all(group.column is not None and group.mask is None for group in parts)
        return cls(name, GroupRule.of(*parts) if has_rule else None)


def off_groups(
    named: Groups, named_p: Floats, scanned: search.Scanned | None, scanned_p: Floats, level: float
) -> tuple[OffGroup, ...]:
    """Return the named and scanned groups with adjusted p-values below a level, each name once.

    The audit keeps those that it calls off.
    """
    found = [OffGroup.of([named.what(name)]) for name in _below(list(named.names), named_p, level)]
    if scanned is not None:
        order = np.argsort(scanned_p, kind="stable")[:MOST_SCANNED]
        for i in order[scanned_p[order] < level]:
            masks = [int(scanned.first[i]), int(scanned.second[i])]
            # the first mask of a single group is all rows, number -1
            found.append(OffGroup.of(scanned.masks.groups[mask] for mask in masks if mask >= 0))
    return tuple({group.name: group for group in found}.values())


def off_learned(found: Iterable[search.FoundGroup]) -> Iterator[OffGroup]:
    """Yield the learned groups that may be off: those whose own detection test rejects."""
    for group in found:
        if group.is_significant:
            conditions: tuple[Condition, ...] = tuple(group.conditions)
            rule = GroupRule(conditions) if conditions else None
            name = rule.name if rule else f"learned group of {in_full(group.mass)} of people"
            yield OffGroup(name, rule, group.mass)


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
    column : {"off", "beyond_tolerance"}
        Decision of the audit.
    """
    names = {name for table in tables for name in table.loc[table[column], "group"]}
    masses = set(learned.loc[learned[column], "mass"])
    return tuple(
        group
        for group in groups
        if (group.name in names if group.mass is None else group.mass in masses)
    )


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
