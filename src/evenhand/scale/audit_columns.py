"""Columns that an audit of a table in parts reads, by purpose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from evenhand._validate import InputError, check_column
from evenhand.columns import check_names
from evenhand.scale.subjects import Subject, searched_columns
from evenhand.tables import Parts


@dataclass(frozen=True)
class AuditColumns:
    """The columns of an audit.

    Parameters
    ----------
    subject : Subject
        The forecaster, or the columns that contain forecasts.
    source : str
        File name of the table, for messages.
    target : str
        Column with the outcomes.
    used : tuple of str
        Columns that the forecasts require.
    named, searched : tuple of str
        Columns that define groups, and columns in which groups are searched.
    person : str or None
        Column with ids of people.
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
        """Check that the requested columns exist, and collect them."""
        source = parts.source
        groups = check_names(groups)
        persons = [name for name in (cluster, id_column) if name is not None]
        for name in (target, *groups, *(features or ()), *persons):
            check_column(name, parts.columns, source)
        used = subject.columns(parts.columns, source)
        for option, names in (("groups", groups), ("features", features or ())):
            if target in names:
                # in groups defined by y even the true distribution is miscalibrated
                # (method: errata)
                raise InputError(
                    f"{option} contains {target!r}, the target: groups defined by the outcome are"
                    " miscalibrated under any model; leave it out"
                )
        apart = {target, *persons}
        # called even if features are given: it refuses a target that is one of the forecasts
        own = searched_columns(subject, parts.columns, target, apart, source)
        searched = own if features is None else features
        named = tuple(dict.fromkeys(groups))
        # a cluster may have several ids: one row per cluster is audited
        person = next(iter(persons), None)
        return cls(subject, source, target, tuple(used), named, tuple(searched), person)

    @property
    def grouping(self) -> tuple[str, ...]:
        """Columns that define groups or in which groups are searched."""
        return tuple(dict.fromkeys((*self.named, *self.searched)))

    @property
    def columns(self) -> list[str]:
        """Columns read for scoring."""
        return list(dict.fromkeys((self.target, *self.grouping, *self.used)))

    @property
    def with_person(self) -> list[str]:
        """Columns read for scoring, and the column with ids of people."""
        # ids are text in every row: they are read only where they are used, not for scoring
        return list(dict.fromkeys((*self.columns, *filter(None, [self.person]))))
