"""Held-out forecasts of the rows of a fit, with their outcomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from evenhand._validate import Floats, InputError
from evenhand.censoring import CensoredTimes
from evenhand.distributions import Distribution, OutcomeKind
from evenhand.forecast import Forecast, forecast_values
from evenhand.forecasters.adapters import Base, ResidualBase, Training
from evenhand.forecasters.held_out import HeldOut
from evenhand.forecasters.pit_cells import PitCells
from evenhand.tables import take_rows


def held_out_forecasts(
    base: Base,
    estimator: Any,
    rows: Training,
    outcomes: Floats,
    times: CensoredTimes | None,
    on_support: Callable[[Distribution], Distribution],
    own_values: Sequence[str],
) -> tuple[HeldOut, pd.DataFrame]:
    """Return held-out forecasts of the rows with their outcomes, and values of these forecasts.

    Parameters
    ----------
    base : Base
        The fitted estimator.
    estimator : estimator
        The estimator as it was given.
    rows : Training
        Rows of the fit, with outcomes on the line.
    outcomes : ndarray of shape (n,)
        Outcomes in their own units.
    times : CensoredTimes or None
        Which of the outcomes are times that are cut off; None if all are known.
    on_support : callable
        Map from the line to the support.
    own_values : sequence of str
        Columns of the table of `forecast_values`. Forecasts of a model that has seen the outcomes
        would sort the rows by these.

    Raises
    ------
    InputError
        If a forecast is not finite, or is not one of times if there are `times`.
    """

    def judged(distribution: Distribution, known: Floats) -> tuple[HeldOut, pd.DataFrame]:
        forecast = Forecast(on_support(distribution))
        # checks of the forecast come before its values
        found, values = HeldOut.of(forecast, known, times), forecast_values(forecast, own_values)
        if not found.is_finite:
            raise InputError(
                f"estimator {type(base.estimator).__name__} predicts distributions that are not"
                " finite; check its predictions for NaN"
            )
        return found, values

    kind = type(base)
    # a fitted model has not seen these rows, so all forecasts are held out
    if kind.is_held_out(estimator):
        return judged(base.distribution(rows.X), outcomes)
    if isinstance(base, ResidualBase) and base.unseen_pit is not None and not own_values:
        # its residuals are already cross-fitted
        return HeldOut(OutcomeKind.CONTINUOUS, PitCells.of(base.unseen_pit)), pd.DataFrame()
    # a frozen plain regressor is not refitted, but its residual distribution is
    parts, own = [], []
    for learn, test in rows.folds():
        # inside a caller that has checked all outcomes, all of them may be equal
        if (learn.y == learn.y[0]).all() and not (outcomes == outcomes[0]).all():
            raise InputError(
                f"y is {learn.y[0]:g} in all rows outside one of the folds; give more rows with"
                " other outcomes, or pass a fitted model in a FrozenEstimator"
            )
        part = kind.fit(estimator, learn).distribution(take_rows(rows.X, test))
        found, values = judged(part, outcomes[test])
        parts.append((test, found))
        own.append(values)
    order = np.argsort(np.concatenate([test for test, _ in parts]), kind="stable")
    return HeldOut.joined(parts), pd.concat(own).iloc[order]
