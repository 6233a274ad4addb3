"""Recalibration of a model for groups that are off by more than an audit's tolerance."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from evenhand._format import count
from evenhand._validate import InputError, bad_input
from evenhand.audits.blocks import missing_columns_named
from evenhand.audits.off_groups import OffGroup, marked
from evenhand.audits.row_record import RowRecord
from evenhand.censoring import CensoredTimes
from evenhand.columns import GroupRule, as_table
from evenhand.draws import RandomState
from evenhand.forecast import OWN_VALUES, Forecast

if TYPE_CHECKING:
    from evenhand.forecasters import RecalibratedRegressor


SHOWN = 3
"""Most groups that the representation of a repaired model names."""


class RepairedGroups(dict[str, Any]):
    """Rules or masks of the groups of a repair by name, often 50: the first ones are shown."""

    def __repr__(self) -> str:
        named = ", ".join(map(repr, list(self)[:SHOWN]))
        return f"<{count(len(self), 'group')}: {named}{', ...' if len(self) > SHOWN else ''}>"


class Repairable:
    """Audit with definitions of the groups that it calls off."""

    groups: pd.DataFrame
    scan: pd.DataFrame
    by_forecast: pd.DataFrame
    learned: pd.DataFrame
    off_groups: tuple[OffGroup, ...] | None
    rows: RowRecord | None

    def _marked(self, column: str) -> tuple[OffGroup, ...]:
        """Return the groups for which a decision is true."""
        listed = [table for table in (self.groups, self.scan, self.by_forecast) if len(table)]
        return marked(self.off_groups or (), listed, self.learned, column)

    def repair(
        self,
        model: Any,
        X: Any,
        y: ArrayLike,
        *,
        groups: Mapping[str, Any] | None = None,
        sample_weight: ArrayLike | None = None,
        event: ArrayLike | None = None,
        horizon: float | None = None,
        random_state: RandomState = None,
    ) -> RecalibratedRegressor:
        """Recalibrate a fitted model for the groups that are a problem.

        Groups that are significantly off within the tolerance of the audit get no map of their own;
        audit with `tolerance=0` to repair all that are off. Groups by the forecast itself are those
        by the forecast of `model`. Groups with the same rows of `X` are repaired once, under the
        first name. If no group is to be repaired, the result is a single
        map for all rows.

        The rows of the audit were used to choose the groups: pass other rows. The check of the
        repair accounts for the estimation of the maps and for the selection of the groups that need
        a correction, as both are repeated without the rows that are checked. It does not account
        for the choice of the groups by this audit if its rows are passed again; gains of these
        groups are then overestimated. A warning is given if the outcomes are those of the audit.

        Counts, events and outcomes with an atom are repaired by their kind, as the model predicts
        it, and times that may be cut off by the likelihood of what is known; see
        `RecalibratedRegressor`.

        Parameters
        ----------
        model : estimator, forecaster or function
            The audited model, fitted on other rows. It is not fitted again.
        X : DataFrame or array-like of shape (n, n_features)
            Rows that neither the model nor the audit has seen, with the columns of the groups.
        y : array-like of shape (n,)
            Outcomes.
        groups : dict of str to array of bool, optional
            Masks of these rows for groups that no rule defines: groups that were given to the audit
            as masks, and learned groups without a rule. Without a mask they are not repaired, with
            a warning that names them.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows.
        event : array-like of shape (n,), optional
            For times until an event: 1 or True where the event was observed, 0 or False where the
            time is cut off, as for `audit`.
        horizon : float, optional
            For times: up to when outcomes are followed, as for `audit`.
        random_state : int, generator or None
            Seed of the folds of the check.

        Returns
        -------
        RecalibratedRegressor
            Fitted; `check_` and `summary()` report for each group whether the repair helped.
        """
        repaired = _repaired(
            None if self.off_groups is None else self._marked("problem"),
            model,
            X,
            y,
            groups=groups,
            random_state=random_state,
            options={"sample_weight": sample_weight, "event": event, "horizon": horizon},
        )
        outcomes = y if event is None else CensoredTimes.of(y, event, horizon).time
        if self.rows is not None and self.rows.has_outcomes(np.asarray(outcomes, dtype=np.float64)):
            warnings.warn(
                "X and y are the rows of this audit, which chose the groups by them: the check of"
                " the repair overestimates its gains; pass other rows",
                UserWarning,
                stacklevel=2,
            )
        return repaired


def _repaired(
    off: Sequence[OffGroup] | None,
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    groups: Mapping[str, Any] | None,
    random_state: RandomState,
    options: Mapping[str, Any],
) -> RecalibratedRegressor:
    """Fit a `RecalibratedRegressor` for groups, with `options` of its `fit`.

    The other parameters are those of `Audit.repair`.
    """
    if off is None:
        raise InputError(
            "this audit does not contain the definitions of its groups, as it was read in parts or"
            " from PITs of blocks; name the groups in RecalibratedRegressor(model, by={name: rule})"
        )
    if isinstance(model, Forecast):
        remedy = "pass the model, or a function from X to its forecasts"
        raise bad_input("model", "be a fitted model or a function", "a Forecast", remedy)
    masks = dict(groups or {})
    known = {group.name for group in off}
    for name in masks:
        if name not in known:
            rule = "name groups that are a problem in the audit"
            remedy = f"these are: {', '.join(sorted(known)) or 'none'}"[:200]
            raise bad_input("groups", rule, repr(name), remedy)
    by = {group.name: masks.get(group.name, group.rule) for group in off}
    without = [name for name, rule in by.items() if rule is None]
    by = {name: rule for name, rule in by.items() if rule is not None}
    if without:
        listed = ", ".join(map(repr, without))
        warnings.warn(
            f"not repaired, as no rule defines these groups on other rows: {listed}; pass masks of"
            f" the rows of X, such as groups={{{without[0]!r}: mask}}",
            UserWarning,
            stacklevel=3,
        )
    unfitted = _unfitted(model, _distinct(by, X, y), random_state)
    with missing_columns_named(model, X):
        return unfitted.fit(X, y, **options)


def _distinct(by: Mapping[str, Any], X: Any, y: ArrayLike) -> RepairedGroups:
    """Return the groups without rules that select the same rows as a rule before."""
    table = as_table(X, np.size(y), name="X", per="outcome")
    # each group widens the intervals of the check for all others
    found: dict[object, tuple[str, Any]] = {}
    for name, rule in by.items():
        # groups by the forecast are not evaluated, as few have the rows of another
        is_of_table = isinstance(rule, GroupRule) and OWN_VALUES.keys().isdisjoint(rule.columns)
        rows = rule.mask(table).tobytes() if is_of_table else name
        found.setdefault(rows, (name, rule))
    return RepairedGroups(found.values())


def _unfitted(
    model: Any, by: Mapping[str, Any], random_state: RandomState
) -> RecalibratedRegressor:
    # imported here: few audits are followed by a repair, and forecasters import scikit-learn
    from sklearn.frozen import FrozenEstimator

    from evenhand.forecasters import RecalibratedRegressor

    # a fitted model is not fitted again: all rows are held-out rows
    is_estimator = hasattr(model, "fit") and not isinstance(model, FrozenEstimator)
    frozen = FrozenEstimator(model) if is_estimator else model
    return RecalibratedRegressor(frozen, by=by or None, random_state=random_state)
