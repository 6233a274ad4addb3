"""Columns of a table in parts that an audit reads, and what each is for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from evenhand._validate import bad_input, check_column
from evenhand.columns import check_names
from evenhand.scale.subjects import Subject, searched_columns
from evenhand.tables import Parts


@dataclass(frozen=True)
class AuditColumns:
    """The columns of an audit.

    Parameters
    ----------
    subject : Subject
        The forecaster, or the columns with forecasts.
    source : str
        File name of the table, for messages.
    target : str
        Column with the outcomes.
    used : tuple of str
        Columns that the forecasts need.
    named, searched : tuple of str
        Columns that name groups, and those that groups are searched in.
    person : str or None
        Column that names people.
    """

    subject: Subject
    source: str
    target: str
    used: tuple[str, ...]
    named: tuple[str, ...]
    searched: tuple[str, ...]
    person: str | None

    @classmethod
    def of(
        cls,
        subject: Subject,
        parts: Parts,
        target: str,
        groups: Sequence[str],
        features: Sequence[str] | None,
        id_column: str | None = None,
        cluster: str | None = None,
    ) -> Self:
        """Check the columns that are asked for against those that are there."""
        source = parts.source
        groups = check_names(groups)
        persons = [name for name in (cluster, id_column) if name is not None]
        for name in (target, *groups, *(features or ()), *persons):
            check_column(name, parts.columns, source)
        used = subject.columns(parts.columns, source)
        for option, names in (("groups", groups), ("features", features or ())):
            if target in names:
                # given y, even the true distribution is off in one direction (method: errata)
                remedy = "groups that outcomes define look wrong in any model"
                raise bad_input(option, "leave out the target", repr(target), remedy)
        apart = {target, *persons}
        # called even if features are named: it refuses a target that is one of the forecasts
        own = searched_columns(subject, parts.columns, target, apart, source)
        searched = own if features is None else features
        named = tuple(dict.fromkeys(groups))
        # several rows of a cluster have several ids: the cluster is who may be audited only once
        person = next(iter(persons), None)
        return cls(subject, source, target, tuple(used), named, tuple(searched), person)

    @property
    def grouping(self) -> tuple[str, ...]:
        """Columns that groups are named by or searched in."""
        return tuple(dict.fromkeys((*self.named, *self.searched)))

    @property
    def columns(self) -> list[str]:
        """Columns that scoring reads."""
        return list(dict.fromkeys((self.target, *self.grouping, *self.used)))

    @property
    def with_person(self) -> list[str]:
        """Columns that scoring reads, and the one that names people."""
        # labels are text of every row: they are read where they are used, not while scoring
        return list(dict.fromkeys((*self.columns, *filter(None, [self.person]))))
