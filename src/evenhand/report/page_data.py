"""Data embedded in a page: the values that it shows, members of groups, and their hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from evenhand.report.records import without_nan


@dataclass(frozen=True)
class MemberList:
    """Members of a group that is off.

    Parameters
    ----------
    name : str
        Name of the group.
    mass : float or None
        Size of a learned group; None for other groups.
    n : int
        Number of members.
    bits : str
        Base64 of one bit per person of `MemberLists.ids`, the first person in the lowest bit of the
        first byte.
    """

    name: str
    mass: float | None
    n: int
    bits: str


@dataclass(frozen=True)
class MemberLists:
    """Members of groups by their ids.

    Parameters
    ----------
    n_people : int
        Number of people in any of the groups.
    ids : sequence of str
        Their ids as cells of a csv file; empty if they are too many for a page.
    groups : sequence of MemberList
        The groups; empty if there are too many people.
    """

    n_people: int
    ids: Sequence[str] = ()
    groups: Sequence[MemberList] = ()

    def __str__(self) -> str:
        """Sentence on the ids that a page contains."""
        if self.groups:
            return f"This page contains the ids of {self.n_people:,} people, members of its groups."
        return (
            f"This page contains no ids: {self.n_people:,} people are too many. `Audit.members` and"
            " the file members.csv of `evenhand audit --tables` list them."
        )

    def place(self, name: str, mass: float | None) -> int | None:
        """Return the position of a group among `groups`; None if it is not listed."""
        same = (i for i, one in enumerate(self.groups) if (one.name, one.mass) == (name, mass))
        return next(same, None)


@dataclass(frozen=True)
class PageData:
    r"""Text of the JSON that a page embeds.

    Examples
    --------
    >>> PageData.of({"name": "a <b>", "rows": [1]}).text
    '{"name":"a \\u003cb>"}'
    """

    text: str

    @classmethod
    def of(cls, values: Mapping[str, Any], members: MemberLists | None = None) -> PageData:
        """Return the data of a page that shows some values.

        Keys are sorted, there are no blanks, and characters beyond ASCII are escaped, so that equal
        values have equal texts. The values of single rows are left out.
        """
        shown = {key: value for key, value in values.items() if key != "rows"}
        if members is not None and members.groups:
            shown["members"] = {"ids": members.ids, "groups": [asdict(g) for g in members.groups]}
        text = json.dumps(without_nan(shown), sort_keys=True, separators=(",", ":"))
        # an end tag in a text would end the element that contains the data
        return cls(text.replace("<", "\\u003c"))

    @property
    def sha256(self) -> str:
        """Hash of the text as UTF-8."""
        return hashlib.sha256(self.text.encode()).hexdigest()
