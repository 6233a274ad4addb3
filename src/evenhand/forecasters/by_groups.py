"""Groups of a forecaster's rows, defined by its parameter `by`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from evenhand._validate import InputError
from evenhand.forecast import Forecast, forecast_values
from evenhand.forecasters.grouping import By, Grouping
from evenhand.forecasters.membership import Everyone, Members
from evenhand.forecasters.overlapping import NamedGroups, taken


class ByGroups:
    """A forecaster with groups in its parameter `by`."""

    by: By | None
    _grouping: Grouping | NamedGroups | None

    def _define_groups(self, table: Any) -> None:
        """Learn the definitions of the groups."""
        self._grouping = None
        if isinstance(self.by, Mapping):
            self._grouping = NamedGroups.read(self.by, table)
        elif self.by is not None:
            self._grouping = Grouping.learn(self.by, table)

    @property
    def _own_values(self) -> list[str]:
        """Names of the values of the own forecast that define groups."""
        return self._grouping.own_values if isinstance(self._grouping, NamedGroups) else []

    def _training_members(
        self, table: Any, sample_weight: ArrayLike | None, own: pd.DataFrame
    ) -> Members:
        """Return the groups of the training rows, of which `own` are values of forecasts."""
        if self._grouping is None:
            return Everyone()
        if isinstance(self._grouping, Grouping):
            return self._grouping.members(table)
        assert isinstance(self.by, Mapping)
        masks = {str(name): value for name, value in self.by.items()}
        # the masks of rows of weight 0, which were dropped from the table
        if sample_weight is not None:
            masks = taken(masks, np.flatnonzero(np.asarray(sample_weight)))
        return self._grouping.members(table, masks, own)

    def _set_grouping(self, learned: dict[str, Any]) -> None:
        """Rebuild the definitions of the groups of a stored model."""
        self._grouping = None
        if not self.by:
            return
        if isinstance(self.by, Mapping):
            self._grouping = NamedGroups.from_state(self.by)
            self.by = dict(self._grouping.rules)
        elif not callable(self.by):  # functions are not stored
            self.by = self.by if isinstance(self.by, str) else list(self.by)
            self._grouping = Grouping.from_state(self.by, learned["columns"])

    def _members(self, rows: Any, groups: Mapping[str, Any] | None, forecast: Forecast) -> Members:
        """Return the groups of rows with their base forecasts."""
        if isinstance(self._grouping, NamedGroups):
            own = forecast_values(forecast, self._own_values)
            return self._grouping.members(rows, groups, own)
        if groups is not None:
            raise InputError(
                "groups has no effect, as no group was given to `by` as a mask; leave it out"
            )
        return Everyone() if self._grouping is None else self._grouping.members(rows)
