"""Groups of a forecaster's rows, defined by its parameter `by`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand._validate import InputError
from evenhand.forecasters.grouping import By, Grouping
from evenhand.forecasters.membership import Everyone, Members
from evenhand.forecasters.overlapping import NamedGroups, taken


class ByGroups:
    """A forecaster with groups in its parameter `by`."""

    by: By | None
    _grouping: Grouping | NamedGroups | None

    def _learn_groups(self, table: Any, sample_weight: ArrayLike | None) -> Members:
        """Learn the definitions of the groups; return the groups of the training rows."""
        self._grouping = None
        if self.by is None:
            return Everyone()
        if not isinstance(self.by, Mapping):
            self._grouping = Grouping.learn(self.by, table)
            return self._grouping.members(table)
        self._grouping = NamedGroups.read(self.by, table)
        masks = {str(name): value for name, value in self.by.items()}
        # the masks of rows of weight 0, which were dropped from the table
        if sample_weight is not None:
            masks = taken(masks, np.flatnonzero(np.asarray(sample_weight)))
        return self._grouping.members(table, masks)

    def _set_grouping(self, learned: dict[str, Any]) -> None:
        """Rebuild the definitions of the groups of a stored model."""
        self._grouping = None
        if isinstance(self.by, Mapping):
            self._grouping = NamedGroups.from_state(self.by)
            self.by = dict(self._grouping.rules)
        elif self.by is not None:
            self._grouping = Grouping.from_state(self.by, learned["columns"])

    def _members(self, rows: Any, groups: Mapping[str, Any] | None) -> Members:
        """Return the groups of rows to forecast."""
        if isinstance(self._grouping, NamedGroups):
            return self._grouping.members(rows, groups)
        if groups is not None:
            raise InputError(
                "groups has no effect, as no group was given to `by` as a mask; leave it out"
            )
        return Everyone() if self._grouping is None else self._grouping.members(rows)
