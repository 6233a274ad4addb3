"""Groups of rows and their definitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from evenhand._validate import Floats, Mask, bad_input, is_container
from evenhand.tables.values import level

EVERYONE = "everyone"
"""Name of the group of all rows, which no other group may have."""

Operator = Literal["=", "!=", "<", "<=", ">", ">=", "missing", "present"]

# Rules are sentences, group names are short; comparisons of numbers are printed alike in both.
WORDS: dict[Operator, str] = {
    "=": "is",
    "!=": "is not",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
    "missing": "is missing",
    "present": "is not missing",
}


@dataclass(frozen=True)
class Group:
    """Definition of a group of rows: a comparison of a column with a value, or a given mask.

    Parameters
    ----------
    column : str or None
        Column that defines the group; None for a mask.
    operator : {"=", "!=", "<", "<=", ">", ">=", "missing", "present"} or None
        Comparison operator; None for a mask.
    value : str or None
        Value compared with, as text; None for "missing" and "present".
    mask : str or None
        Name of a given mask.

    Examples
    --------
    >>> Group("age", "<=", "50").name, Group.given("hours > 40").column
    ('age <= 50', None)
    """

    column: str | None
    operator: Operator | None
    value: str | None = None
    mask: str | None = None

    @classmethod
    def given(cls, name: str) -> Self:
        """Return the group of a mask with a given name."""
        return cls(None, None, mask=name)

    @property
    def name(self) -> str:
        """Name of the group in tables, such as `age <= 50`."""
        return self._text(self.operator) if self.mask is None else self.mask

    @property
    def words(self) -> str:
        """Comparison as part of a sentence, such as `job is cook`."""
        return self.name if self.operator is None else self._text(WORDS[self.operator])

    def _text(self, operator: str | None) -> str:
        text = f"{self.column} {operator}"
        return text if self.value is None else f"{text} {self.value}"


@dataclass(frozen=True)
class Condition:
    """Conjunction of comparisons of one column.

    Parameters
    ----------
    comparisons : tuple of Group
        One comparison, or the two ends of a range.
    or_missing : bool, default False
        Whether rows with a missing value are included as well.

    Examples
    --------
    >>> print(Condition((Group("age", ">", "30"), Group("age", "<=", "50")), or_missing=True))
    age > 30 and age <= 50 (or missing)
    """

    comparisons: tuple[Group, ...]
    or_missing: bool = False

    def __str__(self) -> str:
        words = " and ".join(group.words for group in self.comparisons)
        return f"{words} (or missing)" if self.or_missing else words


class Groups(Mapping[str, Mask]):
    """Named groups of the same rows: masks by name, with the definition of each group.

    Groups whose members are known only by probability are carried beside the masks. They have no
    mask, so they are not items of the mapping: what needs known members leaves them out.

    Parameters
    ----------
    pairs : iterable of (Group, ndarray of bool)
        Groups with unique names, and their rows as masks.
    probable : iterable of (Group, ndarray of float)
        Groups known by probability, and each row's probability of membership, between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> groups = Groups([(Group.given("north"), np.array([True, False]))],
    ...                 [(Group.given("south"), np.array([0.2, 0.9]))])
    >>> list(groups), groups.is_probable("south"), groups.membership("south")
    (['north'], True, array([0.2, 0.9]))
    >>> groups.membership("north")
    array([1., 0.])
    """

    def __init__(
        self,
        pairs: Iterable[tuple[Group, Mask]] = (),
        probable: Iterable[tuple[Group, Floats]] = (),
    ) -> None:
        self._pairs = {group.name: (group, mask) for group, mask in pairs}
        self._probable = {group.name: (group, shares) for group, shares in probable}

    def __getitem__(self, name: str) -> Mask:
        return self._pairs[name][1]

    def __iter__(self) -> Iterator[str]:
        return iter(self._pairs)

    def __len__(self) -> int:
        return len(self._pairs)

    def what(self, name: str) -> Group:
        """Return the definition of a group."""
        return (self._probable if name in self._probable else self._pairs)[name][0]

    def pairs(self) -> Iterable[tuple[Group, Mask]]:
        """Return the groups of known members with their masks."""
        return self._pairs.values()

    def probable(self) -> Iterable[tuple[Group, Floats]]:
        """Return the groups known by probability with each row's probability of membership."""
        return self._probable.values()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all groups, those known by probability last."""
        return (*self._pairs, *self._probable)

    def is_probable(self, name: str) -> bool:
        """Whether the members of a group are known only by probability."""
        return name in self._probable

    def membership(self, name: str) -> Floats:
        """Return each row's probability of membership, shape (n,): 0 or 1 for known members."""
        if name in self._probable:
            return self._probable[name][1]
        return self[name].astype(np.float64)

    def take(self, rows: NDArray[Any]) -> Groups:
        """Return the groups restricted to some rows, without groups that become empty."""
        # the error of an empty group is undefined
        return Groups(
            ((group, mask[rows]) for group, mask in self.pairs() if mask[rows].any()),
            ((group, shares[rows]) for group, shares in self.probable() if shares[rows].any()),
        )

    def without(self, names: Iterable[str]) -> Groups:
        """Return all groups except those of these names."""
        left_out = set(names)
        return Groups(
            (pair for name, pair in self._pairs.items() if name not in left_out),
            (pair for name, pair in self._probable.items() if name not in left_out),
        )

    def known(self) -> Groups:
        """Return the groups of known members."""
        return Groups(self.pairs())


def label(value: Any) -> str:
    """Return a value as text for group names: 2.0 as `2`, a midnight as its date.

    Raises InputError if it is a list or a struct.

    Examples
    --------
    >>> import pandas as pd
    >>> label(2.0), label(pd.Timestamp("2020-01-31"))
    ('2', '2020-01-31')
    """
    if is_container(value):
        got = repr(value)[:80]
        raise bad_input("the label of a group", "be a single value", got, "convert it to text")
    return level(value)
